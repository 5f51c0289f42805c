"""The real service at five times its capacity, with additional clients that send a byte per second.

    python -m benchmarks.overload
    python -m benchmarks.overload --memories 1000 --seconds 10

Four in five requests are searches, with questions that differ, the fifth is an add. First as many callers as wait for
each other's answers find the most that is answered in a second; then five times as many requests come, whatever is
answered. Callers have a process of their own. In the end every add that was acknowledged is asked for.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load.__main__ import build, missing_adds
from benchmarks.overload.callers import Answers, Load, generate
from benchmarks.report import Target, percentile_ms, print_targets, progress, table, write_results
from benchmarks.service import Service

CALLERS = (4, 8, 16, 32)
PEAK_S = 8.0
WARM_UP_S = 4.0
FACTOR = 5.0
DRIPS = 20
HONEST_CALLERS = 2
HONEST_S = 10.0
"""Long enough for a head and a body that drip to be cut off once."""

SAMPLE_S = 0.25
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Run:
    """One load: what its callers saw, and the most memory that the service took meanwhile."""

    answers: Answers
    resident_bytes: int


def play(service: Service, load: Load) -> Run:
    """Run a load in a process of its own."""
    processes = multiprocessing.get_context("spawn")
    receiving, sending = processes.Pipe(duplex=False)
    caller = processes.Process(target=generate, args=(load, sending))
    caller.start()
    most = 0
    while not receiving.poll(SAMPLE_S):
        most = max(most, service.resident_bytes)
    answers = receiving.recv()
    caller.join()
    if not isinstance(answers, Answers):
        raise answers
    return Run(answers, most)


def find_peak(service: Service, seconds: float, runs: dict[str, Run]) -> float:
    """The most answers a second that any number of callers got who each wait for their answer."""
    play(service, Load(service.port, WARM_UP_S, seed=1, callers=CALLERS[1]))
    for callers in CALLERS:
        run = play(service, Load(service.port, seconds, seed=10 + callers, callers=callers))
        runs[f"{callers} callers"] = run
        progress(f"{callers} callers that wait: {run.answers.goodput:.0f} answers a second")
    return max(run.answers.goodput for run in runs.values())


def measure(service: Service, seconds: float, peak_s: float) -> tuple[float, dict[str, Run], int]:
    """The peak, all runs by what they are, and how many acknowledged adds are not there.

    The last run repeats one that came before the overload: what differs there is the machine.
    """
    runs: dict[str, Run] = {}
    peak = find_peak(service, peak_s, runs)
    alone = Load(service.port, HONEST_S, seed=2, callers=HONEST_CALLERS)
    runs["honest, alone"] = play(service, alone)
    beside = Load(service.port, HONEST_S, seed=3, callers=HONEST_CALLERS, drips=DRIPS)
    runs["honest, beside drips"] = play(service, beside)
    progress(
        f"{HONEST_CALLERS} honest callers beside {DRIPS} drips: {runs['honest, beside drips'].answers.goodput:.0f}"
    )
    over = Load(service.port, seconds, seed=4, rate=FACTOR * peak, drips=DRIPS)
    progress(f"{over.rate:.0f} requests a second for {seconds:.0f} s")
    runs["overload"] = play(service, over)
    again = Load(service.port, peak_s, seed=5, callers=CALLERS[1])
    runs[f"{CALLERS[1]} callers, afterwards"] = play(service, again)
    lost = sum(missing_adds(service.port, run.answers.acknowledged) for run in runs.values())
    return peak, runs, lost


def row(name: str, run: Run) -> tuple[str, ...]:
    answers = run.answers
    return (
        name,
        f"{answers.goodput:.0f}",
        f"{percentile_ms(answers.search_s, 50):.0f} / {percentile_ms(answers.search_s, 99):.0f}",
        f"{percentile_ms(answers.add_s, 50):.0f} / {percentile_ms(answers.add_s, 99):.0f}",
        f"{len(answers.search_s) / answers.seconds:.0f} + {len(answers.add_s) / answers.seconds:.0f}",
        f"{len(answers.refused_s) / answers.seconds:.0f}",
        str(len(answers.failed)),
        f"{percentile_ms(answers.late_s, 99):.0f}",
    )


def report(idle_bytes: int, peak: float, runs: dict[str, Run], lost: int) -> bool:
    header = ("", "good a second", "search p50 / p99 ms", "add p50 / p99 ms", "searches + adds", "refused a second")
    print("\n" + table((*header, "failed", "sent late p99 ms"), [row(name, run) for name, run in runs.items()]))
    over, beside = runs["overload"].answers, runs["honest, beside drips"].answers
    refusals = {f"p{percent}": percentile_ms(over.refused_s, percent) for percent in (50, 95, 99)}
    print("\nRefused after, ms: " + ", ".join(f"{name} {figure:.1f}" for name, figure in refusals.items()))
    print(f"Not sent by the callers: {over.not_sent}; drips cut off: {over.drips_cut}")
    growth = max(run.resident_bytes for run in runs.values()) - idle_bytes
    print(f"Resident: {idle_bytes / MIB:.0f} MiB idle, {growth / MIB:+.0f} MiB at most")
    for failure in sorted({failure for run in runs.values() for failure in run.answers.failed})[:5]:
        print(f"Failed: {failure}")
    targets = [
        Target("goodput under overload / peak", over.goodput / peak, 0.8, at_least=True),
        Target("refused after, p99 ms", refusals["p99"], 50.0),
        Target("refusals without Retry-After", over.without_retry_after, 0),
        Target("requests without an answer", len(over.failed), 0),
        Target("resident above idle, MiB", growth / MIB, 300.0),
        Target("acknowledged adds that are not there", lost, 0),
        Target("honest callers refused or unanswered beside drips", len(beside.refused_s) + len(beside.failed), 0),
    ]
    print_targets(targets)
    figures = {
        "peak": peak,
        "idle_bytes": idle_bytes,
        "refused_ms": refusals,
        "runs": {name: list(row(name, run)) for name, run in runs.items()},
    }
    print(f"\n{write_results('overload', figures, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000, help="stored before the load begins")
    parser.add_argument("--seconds", type=float, default=60.0, help="of overload")
    parser.add_argument("--peak-seconds", type=float, default=PEAK_S, help="for each number of callers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder:
        progress(f"storing {arguments.memories} memories")
        build(Path(folder) / "data", arguments.memories)
        service = Service(Path(folder) / "data")
        progress(f"the service was ready after {service.start():.1f} s")
        time.sleep(1.0)
        idle_bytes = service.resident_bytes
        try:
            peak, runs, lost = measure(service, arguments.seconds, arguments.peak_seconds)
        finally:
            service.stop()
        return 0 if report(idle_bytes, peak, runs, lost) else 1


if __name__ == "__main__":
    sys.exit(main())
