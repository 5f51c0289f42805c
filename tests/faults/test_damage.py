"""The short form of the battery's damaged indexes and databases."""

from __future__ import annotations

import pytest

from benchmarks.faults.databases import DATABASES
from benchmarks.faults.indexes import INDEXES
from tests.thoroughness import sampled

SEED = 22


def test_damaged_indexes_change_no_answer(tmp_path):
    trials = sampled(3, 12)
    outcome = INDEXES.run(trials, SEED, tmp_path)
    assert outcome.trials == trials
    assert outcome.faults == ()


@pytest.mark.thorough
def test_a_service_that_takes_indexes_of_any_history_is_reported(tmp_path):
    [caught] = INDEXES.control(tmp_path).values()
    assert caught


@pytest.mark.thorough
def test_damage_of_a_database_or_its_log_that_nothing_says_is_reported(tmp_path):
    caught = DATABASES.control(tmp_path)
    assert list(caught) == ["no marker", "no checksums"]
    assert all(caught.values())


def test_damage_of_a_database_or_its_log_is_refused_or_said(tmp_path):
    trials = sampled(5, 20)
    outcome = DATABASES.run(trials, SEED, tmp_path)
    assert outcome.trials == trials
    assert outcome.faults == ()
