"""Ends online and offline restores at each of their renames, links, deletions and syncs.

A store with writes of many kinds is backed up; then some of it is erased, more is written, and it is killed, so that
its log is not checkpointed. Each trial restores the backup in a copy of the folder, with a process that exits at the
n-th file operation of the restore. Afterwards the service starts, and holds either the state before or that of the
backup, complete: with the keys and the erasures of today in both cases. New memories get ids that none had before.

The control restores in the order of earlier releases: the log is moved aside first.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from random import Random

import apsw

from benchmarks.faults import stored, writers
from benchmarks.faults.interrupted import INTERRUPTED, LOG_FIRST
from benchmarks.faults.jobs import answered
from benchmarks.faults.kills import API_KEY, DATABASE_FILE, running
from benchmarks.faults.ledger import Ledger, compare, marked
from benchmarks.faults.part import Outcome, Part
from benchmarks.faults.writers import Erasures, Keys, Writer
from benchmarks.service import Client, Service, ServiceFailed

TRIALS, LONG_TRIALS = 10, 1_000
"""The longest form has a trial for each operation, of which there are fewer."""
WRITING_S = 1.0
NEW_MEMORIES = 3
SETTINGS = {"API_KEY": API_KEY, "BACKUP_INTERVAL_HOURS": "0", "MAX_BACKUPS": "10"}
WRITERS = (writers.Memories, writers.Facts, writers.Messages, writers.Blocks, writers.Keys)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A killed store, and the two states that a restore may leave.

    :param present: The ledgers of everything. :param restored: Those after a restore of the backup.
    :param keys: The writer of the keys, with their secrets.
    """

    data_dir: Path
    backup: str
    present: Sequence[Ledger]
    restored: Sequence[Ledger]
    keys: Writer

    @classmethod
    def build(cls, folder: Path, seed: int) -> Scenario:
        with running(folder, seed, WRITERS, **SETTINGS) as playing:
            eraser = Erasures(seed)
            with closing(playing.client()) as client:
                eraser.attach(client)
                playing.write(WRITING_S, lambda: None)
                erasable = [eraser.store(chooses) for chooses in Erasures.CHOICES]
                path = answered(client, "POST", "/backup", {"prefix": "faults"})["backup_path"]
                before = deepcopy([*playing.ledgers, eraser.ledger])
                for part, items in erasable:
                    eraser.erase(part, items, backups=False)
                with log_kept(playing.service.data_dir / DATABASE_FILE):
                    playing.write(WRITING_S, lambda: None)
                    playing.service.kill()
            present = [*playing.ledgers, eraser.ledger]
            restored = [
                deepcopy(now) if isinstance(writer, Keys | Erasures) else as_of(then, now)
                for writer, then, now in zip([*playing.writers, eraser], before, present, strict=True)
            ]
            [keys] = [writer for writer in playing.writers if isinstance(writer, Keys)]
            return cls(playing.service.data_dir, Path(path).name, present, restored, keys)

    def fault(self, service: Service) -> Outcome:
        """Start the service, and compare it with the two states; faults of the nearer one count."""
        service.start()
        with closing(service.client(API_KEY)) as client:
            holding = stored.read(client, self.present)
            states = [deepcopy(list(ledgers)) for ledgers in (self.present, self.restored)]
            compared = [(compare(ledgers, holding), ledgers) for ledgers in states]
            found, ledgers = min(compared, key=lambda one: len(one[0].faults))
            erased = [Ledger(erased={mark for ledger in ledgers for mark in ledger.erased})]
            found += stored.search(client, ledgers, Random(0))
            found += Outcome(
                doubled=new_ids(client, self.present),
                risen=stored.exported(client, [*ledgers, *erased]),
                wrong=(*stored.health(client), *stored.keys(service.port, [self.keys])),
            )
        service.kill()
        return found + Outcome(wrong=tuple(service.check()))


@contextmanager
def log_kept(database: Path) -> Iterator[None]:
    """Read the database for as long, so that no checkpoint moves later commits out of the log."""
    with closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as reader:
        reader.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        with reader:
            reader.execute("SELECT * FROM generations").fetchall()
            yield


def as_of(then: Ledger, now: Ledger) -> Ledger:
    """The ledger after a restore of the state `then`: what was written since is gone."""
    return Ledger(there=dict(then.there), gone={*now.there, *now.gone, *then.gone} - then.there.keys())


