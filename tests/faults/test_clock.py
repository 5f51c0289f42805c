"""The controls of the part `clock`."""

from __future__ import annotations

from benchmarks.faults import clock


def test_wrong_times_evictions_and_schedules_are_reported(tmp_path):
    assert all(clock.control(tmp_path).values())
