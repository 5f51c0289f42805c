"""Lets the clock jump by a year and by a day, ahead and back, while the service runs and between two runs.

A trial is one jump under writers. Afterwards nothing is lost, scheduled backups go on, the newest ones are kept in the
order in which they were made, no time of a memory precedes its creation, histories run forward, `as_of` answers each
state, sessions continue, and a request that is repeated with its Idempotency-Key stores nothing twice (unless the clock
went ahead beyond the 24 hours for which a key counts).

The controls plant a row that was updated before it was created, remove the newest backup, and switch the schedule off.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.faults import writers
from benchmarks.faults.jobs import answered
from benchmarks.faults.kills import DATABASE_FILE, Run, running
from benchmarks.faults.part import Outcome, Part
from benchmarks.service import Client
from souvenir.store.sqlite.connections import open_writer

TRIALS, LONG_TRIALS = 6, 20
YEAR_S, DAY_S = 365 * 86_400, 86_400
OFFSETS_S = (YEAR_S, 0, -DAY_S, YEAR_S, -DAY_S, 0)
"""The clock after each jump, in turn."""
WRITING_S = 2.0
INTERVAL_HOURS = "0.0003"
"""About a second between scheduled backups."""
BACKUP_TIMEOUT_S = 15.0
UNSCHEDULED_S = 4.0
"""The wait for a backup that does not come: four times the interval."""
KEPT_BACKUPS = 3
LOOKED_AT = 25
WRITERS = (writers.Memories, writers.Facts, writers.Messages, writers.Blocks)


@dataclass(slots=True)
class BackupWatch:
    """The names of the scheduled backups, in the order in which they appeared."""

    folder: Path
    seen: list[str] = field(default_factory=list)
    _looking: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self._stop.wait(0.02):
            self.look()

    def look(self) -> set[str]:
        """Note new backups, and return those that are there."""
        with self._looking:
            there = {path.name for path in self.folder.glob("scheduled_*")}
            self.seen += sorted(there - set(self.seen))
        return there

    def stop(self) -> None:
        self._stop.set()

    def misplaced(self) -> tuple[str, ...]:
        """Sentences for newer backups that were evicted while older ones are kept."""
        there = self.look()
        kept = [place for place, name in enumerate(self.seen) if name in there]
        newest = range(len(self.seen) - len(kept), len(self.seen))
        gone = sorted(set(newest) - set(kept))
        return tuple(f"{self.seen[place]} was evicted and an older backup kept: {sorted(there)}" for place in gone)


@dataclass(slots=True)
class Clock:
    file: Path
    offset_s: int = 0

    def jump(self, offset_s: int) -> None:
        partial = self.file.with_name("partial")
        partial.write_text(str(offset_s))
        partial.replace(self.file)
        self.offset_s = offset_s

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.offset_s)


@dataclass(slots=True)
class Shifted:
    """A running service with its clock and its backups."""

    playing: Run
    clock: Clock
    watch: BackupWatch

    def trial(self, number: int) -> Outcome:
        """Jump, write and compare.

        :param number: From 0.
        """
        service, offset_s = self.playing.service, OFFSETS_S[number % len(OFFSETS_S)]
        ahead = offset_s > self.clock.offset_s
        found = Outcome()
        if (number + number // len(OFFSETS_S)) % 2:
            self.playing.write(WRITING_S / 2, service.kill if number % 4 == 1 else service.stop, graceful=True)
            self.clock.jump(offset_s)
            service.start()
            found = self.playing.compare(expected=None, repeats=not ahead)
            self.playing.write(WRITING_S / 2, lambda: None)
        else:
            threading.Timer(WRITING_S / 2, self.clock.jump, (offset_s,)).start()
            self.playing.write(WRITING_S, lambda: None)
        found += self.playing.compare(expected=None, repeats=not ahead)
        with closing(self.playing.client()) as client:
            found += Outcome(wrong=(*self.schedule(client), *self.times(client), *sessions(client)))
        named = f"clock {timedelta(seconds=offset_s).days:+} days, jump {number}: "
        parts = (
            tuple(f"{named}{one}" for one in kind) for kind in (found.lost, found.doubled, found.risen, found.wrong)
        )
        return Outcome(1, 0, *parts)

    def schedule(self, client: Client, timeout_s: float = BACKUP_TIMEOUT_S) -> tuple[str, ...]:
        """Sentences if no scheduled backup follows further writes, or a newer one was evicted before an older."""
        self.watch.look()
        before, deadline = len(self.watch.seen), time.monotonic() + timeout_s
        while len(self.watch.seen) == before:
            if time.monotonic() > deadline:
                return (f"no scheduled backup was made in {timeout_s:.0f} s of writes",)
            say(client)
            time.sleep(0.2)
        return self.watch.misplaced()

    def times(self, client: Client) -> tuple[str, ...]:
        """Sentences for times of memories that run backwards, and for states that `as_of` does not answer."""
        problems: list[str] = []
        memories = answered(client, "GET", "/memories?limit=5000&include_archived=true")["memories"]
        for name in ("updated_at", "valid_to"):
            problems += [
                f"{name} of memory {memory['id']} precedes its creation: {memory}"
                for memory in memories
                if (memory.get(name) or memory["created_at"]) < memory["created_at"]
            ]
        dice = self.playing.dice
        for memory in dice.sample(memories, min(LOOKED_AT, len(memories))):
            problems += self.history(client, memory["id"])
        return tuple(problems)

    def history(self, client: Client, memory_id: int) -> Iterator[str]:
        changes = answered(client, "GET", f"/memory/{memory_id}/history")["changes"]
        times = [change["at"] for change in changes]
        if times != sorted(times):
            yield f"the history of memory {memory_id} runs backwards: {times}"
            return
        # Of changes at one time only the last can be asked for; later ones than now cannot.
        for at, change in {change["at"]: change for change in changes}.items():
            if datetime.fromisoformat(at) < self.clock.now and change["after"] is not None:
                status, memory = client.call("GET", f"/memory/{memory_id}?as_of={at.replace('+', '%2B')}")
                if status != 200 or memory["text"] != change["after"]["text"]:
                    yield f"memory {memory_id} as of {at} is answered {status}: {memory}, and was {change['after']}"


def say(client: Client) -> Any:
    """Say something in the current session of an agent that no writer has."""
    body = {"agent_name": "clock", "role": "user", "content": "The clock ticks."}
    return answered(client, "POST", "/messages", body)


def sessions(client: Client) -> tuple[str, ...]:
    """Sentences if two messages in a row are not in one session, or are not there."""
    first, second = say(client), say(client)
    if first["session_id"] != second["session_id"]:
        return (f"two messages in a row are in the sessions {first['session_id']} and {second['session_id']}",)
    page = answered(client, "GET", f"/messages/clock?session_id={first['session_id']}&limit=1000")
    missing = {first["id"], second["id"]} - {one["id"] for one in page}
    return tuple(f"message {id_} is not in its session {first['session_id']}" for id_ in sorted(missing))


@contextmanager
def shifted(folder: Path, seed: int, *, interval_hours: str = INTERVAL_HOURS) -> Iterator[Shifted]:
    clock = Clock(folder / "offset")
    clock.jump(0)
    command = ("-m", "benchmarks.faults.shifted_clock", str(clock.file))
    settings = {"BACKUP_INTERVAL_HOURS": interval_hours, "MAX_BACKUPS": str(KEPT_BACKUPS)}
    with running(folder, seed, WRITERS, command, **settings) as playing:
        watch = BackupWatch(playing.service.data_dir / "backups")
        thread = threading.Thread(target=watch.run, daemon=True)
        thread.start()
        try:
            yield Shifted(playing, clock, watch)
        finally:
            watch.stop()
            thread.join()


def run(trials: int, seed: int, folder: Path) -> Outcome:
    outcome = Outcome()
    with shifted(folder, seed) as service:
        for number in range(trials):
            outcome += service.trial(number)
            print(f"clock: {number + 1}/{trials}, {len(outcome.faults)} faults", flush=True)
        acknowledged = sum(ledger.acknowledged for ledger in service.playing.ledgers)
    return outcome + Outcome(acknowledged=acknowledged)


def control(folder: Path) -> dict[str, tuple[str, ...]]:
    caught: dict[str, tuple[str, ...]] = {}
    with shifted(folder, 1) as service:
        playing = service.playing
        playing.write(WRITING_S, lambda: None)
        with closing(playing.client()) as client:
            service.schedule(client)
        playing.service.stop()
        newest = playing.service.data_dir / "backups" / service.watch.seen[-1]
        newest.rename(newest.with_name("elsewhere"))
        caught["the newest backup removed"] = service.watch.misplaced()
        with closing(open_writer(playing.service.data_dir / DATABASE_FILE)) as database:
            database.execute(
                "UPDATE memories SET updated_at = created_at - 1 WHERE id = (SELECT max(id) FROM memories)"
            )
        playing.service.start()
        with closing(playing.client()) as client:
            caught["a row updated before it was created"] = service.times(client)
    (folder / "unscheduled").mkdir()
    with shifted(folder / "unscheduled", 1, interval_hours="0") as service, closing(service.playing.client()) as client:
        caught["the schedule switched off"] = service.schedule(client, UNSCHEDULED_S)
    return caught


CLOCK = Part("clock", TRIALS, LONG_TRIALS, run, control)
