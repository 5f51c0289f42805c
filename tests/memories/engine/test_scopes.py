"""Memories outside of a scope do not exist for it in any operation."""

from __future__ import annotations

import random

import pytest

from souvenir.core.errors import InvalidRequest, KeyTaken, MemoryNotFound, SourceForbidden
from souvenir.core.types import (
    AddAction,
    Filters,
    Memory,
    MemoryDraft,
    MemoryPatch,
    OnDuplicate,
    Scope,
    SearchQuery,
    SourceFilter,
    SourceMatch,
)
from souvenir.jobs.handler import AtOnce
from souvenir.memories.deduplication import Deduplication
from souvenir.memories.engine import MemoryEngine
from tests.memories.engine.conftest import OpenEngine
from tests.memories.engine.verbs import add, memory, stored, texts
from tests.thoroughness import sampled

ADMIN = Scope(actor="admin")
OURS = Scope(actor="ours", sources=("proj/a",))
THEIRS = Scope(actor="theirs", sources=("proj/ab",))


def search(engine: MemoryEngine, scope: Scope, text: str, filters: Filters | None = None) -> list[str]:
    result = engine.search(scope, SearchQuery(text, top_k=50, filters=filters or Filters()))
    return [hit.memory.text for hit in result.hits]


def test_each_scope_sees_its_own_memories_and_an_admin_sees_all(engine: MemoryEngine):
    ours = add(engine, "red apple", "proj/a/notes", scope=OURS)
    theirs = add(engine, "red apple pie", "proj/ab", scope=THEIRS)
    climbing = add(engine, "red apple up", "proj/a/../ab", scope=ADMIN)
    for scope, ids in ((OURS, [ours]), (THEIRS, [theirs]), (ADMIN, [ours, theirs, climbing])):
        assert [one.id for one in stored(engine, scope)] == ids
        assert list(engine.get(scope, [ours, theirs, climbing])) == ids
        assert engine.count(scope) == engine.page(scope, offset=0, limit=1).total == engine.stats(scope).memories
        assert engine.count(scope) == len(ids)
        assert engine.stats(scope).passages == len(ids)
        assert list(engine.matching(scope, SourceFilter("proj", SourceMatch.PREFIX))) == ids
        assert len(search(engine, scope, "red apple")) == len(ids)
        by_meaning = engine.search(scope, SearchQuery("red apple", hybrid=False))
        assert [hit.memory.id for hit in by_meaning.hits if hit.memory.id not in ids] == []
        assert by_meaning.candidates_considered <= len(ids)
        assert by_meaning.filtered_by_source == 0


def test_stats_count_only_visible_memories(engine: MemoryEngine):
    add(engine, "red apple", "proj/a", scope=OURS)
    assert engine.stats(ADMIN).changed_at is not None
    of_part = engine.stats(OURS)
    assert (of_part.created_at, of_part.changed_at, of_part.index_bytes) == (None, None, 0)


def test_a_filter_inside_a_scope_narrows_it_and_one_outside_finds_nothing(engine: MemoryEngine):
    add(engine, "red apple", "proj/a/x", scope=OURS, metadata={"kind": "fruit"})
    add(engine, "red pear", "proj/a/y", scope=OURS)
    add(engine, "red plum", "proj/ab", scope=THEIRS, metadata={"kind": "fruit"})
    assert search(engine, OURS, "red", Filters(sources=(SourceFilter("proj/a/x"),))) == ["red apple"]
    assert search(engine, OURS, "red", Filters(sources=(SourceFilter("proj/ab"),))) == []
    assert search(engine, OURS, "red", Filters(metadata={"kind": "fruit"})) == ["red apple"]
    assert search(engine, OURS, "red", Filters(visible=None)) == search(engine, OURS, "red")


def test_the_nearest_text_is_within_the_scope(engine: MemoryEngine):
    add(engine, "red apple", "proj/ab", scope=THEIRS)
    assert engine.nearest(OURS, "red apple") is None
    far = add(engine, "blue sky", "proj/a", scope=OURS)
    found = engine.nearest(OURS, "red apple")
    assert found is not None
    assert (found[0].id, found[1]) == (far, 0.0)


@pytest.mark.parametrize("on_duplicate", [OnDuplicate.SKIP, OnDuplicate.SUPERSEDE])
def test_a_text_outside_of_the_scope_is_no_duplicate(engine: MemoryEngine, on_duplicate: OnDuplicate):
    theirs = add(engine, "red apple", "proj/ab", scope=THEIRS)
    outcome = engine.add(OURS, MemoryDraft("red apple", "proj/a"), on_duplicate=on_duplicate)
    assert (outcome.action, outcome.blocker) == (AddAction.ADDED, None)
    assert not memory(engine, theirs, THEIRS).archived
    assert engine.add_batch(OURS, [MemoryDraft("red apple", "proj/a")], deduplicate=True) == []
    assert len(engine.add_batch(Scope(sources=("c",)), [MemoryDraft("red apple", "c")], deduplicate=True)) == 1


