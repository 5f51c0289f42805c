"""Kills the service at random moments under writers of every kind, and compares it with their ledgers.

A trial: start, write for up to 2.5 s, SIGKILL (every fifth time SIGTERM, so that snapshots of the indexes are written
and later found stale), check the folder as `python app.py check` does, start again, settle the jobs that have ended,
compare every item, searches, exports, keys, health and the bytes of all files, and repeat the requests that were in
flight with their Idempotency-Key.

The control removes the last commits from the log after a kill, with everything that could tell of them: the ledgers
must report losses. Where the rest is left in place, which is the last trial, the service itself must report them.
"""

from __future__ import annotations

import shutil
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.faults import stored, writers
from benchmarks.faults.jobs import answered, settle_jobs
from benchmarks.faults.ledger import Ledger, compare, repeated
from benchmarks.faults.model import scripted_model
from benchmarks.faults.part import Outcome, Part
from benchmarks.faults.stored import health
from benchmarks.faults.writers import Writer
from benchmarks.service import ROOT, Client, Service, ServiceFailed
from souvenir.store.sqlite.generations import marker_path
from souvenir.store.sqlite.losses import COMMITS_MISSING

TRIALS, LONG_TRIALS = 20, 200
WRITING_S = 2.5
GRACEFUL_EVERY = 5
JOIN_TIMEOUT_S = 70.0
DEFAULT_MODEL = ROOT / "models" / "all-MiniLM-L6-v2"
DATABASE_FILE = "souvenir.db"
API_KEY = "faults-0123456789abcdef0123456789abcdef"
MIXED: Sequence[Callable[[int], Writer]] = (
    writers.Memories,
    writers.Memories,
    writers.Facts,
    writers.Messages,
    writers.Blocks,
    writers.Keys,
    writers.Observations,
    writers.Erasures,
    writers.Imports,
    writers.Extractions,
    writers.Descriptions,
    writers.Backups,
)
"""One thread each."""


@dataclass(slots=True)
class Run:
    """A service over one folder, and its writers with their ledgers."""

    service: Service
    dice: Random
    writers: list[Writer] = field(default_factory=list)

    @property
    def ledgers(self) -> list[Ledger]:
        return [writer.ledger for writer in self.writers]

    def client(self) -> Client:
        return self.service.client(API_KEY)

    def write(self, seconds: float, end: Callable[[], object], *, graceful: bool = False) -> None:
        """Let all writers write for some seconds, and end the service meanwhile.

        :param end: Kills or stops it, or does something else, after which the writers stop.
        :raises ServiceFailed: If a write was refused, other than by a service that stops.
        """
        stop, failures = threading.Event(), list[str]()
        threads = [
            threading.Thread(target=writer.run, args=(self.client(), stop, failures), daemon=True)
            for writer in self.writers
        ]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        end()
        stop.set()
        for thread in threads:
            thread.join(JOIN_TIMEOUT_S)
        if failures and not graceful:
            raise ServiceFailed("; ".join(failures))

    def compare(
        self, *, wait: bool = False, expected: frozenset[str] | None = frozenset(), repeats: bool = True
    ) -> Outcome:
        """Compare the running service with the ledgers.

        :param wait: Wait for all jobs first. :param expected: Codes of the warnings that it must give; None for any.
        :param repeats: Send requests that were in flight again, with their Idempotency-Key.
        """
        client = self.client()
        try:
            ended = settle_jobs(client, self.ledgers, wait=wait)
            cut_off = [(one, change) for one in self.ledgers for change in one.in_flight]
            outcome = compare(self.ledgers, stored.read(client, self.ledgers))
            outcome += stored.search(client, self.ledgers, self.dice)
            outcome += Outcome(lost=ended, wrong=health(client, expected=expected))
            outcome += Outcome(risen=stored.exported(client, self.ledgers))
            outcome += Outcome(wrong=stored.keys(self.service.port, self.writers))
            for ledger, change in cut_off:
                if change.repeat is not None and repeats:
                    answer = answered(client, "POST", change.repeat.path, change.repeat.body, once=change.repeat.key)
                    outcome += Outcome(doubled=tuple(repeated(ledger, change, writers.ids_in(answer))))
            return outcome
        finally:
            client.close()


@contextmanager
def running(
    folder: Path,
    seed: int,
    kinds: Sequence[Callable[[int], Writer]] = MIXED,
    command: Sequence[str] = ("app.py",),
    **environment: str,
) -> Iterator[Run]:
    """A started service with writers of these kinds; it is killed at the end."""
    dice = Random(seed)
    with scripted_model() as model:
        settings = {"SNAPSHOT_INTERVAL_S": "0.3", "API_KEY": API_KEY, "BACKUP_INTERVAL_HOURS": "0", "MAX_BACKUPS": "3"}
        service = Service(folder / "data", command=command, **{**settings, **model, **environment})
        service.start()
        try:
            yield Run(service, dice, [kind(dice.getrandbits(48)) for kind in kinds])
        finally:
            if service.running:
                service.kill()


