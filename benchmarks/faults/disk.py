"""Full and broken disks: each operation under a write, sync or change of a folder that fails with ENOSPC or EIO.

It either works or answers an error of the service, loses nothing acknowledged, and leaves a service that writes again,
a database that opens with a clean check, and no leftovers. One trial fills a small file system, if it can be mounted.
"""

from __future__ import annotations

import logging
import multiprocessing
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from benchmarks.faults.contents import Ledger, examine
from benchmarks.faults.injector import DiskError, Injector
from benchmarks.faults.part import Outcome, Part
from benchmarks.faults.workload import Load
from souvenir.core.errors import DiskFull, SouvenirError
from souvenir.store.sqlite import writer

NEW_PROCESSES = multiprocessing.get_context("spawn")
FOREVER = 1_000_000
PATIENCE_S = 3.0
"""A job that cannot go on while the disk fails is not waited for."""

CONTROL_TRIALS = 2
LEFTOVERS = ("*.partial*", "*.restoring*", "*.rewritten*", "*.compact*")
FULL_DISK_BYTES = 48 * 2**20
DELETED = 20
"""Memories that must be deletable on a full disk."""

Operation = Callable[[Load, random.Random], object]

OPERATIONS: dict[str, Operation] = {
    "add": lambda load, dice: load.add(0, dice, 1),
    "batch": lambda load, dice: load.add(1, dice, 8),
    "update": lambda load, dice: load.update(load.some_memory(dice), dice),
    "delete": lambda load, dice: load.delete(load.some_memory(dice)),
    "messages": lambda load, dice: load.say(1, dice, 3),
    "block": lambda load, dice: load.write_block(1, dice),
    "backup": lambda load, _: load.back_up(),
    "snapshot": lambda load, _: load.snapshot(),
    "import": lambda load, _: load.import_file(20),
    "erasure": lambda load, _: load.erase(),
    "restore": lambda load, _: load.restore(offline=False),
    "offline restore": lambda load, _: load.restore(offline=True),
    "start": lambda load, _: load.reopen(),
}


