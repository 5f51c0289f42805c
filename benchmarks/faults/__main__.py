"""Breaks the service in every way that disks, files, kills and clocks can, and counts what it loses.

    python -m benchmarks.faults
    python -m benchmarks.faults --part kills --long --seed 7
    python -m benchmarks.faults --part controls

A part plays its trials against a ledger of what the service acknowledged; its positive control breaks the service on
purpose and must be reported. The exit code is 1 if a trial found a fault or a control caught nothing.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import shorten

import structlog

from benchmarks.faults.clock import CLOCK
from benchmarks.faults.databases import DATABASES
from benchmarks.faults.disk import DISK
from benchmarks.faults.indexes import INDEXES
from benchmarks.faults.kills import KILLS
from benchmarks.faults.part import Outcome, Part
from benchmarks.faults.power import POWER
from benchmarks.faults.restores import RESTORES

PARTS: tuple[Part, ...] = (KILLS, CLOCK, RESTORES, POWER, INDEXES, DATABASES, DISK)
"""In the order of the table."""

CONTROLS = "controls"
SHOWN_FAULTS, FAULT_CHARS = 20, 400
COLUMNS = ("part", "trials", "acknowledged", "lost", "doubled", "erased back", "silent wrong answers", "control caught")


def play(part: Part, trials: int, seed: int, folder: Path) -> tuple[Outcome, Mapping[str, Sequence[str]]]:
    """Run the part's trials and its control, each in a folder of its own; 0 trials run the control alone."""
    begin = time.monotonic()
    outcome = Outcome()
    if trials:
        outcome = part.run(trials, seed, made(folder / part.name))
    caught = part.control(made(folder / f"{part.name}-control"))
    for fault in outcome.faults[:SHOWN_FAULTS]:
        print(f"{part.name}: {shorten(fault, FAULT_CHARS)}", flush=True)
    if len(outcome.faults) > SHOWN_FAULTS:
        print(f"{part.name}: {len(outcome.faults) - SHOWN_FAULTS} more faults", flush=True)
    for broken, reports in caught.items():
        for report in reports[:1]:
            print(f"{part.name}, control ({broken}): {shorten(report, FAULT_CHARS)}", flush=True)
    print(f"{part.name}: {outcome.trials} trials and the control in {time.monotonic() - begin:.0f} s", flush=True)
    return outcome, caught


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def row(name: str, outcome: Outcome, caught: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    controls = "; ".join(f"{broken}: {len(reports) or 'NOTHING'}" for broken, reports in caught.items())
    kinds = (outcome.lost, outcome.doubled, outcome.risen, outcome.wrong)
    counts = [f"{number:,}" for number in (outcome.trials, outcome.acknowledged, *map(len, kinds))]
    return (name, *counts, controls or "NOTHING")


def table(rows: Sequence[Sequence[str]]) -> str:
    """As Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (COLUMNS, ["---"] * len(COLUMNS), *rows))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=[*(part.name for part in PARTS), CONTROLS], help="only this one")
    parser.add_argument("--long", action="store_true", help="the longest form: hours")
    parser.add_argument("--trials", type=int, help="another number of trials for --part")
    parser.add_argument("--seed", type=int, default=0, help="0 draws one")
    arguments = parser.parse_args()
    seed = arguments.seed or random.SystemRandom().getrandbits(32)
    print(f"seed {seed}", flush=True)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    rows, sound = [], True
    with tempfile.TemporaryDirectory() as folder:
        for part in PARTS:
            if arguments.part not in (None, CONTROLS, part.name):
                continue
            trials = arguments.trials or (part.long_trials if arguments.long else part.trials)
            outcome, caught = play(part, 0 if arguments.part == CONTROLS else trials, seed, Path(folder))
            rows.append(row(part.name, outcome, caught))
            sound = sound and not outcome.faults and bool(caught) and all(caught.values())
    print(table(rows))
    print("No faults, and every control was caught." if sound else "FAULTS: see above.")
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
