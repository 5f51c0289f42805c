"""A search as of a time, compared with a search of a store left unchanged since then."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from souvenir.core.settings import Settings
from souvenir.core.timestamps import utc_now
from souvenir.core.types import (
    Filters,
    Memory,
    MemoryDraft,
    MemoryPatch,
    Scope,
    SearchQuery,
    SearchResult,
    SourceFilter,
    SourceMatch,
    Weights,
)
from souvenir.memories import history
from souvenir.memories.engine import MemoryEngine
from souvenir.store.memories.reads import MERGED_FROM
from tests.fake_embedder import FakeEmbedder
from tests.memories.engine.verbs import DEFAULT, add
from tests.memories.history.living import MAY, SOURCES, WORDS, live, said
from tests.postgres_databases import copy_store
from tests.thoroughness import sampled

PART = Scope(sources=("a",))
EXACT = 1e-5
"""The two sum the same numbers in another order."""


def queries(chance: Random) -> list[SearchQuery]:
    filters = [
        Filters(),
        Filters(include_archived=True),
        Filters(sources=(SourceFilter(chance.choice(SOURCES), SourceMatch.PATH),)),
        Filters(metadata={"n": 1}),
        Filters(since=MAY + timedelta(days=2), until=MAY + timedelta(days=2000)),
    ]
    return [
        SearchQuery(
            said(chance),
            top_k=chance.choice([3, 50]),
            hybrid=chance.random() < 0.8,
            filters=one,
            weights=Weights(recency=chance.choice([0.0, 0.3])),
            explain=True,
        )
        for one in filters
    ]


def scored(result: SearchResult) -> dict[int, float]:
    return {hit.memory.id: hit.parts.raw_score for hit in result.hits}


def assert_same(found: SearchResult, expected: SearchResult) -> None:
    """Compare hits and scores; ties may be in any order, and at the end replace each other."""
    one, other = scored(found), scored(expected)
    assert list(one.values()) == pytest.approx(list(other.values()), abs=EXACT)
    assert [hit.score for hit in found.hits] == pytest.approx([hit.score for hit in expected.hits], abs=1e-4)
    last = min(other.values(), default=0.0)
    for id_ in one.keys() ^ other.keys():
        assert {**one, **other}[id_] == pytest.approx(last, abs=EXACT)
    for id_ in one.keys() & other.keys():
        assert one[id_] == pytest.approx(other[id_], abs=EXACT)
    assert found.relevance == pytest.approx(expected.relevance, abs=1e-4)
    memories = {hit.memory.id: shown(hit.memory) for hit in expected.hits}
    assert all(memories.get(hit.memory.id, shown(hit.memory)) == shown(hit.memory) for hit in found.hits)


def shown(memory: Memory) -> Memory:
    """Omit values that depend on memories outside of the scope, which may be inside now; test_reading covers them."""
    metadata = {name: value for name, value in memory.metadata.items() if name != MERGED_FROM}
    return replace(memory, metadata=metadata, links=(), previous_text=None, superseded_by=None)


@pytest.mark.parametrize("seed", range(sampled(2, 8)))
@pytest.mark.parametrize("scope", [DEFAULT, PART], ids=["all", "part"])
def test_a_search_as_of_a_time_equals_that_of_an_unchanged_store(tmp_path: Path, seed: int, scope: Scope):
    chance = Random(seed)
    data_dir, frozen_dir = tmp_path / "data", tmp_path / "frozen"
    with closing(MemoryEngine.open(Settings(data_dir=data_dir), FakeEmbedder())) as engine:
        live(engine, chance, 30, deletes=False)
    copy_store(data_dir, frozen_dir)
    at = utc_now()
    with closing(MemoryEngine.open(Settings(data_dir=data_dir), FakeEmbedder())) as engine:
        live(engine, chance, 40, deletes=False)
        with closing(MemoryEngine.open(Settings(data_dir=frozen_dir), FakeEmbedder())) as frozen:
            moved_away = {one.id for one in frozen.page(scope, offset=0, limit=1000).memories}
            moved_away -= engine.get(scope, list(moved_away)).keys()
            if scope is PART and moved_away:
                frozen.write(DEFAULT, lambda tx: tx.delete(list(moved_away)))
            for query in queries(chance):
                found = engine.search(scope, query, at)
                assert found.degraded == ()
                assert_same(found, frozen.search(scope, replace(query, now=at)))


def test_a_memory_is_found_and_shown_with_its_text_of_then(engine: MemoryEngine):
    memory_id = add(engine, "the violin stands in the kitchen", "a", metadata={"n": 1})
    add(engine, "a river in winter", "a")
    at = utc_now()
    engine.update(DEFAULT, memory_id, MemoryPatch(text="the teacher sold it", source="b", metadata={"n": 2}))

    def found(text: str, moment: datetime | None, **filters) -> list[tuple[int, str]]:
        query = SearchQuery(text, filters=Filters(**filters), threshold=0.1)
        return [(hit.memory.id, hit.memory.text) for hit in engine.search(DEFAULT, query, moment).hits]

    assert found("violin kitchen", at) == [(memory_id, "the violin stands in the kitchen")]
    assert found("teacher", at) == []
    assert found("teacher", None) == [(memory_id, "the teacher sold it")]
    for fits in ({"metadata": {"n": 1}}, {"sources": (SourceFilter("a", SourceMatch.PATH),)}):
        assert len(found("violin", at, **fits)) == 1
    for no_fit in ({"metadata": {"n": 2}}, {"sources": (SourceFilter("b", SourceMatch.PATH),)}):
        assert found("violin", at, **no_fit) == []


def test_a_search_as_of_a_time_uses_the_archived_flag_of_then(engine: MemoryEngine):
    first, second = add(engine, "red apple", archived=True), add(engine, "green apple")
    at = utc_now()
    engine.update(DEFAULT, first, MemoryPatch(archived=False))
    engine.supersede(DEFAULT, second, text="yellow apple")
    query = SearchQuery("apple")
    assert [hit.memory.id for hit in engine.search(DEFAULT, query, at).hits] == [second]
    [hit] = engine.search(DEFAULT, query, at).hits
    assert (hit.memory.archived, hit.memory.superseded_by, hit.memory.valid_to) == (False, None, None)
    both = replace(query, filters=Filters(include_archived=True))
    assert {hit.memory.id for hit in engine.search(DEFAULT, both, at).hits} == {first, second}


def test_erased_memories_are_not_found_in_the_past(engine: MemoryEngine):
    memory_id = add(engine, "red apple")
    engine.update(DEFAULT, memory_id, MemoryPatch(text="green apple"))
    at = utc_now()
    engine.update(DEFAULT, memory_id, MemoryPatch(text="a pear"))
    assert len(engine.search(DEFAULT, SearchQuery("apple"), at).hits) == 1
    engine.delete(DEFAULT, memory_id)
    assert engine.search(DEFAULT, SearchQuery("apple"), at).hits == ()
    assert engine.search(Scope("nobody"), SearchQuery("apple"), at).hits == ()


def test_former_texts_beyond_the_limit_are_reported_as_skipped(engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(history, "MAX_FORMER_TEXTS", 2)
    ids = engine.add_batch(DEFAULT, [MemoryDraft(f"apple {word}", "a") for word in WORDS[:3]])
    at = utc_now()
    query = SearchQuery("apple")
    for changed, degraded in ((2, ()), (3, ("past_texts",))):
        engine.update(DEFAULT, ids[changed - 2], MemoryPatch(text=f"pear {changed}"))
        engine.update(DEFAULT, ids[changed - 1], MemoryPatch(text=f"plum {changed}"))
        result = engine.search(DEFAULT, query, at)
        assert result.degraded == degraded
        assert all(hit.memory.text.startswith("apple") for hit in result.hits)


def test_relative_times_are_relative_to_the_as_of_time(engine: MemoryEngine):
    told = add(engine, "we talked about the apple", document_at=MAY)
    add(engine, "we talked about the pear", document_at=MAY + timedelta(days=30))
    query = SearchQuery("what did we talk about last week", now=MAY + timedelta(days=7))
    result = engine.search(DEFAULT, query, utc_now())
    assert result.time is not None
    assert result.time.filtered is not None
    assert [hit.memory.id for hit in result.hits] == [told]
