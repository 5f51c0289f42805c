"""Expected durations of the steps of a search, from those of earlier searches."""

from __future__ import annotations

WEIGHT_OF_SLOWER, WEIGHT_OF_FASTER = 0.25, 0.03
"""Weight of the latest duration in the moving average. Slower ones count more, so that it stays above most durations:
at these weights above about nine in ten."""


class Pace:
    """Moving averages in seconds, 0 before the first search.

    :ivar slot_s: Waiting for a slot.
    :ivar scan_s: The vector arm.
    :ivar late_s: Late interaction.
    :ivar rank_s: What follows late interaction.
    :ivar rest_s: All other steps from the slot to the ranking, `rank_s` included.
    """

    def __init__(self) -> None:
        self.slot_s = self.scan_s = self.late_s = self.rank_s = self.rest_s = 0.0

    def waited(self, slot_s: float) -> None:
        self.slot_s = _moved(self.slot_s, slot_s)

    def searched(self, *, scan_s: float | None, late_s: float | None, rank_s: float, rest_s: float) -> None:
        """Note the durations of a search; None: it omitted the step."""
        if scan_s is not None:
            self.scan_s = _moved(self.scan_s, scan_s)
        if late_s is not None:
            self.late_s = _moved(self.late_s, late_s)
        self.rank_s = _moved(self.rank_s, rank_s)
        self.rest_s = _moved(self.rest_s, rest_s)


def _moved(average: float, latest: float) -> float:
    if not average:
        return latest
    return average + (WEIGHT_OF_SLOWER if latest > average else WEIGHT_OF_FASTER) * (latest - average)
