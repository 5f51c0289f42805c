"""Searches with `deadline_ms`: how many end within it, and what they leave out; the service has one core.

    python -m benchmarks.deadlines                          100,000 memories: some minutes
    python -m benchmarks.deadlines --memories 10000 --searches 500

The texts are synthetic, and their vectors are handed out while the folder is filled; the service is then started on it
with the real model. Queries are all different, so that each is embedded, unless its time is up. A search counts as on
time if its client has the answer within the deadline and 10 % of it. The callers use another core than the service.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

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


def search(
    service: Service, texts: Iterator[str], deadline_ms: int | None, took_s: list[float], left: Counter[str]
) -> None:
    with closing(service.client()) as client:
        for text in texts:
            began = time.perf_counter()
            status, found = client.call("POST", "/search", {"query": text, "k": 10, "deadline_ms": deadline_ms})
            took_s.append(time.perf_counter() - began)
            if status != 200 or not found["results"]:
                raise ServiceFailed(f"a search was answered {status}: {found}")
            left.update(found["degraded"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--searches", type=int, default=2_000, help="of each deadline and number of callers")
    arguments = parser.parse_args()
    of_service, of_callers = sorted(os.sched_getaffinity(0))[:2]
    rows, targets, figures = [], [], []
    with tempfile.TemporaryDirectory(prefix="souvenir-deadlines-") as folder:
        settings = Settings(data_dir=Path(folder) / "data")
        query_count = WARM_UP + len(CALLERS) * len(DEADLINES_MS) * arguments.searches
        corpus = make_corpus(arguments.memories, spare=1, query_count=query_count)
        texts = iter(corpus.queries)
        ours = Ours(corpus, settings, OnnxEmbedder().model_id)
        ours.build()
        ours.engine.close()
        progress(f"{arguments.memories} memories are stored")
        service = Service(settings.data_dir)
        with on_core(of_service):
            service.start()
        try:
            with on_core(of_callers):
                search(service, islice(texts, WARM_UP), None, [], Counter())
                for callers in CALLERS:
                    for deadline_ms in DEADLINES_MS:
                        took_s: list[float] = []
                        left: Counter[str] = Counter()
                        each = [list(islice(texts, arguments.searches // callers)) for _ in range(callers)]
                        threads = [
                            threading.Thread(target=search, args=(service, iter(one), deadline_ms, took_s, left))
                            for one in each
                        ]
                        for thread in threads:
                            thread.start()
                        for thread in threads:
                            thread.join()
                        if len(took_s) != sum(map(len, each)):
                            raise ServiceFailed("a caller failed; see above")
                        limit_s = float("inf") if deadline_ms is None else TOLERANCE * deadline_ms / 1000
                        on_time = sum(one <= limit_s for one in took_s) / len(took_s)
                        rows.append(
                            (
                                str(callers),
                                "none" if deadline_ms is None else str(deadline_ms),
                                *(f"{percentile_ms(took_s, percent):.1f}" for percent in (50, 99, 99.9)),
                                f"{100 * on_time:.2f} %",
                                ", ".join(f"{part} {100 * count / len(took_s):.1f} %" for part, count in left.items()),
                            )
                        )
                        if deadline_ms is not None:
                            targets.append(
                                Target(f"{callers} callers, {deadline_ms} ms: on time", on_time, ON_TIME, True)
                            )
                        figures.append(
                            {"callers": callers, "deadline_ms": deadline_ms, "took_s": took_s, "left_out": left}
                        )
        finally:
            service.stop()
    print(f"\n{arguments.memories:,} memories, one core; milliseconds of a search over HTTP\n")
    print(table(("callers", "deadline", "p50", "p99", "p99.9", "on time", "left out"), rows))
    print_targets(targets)
    print(f"\n{write_results('deadlines', {'searches': figures}, targets)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
