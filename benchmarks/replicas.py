"""Replicas on PostgreSQL compared with the embedded engine, in one run.

    python -m benchmarks.replicas                        some ten minutes
    python -m benchmarks.replicas --memories 1000 --messages 2000 --requests 20

Both engines hold the same memories, and take turns; vectors are handed out, so nothing is embedded. PostgreSQL is on
the same machine, on a socket, with durable commits. Then one replica catches up with another, a new one starts, and
replicas of the real service, with the real model, answer searches: what each spends on a request shows whether they
share more than the database.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
from psycopg.pq import TransactionStatus
from pydantic import SecretStr

from benchmarks.engine.corpus import Corpus, LookupEmbedder, make_corpus
from benchmarks.engine.sides import SCOPE, SOURCE, Ours
from benchmarks.postgres_server import new_database, postgres_server
from benchmarks.report import Target, percentile_ms, print_targets, progress, table, write_results
from benchmarks.service import Service
from benchmarks.talk.__main__ import TurnEmbedder
from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MessageRole, PassageKind, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.store.messages.messages import MessageDraft

MODEL = "benchmark"
TURNS = 200
BEHIND, BEHIND_IN_WRITES = 1_000, 10
BATCH = 1_000
TALK = Scope("talk")
SESSION_LENGTH = 25
REPLICAS = (1, 2, 4)
MORE_MS, TIMES, CATCH_UP_MS, START_S = 2.0, 3.0, 200.0, 10.0


@dataclass(slots=True)
class RoundTrips:
    """Waits of this thread for PostgreSQL's answer."""

    count: int = 0


@contextmanager
def counted() -> Iterator[RoundTrips]:
    found, wait, thread = RoundTrips(), psycopg.Connection.wait, threading.get_ident()

    def counting(connection: Any, waiting: Any, *arguments: Any, **options: Any) -> Any:
        # The pool commits a connection that it gets back; without a transaction nothing is sent.
        is_sent = waiting.__name__ != "_commit_gen" or connection.info.transaction_status is not TransactionStatus.IDLE
        found.count += is_sent and threading.get_ident() == thread
        return wait(connection, waiting, *arguments, **options)

    with patch.object(psycopg.Connection, "wait", counting):
        yield found


def timed(operation: Callable[[], object]) -> float:
    begin = time.perf_counter()
    operation()
    return time.perf_counter() - begin


