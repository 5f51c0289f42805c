"""Power cuts: the states in which they can leave the disk, from a recorded load, opened and compared with its ledger.

A state must open without a refusal, with everything acknowledged and nothing erased, with sound searches and a clean
check, and without a warning: a power cut loses no acknowledged commit, so a warning that it did is a false alarm.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import random
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial, reduce
from operator import add
from pathlib import Path

import structlog

from benchmarks.faults.contents import Ledger, examine
from benchmarks.faults.disk_model import Disk, without_syncs
from benchmarks.faults.part import Outcome, Part
from benchmarks.faults.recorder import Acknowledged, Begun, Entries, Event, Recorder, Sync, Write
from benchmarks.faults.workload import Load

NEW_PROCESSES = multiprocessing.get_context("spawn")
DATA = "data"
LOG = "log"
STATES_PER_LOAD = 200
STATES_PER_TASK = 50
ROUNDS, OPERATIONS = 7, 20
"""Of a load: every operation that runs alone comes once, between turns of three threads."""

CONTROL_STATES = 60
WRITE_AHEAD_LOG = "-wal"
MARKER = ".commit"


def record(folder: Path, seed: int) -> None:
    """Play a load in the folder, and write its log next to the data. Changes the process for good."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    data = folder / DATA
    data.mkdir(parents=True)
    recorder = Recorder(data)
    recorder.install()
    load = Load(data, seed, recorder.doing)
    load.play(ROUNDS, OPERATIONS)
    load.service.close()
    events = list(recorder.events)
    shutil.rmtree(data)
    (folder / LOG).write_bytes(pickle.dumps(events))


def examine_states(
    log: Path, points: Sequence[int], change: Callable[[list[Event]], list[Event]], folder: Path
) -> Outcome:
    """Open the states after a power cut at these points of a log, and compare each with the ledger of that point.

    :param points: Places in the log, which also seed the choice of what survives; those of later events come later.
    :param change: Breaks the log for a control.
    """
    disk, ledger, outcome, place = Disk(), Ledger(), Outcome(), 0
    events = change(pickle.loads(log.read_bytes()))
    for point in points:
        for event in events[place:point]:
            disk.play(event)
            match event:
                case Begun((number, operation)):
                    ledger.begin(number, operation)
                case Acknowledged(number, operation):
                    ledger.acknowledge(number, operation)
        place = min(point, len(events))
        outcome += _examine_state(disk, ledger, place, folder / f"{point}-{os.getpid()}")
    return outcome


def _examine_state(disk: Disk, ledger: Ledger, place: int, folder: Path) -> Outcome:
    dice = random.Random(place)
    disk.cut_power(dice, folder)
    try:
        outcome, reported = examine(folder, ledger, dice)
    finally:
        shutil.rmtree(folder)
    wrong = [*reported.problems, *(f"a false alarm: {warning}" for warning in reported.warnings)]
    lost = [] if reported.refusal is None else [f"the store refuses to open: {reported.refusal}"]
    found = outcome + Outcome(lost=tuple(lost), wrong=tuple(wrong))
    under_way = ", ".join(operation.kind for operation in ledger.under_way.values()) or "nothing"
    return _named(found, f"after event {place}, during {under_way}")


def _named(outcome: Outcome, where: str) -> Outcome:
    def named(sentences: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{sentence} ({where})" for sentence in sentences)

    return Outcome(
        outcome.trials,
        outcome.acknowledged,
        named(outcome.lost),
        named(outcome.doubled),
        named(outcome.risen),
        named(outcome.wrong),
    )


def unchanged(events: list[Event]) -> list[Event]:
    return events


def without_syncs_of_the_log(events: list[Event]) -> list[Event]:
    return without_syncs(events, WRITE_AHEAD_LOG)


def with_early_markers(events: list[Event]) -> list[Event]:
    """Return the log of a service that writes its commit marker, durably, before the sync of the commit."""
    logs: set[int] = set()
    markers: set[int] = set()
    changed: list[Event] = []
    last_sync: int | None = None
    for event in events:
        match event:
            case Entries(_, changes):
                logs |= {node for name, node in changes if node is not None and name.endswith(WRITE_AHEAD_LOG)}
                markers |= {node for name, node in changes if node is not None and name.endswith(MARKER)}
            case Write(node) if node in markers and last_sync is not None:
                changed[last_sync:last_sync] = [event, Sync(node)]
                last_sync = None
                continue
            case Sync(node) if node in logs:
                last_sync = len(changed)
        changed.append(event)
    return changed


def chosen_points(events: Sequence[Event], number: int, dice: random.Random) -> list[int]:
    """Draw points of a log: half of them anywhere, half right before or after a change of a folder or a rare sync."""
    rare = [place for place, event in enumerate(events) if isinstance(event, Entries)]
    anywhere = [dice.randint(1, len(events)) for _ in range(number - number // 2)]
    near = [dice.choice(rare) + dice.randint(0, 4) for _ in range(number // 2)]
    return sorted(anywhere + near)


def _recorded(folder: Path, seed: int) -> Path:
    with ProcessPoolExecutor(1, mp_context=NEW_PROCESSES) as process:
        process.submit(record, folder, seed).result()
    return folder / LOG


def _examined(log: Path, number: int, seed: int, change: Callable[[list[Event]], list[Event]], folder: Path) -> Outcome:
    points = chosen_points(change(pickle.loads(log.read_bytes())), number, random.Random(seed))
    tasks = [points[first : first + STATES_PER_TASK] for first in range(0, len(points), STATES_PER_TASK)]
    with ProcessPoolExecutor(min(len(tasks), os.cpu_count() or 1), mp_context=NEW_PROCESSES) as processes:
        found = processes.map(partial(examine_states, log, change=change, folder=folder), tasks)
        return reduce(add, found, Outcome())


def run(trials: int, seed: int, folder: Path) -> Outcome:
    outcome, dice = Outcome(), random.Random(seed)
    while outcome.trials < trials:
        number = min(STATES_PER_LOAD, trials - outcome.trials)
        log = _recorded(folder / f"load-{outcome.trials}", dice.getrandbits(32))
        outcome += _examined(log, number, dice.getrandbits(32), unchanged, folder)
        log.unlink()
    return outcome


def control(folder: Path) -> dict[str, tuple[str, ...]]:
    log = _recorded(folder / "load", seed=1)
    unsynced = _examined(log, CONTROL_STATES, 1, without_syncs_of_the_log, folder)
    early = _examined(log, CONTROL_STATES, 1, with_early_markers, folder)
    return {"log not synced": unsynced.lost, "marker before the sync": early.wrong}


POWER = Part("power", trials=60, long_trials=2_000, run=run, control=control)
