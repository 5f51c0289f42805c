"""Concurrent callers: no acknowledged write is lost, nothing is stored twice, and only documented errors occur."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from souvenir.core.errors import MemoryNotFound
from souvenir.core.types import AddAction, MemoryDraft, MemoryPatch, OnDuplicate, Scope, SearchQuery, SourceFilter
from souvenir.memories.engine import MemoryEngine
from tests.memories.engine.conftest import OpenEngine
from tests.memories.engine.verbs import ANN, DEFAULT, add, stored, texts

CALLERS = 8
PATIENCE_S = 60.0


def at_once(callers: ThreadPoolExecutor, work: Callable[[int], object]) -> list[Future[object]]:
    """Run the same work in several threads that start together."""
    together = Barrier(CALLERS)

    def begin(number: int) -> object:
        together.wait(PATIENCE_S)
        return work(number)

    return [callers.submit(begin, number) for number in range(CALLERS)]


@pytest.mark.parametrize("index_memory_mb", [2048, 0], ids=["roomy", "every load drops the other index"])
def test_concurrent_writers_and_searchers_lose_no_acknowledged_write(open_engine: OpenEngine, index_memory_mb: int):
    engine, stop = open_engine(index_memory_mb=index_memory_mb), Event()
    scopes = (DEFAULT, ANN)
    for scope in scopes:
        add(engine, "here from the beginning", scope=scope)

    def write(writer: int) -> dict[int, str]:
        """Return the expected texts: those added and changed, without the deleted ones."""
        scope, answered = scopes[writer % 2], dict[int, str]()
        for number in range(12):
            memory_id = add(engine, f"writer{writer} note{number}", f"w{writer}", scope=scope)
            answered[memory_id] = f"writer{writer} note{number}"
            hits = engine.search(scope, SearchQuery(f"note{number} writer{writer}", 3)).hits
            assert memory_id in [hit.memory.id for hit in hits], "not found by who wrote it"
            if number % 3 == 1:
                engine.update(scope, memory_id, MemoryPatch(text=f"writer{writer} changed{number}", pinned=True))
                answered[memory_id] = f"writer{writer} changed{number}"
            if number % 5 == 2:
                engine.delete(scope, memory_id, force=True)
                del answered[memory_id]
            if number % 6 == 5:
                engine.snapshot()
        return answered

    def search(searcher: int) -> int:
        searches = 0
        while not stop.is_set():
            scope = scopes[searches % 2]
            result = engine.search(scope, SearchQuery(f"writer{searcher} note{searches % 12} beginning", 20))
            assert result.degraded == ()
            assert result.hits
            searches += 1
        return searches

    with ThreadPoolExecutor(2 * CALLERS) as threads:
        searching = [threads.submit(search, number) for number in range(CALLERS)]
        try:
            answered = [future.result(PATIENCE_S) for future in [threads.submit(write, n) for n in range(CALLERS)]]
        finally:
            stop.set()
        assert all(future.result(PATIENCE_S) > 0 for future in searching)
    assert list(engine.check()) == []
    for parity, scope in enumerate(scopes):
        expected = {id_: text for writer in answered[parity::2] for id_, text in writer.items()}
        found = {memory.id: memory.text for memory in stored(engine, scope)[1:]}
        assert found == expected
        for id_, text in list(expected.items())[::9]:
            assert engine.search(scope, SearchQuery(text, 1)).hits[0].memory.text == text, id_


def test_concurrent_adds_of_one_text_store_it_once(engine: MemoryEngine):
    add(engine, "something else", scope=DEFAULT)

    def add_once(draft: MemoryDraft) -> AddAction:
        return engine.add(DEFAULT, draft, on_duplicate=OnDuplicate.SKIP).action

    with ThreadPoolExecutor(CALLERS) as callers:
        for number in range(5):
            draft = MemoryDraft(f"statement{number} that{number} everybody{number} makes{number}", "notes")
            adding = at_once(callers, lambda _, draft=draft: add_once(draft))  # type: ignore[misc]  # bound here
            actions = sorted(str(future.result(PATIENCE_S)) for future in adding)
            assert actions == ["added"] + ["skipped"] * (CALLERS - 1)
            assert texts(engine).count(draft.text) == 1


def test_concurrent_superseding_adds_form_one_chain(engine: MemoryEngine):
    stem = " ".join(f"common{number}" for number in range(20))
    with ThreadPoolExecutor(CALLERS) as callers:
        versions = at_once(
            callers,
            lambda number: (
                engine.add(
                    DEFAULT, MemoryDraft(f"{stem} version{number}", "notes"), on_duplicate=OnDuplicate.SUPERSEDE
                ).action
            ),
        )
        actions = [future.result(PATIENCE_S) for future in versions]
    assert sorted(actions, key=str) == [AddAction.ADDED] + [AddAction.SUPERSEDED] * (CALLERS - 1)
    chain = stored(engine)
    assert [memory.superseded_by for memory in chain] == [memory.id for memory in chain[1:]] + [None]
    assert [memory.archived for memory in chain] == [True] * (CALLERS - 1) + [False]
    assert list(engine.check()) == []


def test_concurrent_batches_of_the_same_texts_store_them_once(engine: MemoryEngine):
    drafts = [MemoryDraft(f"fact{number} of{number} some{number} kind{number}", "notes") for number in range(4)]
    with ThreadPoolExecutor(CALLERS) as callers:
        batches = at_once(callers, lambda _: len(engine.add_batch(DEFAULT, drafts, deduplicate=True)))
        stored_by = sorted(str(future.result(PATIENCE_S)) for future in batches)
    assert stored_by == ["0"] * (CALLERS - 1) + ["4"]
    assert sorted(texts(engine)) == sorted(draft.text for draft in drafts)


def test_concurrent_deletes_of_a_memory_succeed_once(engine: MemoryEngine):
    memory_id = add(engine, "text")

    def delete(_: int) -> str:
        try:
            return engine.delete(DEFAULT, memory_id)
        except MemoryNotFound:
            return "not found"

    with ThreadPoolExecutor(CALLERS) as callers:
        answers = sorted(str(future.result(PATIENCE_S)) for future in at_once(callers, delete))
    assert answers == ["not found"] * (CALLERS - 1) + ["text"]


def test_concurrent_upserts_of_one_key_store_one_memory(engine: MemoryEngine):
    with ThreadPoolExecutor(CALLERS) as callers:
        upserts = at_once(
            callers, lambda number: engine.upsert(DEFAULT, [MemoryDraft(f"text {number}", "notes", key="k")])[0].created
        )
        created = [future.result(PATIENCE_S) for future in upserts]
    assert created.count(True) == 1
    assert engine.count(DEFAULT) == 1
    assert list(engine.check()) == []


def test_searches_and_writes_during_restores_never_fail(open_engine: OpenEngine):
    engine, stop = open_engine(max_backups=3), Event()
    for number in range(30):
        add(engine, f"base{number} garden")
    name = engine.back_up(reason="manual").name

    def write(writer: int) -> list[int]:
        ids: list[int] = []
        while not stop.is_set():
            ids.append(add(engine, f"writer{writer} text", f"w{writer}"))
            engine.add(DEFAULT, MemoryDraft("often said garden thing", "w"), on_duplicate=OnDuplicate.SKIP)
        return ids

    def search(_: int) -> int:
        searches = 0
        while not stop.is_set():
            result = engine.search(DEFAULT, SearchQuery("garden base7", 5))
            assert result.degraded == ()
            assert len(result.hits) == 5
            assert engine.search(Scope("nobody"), SearchQuery("garden")).hits == ()
            searches += 1
        return searches

    with ThreadPoolExecutor(8) as threads:
        writing = [threads.submit(write, number) for number in range(3)]
        searching = [threads.submit(search, number) for number in range(3)]
        try:
            for _ in range(5):
                engine.restore(name)
                assert list(engine.check()) == []
        finally:
            stop.set()
        ids = [id_ for future in writing for id_ in future.result(PATIENCE_S)]
        assert all(future.result(PATIENCE_S) > 0 for future in searching)
    assert len(ids) == len(set(ids)), "an id was given out twice"
    assert list(engine.check()) == []
    engine.restore(name)
    assert texts(engine) == [f"base{number} garden" for number in range(30)]
    assert engine.search(DEFAULT, SearchQuery("base7", 1)).hits[0].memory.text == "base7 garden"


def test_backups_and_bulk_deletes_during_writes_leave_a_consistent_store(engine: MemoryEngine):
    def work(number: int) -> None:
        for turn in range(6):
            engine.add_batch(DEFAULT, [MemoryDraft(f"text {number} {turn} {at}", f"s{number}") for at in range(5)])
            if turn % 3 == 2:
                engine.delete_by_source(DEFAULT, SourceFilter(f"s{number}"))
            if turn == 4:
                engine.back_up(reason="manual")

    with ThreadPoolExecutor(CALLERS) as callers:
        for future in at_once(callers, work):
            future.result(PATIENCE_S)
    assert engine.count(DEFAULT) == 0
    assert list(engine.check()) == []
    # Ten of those that the deletes cause, and every one of the others, which are fewer.
    assert Counter(backup.reason for backup in engine.backups()) == {"pre_delete": 10, "manual": CALLERS}
