"""Facts and tags follow their memories through every operation: not lost, not leaked, not resurrected."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from souvenir.core.errors import InvalidRequest
from souvenir.core.labels import MAX_TAGS
from souvenir.core.types import FactsBy, Filters, Memory, MemoryDraft, MemoryPatch, OnDuplicate, Scope, SearchQuery
from souvenir.jobs.handler import AtOnce
from souvenir.memories.deduplication import Deduplication
from souvenir.memories.engine import MemoryEngine
from souvenir.retrieval.ranking import Evidence
from souvenir.store.memories import facts
from tests.memories.engine.verbs import DEFAULT, add, memory

TEXT = "Mila prefers TypeScript with strict mode. She deploys on Lambda."
FACTS = ("Mila prefers TypeScript", "Mila uses strict mode", "Mila deploys on Lambda")
SECRET = "her token is ghp_" + "a1B2c3D4e5F6" * 3


def said(memory: Memory) -> list[str]:
    return [fact.text for fact in memory.facts]


def waiting(engine: MemoryEngine) -> list[int]:
    with engine.namespace(DEFAULT) as (connection, _):
        return [memory_id for (memory_id,) in connection.execute("SELECT memory_id FROM unsplit ORDER BY memory_id")]


def words_of(engine: MemoryEngine) -> str:
    """Return all values in the rows of the database except vectors."""
    with engine.namespace(DEFAULT) as (connection, _):
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return repr([connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables if table != "vectors"])


# --- searching -----------------------------------------------------------------------------------------------------


def test_a_threshold_applies_to_found_facts(engine: MemoryEngine):
    for number in range(5):
        add(engine, f"gardens are green in year {number}", facts=(f"green year {number}",))
    mila = add(engine, TEXT, facts=FACTS)
    query = SearchQuery("Mila deploys on Lambda", threshold=0.3)
    [hit] = engine.search(DEFAULT, query).hits
    assert hit.memory.id == mila
    assert [one.fact.text for one in hit.facts][:1] == ["Mila deploys on Lambda"]


def test_tags_of_invisible_memories_do_not_change_results(engine: MemoryEngine):
    add(engine, "green tea", "mine")
    part, query = Scope(sources=("mine",)), SearchQuery("green secret tea", explain=True)
    [before] = engine.search(part, query).hits
    hidden = add(engine, "something else", "theirs", tags=("secret",))
    [after] = engine.search(part, query).hits
    assert after == before
    engine.update(DEFAULT, hidden, MemoryPatch(source="mine"))
    assert "tags" in engine.search(part, query).hits[0].parts.parts


def test_a_tag_does_not_lower_a_negative_score():
    nothing, ids = np.zeros(2), np.array([1, 2])
    found = Evidence(ids, ids, nothing, nothing, nothing, ids, ids, {}, 0.0, tagged=np.array([True, True]))
    boosts = found.adjustments(np.array([-1.0, 1.0]), feedback=0.0)
    assert boosts["tags"].tolist() == pytest.approx([0.0, 0.2])


# --- notes and limits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("held", [None, 5, "health", ["health", 7], {"a": 1}])
def test_notes_of_facts_are_merged_with_a_caller_s_metadata(engine: MemoryEngine, held: object):
    one = add(engine, "Mila has a token", metadata={"sensitive_data": held})
    engine.update(DEFAULT, one, MemoryPatch(facts=(SECRET,)))
    noted = memory(engine, one).metadata["sensitive_data"]
    assert noted == (["github_token", "health"] if held == ["health", 7] else ["github_token"])
    engine.update(DEFAULT, one, MemoryPatch(facts=("nothing",), metadata={"sensitive_data": None}))
    assert "sensitive_data" not in memory(engine, one).metadata


def test_no_operation_exceeds_the_limit_of_tags(engine: MemoryEngine):
    many = tuple(f"tag {number:02}" for number in range(MAX_TAGS))
    full = add(engine, "one", tags=many)
    with pytest.raises(InvalidRequest, match="at most 50 tags"):
        engine.update(DEFAULT, full, MemoryPatch(add_tags=("another",)))
    engine.update(DEFAULT, full, MemoryPatch(add_tags=("another",), remove_tags=("tag 00",)))
    other = add(engine, "two", tags=("second",))
    merged = engine.merge(DEFAULT, [full, other], text="both", source="notes").id
    assert len(memory(engine, merged).tags) == MAX_TAGS
    assert "another" in memory(engine, merged).tags


# --- what takes the place of what ----------------------------------------------------------------------------------


def test_a_superseding_duplicate_has_both_memories_tags_and_its_own_facts(engine: MemoryEngine):
    old = add(engine, "Mila prefers TypeScript to every other language", tags=("Work",), facts=("Mila types",))
    draft = MemoryDraft(
        "Mila prefers TypeScript to every other language now", "notes", tags=("work", "new"), facts=("Mila codes",)
    )
    outcome = engine.add(DEFAULT, draft, on_duplicate=OnDuplicate.SUPERSEDE)
    assert outcome.blocker is not None
    assert outcome.blocker.id == old
    assert outcome.id is not None
    new = memory(engine, outcome.id)
    assert (new.tags, said(new)) == (("new", "work"), ["Mila codes"])
    assert (memory(engine, old).tags, said(memory(engine, old))) == (("Work",), ["Mila types"])
    assert waiting(engine) == []


def test_a_merged_memory_has_all_tags_and_is_queued_for_splitting(engine: MemoryEngine):
    one = add(engine, "tea is green", tags=("a", "B"), facts=("tea", "green"))
    other = add(engine, "tea is hot", tags=("b", "c"))
    merged = memory(engine, engine.merge(DEFAULT, [one, other], text="tea is green and hot", source="notes").id)
    assert (merged.tags, merged.facts) == (("a", "B", "c"), ())
    assert waiting(engine) == [merged.id]
    assert said(memory(engine, one)) == ["tea", "green"]


def test_an_upsert_adds_tags_and_replaces_facts(engine: MemoryEngine):
    def upsert(text: str, **fields: Any) -> Memory:
        [outcome] = engine.upsert(DEFAULT, [MemoryDraft(text, "notes", key="k", **fields)])
        return memory(engine, outcome.id)

    first = upsert("Mila lives in Oslo", tags=("home",), facts=("Oslo is her home",))
    assert said(upsert("Mila lives in Oslo", tags=("Norway",))) == ["Oslo is her home"]
    moved = upsert("Mila lives in Bergen")
    assert (moved.id, moved.tags, moved.facts) == (first.id, ("home", "Norway"), ())
    assert waiting(engine) == [first.id]
    assert said(upsert("Mila lives in Bergen", facts=("Bergen it is",))) == ["Bergen it is"]
    assert waiting(engine) == []


def test_archiving_and_unarchiving_keep_facts_and_tags(engine: MemoryEngine):
    one = add(engine, TEXT, facts=FACTS, tags=("ts",), facts_by=FactsBy.MODEL)
    before = memory(engine, one)
    engine.archive(DEFAULT, [one])
    back = engine.update(DEFAULT, one, MemoryPatch(archived=False)).memory
    assert (back.facts, back.tags) == (before.facts, before.tags)
    assert engine.search(DEFAULT, SearchQuery("deploys Lambda")).hits[0].facts[0].fact == before.facts[2]


# --- what is gone --------------------------------------------------------------------------------------------------


def test_history_keeps_deleted_facts_and_tags_until_the_memory_is_deleted(engine: MemoryEngine):
    one = add(engine, "Mila codes", facts=("quorvex is her language",), tags=("zulnim",))
    engine.update(DEFAULT, one, MemoryPatch(facts=(), tags=()))
    assert "quorvex" in words_of(engine)
    engine.delete(DEFAULT, one)
    assert not {"quorvex", "zulnim"} & set(words_of(engine).replace("'", " ").split())
    assert "quorvex" not in words_of(engine)
    assert "zulnim" not in words_of(engine)


def test_a_deleted_fact_leaves_no_term_in_the_index(engine: MemoryEngine):
    one = add(engine, "Mila codes", facts=("quorvex is her language",))
    engine.update(DEFAULT, one, MemoryPatch(facts=("it has no name",)))
    [hit] = engine.search(DEFAULT, SearchQuery("quorvex")).hits
    assert hit.parts.lexical == 0


def test_deduplication_keeps_the_first_memory_with_the_tags_of_both(engine: MemoryEngine):
    first = add(engine, "green tea every morning", tags=("Tea",), facts=("tea is green",))
    second = add(engine, "green tea every morning", tags=("tea", "habit"), facts=("mornings", "tea"))
    before = memory(engine, first).updated_at
    report = Deduplication(engine).sweep(DEFAULT, threshold=0.99, dry_run=False, progress=AtOnce({}))
    assert report["removed"] == 1
    assert engine.get(DEFAULT, [second]) == {}
    kept = memory(engine, first)
    assert (kept.tags, said(kept)) == (("habit", "Tea"), ["tea is green"])
    assert kept.updated_at == before
    assert list(engine.check()) == []


# --- at once -------------------------------------------------------------------------------------------------------


def test_facts_deleted_during_a_change_are_prepared_again(engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch):
    one = add(engine, TEXT, facts=FACTS)
    prepare = engine.prepare
    let = iter([True])

    def meanwhile(texts: Sequence[str], **named: Any) -> Any:
        if next(let, False):
            engine.write(DEFAULT, lambda tx: tx.update(one, MemoryPatch(facts=()), ()))
        return prepare(texts, **named)

    monkeypatch.setattr(engine, "prepare", meanwhile)
    after = engine.update(DEFAULT, one, MemoryPatch(facts=(*FACTS, "Mila is new"))).memory
    assert said(after) == [*FACTS, "Mila is new"]
    assert list(engine.check()) == []


def test_concurrent_changes_of_facts_leave_those_of_the_last_one(engine: MemoryEngine):
    one = add(engine, TEXT, facts=FACTS)
    written = [
        tuple(f"fact {number} of {who} in {turn}" for number in range(3)) for who in range(4) for turn in range(4)
    ]
    # Some of each stay, so that what is prepared of a change may not be what it finds.
    written = [(FACTS[number % 3], *facts) for number, facts in enumerate(written)]
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda facts: engine.update(DEFAULT, one, MemoryPatch(facts=facts)).memory, written))
    assert [said(after) for after in done] == [list(facts) for facts in written]
    assert tuple(said(memory(engine, one))) in written
    assert engine.stats(DEFAULT).passages == 5
    assert list(engine.check()) == []


def test_the_split_queue_is_limited_to_its_namespace(engine: MemoryEngine):
    one = add(engine, TEXT, facts=FACTS)
    engine.update(DEFAULT, one, MemoryPatch(text="Mila deploys nowhere"))
    assert waiting(engine) == [one]
    with engine.namespace(DEFAULT) as (connection, namespace):
        assert namespace is not None
        row = connection.execute("SELECT namespace_id, since FROM unsplit").fetchone()
    assert row is not None
    assert row[0] == namespace.id
    engine.write(DEFAULT, lambda tx: facts.dequeue(tx.connection, [one]))
    assert json.dumps(waiting(engine)) == "[]"


def test_a_tag_filter_combines_with_a_threshold(engine: MemoryEngine):
    add(engine, TEXT, tags=("a",))
    assert engine.search(DEFAULT, SearchQuery(TEXT, threshold=0.9, filters=Filters(tags=("b",)))).hits == ()
