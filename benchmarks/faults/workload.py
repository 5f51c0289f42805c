"""A mixed load on one store, each operation of which is in a ledger: what the parts on power cuts and disks break.

Threads add, change and delete memories, messages and blocks; between their turns the store is backed up, imported into,
erased from, restored, closed, restored offline and opened again.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path

from benchmarks.fake_embedder import FakeEmbedder, fake_of
from benchmarks.faults.contents import SCOPES, Ledger, Operation, new_key, new_text, place_of, searched
from souvenir.api.transfer_lines import ReadAs
from souvenir.conversations.blocks import BlockChange
from souvenir.core.errors import Unavailable
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MemoryPatch, MessageRole, Scope
from souvenir.jobs.worker import Jobs
from souvenir.memories.erasure import Erasure
from souvenir.server.service import Service
from souvenir.store.admin.jobs import Job, JobStatus
from souvenir.store.messages.blocks import BlockDraft
from souvenir.store.messages.messages import MessageDraft
from souvenir.store.selection import Chooses, Selection
from souvenir.store.sqlite.restore import restore_offline
from souvenir.transfer.import_job import ImportHandler, ImportOrder

THREADS = len(SCOPES)
PATIENCE_S = 60.0
KEPT = 60
"""Objects of a thread above which it adds no more."""

SEARCHED = 12

SOURCE = "load/kept"
ERASED = "load/erased"
"""The source whose memories are erased."""

Surrounding = Callable[[int, Operation], AbstractContextManager[None]]


def settings_of(data_dir: Path) -> Settings:
    return Settings(data_dir=data_dir, max_backups=8)


def open_service(data_dir: Path) -> Service:
    """Open the store with its jobs, and wait until everything is loaded."""
    service = Service.open(settings_of(data_dir), ReadAs(), FakeEmbedder(), fake_of)
    if service.loading is not None:
        service.loading.join(PATIENCE_S)
    return service


class Load:
    """The load on one data folder."""

    def __init__(self, data_dir: Path, seed: int, surrounding: Surrounding) -> None:
        """:param surrounding: Opens a context for each operation, which records its begin and its acknowledgement."""
        self._data_dir = data_dir
        self._dice = random.Random(seed)
        self._surrounding = surrounding
        self._numbers = count()
        self.ledger = Ledger()
        self._ids: dict[str, int] = {}
        self._states: dict[str, dict[str, str]] = {}
        """The texts in each backup."""
        self.service = open_service(data_dir)
        self.is_open = True
        self.patience_s = PATIENCE_S
        """The time that a job may take."""

    @contextmanager
    def _doing(self, operation: Operation) -> Iterator[None]:
        number = next(self._numbers)
        self.ledger.begin(number, operation)
        with self._surrounding(number, operation):
            yield
        self.ledger.acknowledge(number, operation)

    # --- writes of the threads ---------------------------------------------------------------------------------

    def turn(self, operations: int) -> None:
        """Let the threads carry out so many operations each; then search, so that the indexes are loaded."""
        seeds = [self._dice.getrandbits(32) for _ in range(THREADS)]
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(self._write, range(THREADS), seeds, [operations] * THREADS))
        there = sorted(key for key in self.ledger.texts if not key.startswith("block"))
        searched(self.service.engine, self._dice.sample(there, min(SEARCHED, len(there))))

    def _write(self, place: int, seed: int, operations: int) -> None:
        dice = random.Random(seed)
        own = sorted(key for key in self.ledger.texts if place_of(key) == place)
        for _ in range(operations):
            memories = [key for key in own if key in self._ids]
            draw = dice.random() * (0.4 if memories and len(own) > KEPT else 1.0)
            if memories and draw < 0.2:
                self.update(dice.choice(memories), dice)
            elif memories and draw < 0.4:
                key = dice.choice(memories)
                self.delete(key)
                own.remove(key)
            elif place and draw < 0.65:
                own += self.say(place, dice, dice.randint(1, 4))
            elif place and draw < 0.72:
                own.append(self.write_block(place, dice))
            else:
                own += self.add(place, dice, 1 if draw < 0.85 else dice.randint(2, 9))

    def add(self, place: int, dice: random.Random, number: int, *, source: str = SOURCE) -> list[str]:
        texts = self._new_texts("memory", place, dice, number)
        drafts = [
            MemoryDraft(text, source, facts=(f"Fact of {text}",) if dice.random() < 0.3 else ())
            for text in texts.values()
        ]
        with self._doing(Operation("batch" if number > 1 else "add", {**texts})):
            ids = self.service.engine.add_batch(SCOPES[place], drafts)
        self._ids.update(zip(texts, ids, strict=True))
        return list(texts)

    def update(self, key: str, dice: random.Random) -> None:
        text = new_text(key, dice)
        with self._doing(Operation("update", {key: text})):
            self.service.engine.update(SCOPES[place_of(key)], self._ids[key], MemoryPatch(text=text))

    def delete(self, key: str) -> None:
        with self._doing(Operation("delete", {key: None})):
            self.service.engine.delete(SCOPES[place_of(key)], self._ids[key])

    def say(self, place: int, dice: random.Random, number: int) -> list[str]:
        texts = self._new_texts("message", place, dice, number)
        drafts = [
            MessageDraft(MessageRole.USER, text, session_id=f"session-{place}", user="mia") for text in texts.values()
        ]
        with self._doing(Operation("messages", {**texts})):
            self.service.conversations.add(SCOPES[place], drafts)
        return list(texts)

    def write_block(self, place: int, dice: random.Random) -> str:
        """Create a block, and change it."""
        [(key, text)] = self._new_texts("block", place, dice, 1).items()
        with self._doing(Operation("block", {key: text})):
            draft = BlockDraft(key, text, None, 2_000, read_only=False)
            self.service.blocks.create(SCOPES[place], draft)
        text = new_text(key, dice)
        with self._doing(Operation("change of a block", {key: text})):
            self.service.blocks.update(SCOPES[place], key, BlockChange(value=text))
        return key

    def _new_texts(self, kind: str, place: int, dice: random.Random, number: int) -> dict[str, str]:
        keys = [new_key(kind, place, dice) for _ in range(number)]
        return {key: new_text(key, dice) for key in keys}

    # --- operations that run alone -----------------------------------------------------------------------------

    def back_up(self) -> None:
        operation, texts = Operation("backup"), dict(self.ledger.texts)
        with self._doing(operation):
            self.service.engine.back_up(reason="manual")
            self._note_backups(operation, texts)

    def _note_backups(self, operation: Operation, texts: dict[str, str]) -> None:
        """Note the backup that an operation made, with the texts in it, and those that were evicted for it."""
        kept = {backup.name for backup in self.service.engine.backups()}
        operation.evicts = self._states.keys() - kept
        for name in kept - self._states.keys():
            operation.backup, self._states[name] = name, texts
        for name in operation.evicts:
            del self._states[name]

    def snapshot(self) -> None:
        with self._doing(Operation("snapshot")):
            self.service.engine.snapshot()

    def import_file(self, lines: int) -> None:
        texts, before = self._new_texts("memory", 0, self._dice, lines), dict(self.ledger.texts)
        body = "".join(json.dumps({"text": text, "source": SOURCE}) + "\n" for text in texts.values()).encode()
        operation = Operation("import", {**texts}, atomic=False)
        with self._doing(operation):
            spools, jobs = self.service.transfer.spools, self.service.jobs
            spool = asyncio.run(spools.receive(_body(body), Scope().actor))
            with spools.until_submitted(spool.job_id):
                parameters = ImportOrder(by_admin=True).parameters(spool)
                self._require_completed(jobs, jobs.submit(ImportHandler.kind, Scope(), parameters, job_id=spool.job_id))
            self._note_backups(operation, before)

    def erase(self) -> None:
        """Store memories of one source, back them up, and erase them and an agent's messages everywhere."""
        keys = self.add(0, self._dice, 6, source=ERASED)
        self.back_up()
        keys += self.add(0, self._dice, 4, source=ERASED)
        self._erase(Selection(Scope().namespace, Chooses.SOURCE, ERASED), keys)
        held = {key for texts in (self.ledger.texts, *self._states.values()) for key in texts}
        said = sorted(key for key in held if key.startswith("message") and place_of(key) == 2)
        if said:
            self._erase(Selection(SCOPES[2].namespace, Chooses.USER, "mia"), said)

    def _erase(self, selection: Selection, keys: list[str]) -> None:
        service = self.service
        operation = Operation("erasure", dict.fromkeys(keys), atomic=False, erases=True)
        with self._doing(operation), service.removals.working() as work:
            parameters = service.erasure.begin([selection], work, backups=True)
            scope = Scope(selection.namespace)
            job = service.erasure_jobs.submit(Erasure.kind, scope, parameters, job_id=work)
            self._require_completed(service.erasure_jobs, job)
        for state in self._states.values():
            for key in keys:
                state.pop(key, None)

    def restore(self, *, offline: bool) -> None:
        """Restore a backup; offline, the service is closed before and opened after."""
        name, before = self._dice.choice(sorted(self._states)), dict(self.ledger.texts)
        after = self._states[name]
        operation = Operation("restore", {key: after.get(key) for key in before.keys() | after.keys()})
        if offline:
            self.reopen(between=lambda: self._restore_offline(name, operation))
            return
        with self._doing(operation):
            self.service.engine.restore(name)
            self._note_backups(operation, before)

    def _restore_offline(self, name: str, operation: Operation) -> None:
        with self._doing(operation):
            restore_offline(settings_of(self._data_dir), name)

    def reopen(self, *, between: Callable[[], None] = lambda: None) -> None:
        self.service.close()
        self.is_open = False
        between()
        self.service = open_service(self._data_dir)
        self.is_open = True

    def some_memory(self, dice: random.Random) -> str:
        """Return the key of a memory that is there."""
        return dice.choice(sorted(self.ledger.texts.keys() & self._ids.keys()))

    def _require_completed(self, jobs: Jobs, job: Job) -> None:
        ended = jobs.wait(job.id, self.patience_s)
        if ended.status is not JobStatus.COMPLETED:
            raise Unavailable(f"job {ended.kind} is {ended.status}: {ended.error}")

    def play(self, rounds: int, operations: int) -> None:
        """Carry out everything, in rounds of turns and of one operation that runs alone."""
        alone: list[Callable[[], None]] = [
            self.back_up,
            lambda: self.import_file(25),
            self.erase,
            lambda: self.restore(offline=False),
            self.snapshot,
            self.reopen,
            lambda: self.restore(offline=True),
        ]
        for number in range(rounds):
            self.turn(operations)
            alone[number % len(alone)]()
        self.turn(operations)


async def _body(content: bytes) -> AsyncIterator[bytes]:
    yield content
