"""A short form of the part `kills`, and its control."""

from __future__ import annotations

import pytest

from benchmarks.faults import kills
from tests.thoroughness import sampled

TRIALS = sampled(1, 4)


def test_kills_lose_nothing_double_nothing_and_bring_nothing_back(tmp_path):
    outcome = kills.run(TRIALS, 20_260_101, tmp_path, writing_s=0.6)
    assert outcome.trials == TRIALS + 1
    assert outcome.acknowledged > 20
    assert outcome.faults == ()


@pytest.mark.thorough
def test_the_ledgers_report_commits_that_are_removed_without_a_trace(tmp_path):
    assert all(kills.control(tmp_path).values())