def compare(corpus: Corpus, folder: Path, url: str) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Seconds of each operation by engine and verb, and round trips of an operation in PostgreSQL."""
    embedded = Ours(corpus, Settings(data_dir=folder / "embedded"), MODEL)
    shared = Ours(corpus, shared_settings(folder / "shared", url), MODEL)
    for name, side in (("embedded", embedded), ("PostgreSQL", shared)):
        progress(f"{name}: stored in {timed(side.build):.1f} s")
        side.search()
    seconds: dict[str, list[float]] = {}
    trips: dict[str, float] = {}
    for verb in ("search", "add", "update", "delete"):
        with counted() as found:
            for _ in range(TURNS):
                for name, side in (("embedded", embedded), ("PostgreSQL", shared)):
                    seconds.setdefault(f"{name} {verb}", []).append(timed(getattr(side, verb)))
        trips[verb] = found.count / TURNS
    for side in (embedded, shared):
        side.engine.close()
    return seconds, trips


def shared_settings(folder: Path, url: str) -> Settings:
    return Settings(data_dir=folder, database_url=SecretStr(url))


def catch_up_s(corpus: Corpus, folder: Path, url: str) -> float:
    """How much longer the first search takes than the next, on a replica that lacks another's writes."""
    embedder = LookupEmbedder(corpus, MODEL)
    with ExitStack() as opened:
        one, other = (
            opened.enter_context(closing(MemoryEngine.open(shared_settings(folder / name, url), embedder)))
            for name in ("one", "other")
        )
        query = SearchQuery(corpus.queries[0], top_k=10)
        other.search(SCOPE, query)
        texts = corpus.texts[:BEHIND]
        for first in range(0, BEHIND, BEHIND // BEHIND_IN_WRITES):
            part = texts[first : first + BEHIND // BEHIND_IN_WRITES]
            one.add_batch(SCOPE, [MemoryDraft(text, SOURCE) for text in part])
        return timed(lambda: other.search(SCOPE, query)) - timed(lambda: other.search(SCOPE, query))


def start_s(corpus: Corpus, messages: int, folder: Path, url: str) -> tuple[float, float]:
    """Seconds until a new replica answers in a namespace of messages: without a snapshot, and with one."""
    embedder, question = TurnEmbedder(corpus, MODEL), SearchQuery(corpus.queries[0], top_k=10)

    def answer(name: str) -> float:
        def first() -> None:
            with closing(MemoryEngine.open(shared_settings(folder / name, url), embedder)) as engine:
                if engine.recall(TALK, PassageKind.MESSAGE, question) is None:
                    raise RuntimeError("the new replica found nothing")
                took.append(time.perf_counter() - begin)

        took: list[float] = []
        begin = time.perf_counter()
        first()
        return took[0]

    with closing(MemoryEngine.open(shared_settings(folder / "writer", url), embedder)) as engine:
        conversations = Conversations(engine)
        for first in range(0, messages, BATCH):
            drafts = [
                MessageDraft(MessageRole.USER, text, session_id=f"session {number // SESSION_LENGTH}")
                for number, text in enumerate(corpus.texts[first : first + BATCH], first)
            ]
            conversations.add(TALK, drafts)
    return answer("new"), answer("new")


def cpu_by_replicas(folder: Path, url: str, requests: int) -> list[tuple[int, float, float]]:
    """Milliseconds of processor time of one search by the number of replicas: in replicas, and in PostgreSQL."""
    found: list[tuple[int, float, float]] = []
    numbers = itertools.count()
    for many in REPLICAS:
        services = [Service(folder / f"replica{one}", DATABASE_URL=url) for one in range(many)]
        try:
            for service in services:
                service.start()
            clients = [service.client() for service in services]
            clients[0].call("POST", "/memory/add", {"text": "Ann plays the violin on Fridays", "source": "notes"})
            for client in clients:
                client.call("POST", "/search", {"query": "Who plays the violin?"})
            before = sum(service.cpu_s for service in services), cpu_of_postgres_s()
            for number in range(requests):
                query = f"Who plays the violin on day {next(numbers)}?"
                clients[number % many].call("POST", "/search", {"query": query})
            spent = sum(service.cpu_s for service in services) - before[0], cpu_of_postgres_s() - before[1]
            found.append((many, spent[0] / requests * 1e3, spent[1] / requests * 1e3))
        finally:
            for service in services:
                service.stop()
    return found


def cpu_of_postgres_s() -> float:
    """Processor seconds of all processes of PostgreSQL, with those that have ended."""
    total = 0.0
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = status.read_text(encoding="utf-8").rpartition(")")
        except OSError:
            continue
        if name.partition("(")[2] == "postgres":
            total += sum(map(int, rest.split()[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def run(memories: int, messages: int, requests: int, folder: Path, url: str) -> bool:
    corpus = make_corpus(memories, spare=4 * TURNS, query_count=TURNS, seed=memories)
    seconds, trips = compare(corpus, folder, url)
    rows = [
        (
            verb,
            f"{percentile_ms(seconds[f'embedded {verb}'], 50):.2f}",
            f"{percentile_ms(seconds[f'PostgreSQL {verb}'], 50):.2f}",
            f"{trips[verb]:.1f}",
        )
        for verb in trips
    ]
    progress("compared")
    behind_s = catch_up_s(corpus, folder, url)
    progress(f"caught up with {BEHIND} memories in {behind_s * 1e3:.0f} ms")
    talk = make_corpus(messages, spare=1, query_count=1, seed=1)
    without_s, with_s = start_s(talk, messages, folder, url)
    progress(f"a new replica answered from {messages} messages in {without_s:.1f} s, with a snapshot in {with_s:.1f} s")
    by_replicas = cpu_by_replicas(folder, new_database(url, "replicas"), requests)
    print("\n" + table(("operation", "embedded, ms", "PostgreSQL, ms", "round trips"), rows))
    header = ("replicas", "CPU in replicas, ms a search", "CPU in PostgreSQL, ms a search")
    print("\n" + table(header, [(f"{many}", f"{own:.1f}", f"{theirs:.2f}") for many, own, theirs in by_replicas]))

    def p50(name: str) -> float:
        return percentile_ms(seconds[name], 50)

    targets = [
        Target(f"search at {memories}, ms more", p50("PostgreSQL search") - p50("embedded search"), MORE_MS),
        Target("add, times the embedded engine", p50("PostgreSQL add") / p50("embedded add"), TIMES),
        Target(f"catch-up of {BEHIND} memories, ms", behind_s * 1e3, CATCH_UP_MS),
        Target(f"a new replica's first answer from {messages} messages with a snapshot, s", with_s, START_S),
    ]
    print_targets(targets)
    figures = {
        "p50_ms": {name: percentile_ms(of_name, 50) for name, of_name in seconds.items()},
        "round_trips": trips,
        "catch_up_s": behind_s,
        "new_replica_s": {"without": without_s, "with": with_s},
        "cpu_ms_by_replicas": by_replicas,
    }
    print(f"\n{write_results('replicas', figures, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=400, help="searches for each number of replicas")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as name:
        folder = Path(name)
        (folder / "postgres").mkdir()
        with postgres_server(folder / "postgres") as url:
            return 0 if run(arguments.memories, arguments.messages, arguments.requests, folder, url) else 1


if __name__ == "__main__":
    sys.exit(main())
