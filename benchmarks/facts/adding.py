"""Adds of single-fact texts, sequentially and eight concurrently, and of memories with and without facts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

from benchmarks.facts.fact_scan import FactScan
from benchmarks.facts.told import drafts
from benchmarks.facts.turns import Operation, Seconds, at_once, in_turns
from benchmarks.service import Client, Service, ServiceFailed
from souvenir.core.settings import Settings
from souvenir.core.types import Embedder, MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine

ADDERS = 8
OK = 200
BATCH = 500
BATCHES = 3

OVER_HTTP, OVER_MCP, BY_SCAN = "POST /memory/add", "MCP add_memory", "SQLite alone, same model"
FOUND_OVER_HTTP, FOUND_OVER_MCP, FOUND_BY_SCAN = "POST /search", "MCP search_memory", "scan of every fact"
PLAIN, WITH_FACTS, WITH_FACTS_BY_SCAN = "add", "add with 5 facts", "SQLite alone, 5 facts"
BATCH_PLAIN, BATCH_WITH_FACTS = "batch of 500", "batch of 500 with 5 facts each"


def one_after_another(service: Service, scan: FactScan, count: int) -> tuple[Seconds, Seconds]:
    """`count` adds of "Test 1" and so on by each way, in turns; then searches for "test"."""
    with closing(service.client()) as client:
        adds: dict[str, Operation] = {
            OVER_HTTP: _add_over_http(client),
            OVER_MCP: _add_over_mcp(client),
            BY_SCAN: lambda number: scan.add(f"Test {number}", [f"Test {number}"]),
        }
        added = in_turns(adds, count)
        searches: dict[str, Operation] = {
            FOUND_OVER_HTTP: lambda number: _ok(client, "/search", {"query": f"test {number}"}),
            FOUND_OVER_MCP: lambda number: client.call_tool("search_memory", {"query": f"which test is {number}"}),
            FOUND_BY_SCAN: lambda number: scan.search(f"the test {number}", 10),
        }
        return added, in_turns(searches, count // 10)


def eight_at_once(service: Service, count: int) -> dict[str, tuple[list[float], float]]:
    """Seconds of each add, and of all."""

    def start(add: Callable[[Client], Operation]) -> Callable[[], Operation]:
        return lambda: add(service.client())

    return {
        OVER_HTTP: at_once(start(_add_over_http), ADDERS, count),
        OVER_MCP: at_once(start(_add_over_mcp), ADDERS, count),
    }


def with_and_without_facts(folder: Path, embedder: Embedder, count: int) -> Seconds:
    """By the engine, with the real model."""
    told = drafts(seed=4)
    with (
        closing(MemoryEngine.open(Settings(data_dir=folder / "engine"), embedder)) as engine,
        closing(FactScan(folder / "scan.db", embedder)) as scan,
    ):

        def add(prepared: Callable[[MemoryDraft], MemoryDraft]) -> Operation:
            return lambda _: engine.add(Scope(), prepared(next(told)))

        def batch(prepared: Callable[[MemoryDraft], MemoryDraft]) -> Operation:
            return lambda _: engine.add_batch(Scope(), list(map(prepared, islice(told, BATCH))))

        def scanned(_: int) -> None:
            one = next(told)
            scan.add(one.text, one.facts)

        one_by_one = in_turns(
            {PLAIN: add(_without_facts), WITH_FACTS: add(_as_told), WITH_FACTS_BY_SCAN: scanned}, count
        )
        return one_by_one | in_turns({BATCH_PLAIN: batch(_without_facts), BATCH_WITH_FACTS: batch(_as_told)}, BATCHES)


def _as_told(draft: MemoryDraft) -> MemoryDraft:
    return draft


def _without_facts(draft: MemoryDraft) -> MemoryDraft:
    return replace(draft, facts=())


def _add_over_http(client: Client) -> Operation:
    return lambda number: _ok(client, "/memory/add", {"text": f"Test {number}", "source": "test"})


def _add_over_mcp(client: Client) -> Operation:
    return lambda number: client.call_tool("add_memory", {"data": f"Test {number}"})


def _ok(client: Client, path: str, body: dict[str, str]) -> None:
    status, answer = client.call("POST", path, body)
    if status != OK:
        raise ServiceFailed(f"{path} was answered {status}: {answer}")
