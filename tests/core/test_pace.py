"""The expected durations of the steps of a search."""

from __future__ import annotations

import random

from souvenir.core.concurrency import Pace


def paced(*durations_s: float) -> float:
    pace = Pace()
    for duration_s in durations_s:
        pace.waited(duration_s)
    return pace.slot_s


def test_about_one_duration_in_nine_is_longer_than_expected():
    dice = random.Random(1)
    durations_s = [dice.uniform(0.010, 0.110) for _ in range(1_000)]
    assert 0.085 < paced(*durations_s) < 0.110


def test_a_new_level_is_expected_after_some_searches():
    assert 0.035 < paced(*[0.04] * 30) < 0.05
    assert 0.004 < paced(*[0.04] * 30, *[0.005] * 200) < 0.006


def test_one_stall_hardly_moves_what_is_expected():
    usual = [0.010] * 100
    assert paced(*usual, 30.0) < 1.2 * paced(*usual)


def test_an_omitted_step_leaves_its_expectation():
    pace = Pace()
    pace.scan_s, pace.late_s = 0.4, 0.1
    pace.searched(scan_s=None, late_s=None, rank_s=1.0, rest_s=1.0)
    assert (pace.scan_s, pace.late_s) == (0.4, 0.1)
    assert pace.rank_s > Pace().rank_s
    assert pace.rest_s > Pace().rest_s
