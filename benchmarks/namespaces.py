"""Thousands of namespaces: how long a start takes, what it holds in memory, and the first search in a cold namespace.

    python -m benchmarks.namespaces                      10,000 namespaces of 100 memories: some 20 minutes
    python -m benchmarks.namespaces --namespaces 500
    python -m benchmarks.namespaces --memories 10 --postgres --index-memory-mb 512

The texts are synthetic, and their vectors are handed out while the folder is filled. The service is then started on it
with the real model, every namespace is searched for the first time, which makes its index, and the service is stopped.
What follows is measured: the next start, a search in every namespace, and searches in warm ones. Next to it, in turns,
runs a service with one namespace of as many memories: a search in a warm namespace should take as long as there. With
`--postgres` both store in a database of PostgreSQL each.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path

from pydantic import SecretStr

from benchmarks.engine.corpus import Corpus, LookupEmbedder, make_corpus
from benchmarks.postgres_server import new_database, postgres_server
from benchmarks.report import Target, percentile_ms, print_targets, progress, table, write_results
from benchmarks.service import Client, Service, ServiceFailed
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.onnx_embedder import OnnxEmbedder

TEXTS = 5_000
QUERIES = 8
SOURCE = "benchmark/namespaces"
WARM, ROUNDS = 20, 10
"""Namespaces that are searched again, and how often each turn does so."""
TURNS = 5
REPORT_EVERY = 1_000
MIB = 2**20

START_S, RESIDENT_MB, COLD_MS, WARM_RATIO = 3.0, 600.0, 30.0, 1.1


def fill(data_dir: Path, url: str | None, corpus: Corpus, namespaces: int, memories: int) -> None:
    dice = random.Random(0)
    settings = Settings(data_dir=data_dir, database_url=None if url is None else SecretStr(url))
    with closing(MemoryEngine.open(settings, LookupEmbedder(corpus, OnnxEmbedder().model_id))) as engine:
        for number in range(namespaces):
            texts = dice.sample(corpus.texts[:TEXTS], memories)
            engine.add_batch(Scope(_name(number)), [MemoryDraft(text, SOURCE) for text in texts])
            if (number + 1) % REPORT_EVERY == 0:
                progress(f"{number + 1} namespaces are stored")


def _name(number: int) -> str:
    return f"user-{number}"


def timed(client: Client, corpus: Corpus, names: Iterable[str]) -> list[float]:
    """Seconds of one search in each namespace; its query is in the cache of query vectors."""
    durations = []
    for place, name in enumerate(names):
        began = time.perf_counter()
        status, found = client.call("POST", "/search", {"query": corpus.queries[place % QUERIES]}, namespace=name)
        durations.append(time.perf_counter() - began)
        if status != 200 or not found["results"] or found["degraded"]:
            raise ServiceFailed(f"a search was answered {status}: {found}")
    return durations


def run(count: int, memories: int, index_memory_mb: int, *, postgres: bool) -> bool:
    """Return whether every target was met."""
    corpus = make_corpus(TEXTS, spare=1, query_count=QUERIES)
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="souvenir-namespaces-")))
        services: list[Service] = []
        server = None
        if postgres:
            (folder / "postgres").mkdir()
            server = opened.enter_context(postgres_server(folder / "postgres"))
        for name, namespaces in (("single", 1), ("many", count)):
            url = None if server is None else new_database(server, name)
            fill(folder / name, url, corpus, namespaces, memories)
            settings = {} if url is None else {"DATABASE_URL": url}
            services.append(Service(folder / name, INDEX_MEMORY_MB=str(index_memory_mb), **settings))
        single, many = services
        try:
            many.start()
            with closing(many.client()) as client:
                new = timed(client, corpus, map(_name, range(count)))
            progress(f"every namespace was searched: {percentile_ms(new, 50):.1f} ms each")
            many.stop()
            single.start()
            start_s = many.start()
            progress(f"started after {start_s:.2f} s with {many.resident_bytes / MIB:.0f} MiB")
            cold, warm, alone = searches(many, single, corpus, count)
            resident_mb = many.resident_bytes / MIB
        finally:
            for service in (many, single):
                if service.running:
                    service.stop()
    rows = [
        (name, *(f"{percentile_ms(took_s, percent):.1f}" for percent in (50, 95, 99, 100)))
        for name, took_s in (
            ("first of all, which makes the index", new),
            ("first in a cold namespace", cold),
            ("in a warm namespace", warm),
            ("in the only namespace of a service", alone),
        )
    ]
    print(f"\n{count:,} namespaces of {memories} memories, {index_memory_mb} MiB for indexes")
    print("milliseconds of a search over HTTP\n")
    print(table(("search", "p50", "p95", "p99", "max"), rows))
    targets = [
        Target("start, s", start_s, START_S),
        Target("resident after a search in each namespace, MiB", resident_mb, RESIDENT_MB),
        Target("first search in a cold namespace, p95, ms", percentile_ms(cold, 95), COLD_MS),
        Target("warm p50 / that of one namespace", percentile_ms(warm, 50) / percentile_ms(alone, 50), WARM_RATIO),
    ]
    print_targets(targets)
    print(
        f"\n{write_results('namespaces', {'namespaces': count, 'new_s': new, 'cold_s': cold, 'warm_s': warm}, targets)}"
    )
    return all(target.met for target in targets)


def searches(
    many: Service, single: Service, corpus: Corpus, count: int
) -> tuple[list[float], list[float], list[float]]:
    """Return seconds of the first search in each namespace, of later ones in some, and of those in the single one."""
    warm: list[float] = []
    alone: list[float] = []
    order = list(range(1, count))
    random.Random(1).shuffle(order)
    with closing(many.client()) as client:
        timed(client, corpus, [_name(0)] * QUERIES)
        cold = timed(client, corpus, map(_name, order))
    # Only now: the server closes connections that are idle for so long.
    with closing(many.client()) as client, closing(single.client()) as peer:
        timed(peer, corpus, [_name(0)] * QUERIES)
        warm_names = [_name(number) for number in order[-WARM:]]
        for _ in range(TURNS):
            warm += timed(client, corpus, warm_names * ROUNDS)
            alone += timed(peer, corpus, [_name(0)] * (WARM * ROUNDS))
    return cold, warm, alone


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--namespaces", type=int, default=10_000)
    parser.add_argument("--memories", type=int, default=100, help="memories in each namespace")
    parser.add_argument("--index-memory-mb", type=int, default=2048)
    parser.add_argument("--postgres", action="store_true", help="store in PostgreSQL instead of SQLite")
    arguments = parser.parse_args()
    met = run(arguments.namespaces, arguments.memories, arguments.index_memory_mb, postgres=arguments.postgres)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
