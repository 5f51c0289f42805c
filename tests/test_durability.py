"""Ten rounds of the durability benchmark: the real service, killed under load, against a ledger of what it promised."""

from __future__ import annotations

from benchmarks.durability import run

ROUNDS = 10


def test_nothing_acknowledged_is_lost_and_nothing_deleted_comes_back_when_the_service_is_killed(tmp_path):
    totals = run(ROUNDS, seed=20_260_101, data_dir=tmp_path / "data")
    assert totals.rounds == ROUNDS
    assert totals.acknowledged > ROUNDS
    assert totals.lost == []
    assert totals.risen == []
    assert totals.unclean == []
