"""Searches of 100,000 facts in the engine, over HTTP and over MCP, compared with FAISS alone and a full scan."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

import apsw
import faiss
import numpy as np

from benchmarks.facts.fact_scan import FactScan
from benchmarks.facts.told import COMMON, FACTS_EACH, RARE, TurnedEmbedder, drafts
from benchmarks.facts.turns import Operation, Seconds, in_turns
from benchmarks.load.sentences import questions
from benchmarks.service import Service, ServiceFailed
from souvenir.core.settings import Settings
from souvenir.core.types import Embedder, Filters, FloatVector, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine

TOP_K = 10
BATCH = 500
OK = 200
SCAN_EVERY = 10
"""Turns of the others for one of a scan of every fact."""

SEARCH = "search"
TAG_RARE, TAG_COMMON, TAG_NAMED = "tag of 1 %", "tag of 50 %", "tag in the question"
OVER_HTTP, OVER_MCP = "POST /search", "MCP search_memory"
EMBEDDING, FAISS_ALONE = "embedding the question", "FAISS alone, embedded before"
SCAN, SCAN_RARE = "scan of every fact", "scan, tag of 1 %"


def fill(data_dir: Path, memory_count: int, embedder: Embedder) -> None:
    turned = TurnedEmbedder(embedder)
    with closing(MemoryEngine.open(Settings(data_dir=data_dir), turned)) as engine:
        told = drafts()
        for _ in range(0, memory_count, BATCH):
            engine.add_batch(Scope(), list(islice(told, BATCH)))


def fill_scan(scan: FactScan, data_dir: Path, memory_count: int) -> FloatVector:
    """Give the scan what the folder holds; returns the vectors of the facts."""
    with closing(apsw.Connection(str(Settings(data_dir=data_dir).database_path))) as ours:
        rows = ours.execute(
            "SELECT vector FROM passages JOIN vectors ON passage_id = id WHERE fact_id IS NOT NULL ORDER BY id"
        )
        vectors = np.frombuffer(b"".join(vector for (vector,) in rows), np.float32)
    of_each = vectors.reshape(memory_count, FACTS_EACH, -1)
    scan.fill((one.text, one.facts, own, one.tags) for one, own in zip(drafts(), of_each, strict=False))
    return of_each.reshape(memory_count * FACTS_EACH, -1)


class FaissAlone:
    """Questions that were embedded before, on one thread as the service's."""

    def __init__(self, vectors: FloatVector, embedder: Embedder, count: int) -> None:
        self._index = faiss.IndexFlatIP(vectors.shape[1])
        self._index.add(vectors)
        self._asked = [embedder.embed_query(text)[None, :] for text in islice(questions(seed=3), count)]

    def search(self, number: int) -> object:
        faiss.omp_set_num_threads(1)
        return self._index.search(self._asked[number % len(self._asked)], TOP_K)


def in_engine(engine: MemoryEngine, embedder: Embedder, scan: FactScan, alone: FaissAlone, count: int) -> Seconds:
    """Every question is a new one."""
    asked = questions(seed=1)

    def search(words: str = "", *tags: str) -> Operation:
        query = SearchQuery("", TOP_K, filters=Filters(tags=tags))
        return lambda _: _found(engine.search(Scope(), replace(query, text=f"{next(asked)}{words}")).hits)

    operations: dict[str, Operation] = {
        SEARCH: search(),
        TAG_RARE: search("", RARE),
        TAG_COMMON: search("", COMMON),
        TAG_NAMED: search(f" {COMMON}"),
        EMBEDDING: lambda _: embedder.embed_query(next(asked)),
        FAISS_ALONE: alone.search,
        SCAN: lambda _: scan.search(next(asked), TOP_K),
        SCAN_RARE: lambda _: scan.search(next(asked), TOP_K, [RARE]),
    }
    return in_turns(operations, count, {SCAN: SCAN_EVERY, SCAN_RARE: SCAN_EVERY})


def over_the_wire(data_dir: Path, embedder: Embedder, alone: FaissAlone, count: int) -> Seconds:
    """The same of the real service."""
    service, asked = Service(data_dir), questions(seed=2)
    service.start()
    try:
        with closing(service.client()) as client:

            def search(_: int) -> None:
                status, answer = client.call("POST", "/search", {"query": next(asked), "k": TOP_K})
                if status != OK:
                    raise ServiceFailed(f"a search was answered {status}: {answer}")
                _found(answer["results"])

            operations: dict[str, Operation] = {
                OVER_HTTP: search,
                OVER_MCP: lambda _: _found(
                    client.call_tool("search_memory", {"query": next(asked), "limit": TOP_K})["memories"]
                ),
                EMBEDDING: lambda _: embedder.embed_query(next(asked)),
                FAISS_ALONE: alone.search,
            }
            return in_turns(operations, count)
    finally:
        service.stop()


def _found(hits: Sequence[object]) -> None:
    if len(hits) != TOP_K:
        raise RuntimeError(f"{len(hits)} memories were found and not {TOP_K}")
