"""Expected durations of the steps of a search, from those of earlier searches.

An expectation rises by a share of itself when a step took longer, and falls by a smaller one when it did not, so it
settles where about one search in nine is slower (a quantile by stochastic approximation, Robbins and Monro 1951). One
that is a hundred times as slow, such as the first in a cold index, moves it no more than any other.
"""

from __future__ import annotations

RISE, FALL = 0.12, 0.015
BEFORE_THE_FIRST_S = 0.005
LEAST_S = 0.001
"""A step that takes no time, such as waiting on an idle machine, is expected to take this long, so that the expectation
follows in some 30 searches when it begins to take longer."""


class Pace:
    """Seconds of each step.

    :ivar slot_s: Waiting for a slot.
    :ivar scan_s: The vector arm.
    :ivar late_s: Late interaction.
    :ivar rank_s: What follows late interaction.
    :ivar rest_s: All other steps from the slot to the ranking, `rank_s` included.
    """

    def __init__(self) -> None:
        self.slot_s = self.scan_s = self.late_s = self.rank_s = self.rest_s = BEFORE_THE_FIRST_S

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


def _moved(expected_s: float, latest_s: float) -> float:
    return max(LEAST_S, expected_s * (1 + RISE if latest_s > expected_s else 1 - FALL))
