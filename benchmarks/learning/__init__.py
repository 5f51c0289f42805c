"""What learning from conversations costs those who search meanwhile: time, memory and order."""
