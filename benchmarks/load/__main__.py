"""The real service under load: an import with a searcher; then eight searchers, a writer, and a health probe.

    python -m benchmarks.load
    python -m benchmarks.load --memories 1000 --seconds 5

Queries are different from each other and embedded by the real model. Callers run in processes of their own and wait for
each answer before they ask again. In the end every memory whose storage was acknowledged is asked for.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
from itertools import islice
from pathlib import Path

from benchmarks.load.callers import SEARCHERS, SOURCE, Traffic, generate, probe_health
from benchmarks.load.importing import BODY_MEMORIES, import_and_search
from benchmarks.load.sentences import memories
from benchmarks.report import Target, percentile_ms, print_targets, progress, table, write_results
from benchmarks.service import Client, Service, ServiceFailed
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.factory import embedder_of

BATCH = 500
IDLE_S = 10.0
HEALTH_LIMIT = 20.0


def build(data_dir: Path, count: int) -> None:
    """A data folder with `count` memories, embedded by the real model."""
    embedder = embedder_of(Settings())
    engine = MemoryEngine.open(Settings(data_dir=data_dir), embedder)
    texts = list(islice(memories(seed=0), count))
    for start in range(0, count, BATCH):
        engine.add_batch(Scope(), [MemoryDraft(text, SOURCE) for text in texts[start : start + BATCH]])
    engine.warm_up()
    engine.close()
    embedder.close()


def measure(port: int, seconds: float) -> tuple[list[float], list[float], Traffic]:
    """Durations of /health without and with load, and what the load's callers saw."""
    probe_health(port, 1.0)
    idle = probe_health(port, IDLE_S)
    progress(f"idle: /health p50 {percentile_ms(idle, 50):.2f} ms")
    processes = multiprocessing.get_context("spawn")
    receiving, sending = processes.Pipe(duplex=False)
    load = processes.Process(target=generate, args=(port, seconds + 2.0, sending))
    load.start()
    probe_health(port, 1.5)  # the load's process needs a moment to start
    loaded = probe_health(port, seconds)
    traffic = receiving.recv()
    load.join()
    if not isinstance(traffic, Traffic):
        raise traffic
    return idle, loaded, traffic


def missing_adds(port: int, acknowledged: dict[int, str]) -> int:
    """How many of the acknowledged adds are not there, word for word."""
    client, ids, missing = Client(port), list(acknowledged), 0
    for start in range(0, len(ids), BATCH):
        batch = ids[start : start + BATCH]
        status, answer = client.call("POST", "/memory/get-batch", {"ids": batch})
        if status != 200:
            raise ServiceFailed(f"get-batch was answered {status}: {answer}")
        texts = {memory["id"]: memory["text"] for memory in answer["memories"]}
        missing += sum(texts.get(id_) != acknowledged[id_] for id_ in batch)
    client.close()
    return missing


def run(count: int, seconds: float, folder: Path) -> bool:
    progress(f"storing {count} memories")
    build(folder / "data", count)
    service = Service(folder / "data")
    progress(f"the service was ready after {service.start():.1f} s")
    try:
        imported = import_and_search(service.port, seconds)
        progress(f"import: {imported.per_second:.0f} memories a second")
        idle, loaded, traffic = measure(service.port, seconds)
        lost = missing_adds(service.port, {**imported.acknowledged, **traffic.acknowledged})
    finally:
        service.stop()
    rows = {
        "search, during an import": imported.search_s,
        "/health, idle": idle,
        "/health, under load": loaded,
        "search": traffic.search_s,
        "add": traffic.add_s,
    }
    percentiles = {
        name: {f"p{percent}": percentile_ms(durations, percent) for percent in (50, 95, 99)} | {"count": len(durations)}
        for name, durations in rows.items()
    }
    cells = [[name, *(f"{figure:,.2f}" for figure in figures.values())] for name, figures in percentiles.items()]
    print("\nMilliseconds\n\n" + table(("", "p50", "p95", "p99", "count"), cells))
    rate = len(traffic.search_s) / (seconds + 2.0)
    print(f"\nimport: {imported.per_second:.0f} memories a second in bodies of {BODY_MEMORIES}, next to the searches")
    print(f"{SEARCHERS} searchers together: {rate:.0f} searches a second; {traffic.refused} requests refused (429)")
    targets = [
        Target("/health under load p99 / idle p50", percentile_ms(loaded, 99) / percentile_ms(idle, 50), HEALTH_LIMIT),
        Target("acknowledged adds that are not there", lost, 0),
    ]
    print_targets(targets)
    figures = {
        "milliseconds": percentiles,
        "imported_per_second": imported.per_second,
        "searches_per_second": rate,
        "refused": traffic.refused,
    }
    print(f"\n{write_results('load', figures, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000, help="stored before the load begins")
    parser.add_argument("--seconds", type=float, default=15.0, help="of load")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder:
        return 0 if run(arguments.memories, arguments.seconds, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