def test_a_write_outside_of_the_scope_is_refused_and_creates_no_namespace(engine: MemoryEngine):
    scope = Scope("new", "ours", ("proj/a",))
    mine = add(engine, "red apple", "proj/a", scope=OURS)
    outside = MemoryDraft("blue sky", "proj/ab", key="k")
    for attempt in (
        lambda: engine.add(scope, outside),
        lambda: engine.add(scope, outside, on_duplicate=OnDuplicate.SKIP),
        lambda: engine.add_batch(scope, [MemoryDraft("fine", "proj/a"), outside]),
        lambda: engine.add_batch(scope, [outside], deduplicate=True),
        lambda: engine.upsert(scope, [outside]),
        lambda: engine.add(scope, MemoryDraft("up", "proj/a/../ab")),
        lambda: engine.update(OURS, mine, MemoryPatch(source="proj/ab")),
        lambda: engine.supersede(OURS, mine, text="blue sky", source="proj"),
        lambda: engine.merge(OURS, [mine, add(engine, "pear", "proj/a", scope=OURS)], text="both", source="proj/ab"),
    ):
        with pytest.raises(SourceForbidden):
            attempt()
    with engine.namespace(scope) as (_, namespace):
        assert namespace is None
    assert texts(engine, ADMIN) == ["red apple", "pear"]
    assert not memory(engine, mine).archived


def test_memories_outside_of_the_scope_cannot_be_changed_and_look_missing(engine: MemoryEngine):
    theirs = add(engine, "red apple", "proj/ab", scope=THEIRS, pinned=True, key="k")
    mine = add(engine, "blue sky", "proj/a", scope=OURS)
    before = memory(engine, theirs)
    for attempt in (
        lambda: engine.update(OURS, theirs, MemoryPatch(text="mine now")),
        lambda: engine.update(OURS, theirs, MemoryPatch(source="proj/a")),
        lambda: engine.supersede(OURS, theirs, text="mine now"),
        lambda: engine.merge(OURS, [mine, theirs], text="mine now", source="proj/a"),
        lambda: engine.delete(OURS, theirs),
        lambda: engine.delete(OURS, theirs, force=True),
    ):
        with pytest.raises(MemoryNotFound):
            attempt()
    assert engine.archive(OURS, [theirs, mine]) == 1
    outcome = engine.delete_many(OURS, [theirs, mine])
    assert (outcome.deleted_ids, outcome.missing_ids, outcome.skipped_pinned) == ((mine,), (theirs,), ())
    assert engine.delete_by_source(OURS, SourceFilter("proj", SourceMatch.SUBSTRING)).deleted_ids == ()
    assert memory(engine, theirs) == before
    assert engine.check() == []


def test_a_delete_by_source_is_limited_to_the_scope(engine: MemoryEngine):
    mine = add(engine, "blue sky", "proj/a/x", scope=OURS)
    theirs = add(engine, "red apple", "proj/ab", scope=THEIRS)
    assert engine.delete_by_source(OURS, SourceFilter("proj/a"), back_up=False).deleted_ids == (mine,)
    assert [one.id for one in stored(engine, ADMIN)] == [theirs]


def test_a_transaction_neither_deletes_nor_finds_outside_of_the_scope(engine: MemoryEngine):
    theirs = add(engine, "red apple", "proj/ab", scope=THEIRS)
    engine.write(OURS, lambda tx: tx.delete([theirs]))
    assert texts(engine, THEIRS) == ["red apple"]


def test_duplicates_are_compared_within_the_scope(engine: MemoryEngine):
    for source, scope in (("proj/a", OURS), ("proj/ab", THEIRS)):
        add(engine, "red apple", source, scope=scope)
        add(engine, "red apple", source, scope=scope)
    outcome = Deduplication(engine).sweep(OURS, threshold=0.9, dry_run=False, progress=AtOnce({}))
    assert (outcome["found"], outcome["removed"], outcome["remaining"]) == (1, 1, 1)
    assert engine.count(THEIRS) == 2


def test_a_record_contains_no_id_outside_of_the_scope(engine: MemoryEngine):
    theirs = add(engine, "secret apple", "proj/ab", scope=THEIRS)
    mine = add(engine, "red apple", "proj/a", scope=OURS)
    merged = engine.merge(ADMIN, [mine, theirs], text="apples", source="proj/a").id
    taken = add(engine, "secret pear", "proj/ab", scope=THEIRS)
    followed = engine.supersede(ADMIN, taken, text="red pear", source="proj/a").new_id
    moved = add(engine, "red plum", "proj/a", scope=OURS)
    successor = engine.supersede(ADMIN, moved, text="secret plum", source="proj/ab").new_id
    seen = {one.id: one for one in stored(engine, OURS)}
    assert set(seen) == {mine, merged, followed, moved}
    assert [link.to_id for link in seen[merged].links] == seen[merged].metadata["source_memory_ids"] == [mine]
    assert (seen[followed].links, seen[followed].previous_text) == ((), None)
    assert (seen[moved].superseded_by, seen[mine].superseded_by) == (None, merged)
    assert not mentions(seen.values(), {theirs, taken, successor})
    with pytest.raises(InvalidRequest, match="source_memory_ids"):
        engine.search(OURS, SearchQuery("apples", filters=Filters(metadata={"source_memory_ids": [mine, theirs]})))
    assert memory(engine, merged, ADMIN).metadata["source_memory_ids"] == [theirs, mine]
    assert memory(engine, followed, ADMIN).previous_text == "secret pear"


