"""The cost of facts: searches of 100,000 facts, a thousand adds of one fact, and memories with and without facts.

    python -m benchmarks.facts.speed
    python -m benchmarks.facts.speed --memories 1000 --adds 100 --rounds 20

20,000 memories of five facts each; their vectors are made from those of 2,000 texts (`benchmarks.facts.told`). Every
question is a new one, and the real model embeds it as part of the search: in the engine, and in the real service on a
free port of this machine. Beside them, in turns: the embedding by itself, FAISS flat alone over the facts, and a file
of SQLite with a scan of every fact (`benchmarks.facts.fact_scan`). Adds are on the disk when they are answered, on all
sides.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from benchmarks.facts import adding, searching
from benchmarks.facts.fact_scan import FactScan
from benchmarks.facts.told import FACTS_EACH
from benchmarks.facts.turns import Seconds
from benchmarks.report import Target, percentile_ms, print_targets, progress, table, write_results
from benchmarks.service import Service
from souvenir.core.settings import Settings
from souvenir.core.types import Embedder
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.factory import embedder_of

SEARCH_P50_MS = 60.0


def search_facts(folder: Path, embedder: Embedder, memories: int, rounds: int) -> tuple[Seconds, Seconds]:
    """In the engine, and over the wire."""
    data_dir = folder / "searched"
    progress(f"storing {memories} memories of {FACTS_EACH} facts")
    searching.fill(data_dir, memories, embedder)
    with closing(FactScan(folder / "searched.db", embedder)) as scan:
        vectors = searching.fill_scan(scan, data_dir, memories)
        alone = searching.FaissAlone(vectors, embedder, rounds)
        progress("searching in the engine")
        with closing(MemoryEngine.open(Settings(data_dir=data_dir), embedder)) as engine:
            engine.warm_up()
            in_engine = searching.in_engine(engine, embedder, scan, alone, rounds)
        progress("searching over the wire")
        return in_engine, searching.over_the_wire(data_dir, embedder, alone, rounds)


def add_tests(folder: Path, embedder: Embedder, count: int) -> tuple[Seconds, Seconds, Mapping[str, float]]:
    """One after another, the searches that follow, and adds a second: alone and eight at once."""
    progress(f"adding {count} tests by each way")
    service = Service(folder / "added")
    service.start()
    try:
        with closing(FactScan(folder / "added.db", embedder)) as scan:
            added, searched = adding.one_after_another(service, scan, count)
        at_once = adding.eight_at_once(service, count)
    finally:
        service.stop()
    rates = {f"{name}, one after another": count / sum(seconds) for name, seconds in added.items()}
    rates |= {f"{name}, {adding.ADDERS} at once": count / took_s for name, (_, took_s) in at_once.items()}
    return (
        added | {f"{name}, {adding.ADDERS} at once": seconds for name, (seconds, _) in at_once.items()},
        searched,
        rates,
    )


def run(folder: Path, memories: int, adds: int, rounds: int) -> bool:
    with closing(embedder_of(Settings(query_cache_size=0))) as embedder:
        embedder.load()
        in_engine, on_the_wire = search_facts(folder, embedder, memories, rounds)
        added, searched, rates = add_tests(folder, embedder, adds)
        progress("adding memories with and without facts")
        written = adding.with_and_without_facts(folder, embedder, rounds)
    named = {
        f"searches of {memories * FACTS_EACH} facts, in the engine": in_engine,
        f"searches of {memories * FACTS_EACH} facts, over the wire": on_the_wire,
        "adds of 'Test 1' and so on": added,
        "searches for a test": searched,
        "adds of whole memories, in the engine": written,
    }
    for title, seconds in named.items():
        rows = [
            (name, f"{percentile_ms(of, 50):.2f}", f"{percentile_ms(of, 95):.2f}", str(len(of)))
            for name, of in seconds.items()
        ]
        print(f"\n{title}, ms\n\n" + table(("", "p50", "p95", "count"), rows))
    print("\n" + table(("", "a second"), [(name, f"{rate:.0f}") for name, rate in rates.items()]))
    targets = [
        Target(f"{name}, p50 ms", percentile_ms(of[name], 50), SEARCH_P50_MS)
        for of, name in (
            *((in_engine, name) for name in (searching.SEARCH, searching.TAG_RARE, searching.TAG_COMMON)),
            (in_engine, searching.TAG_NAMED),
            (on_the_wire, searching.OVER_HTTP),
            (on_the_wire, searching.OVER_MCP),
        )
    ]
    print_targets(targets)
    figures = {
        "facts": memories * FACTS_EACH,
        "milliseconds": {
            title: {name: {"p50": percentile_ms(of, 50), "p95": percentile_ms(of, 95)} for name, of in seconds.items()}
            for title, seconds in named.items()
        },
        "a_second": rates,
    }
    print(f"\n{write_results('facts.speed', figures, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=20_000, help="of five facts each, that are searched")
    parser.add_argument("--adds", type=int, default=1_000, help="of each way")
    parser.add_argument("--rounds", type=int, default=200, help="searches of each way, and adds of whole memories")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder:
        return 0 if run(Path(folder), **vars(arguments)) else 1


if __name__ == "__main__":
    sys.exit(main())
