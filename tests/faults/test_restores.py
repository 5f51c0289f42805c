"""A short form of the part `restores`, and its control."""

from __future__ import annotations

import pytest

from benchmarks.faults.restores import Scenario, interruptions, log_first
from tests.thoroughness import sampled

TRIALS = sampled(1, 4)


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    return Scenario.build(tmp_path_factory.mktemp("scenario"), 7)


def test_interrupted_restores_leave_one_of_two_whole_states(scenario, tmp_path):
    outcome = interruptions(scenario, TRIALS, 7, tmp_path)
    assert outcome.trials == TRIALS
    assert outcome.acknowledged > 100
    assert outcome.faults == ()


@pytest.mark.thorough
def test_a_restore_that_moves_the_log_aside_first_is_reported(scenario, tmp_path):
    assert log_first(scenario, tmp_path)
