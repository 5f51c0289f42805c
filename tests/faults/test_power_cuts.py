"""The short form of the battery's power cuts."""

from __future__ import annotations

import pytest

from benchmarks.faults.power import POWER
from tests.thoroughness import sampled

STATES = sampled(8, 40)
SEED = 22


def test_a_power_cut_loses_nothing_and_raises_no_false_alarm(tmp_path):
    outcome = POWER.run(STATES, SEED, tmp_path)
    assert outcome.trials == STATES
    assert outcome.acknowledged > STATES
    assert outcome.faults == ()


@pytest.mark.thorough
def test_a_log_that_is_not_synced_and_a_marker_that_is_written_early_are_reported(tmp_path):
    caught = POWER.control(tmp_path)
    assert list(caught) == ["log not synced", "marker before the sync"]
    assert all(caught.values())
