"""A short form of the part `clock`, and its controls."""

from __future__ import annotations

import pytest

from benchmarks.faults import clock
from tests.thoroughness import sampled

TRIALS = sampled(1, 4)


def test_jumps_of_the_clock_lose_nothing_and_leave_times_and_schedules_right(tmp_path):
    outcome = clock.run(TRIALS, 7, tmp_path)
    assert outcome.trials == TRIALS
    assert outcome.acknowledged > 50
    assert outcome.faults == ()


@pytest.mark.thorough
def test_wrong_times_evictions_and_schedules_are_reported(tmp_path):
    assert all(clock.control(tmp_path).values())
