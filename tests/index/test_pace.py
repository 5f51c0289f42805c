"""The expected durations of the steps of a search."""

from __future__ import annotations

import pytest

from souvenir.index.pace import Pace


def paced(*durations_s: float) -> float:
    pace = Pace()
    for duration_s in durations_s:
        pace.waited(duration_s)
    return pace.slot_s


def test_the_first_duration_is_expected_next():
    assert paced(0.2) == 0.2


def test_one_slow_search_counts_more_than_one_fast_search():
    assert paced(0.1, 0.2) - 0.1 > 5 * (0.1 - paced(0.1, 0.0))


def test_most_of_varying_durations_are_below_the_expected_one():
    durations_s = [0.010, 0.020, 0.030, 0.040] * 50
    expected_s = paced(*durations_s)
    assert 0.030 < expected_s < 0.040


def test_an_omitted_step_leaves_its_expectation():
    pace = Pace()
    pace.searched(scan_s=0.4, late_s=0.1, rank_s=0.01, rest_s=0.02)
    pace.searched(scan_s=None, late_s=None, rank_s=0.05, rest_s=0.06)
    assert (pace.scan_s, pace.late_s) == (0.4, 0.1)
    assert (pace.rank_s, pace.rest_s) == (pytest.approx(0.02), pytest.approx(0.03))
