"""Rounds: clients send requests, a fault happens meanwhile, and then every replica is compared with the ledgers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.faults import stored
from benchmarks.faults.jobs import settle_jobs
from benchmarks.faults.ledger import compare
from benchmarks.faults.model import scripted_model
from benchmarks.faults.part import Outcome
from benchmarks.replica_faults.clients import Client, JobClient
from benchmarks.replica_faults.cluster import FAKE, Cluster, Standby, running
from benchmarks.replica_faults.faults import CONTROLS, FAULTS
from benchmarks.replica_faults.registers import Register, new_registers
from benchmarks.replica_faults.requests import GIVES_UP_S, Caller
from benchmarks.service import ServiceFailed
from souvenir.store.postgres.replicas import LEASE_S

CLIENTS = 16
REGISTERS = 6
BEFORE_S, AFTER_S = (0.3, 1.5), (0.5, 1.5)
EXPORTED_EVERY = 10
SETTINGS = {"SNAPSHOT_INTERVAL_S": "1"}


@dataclass(frozen=True, slots=True)
class Round:
    """The result of a round, or of several.

    :param histories: Of registers; each of them is linearizable or has a sentence in `stale`.
    :param operations: On registers. :param uncertain: Requests without an answer, or answered 503.
    :param pause_s: The longest time in which no write was acknowledged.
    """

    outcome: Outcome = field(default_factory=Outcome)
    stale: tuple[str, ...] = ()
    histories: int = 0
    operations: int = 0
    requests: int = 0
    acknowledged: int = 0
    uncertain: int = 0
    pause_s: float = 0.0

    @property
    def faults(self) -> tuple[str, ...]:
        return self.outcome.faults + self.stale

    def __add__(self, other: Round) -> Round:
        return Round(
            self.outcome + other.outcome,
            self.stale + other.stale,
            self.histories + other.histories,
            self.operations + other.operations,
            self.requests + other.requests,
            self.acknowledged + other.acknowledged,
            self.uncertain + other.uncertain,
            max(self.pause_s, other.pause_s),
        )


@dataclass(slots=True)
class Rounds:
    """A running cluster and its clients, who keep their ledgers over all rounds."""

    cluster: Cluster
    seed: int
    clients: list[Client]
    played: int = 0

    def play(self, name: str) -> Round:
        """Play a round with a fault of this name.

        :raises ServiceFailed: If the cluster does not work again after the fault.
        """
        self.played += 1
        dice = Random(f"{self.seed} {self.played}")
        with closing(Caller(self.cluster.replicas, dice)) as caller:
            registers = new_registers(caller, dice, REGISTERS)
        began, before = time.monotonic(), self._counts()
        description = self._break(name, registers, dice)
        ended = time.monotonic()
        acknowledged = sorted(at for client in self.clients for at in client.caller.acknowledged_at if at >= began)
        result = self._compared(registers, dice)
        counts = [after - count for after, count in zip(self._counts(), before, strict=True)]
        print(f"{self.played}: {name}: {description}, {ended - began:.1f} s, {len(result.faults)} faults", flush=True)
        return result + Round(
            histories=len(registers),
            operations=sum(len(register.history) for register in registers),
            requests=counts[0],
            acknowledged=len(acknowledged),
            uncertain=counts[1],
            pause_s=max(b - a for a, b in zip([began, *acknowledged], [*acknowledged, ended], strict=True)),
        )

    def _counts(self) -> tuple[int, int]:
        callers = [client.caller for client in self.clients]
        return sum(one.requests for one in callers), sum(one.uncertain for one in callers)

    def _break(self, name: str, registers: Sequence[Register], dice: Random) -> str:
        stop = threading.Event()
        threads = [threading.Thread(target=client.run, args=(registers, stop), daemon=True) for client in self.clients]
        for thread in threads:
            thread.start()
        time.sleep(dice.uniform(*BEFORE_S))
        description = {**FAULTS, **CONTROLS}[name](self.cluster, dice)
        self.cluster.wait_until_ready()
        time.sleep(dice.uniform(*AFTER_S))
        stop.set()
        for thread in threads:
            thread.join(GIVES_UP_S + 30.0)
        if any(thread.is_alive() for thread in threads):
            raise ServiceFailed(f"a client waits for an answer without end after {name}")
        return description

    def _compared(self, registers: Sequence[Register], dice: Random) -> Round:
        ledgers = [client.ledger for client in self.clients]
        outcome = Outcome(trials=1)
        for place, replica in enumerate(self.cluster.replicas):
            with closing(Caller([replica], dice)) as caller:
                for register in registers:
                    register.read_in_all_ways(caller)
            client = replica.client()
            try:
                if not place:
                    outcome += Outcome(lost=settle_jobs(client, ledgers, wait=True))
                found = compare(ledgers, stored.read(client, ledgers))
                found += stored.search(client, ledgers, dice)
                found += Outcome(wrong=stored.health(client))
                if self.played % EXPORTED_EVERY == 0:
                    found += Outcome(risen=stored.exported(client, ledgers))
            finally:
                client.close()
            kinds = (found.lost, found.doubled, found.risen, found.wrong)
            outcome += Outcome(0, 0, *(tuple(f"{replica.name}: {one}" for one in kind) for kind in kinds))
        stale = [sentence for register in registers if (sentence := register.violation()) is not None]
        wrong = list[str]()
        for one in self.clients:
            stale += one.stale
            wrong += one.failures
            one.stale.clear()
            one.failures.clear()
        return Round(outcome + Outcome(wrong=tuple(wrong)), tuple(stale))


@contextmanager
def running_rounds(
    folder: Path,
    seed: int,
    standby: Standby,
    command: Sequence[str] = FAKE,
    *,
    clients: int = CLIENTS,
    lease_s: float = LEASE_S,
) -> Iterator[Rounds]:
    """:param folder: Empty. :param lease_s: As in `Cluster`."""
    dice = Random(seed)
    with (
        scripted_model() as model,
        running(Cluster(folder, standby, command, {**SETTINGS, **model}, lease_s)) as cluster,
    ):
        kinds = [JobClient, *[Client] * (clients - 1)]
        made = [kind(at, dice.getrandbits(48), cluster.replicas) for at, kind in enumerate(kinds)]
        try:
            yield Rounds(cluster, seed, made)
        finally:
            for one in made:
                one.caller.close()


def schedule(names: Sequence[str], number: int, seed: int) -> list[str]:
    """Names in random order; each comes as often as the others, give or take one."""
    dice, chosen = Random(seed), list[str]()
    while len(chosen) < number:
        chosen += dice.sample(list(names), len(names))
    return chosen[:number]
