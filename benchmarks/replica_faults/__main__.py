"""Breaks replicas and their database under 16 clients, and counts what was acknowledged and is not so.

    python -m benchmarks.replica_faults --rounds 100
    python -m benchmarks.replica_faults --rounds 20 --fault "kill -9 of a replica" --seed 7
    python -m benchmarks.replica_faults --minutes 15 --real-model

Three replicas share a PostgreSQL server, whose commits wait for a streaming standby. Each request goes to a random
replica, and is sent again with its Idempotency-Key until one answers. The exit code is 1 if anything was lost, doubled,
back after an erasure, stale or otherwise wrong, or if the history of a register is not linearizable.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.replica_faults.cluster import FAKE, Standby
from benchmarks.replica_faults.faults import FAULTS
from benchmarks.replica_faults.rounds import Round, running_rounds, schedule
from benchmarks.service import ServiceFailed

COLUMNS = (
    "fault",
    "rounds",
    "requests",
    "unanswered or 503",
    "writes acknowledged",
    "lost",
    "doubled",
    "back",
    "stale",
    "wrong",
    "histories (operations)",
    "longest pause of writes, s",
)
FAULT_CHARS = 3_000


def row(name: str, result: Round) -> str:
    outcome = result.outcome
    cells = [
        name,
        f"{outcome.trials}",
        f"{result.requests:,}",
        f"{result.uncertain:,}",
        f"{result.acknowledged:,}",
        *(f"{len(kind)}" for kind in (outcome.lost, outcome.doubled, outcome.risen, result.stale, outcome.wrong)),
        f"{result.histories} ({result.operations:,})",
        f"{result.pause_s:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def print_table(results: Mapping[str, Round]) -> None:
    """As Markdown."""
    print(f"| {' | '.join(COLUMNS)} |\n| {' | '.join(['---'] * len(COLUMNS))} |")
    for name, result in results.items():
        print(row(name, result))
    print(row("all", sum(results.values(), Round())), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no round after so many minutes")
    parser.add_argument("--fault", choices=list(FAULTS), help="only this one")
    parser.add_argument("--seed", type=int, default=0, help="0 draws one")
    parser.add_argument("--real-model", action="store_true", help="embed with the real model")
    parser.add_argument("--keep", type=Path, help="copy the logs of replicas and servers to this folder")
    arguments = parser.parse_args()
    seed = arguments.seed or random.SystemRandom().getrandbits(32)
    print(f"seed {seed}", flush=True)
    names = schedule([arguments.fault] if arguments.fault else list(FAULTS), arguments.rounds, seed)
    results: dict[str, Round] = {}
    ends_at = time.monotonic() + 60 * arguments.minutes
    command = ("app.py",) if arguments.real_model else FAKE
    with tempfile.TemporaryDirectory(prefix="souvenir-faults-") as folder:
        try:
            with running_rounds(Path(folder), seed, Standby.SYNCHRONOUS, command) as rounds:
                for name in names:
                    if time.monotonic() > ends_at:
                        break
                    result = rounds.play(name)
                    results[name] = results.get(name, Round()) + result
                    for fault in result.faults:
                        print(f"  {fault[:FAULT_CHARS]}", flush=True)
        except ServiceFailed as error:
            print(f"seed {seed}: {error}; before that: {error.__context__}", flush=True)
            return 1
        finally:
            if arguments.keep is not None:
                arguments.keep.mkdir(parents=True, exist_ok=True)
                for log in Path(folder).glob("*.log"):
                    shutil.copy(log, arguments.keep)
            print_table(results)
    faults = sum(results.values(), Round()).faults
    print(f"seed {seed}: {f'{len(faults)} faults, see above' if faults else 'no faults'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