def test_a_change_by_a_narrow_scope_keeps_invisible_metadata(engine: MemoryEngine):
    theirs = add(engine, "secret apple", "proj/ab", scope=THEIRS)
    mine = add(engine, "red apple", "proj/a", scope=OURS)
    merged = engine.merge(ADMIN, [mine, theirs], text="apples", source="proj/a").id
    changed = engine.update(OURS, merged, MemoryPatch(metadata={"note": "x"})).memory
    assert changed.metadata == {"source_memory_ids": [mine], "note": "x"}
    assert engine.archive(OURS, [merged]) == 1
    assert memory(engine, merged, ADMIN).metadata == {"source_memory_ids": [theirs, mine], "note": "x"}


def test_a_key_conflict_is_reported_only_within_the_source(engine: MemoryEngine):
    add(engine, "secret apple", "proj/ab", scope=THEIRS, key="k")
    mine = add(engine, "red apple", "proj/a", scope=OURS, key="k")
    with pytest.raises(KeyTaken) as caught:
        add(engine, "another", "proj/a", scope=OURS, key="k")
    assert caught.value.memory_id == mine


def mentions(memories: object, ids: set[int]) -> bool:
    """Return whether a record contains one of the ids anywhere."""
    named: set[int] = set()
    for one in memories:  # type: ignore[attr-defined]
        assert isinstance(one, Memory)
        named |= {one.id, *(link.to_id for link in one.links), *one.metadata.get("source_memory_ids", [])}
        named |= {one.superseded_by} if one.superseded_by else set()
    return bool(named & ids)


WORDS = (
    "amber birch cedar delta ember fjord grove harbor island jasper kettle lagoon meadow nectar orchid pebble".split()
)
ONLY_THEIRS = "quartz raven saddle timber umbra velvet willow yonder".split()


def test_results_and_scores_of_a_scope_do_not_depend_on_other_memories(open_engine: OpenEngine, tmp_path):
    """Neither through rare words, lengths, means and repaired words nor through neighbours."""
    dice = random.Random(7)
    shared, alone = open_engine(), open_engine(data_dir=tmp_path / "alone")
    for number in range(sampled(60, 120)):
        text = " ".join(dice.choices(WORDS, k=dice.randint(2, 30)))
        mine = [add(engine, text, f"proj/a/{number % 5}", scope=OURS) for engine in (shared, alone)]
        theirs = " ".join(dice.choices(WORDS + ONLY_THEIRS, k=dice.randint(2, 30)))
        ids = [add(shared, theirs, "proj/ab", scope=THEIRS) for _ in range(3)]
        shared.delete(THEIRS, ids.pop())
        shared.archive(THEIRS, [ids.pop()])
        for engine, id_ in zip((shared, alone), mine, strict=True):
            match number % 12:
                case 3:
                    engine.delete(OURS, id_)
                case 5:
                    engine.archive(OURS, [id_])
                case 7:
                    engine.update(OURS, id_, MemoryPatch(text=f"{text} amber"))
                case 9:
                    engine.update(ADMIN, id_, MemoryPatch(source="proj/a/9"))
                case 11:  # it leaves the scope
                    engine.update(ADMIN, id_, MemoryPatch(source="elsewhere"))
        assert found_in(shared, theirs, hybrid=True) == found_in(alone, theirs, hybrid=True)
    queries = [" ".join(dice.choices(WORDS + ONLY_THEIRS, k=dice.randint(1, 4))) for _ in range(sampled(20, 60))]
    queries += ["ambre", "qartz", "velvt lagon", "cdear timbr"]
    for query in queries:
        for hybrid in (True, False):
            assert found_in(shared, query, hybrid=hybrid) == found_in(alone, query, hybrid=hybrid)
        one, other = shared.nearest(OURS, query), alone.nearest(OURS, query)
        assert one is not None
        assert other is not None
        assert (one[0].text, round(one[1], 5)) == (other[0].text, round(other[1], 5))


def found_in(engine: MemoryEngine, query: str, *, hybrid: bool) -> object:
    result = engine.search(OURS, SearchQuery(query, top_k=8, hybrid=hybrid, explain=True))
    hits = [
        (
            hit.memory.text,
            hit.memory.source,
            [round(value, 4) for value in (hit.score, hit.parts.lexical, hit.parts.dense, hit.parts.similarity)],
            [(term.term, term.tf, round(term.idf, 4), round(term.weight, 4)) for term in hit.parts.terms],
        )
        for hit in result.hits
    ]
    arms = [[round(one.score, 4) for one in arm] for arm in (result.vector_candidates, result.lexical_candidates)]
    return hits, arms, result.candidates_considered, result.filtered_by_source, result.repairs