def second_model(folder: Path) -> Path:
    """The same model under another name, and so of another vector space to the service."""
    return Path(shutil.copytree(DEFAULT_MODEL, folder, ignore=shutil.ignore_patterns("manifest.json")))


def run(trials: int, seed: int, folder: Path, *, writing_s: float = WRITING_S) -> Outcome:
    """:param writing_s: The longest time from a start to a kill."""
    outcome = Outcome()
    models = [str(DEFAULT_MODEL), str(second_model(folder / "second-model"))]
    with running(folder, seed, (*MIXED, lambda own_seed: writers.Reembeds(own_seed, models=models))) as playing:
        service = playing.service
        for number in range(1, trials + 1):
            graceful = number % GRACEFUL_EVERY == 2
            seconds = playing.dice.uniform(0.05, writing_s)
            playing.write(seconds, service.stop if graceful else service.kill, graceful=graceful)
            found = Outcome(risen=stored.in_files(service.data_dir, playing.ledgers), wrong=tuple(service.check()))
            service.start()
            found += playing.compare(wait=number in (trials, trials // 2))
            outcome += Outcome(1, 0, found.lost, found.doubled, found.risen, found.wrong)
            print(f"kills: {number}/{trials}, {len(outcome.faults)} faults", flush=True)
        outcome += lost_commits_are_reported(playing)
        acknowledged = sum(ledger.acknowledged for ledger in playing.ledgers)
    return outcome + Outcome(acknowledged=acknowledged)


# --- lost commits -----------------------------------------------------------------------------------------------------

WAL_HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
BACKFILLED_AT = 96
"""The place of the number of checkpointed frames in the file `-shm`."""
CUT_AFTER_S, CUTS_TRIED = 1.0, 20
LEAST_CUT_COMMITS = 6


def cut_log(database: Path) -> int:
    """Cut the last commits off the log of a killed service, and return the number of removed frames.

    0, and nothing is cut, if they are of fewer than `LEAST_CUT_COMMITS`: these may all be of writes in flight and of
    background work.

    Only frames of the present salt count: SQLite begins the file again after a checkpoint, over the old frames. Frames
    that a checkpoint has copied into the database stay, since a log without them would be a damaged database.
    """
    log, shared = (database.with_name(database.name + suffix) for suffix in ("-wal", "-shm"))
    content = log.read_bytes()
    backfilled = int.from_bytes(shared.read_bytes()[BACKFILLED_AT : BACKFILLED_AT + 4], sys.byteorder)
    frame_bytes = FRAME_HEADER_BYTES + int.from_bytes(content[8:12], "big")
    commits, frames = list[int](), 0
    for start in range(WAL_HEADER_BYTES, len(content) - frame_bytes + 1, frame_bytes):
        _, size_after_commit, salt = struct.unpack(">II8s", content[start : start + 16])
        if salt != content[16:24]:
            break
        frames += 1
        if size_after_commit and frames >= backfilled:
            commits.append(frames)
    cut = len(commits) // 2
    if cut < LEAST_CUT_COMMITS:
        return 0
    kept = commits[-cut - 1]
    with log.open("r+b") as file:
        file.truncate(WAL_HEADER_BYTES + kept * frame_bytes)
    return frames - kept


def lose_commits(playing: Run, *, silently: bool) -> None:
    """Write, kill the service, and remove its last commits.

    :param silently: Also remove everything that could tell of them.
    :raises ServiceFailed: If the log never held enough commits.
    """
    database = playing.service.data_dir / DATABASE_FILE
    for _ in range(CUTS_TRIED):
        playing.write(CUT_AFTER_S, playing.service.kill)
        if cut_log(database):
            break
        playing.service.start()
    else:
        raise ServiceFailed("The log held too few commits after each kill to remove some")
    if silently:
        marker_path(database).unlink()
        shutil.rmtree(playing.service.data_dir / "index", ignore_errors=True)


def lost_commits_are_reported(playing: Run) -> Outcome:
    """Remove the last commits; the service must start with a warning, or refuse to start."""
    lose_commits(playing, silently=False)
    try:
        playing.service.start()
    except ServiceFailed:
        return Outcome(1)
    client = playing.client()
    missed = health(client, expected=frozenset({COMMITS_MISSING}))
    client.close()
    return Outcome(1, wrong=missed)


def control(folder: Path) -> dict[str, tuple[str, ...]]:
    with running(folder, 1, (writers.Memories, writers.Messages), SNAPSHOT_INTERVAL_S="60") as playing:
        lose_commits(playing, silently=True)
        playing.service.start()
        found = playing.compare()
    return {"the last commits cut off the log": found.lost}


KILLS = Part("kills", TRIALS, LONG_TRIALS, run, control)