def new_ids(client: Client, ledgers: Iterable[Ledger]) -> tuple[str, ...]:
    """Sentences for ids of new memories that memories had before."""
    issued = {id_ for ledger in ledgers for kind, id_ in ledger.issued if kind == "memory"}
    dice = Random(1)
    bodies = [{"text": marked(dice), "source": writers.SOURCE} for _ in range(NEW_MEMORIES)]
    ids = [str(answered(client, "POST", "/memory/add", body)["id"]) for body in bodies]
    return tuple(f"the id {id_} of a deleted or lost memory was issued again" for id_ in ids if id_ in issued)


@dataclass(frozen=True, slots=True)
class Restore:
    """One way to restore, in copies of a scenario's folder."""

    scenario: Scenario
    folder: Path
    online: bool
    order: str = "shipped"

    @contextmanager
    def interrupted_at(self, number: int) -> Iterator[tuple[Service, int]]:
        """Restore until the n-th operation; the value is the service over the copy, not started, and the exit code."""
        data_dir = self.folder / "data"
        shutil.copytree(self.scenario.data_dir, data_dir)
        command = ("-m", "benchmarks.faults.interrupted", str(number), str(self.count_file), self.order)
        try:
            code = self._online(data_dir, command) if self.online else self._offline(data_dir, command)
            yield Service(data_dir, **SETTINGS), code
        finally:
            shutil.rmtree(data_dir)

    @property
    def count_file(self) -> Path:
        return self.folder / "operations"

    def count(self) -> int:
        """The number of operations of a whole restore."""
        with self.interrupted_at(0) as (_, code):
            if code:
                raise ServiceFailed(f"a restore that nothing interrupted ended with {code}")
        return int(self.count_file.read_text())

    def trial(self, number: int) -> Outcome:
        kind = f"{'online' if self.online else 'offline'} restore at operation {number}: "
        with self.interrupted_at(number) as (service, code):
            if code != INTERRUPTED:
                return Outcome(1, wrong=(f"{kind}it was not interrupted, and ended with {code}",))
            try:
                found = self.scenario.fault(service)
            except ServiceFailed as error:
                return Outcome(1, wrong=(f"{kind}{error}: {service.log_path.read_text()[-300:]}",))
            finally:
                if service.running:
                    service.kill()
        parts = (
            tuple(f"{kind}{one}" for one in faults) for faults in (found.lost, found.doubled, found.risen, found.wrong)
        )
        return Outcome(1, found.acknowledged, *parts)

    def _offline(self, data_dir: Path, command: Sequence[str]) -> int:
        arguments = [*command, "restore", self.scenario.backup]
        log_path = data_dir.parent / f"{data_dir.name}.log"
        return Service.start_process(arguments, {**os.environ, "DATA_DIR": str(data_dir)}, log_path).wait()

    def _online(self, data_dir: Path, command: Sequence[str]) -> int:
        service = Service(data_dir, command=command, **SETTINGS)
        service.start()
        try:
            with closing(service.client(API_KEY)) as client:
                status, answer = client.call("POST", "/restore", {"backup_name": self.scenario.backup})
        except OSError:
            return service.wait()
        service.kill()
        if status != HTTPStatus.OK:
            raise ServiceFailed(f"the restore was answered {status}: {answer}")
        return 0


def run(trials: int, seed: int, folder: Path) -> Outcome:
    return interruptions(Scenario.build(made(folder / "scenario"), seed), trials, seed, folder)


def interruptions(scenario: Scenario, trials: int, seed: int, folder: Path) -> Outcome:
    """Interrupt so many restores, spread over all operations of both ways."""
    outcome = Outcome()
    ways = [Restore(scenario, made(folder / name), online) for name, online in (("offline", False), ("online", True))]
    planned = [(way, number) for way in ways for number in range(1, way.count() + 1)]
    step = max(1, -(-len(planned) // trials))
    for way, number in planned[seed % step :: step]:
        outcome += way.trial(number)
        print(
            f"restores: {outcome.trials}/{len(planned[seed % step :: step])}, {len(outcome.faults)} faults", flush=True
        )
    return outcome


def control(folder: Path) -> dict[str, tuple[str, ...]]:
    return {"the log moved aside before the database": log_first(Scenario.build(made(folder / "scenario"), 1), folder)}


def log_first(scenario: Scenario, folder: Path) -> tuple[str, ...]:
    """The faults after a restore in the order of earlier releases, killed when only the log was moved aside."""
    way = Restore(scenario, made(folder / "log-first"), online=False, order=LOG_FIRST)
    # The last operation is the replacement, the one before it moves the database aside.
    return way.trial(way.count() - 1).faults


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


RESTORES = Part("restores", TRIALS, LONG_TRIALS, run, control)
