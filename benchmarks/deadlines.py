"""Searches with `deadline_ms`: how many end within it, and what they omit; the service has one core.

    python -m benchmarks.deadlines                          100,000 memories: some minutes
    python -m benchmarks.deadlines --memories 10000 --searches 500

The texts are synthetic, and their vectors are handed out while the folder is filled; the service is then started on it
with the real model. Queries are all different, so that each is embedded, unless its time is up. A search counts as on
time if its client has the answer within the deadline and 10 % of it. The callers use another core than the service.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.engine.corpus import make_corpus
from benchmarks.engine.sides import Ours
from benchmarks.report import Target, percentile_ms, print_targets, progress, table, write_results
from benchmarks.service import Service, ServiceFailed
from souvenir.core.settings import Settings
from souvenir.models.embedding.onnx_embedder import OnnxEmbedder

DEADLINES_MS = (None, 20, 50, 100)
CALLERS = (1, 4)
WARM_UP = 50
TOLERANCE = 1.1
ON_TIME = 0.999


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Restrict this process, and those that it starts meanwhile, to one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@dataclass(frozen=True, slots=True)
class Figures:
    """The searches of so many concurrent callers with one deadline; `omitted` counts searches by part."""

    callers: int
    deadline_ms: int | None
    took_s: list[float]
    omitted: Counter[str]

    @property
    def on_time(self) -> float:
        limit_s = math.inf if self.deadline_ms is None else TOLERANCE * self.deadline_ms / 1000
        return sum(one <= limit_s for one in self.took_s) / len(self.took_s)

    def record(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        # `asdict` of Python 3.11 makes a counter of pairs from a counter.
        return {**asdict(self), "omitted": dict(self.omitted)}

    def row(self) -> list[str]:
        count = len(self.took_s)
        return [
            str(self.callers),
            "none" if self.deadline_ms is None else str(self.deadline_ms),
            *(f"{percentile_ms(self.took_s, percent):.1f}" for percent in (50, 99, 99.9)),
            "" if self.deadline_ms is None else f"{100 * self.on_time:.2f} %",
            ", ".join(f"{part} {100 * number / count:.1f} %" for part, number in self.omitted.items()),
        ]


def ask(service: Service, texts: Sequence[str], figures: Figures) -> None:
    with closing(service.client()) as client:
        for text in texts:
            began = time.perf_counter()
            body = {"query": text, "k": 10, "deadline_ms": figures.deadline_ms}
            status, found = client.call("POST", "/search", body)
            figures.took_s.append(time.perf_counter() - began)
            if status != 200 or not found["results"]:
                raise ServiceFailed(f"a search was answered {status}: {found}")
            figures.omitted.update(found["degraded"])


def measure(service: Service, texts: Iterator[str], searches: int, callers: int, deadline_ms: int | None) -> Figures:
    figures = Figures(callers, deadline_ms, [], Counter())
    each = [list(islice(texts, searches // callers)) for _ in range(callers)]
    with ThreadPoolExecutor(callers) as pool:
        for done in [pool.submit(ask, service, one, figures) for one in each]:
            done.result()
    return figures


def fill(data_dir: Path, memories: int, query_count: int) -> Sequence[str]:
    """Store the memories, and return as many queries."""
    corpus = make_corpus(memories, spare=1, query_count=query_count)
    ours = Ours(corpus, Settings(data_dir=data_dir), OnnxEmbedder().model_id)
    ours.build()
    ours.engine.close()
    progress(f"{memories} memories are stored")
    return corpus.queries


def run(memories: int, searches: int) -> bool:
    """Return whether every target was met."""
    of_service, of_callers = sorted(os.sched_getaffinity(0))[:2]
    pairs = [(callers, deadline_ms) for callers in CALLERS for deadline_ms in DEADLINES_MS]
    with tempfile.TemporaryDirectory(prefix="souvenir-deadlines-") as folder:
        service = Service(Path(folder) / "data")
        texts = iter(fill(service.data_dir, memories, WARM_UP + len(pairs) * searches))
        with on_core(of_service):
            service.start()
        try:
            with on_core(of_callers):
                measure(service, texts, WARM_UP, 1, None)
                found = [measure(service, texts, searches, *pair) for pair in pairs]
        finally:
            service.stop()
    print(f"\n{memories:,} memories, one core; milliseconds of a search over HTTP\n")
    header = ("callers", "deadline", "p50", "p99", "p99.9", "on time", "omitted")
    print(table(header, [one.row() for one in found]))
    targets = [
        Target(f"on time, callers: {one.callers}, deadline: {one.deadline_ms} ms", one.on_time, ON_TIME, at_least=True)
        for one in found
        if one.deadline_ms is not None
    ]
    print_targets(targets)
    print(f"\n{write_results('deadlines', {'searches': [one.record() for one in found]}, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--searches", type=int, default=1_000, help="of each deadline and number of callers")
    arguments = parser.parse_args()
    return 0 if run(arguments.memories, arguments.searches) else 1


if __name__ == "__main__":
    sys.exit(main())
