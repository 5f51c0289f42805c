"""Short rounds of the faults of replicas, and the controls of their ledgers and histories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.replica_faults.cluster import FAKE, Standby
from benchmarks.replica_faults.faults import LATE_STANDBY
from benchmarks.replica_faults.rounds import Rounds, running_rounds

SEED = 20_260_101
CLIENTS = 8
LEASE_S = 3.0


@pytest.fixture(scope="module")
def rounds(module_folder: Path) -> Iterator[Rounds]:
    with running_rounds(module_folder, SEED, Standby.NONE, clients=CLIENTS, lease_s=LEASE_S) as rounds:
        yield rounds


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("kill -9 of a replica", marks=pytest.mark.thorough),
        "SIGSTOP, longer than the lease",
        pytest.param("replica cut off from the database", marks=pytest.mark.thorough),
        "kill -9 of the database",
    ],
)
def test_a_fault_loses_nothing_doubles_nothing_and_leaves_no_read_stale(rounds: Rounds, fault: str):
    found = rounds.play(fault)
    assert found.faults == (), f"seed {SEED}, round {rounds.played}"
    assert found.acknowledged > 0
    assert found.operations > found.histories > 0


@pytest.mark.thorough
def test_a_failover_that_loses_commits_is_reported(cluster_folder: Path):
    with running_rounds(cluster_folder, SEED, Standby.ASYNCHRONOUS, clients=CLIENTS) as rounds:
        found = rounds.play(LATE_STANDBY)
    assert found.outcome.lost


@pytest.mark.thorough
def test_indexes_that_do_not_follow_other_replicas_are_reported(cluster_folder: Path):
    with running_rounds(cluster_folder, SEED, Standby.NONE, (*FAKE, "--stale"), clients=CLIENTS) as rounds:
        found = rounds.play("connections ended by the server")
    assert any("was acknowledged" in sentence for sentence in found.stale)
