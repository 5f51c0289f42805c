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
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial, reduce
from operator import add
from pathlib import Path

import structlog

from benchmarks.faults.contents import Ledger, examine
from benchmarks.faults.disk_model import Disk, nodes_named, without_syncs
from benchmarks.faults.part import Outcome, Part
from benchmarks.faults.recorder import Acknowledged, Begun, Entries, Event, Recorder, Sync, Write
from benchmarks.faults.workload import Load

NEW_PROCESSES = multiprocessing.get_context("spawn")
DATA = "data"
LOG = "log"
STATES_PER_LOAD = 200
STATES_PER_TASK = 50
ROUNDS, OPERATIONS = 7, 20
"""Steps of a load: every operation that runs alone comes once, between turns of three threads."""

CONTROL_STATES = 12
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


def examine_states(log: Path, points: Sequence[int], folder: Path) -> Outcome:
    """Open the states after a power cut at these points of a log, and compare each with the ledger of that point.

    :param points: Places in the log, which also seed the choice of what survives; those of later events come later.
    """
    disk, ledger, outcome, place = Disk(), Ledger(), Outcome(), 0
    events = _events(log)
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
    wrong = [*reported.problems, *(f"a false alarm: {warning.message}" for warning in reported.warnings)]
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


def _events(log: Path) -> list[Event]:
    return list(pickle.loads(log.read_bytes()))


def with_early_markers(events: Sequence[Event]) -> list[Event]:
    """Return the log of a service that writes its commit marker, durably, before the sync of the commit."""
    logs, markers = nodes_named(events, WRITE_AHEAD_LOG), nodes_named(events, MARKER)
    changed: list[Event] = []
    last_sync: int | None = None
    for event in events:
        match event:
            case Entries(_, changes) if any(node in markers for _, node in changes):
                last_sync = None
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


def _examined(log: Path, points: Sequence[int], folder: Path) -> Outcome:
    if len(points) <= STATES_PER_TASK:
        return examine_states(log, points, folder)
    tasks = [points[first : first + STATES_PER_TASK] for first in range(0, len(points), STATES_PER_TASK)]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=NEW_PROCESSES) as processes:
        return reduce(add, processes.map(partial(examine_states, log, folder=folder), tasks))


def run(trials: int, seed: int, folder: Path) -> Outcome:
    outcome, dice = Outcome(), random.Random(seed)
    while outcome.trials < trials:
        number = min(STATES_PER_LOAD, trials - outcome.trials)
        log = _recorded(folder / f"load-{outcome.trials}", dice.getrandbits(32))
        outcome += _examined(log, chosen_points(_events(log), number, dice), folder)
        log.unlink()
    return outcome


def control(folder: Path) -> dict[str, tuple[str, ...]]:
    """Break the log: of a service that does not sync SQLite's log, and of one that writes its marker too early."""
    log, dice = _recorded(folder / "load", seed=1), random.Random(1)
    unsynced, early = without_syncs(_events(log), WRITE_AHEAD_LOG), with_early_markers(_events(log))
    markers = nodes_named(early, MARKER)
    answered = [place for place, event in enumerate(unsynced) if isinstance(event, Acknowledged)]
    marked = [place + 1 for place, event in enumerate(early) if isinstance(event, Sync) and event.node in markers]

    def examined(events: Sequence[Event], points: list[int]) -> Outcome:
        log.write_bytes(pickle.dumps(events))
        return examine_states(log, sorted(dice.sample(points, CONTROL_STATES)), folder)

    return {
        "log not synced": examined(unsynced, answered).lost,
        "marker before the sync": examined(early, marked).wrong,
    }


POWER = Part("power", trials=60, long_trials=2_000, run=run, control=control)
