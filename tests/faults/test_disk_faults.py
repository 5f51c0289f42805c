"""The short form of the battery's full and broken disks."""

from __future__ import annotations

import pytest

from benchmarks.faults.disk import DISK
from tests.thoroughness import sampled

TRIALS = sampled(7, 14)
SEED = 22


def test_a_disk_that_fails_loses_nothing_and_leaves_a_service_that_works(tmp_path):
    outcome = DISK.run(TRIALS, SEED, tmp_path)
    assert outcome.trials == TRIALS
    assert outcome.faults == ()


@pytest.mark.thorough
def test_commits_that_fail_and_are_acknowledged_are_reported(tmp_path):
    [caught] = DISK.control(tmp_path).values()
    assert caught
