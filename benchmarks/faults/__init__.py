"""The fault battery: kills, power cuts, damage, full disks and clocks, against ledgers of acknowledged writes."""
