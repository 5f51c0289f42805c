"""A short form of the part `restores`, and its control."""

from __future__ import annotations

from benchmarks.faults import restores

TRIALS = 2


def test_interrupted_restores_leave_one_of_two_whole_states(tmp_path):
    outcome = restores.run(TRIALS, 7, tmp_path)
    assert outcome.trials == TRIALS
    assert outcome.acknowledged > 100
    assert outcome.faults == ()


def test_a_restore_that_moves_the_log_aside_first_is_reported(tmp_path):
    assert all(restores.control(tmp_path).values())
