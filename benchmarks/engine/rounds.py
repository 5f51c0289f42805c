"""One round of every operation on every store, each operation timed separately."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.engine.corpus import Corpus
from benchmarks.engine.sides import Baseline, FlatScan, Ours
from benchmarks.report import percentile_ms

ROUNDS = 10
OPERATIONS = 20
"""Operations of one verb in a round, of ours and at most of the baseline."""

BASELINE_BUDGET_S = 12.0
"""Seconds that the baseline gets for one verb at one size: at 100,000 memories a few writes, which is enough."""

BASELINE_UP_TO = 100_000
"""Above so many memories there is no baseline: at a million a search takes it seconds, and a write half a minute."""

VERBS = ("search", "add", "update", "delete")


@dataclass(slots=True)
class Case:
    size: int
    corpus: Corpus
    ours: Ours
    baseline: Baseline | None
    flat: FlatScan


@dataclass(slots=True)
class Durations:
    """Seconds of every operation, by (size, store, verb)."""

    _seconds: defaultdict[tuple[int, str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def time(self, size: int, store: str, verb: str, operation: Callable[[], None]) -> None:
        begin = time.perf_counter()
        operation()
        self._seconds[size, store, verb].append(time.perf_counter() - begin)

    def of(self, size: int, store: str, verb: str) -> list[float]:
        return self._seconds[size, store, verb]

    def p50_ms(self, size: int, store: str, verb: str) -> float:
        return percentile_ms(self._seconds[size, store, verb], 50)

    def summary(self) -> list[dict[str, object]]:
        return [
            {
                "size": size,
                "store": store,
                "verb": verb,
                "count": len(seconds),
                "p50": percentile_ms(seconds, 50),
                "p95": percentile_ms(seconds, 95),
            }
            for (size, store, verb), seconds in self._seconds.items()
        ]


def run_round(case: Case, durations: Durations) -> None:
    for verb in VERBS:
        for _ in range(OPERATIONS):
            durations.time(case.size, "ours", verb, getattr(case.ours, verb))
            if verb == "search":
                durations.time(case.size, "flat", verb, case.flat.search)
        if case.baseline is not None:
            _baseline_turn(case.size, case.baseline, verb, durations)


def _baseline_turn(size: int, baseline: Baseline, verb: str, durations: Durations) -> None:
    """As many operations as its budget allows, and the disk left as it was found."""
    spent = durations.of(size, "baseline", verb)
    before = sum(spent)
    if before > BASELINE_BUDGET_S:
        return
    for _ in range(OPERATIONS):
        durations.time(size, "baseline", verb, getattr(baseline, verb))
        if sum(spent) - before > BASELINE_BUDGET_S / ROUNDS:
            break
    if verb != "search":
        baseline.store.settle()