class _Trials:
    """Trials in one process, in which an injector is installed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._dice = random.Random(seed)
        self._calls: dict[str, int] = {}
        self._number = 0
        self.injector = Injector(folder)
        self.injector.install()

    def play(self, name: str, *, always: bool = False) -> Outcome:
        """Carry out an operation while the disk fails; the first time it works, so that its calls are counted.

        :param always: Whether every call fails with EIO instead.
        """
        data_dir = self._folder / f"trial-{self._number}"
        self._number += 1
        load = Load(data_dir, self._dice.getrandbits(32), lambda _, __: nullcontext())
        load.patience_s = PATIENCE_S
        load.turn(4)
        load.back_up()
        load.turn(2)
        dice, calls = random.Random(self._dice.getrandbits(32)), self._calls.get(name)
        first = FOREVER if calls is None else dice.randint(1, max(1, calls))
        error, count = dice.choice(list(DiskError)), dice.choice((1, FOREVER))
        if always:
            error, first, count = DiskError.BROKEN, 1, FOREVER
        where = f"{name}, {error.name} at call {first} of {calls}{' and all later ones' if count > 1 else ''}"
        wrong: list[str] = []
        with self.injector.failing(error, first, count):
            wrong += attempted(lambda: OPERATIONS[name](load, dice), where)
        self._calls.setdefault(name, self.injector.calls)
        if load.is_open:
            wrong += attempted(lambda: _write_again(load, dice), f"{where}, then a write", works=True)
            load.service.close()
        outcome = _examined(data_dir, load.ledger, where)
        wrong += [f"{where}: it left {path.relative_to(data_dir)}" for path in leftovers(data_dir)]
        shutil.rmtree(data_dir)
        return outcome + Outcome(wrong=tuple(wrong))


def _write_again(load: Load, dice: random.Random) -> None:
    """Add and delete; if the space in reserve was used, writes go on once it is taken up again."""
    try:
        load.delete(load.add(0, dice, 1)[0])
    except DiskFull:
        time.sleep(2 * writer.REFILL_PAUSE_S)
        load.delete(load.add(0, dice, 1)[0])


def attempted(work: Callable[[], object], where: str, *, works: bool = False) -> list[str]:
    """Return a sentence if the work ends otherwise than with success or an error of the service.

    :param works: Whether such an error is a fault too.
    """
    try:
        work()
    except SouvenirError as error:
        return [f"{where}: it answers {error.code}: {error.message}"] if works else []
    except Exception as error:  # noqa: BLE001 - in the service, this is the answer 500
        return [f"{where}: it answers no error of the service but {error!r}"]
    return []


def _examined(data_dir: Path, ledger: Ledger, where: str) -> Outcome:
    outcome, reported = examine(data_dir, ledger, random.Random(0))
    lost = [*outcome.lost, *([f"it does not open: {reported.refusal}"] if reported.refusal else [])]
    wrong = [*outcome.wrong, *reported.problems, *(warning.message for warning in reported.warnings)]

    def named(sentences: Iterable[str]) -> tuple[str, ...]:
        return tuple(f"{where}: {sentence}" for sentence in sentences)

    return replace(
        outcome, lost=named(lost), doubled=named(outcome.doubled), risen=named(outcome.risen), wrong=named(wrong)
    )


def leftovers(data_dir: Path) -> list[Path]:
    """Return the temporary files that a start after the failure left."""
    return [path for pattern in LEFTOVERS for path in data_dir.rglob(pattern)]


def _quiet() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def _injected(trials: int, seed: int, folder: Path) -> Outcome:
    _quiet()
    playing, outcome, names = _Trials(folder, seed), Outcome(), list(OPERATIONS)
    for name in names:
        outcome += replace(playing.play(name), trials=0)
    for number in range(trials):
        outcome += playing.play(names[number % len(names)])
    return outcome


# --- a disk that is full -----------------------------------------------------------------------------------------


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mount a small file system on a folder; yields False where that is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={FULL_DISK_BYTES}", "tmpfs", str(folder)]
    mounted = subprocess.run(command, check=False, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def _filled(folder: Path) -> Outcome:
    """Fill a disk under a store; adding must be refused by an error of the service, and deleting must work."""
    _quiet()
    wrong: list[str] = []
    with small_disk(folder) as mounted:
        if not mounted:
            return Outcome()
        data_dir, dice = folder / "data", random.Random(0)
        load = Load(data_dir, 0, lambda _, __: nullcontext())
        load.add(0, dice, 2 * DELETED)
        ballast = folder / "ballast"
        _fill(ballast)
        wrong += attempted(lambda: [load.add(0, dice, 50) for _ in range(200)], "adding on a full disk")
        if len(load.ledger.under_way) != 1:
            wrong.append("adding on a full disk was not refused")
        for name in ("backup", "snapshot", "import"):
            wrong += attempted(partial(OPERATIONS[name], load, dice), f"{name} on a full disk")
        for _ in range(DELETED):
            wrong += attempted(lambda: load.delete(load.some_memory(dice)), "DELETE on a full disk", works=True)
        load.service.close()
        ballast.unlink()
        outcome = _examined(data_dir, load.ledger, "after a full disk")
    return outcome + Outcome(wrong=tuple(wrong))


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4_096))
        except OSError:
            return


def run(trials: int, seed: int, folder: Path) -> Outcome:
    with ProcessPoolExecutor(1, mp_context=NEW_PROCESSES, max_tasks_per_child=1) as process:
        filled = process.submit(_filled, folder / "small").result()
        return filled + process.submit(_injected, trials - filled.trials, seed, folder).result()


# --- the control -------------------------------------------------------------------------------------------------


def control(folder: Path) -> dict[str, tuple[str, ...]]:
    """Acknowledge writes whose commit failed."""
    with ProcessPoolExecutor(1, mp_context=NEW_PROCESSES) as process:
        return {"failed commits acknowledged": process.submit(_swallowed, folder).result()}


def _swallowed(folder: Path) -> tuple[str, ...]:
    _quiet()
    writer._fail = lambda job, error: job.future.set_result((None, None))
    playing, outcome = _Trials(folder, 1), Outcome()
    for _ in range(CONTROL_TRIALS):
        outcome += playing.play("delete", always=True)
    return outcome.lost + outcome.risen


DISK = Part("disk", trials=39, long_trials=260, run=run, control=control)
