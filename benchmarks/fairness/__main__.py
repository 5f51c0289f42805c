"""The throughput and latency of a modest key next to a greedy one, compared with those it gets alone.

    python -m benchmarks.fairness
    python -m benchmarks.fairness --memories 1000 --seconds 10 --connections 1

The real service on a free loopback port. In each of four scenarios the modest key first works alone and then next to
the greedy one, so that a ratio is of one minute of one machine; each begins with a fresh service. The modest key has
two connections, four of five requests are searches and the fifth is a small add. The greedy key has 64 connections that
search, or sends huge batches of texts, imports, or batches of 200 searches, and retries at once what is refused. At the
end five times as many requests come as can be served (`benchmarks.overload`).
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import sys
import tempfile
from dataclasses import dataclass
from multiprocessing.connection import Connection as Channel
from pathlib import Path

from benchmarks.fairness.callers import CONNECTIONS, Answers, Caller, Greed, play
from benchmarks.load.__main__ import build
from benchmarks.overload import __main__ as overload
from benchmarks.overload.callers import Load
from benchmarks.report import Target, percentile_ms, print_targets, progress, table, write_results
from benchmarks.service import Service, ServiceFailed

ADMIN_KEY = "benchmark-of-fairness"
WARM_UP_S = 2.0
HEAD_START_S = 2.0
"""The greedy key asks for so long before the modest one is measured."""

REFUSED_MAX_S = 2.0
SHARE_MIN = 0.4
P99_MAX = 10.0
GOODPUT_MIN = 0.8
FACTOR = 5.0
PEAK_CALLERS = (8, 16)

HEADER = (
    "greedy key",
    "alone, a second",
    "next to it",
    "search, add p50 / p99 ms alone",
    "next to it",
    "refused",
    "longest write, s",
    "greedy: answered + refused a second",
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """The modest key's answers alone and next to the greedy key, and the greedy key's."""

    alone: Answers
    contended: Answers
    greedy: Answers

    @property
    def share(self) -> float:
        return self.contended.per_s / self.alone.per_s

    @property
    def p99_ratio(self) -> float:
        """The larger one of searches and of adds."""
        pairs = ((self.contended.search_s, self.alone.search_s), (self.contended.add_s, self.alone.add_s))
        return max(percentile_ms(now, 99) / percentile_ms(alone, 99) if now else float("inf") for now, alone in pairs)

    @property
    def late_writes(self) -> int:
        return sum(waited_s > REFUSED_MAX_S for waited_s in self.contended.write_wait_s)


class Running:
    """A caller in a process of its own."""

    def __init__(self, caller: Caller) -> None:
        processes = multiprocessing.get_context("spawn")
        self._receiving, sending = processes.Pipe(duplex=False)
        self._process = processes.Process(target=play, args=(caller, sending), daemon=True)
        self._process.start()

    def answers(self) -> Answers:
        """:raises Exception: What went wrong in the process."""
        answers = _received(self._receiving)
        self._process.join()
        return answers


def _received(channel: Channel) -> Answers:
    answers = channel.recv()
    if isinstance(answers, Answers):
        return answers
    raise answers


def measure(data: Path, greed: Greed, seconds: float, connections: int) -> Scenario:
    """One scenario, on a copy of the data."""
    folder = data.parent / greed.name.lower()
    shutil.copytree(data, folder)
    service = Service(folder, API_KEY=ADMIN_KEY)
    service.start()
    try:
        modest, greedy = (_made_key(service, name) for name in ("modest", "greedy"))

        def alone(seconds: float, seed: int) -> Answers:
            return Running(Caller(service.port, modest, seconds, connections, seed)).answers()

        alone(WARM_UP_S, 1)
        before = alone(seconds, 2)
        noise = Caller(service.port, greedy, seconds + 2 * HEAD_START_S, CONNECTIONS[greed], 3, greed)
        running = Running(noise)
        alone(HEAD_START_S, 4)
        contended = alone(seconds, 5)
        return Scenario(before, contended, running.answers())
    finally:
        service.kill()
        shutil.rmtree(folder)


def _made_key(service: Service, name: str) -> str:
    client = service.client(ADMIN_KEY)
    status, answer = client.call("POST", "/api/keys", {"name": name, "role": "read-write", "namespace": "default"})
    client.close()
    if status != 200:
        raise ServiceFailed(f"a key was refused: {answer}")
    return str(answer["key"])


def goodput(data: Path, seconds: float) -> tuple[float, float]:
    """The peak of answers a second, and those under five times as many requests."""
    service = Service(data)
    service.start()
    try:
        overload.play(service, Load(service.port, WARM_UP_S, seed=1, callers=8))
        loads = [Load(service.port, seconds, seed=10 + callers, callers=callers) for callers in PEAK_CALLERS]
        peak = max(overload.play(service, load).answers.goodput for load in loads)
        over = overload.play(service, Load(service.port, 2 * seconds, seed=4, rate=FACTOR * peak))
        return peak, over.answers.goodput
    finally:
        service.kill()


def row(greed: Greed, one: Scenario) -> tuple[str, ...]:
    def latencies(answers: Answers) -> str:
        figures = [percentile_ms(seconds, p) for seconds in (answers.search_s, answers.add_s) for p in (50, 99)]
        return "{:.0f} / {:.0f}, {:.0f} / {:.0f}".format(*figures)

    return (
        greed,
        f"{one.alone.per_s:.1f}",
        f"{one.contended.per_s:.1f}",
        latencies(one.alone),
        latencies(one.contended),
        f"{one.contended.refused}",
        f"{max(one.contended.write_wait_s, default=0.0):.2f}",
        f"{one.greedy.per_s:.1f} + {one.greedy.refused / one.greedy.seconds:.0f}",
    )


def report(scenarios: dict[Greed, Scenario], peak: float, over: float) -> bool:
    rows = [row(greed, one) for greed, one in scenarios.items()]
    print("\n" + table(HEADER, rows))
    for failure in sorted({failure for one in scenarios.values() for failure in one.contended.failed})[:5]:
        print(f"Failed: {failure}")
    targets = [
        target
        for greed, one in scenarios.items()
        for target in (
            Target(f"{greed}: share of what it gets alone", one.share, SHARE_MIN, at_least=True),
            Target(f"{greed}: p99 / p99 alone", one.p99_ratio, P99_MAX),
            Target(f"{greed}: writes that took more than {REFUSED_MAX_S:g} s", one.late_writes, 0),
            Target(f"{greed}: requests without an answer", len(one.contended.failed), 0),
        )
    ]
    if peak:
        targets.append(Target("goodput under five times the load / peak", over / peak, GOODPUT_MIN, at_least=True))
    print_targets(targets)
    figures = {"peak": peak, "goodput": over, "scenarios": rows}
    print(f"\n{write_results('fairness', figures, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=3_000, help="stored before the scenarios")
    parser.add_argument("--seconds", type=float, default=10.0, help="alone, and next to the greedy key")
    parser.add_argument("--connections", type=int, default=2, help="of the modest key")
    parser.add_argument("--only", type=lambda name: Greed[name.upper()], choices=list(Greed), help="one scenario")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder:
        data = Path(folder) / "data"
        progress(f"storing {arguments.memories} memories")
        build(data, arguments.memories)
        scenarios: dict[Greed, Scenario] = {}
        for greed in [arguments.only] if arguments.only else Greed:
            progress(greed)
            scenarios[greed] = measure(data, greed, arguments.seconds, arguments.connections)
        peak = over = 0.0
        if not arguments.only:
            progress("five times the load")
            peak, over = goodput(data, arguments.seconds)
        return 0 if report(scenarios, peak, over) else 1


if __name__ == "__main__":
    sys.exit(main())
