"""Memories own facts and tags: stored in one transaction, used in search, and deleted with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime

import pytest

from souvenir.core.errors import InvalidRequest, MemoryNotFound
from souvenir.core.settings import Settings
from souvenir.core.types import (
    AddAction,
    FactsBy,
    Filters,
    FloatVector,
    Listing,
    Memory,
    MemoryDraft,
    MemoryPatch,
    OnDuplicate,
    Scope,
    SearchQuery,
)
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeEmbedder

DEFAULT = Scope()
DOCUMENT_AT = datetime(2023, 5, 8, tzinfo=UTC)
TEXT = "Mila prefers TypeScript with strict mode. She deploys on Lambda."
FACTS = ("Mila prefers TypeScript", "Mila uses strict mode", "Mila deploys on Lambda")


class NotingEmbedder(FakeEmbedder):
    """Records the texts of each call."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        self.calls.append(list(texts))
        return super().embed_documents(texts)


@pytest.fixture
def embedder() -> NotingEmbedder:
    return NotingEmbedder()


@pytest.fixture
def engine(settings: Settings, embedder: NotingEmbedder) -> Iterator[MemoryEngine]:
    with closing(MemoryEngine.open(settings, embedder)) as engine:
        yield engine


def added(engine: MemoryEngine, text: str = TEXT, scope: Scope = DEFAULT, **fields: object) -> Memory:
    outcome = engine.add(scope, MemoryDraft(text, "notes", **fields))  # type: ignore[arg-type]  # fields of a draft
    assert outcome.id is not None
    return engine.get(scope, [outcome.id])[outcome.id]


def texts(memory: Memory) -> list[str]:
    return [fact.text for fact in memory.facts]


def test_facts_are_stored_with_their_memory_and_survive_a_restart(engine: MemoryEngine):
    memory = added(engine, facts=FACTS, facts_by=FactsBy.MODEL)
    assert texts(memory) == list(FACTS)
    assert {fact.made_by for fact in memory.facts} == {FactsBy.MODEL}
    assert engine.stats(DEFAULT).passages == 4
    assert list(engine.check()) == []


def test_a_memory_found_by_its_facts_is_one_hit_with_the_found_facts(engine: MemoryEngine):
    memory = added(engine, facts=FACTS)
    added(engine, "Something else entirely about gardens", facts=("gardens are green",))
    found = engine.search(DEFAULT, SearchQuery("Mila deploys on Lambda"))
    assert [hit.memory.id for hit in found.hits].count(memory.id) == 1
    assert found.hits[0].memory.id == memory.id
    assert found.hits[0].facts[0].fact.text == "Mila deploys on Lambda"
    best = found.hits[0]
    assert best.parts.parts["facts"] > 0
    assert 0.0 < best.facts[0].score < best.score < 1.0


def test_a_fact_equal_to_its_memory_is_not_embedded_twice(engine: MemoryEngine):
    memory = added(engine, "Ann likes tea", facts=("Ann likes tea",))
    assert engine.stats(DEFAULT).passages == 1
    [hit] = engine.search(DEFAULT, SearchQuery("Ann tea")).hits
    assert [one.fact for one in hit.facts] == list(memory.facts)
    engine.update(DEFAULT, memory.id, MemoryPatch(text="Ann likes tea and rain", facts=("Ann likes tea", "rain")))
    assert engine.stats(DEFAULT).passages == 3
    assert list(engine.check()) == []


def test_only_changed_facts_are_embedded_and_the_others_keep_their_ids(engine: MemoryEngine, embedder: NotingEmbedder):
    memory = added(engine, facts=FACTS)
    assert embedder.calls == [[TEXT, *FACTS]]
    changed = engine.update(DEFAULT, memory.id, MemoryPatch(facts=(FACTS[2], "Mila likes Rust", FACTS[0]))).memory
    assert embedder.calls[1:] == [["Mila likes Rust"]]
    assert texts(changed) == [FACTS[2], "Mila likes Rust", FACTS[0]]
    assert (changed.facts[0].id, changed.facts[2].id) == (memory.facts[2].id, memory.facts[0].id)
    assert list(engine.check()) == []


def test_a_new_text_removes_the_old_facts_unless_it_has_new_ones(engine: MemoryEngine):
    memory = added(engine, facts=FACTS)
    kept = engine.update(DEFAULT, memory.id, MemoryPatch(text="Mila deploys on Fargate", facts=FACTS[:1])).memory
    assert texts(kept) == [FACTS[0]]
    assert kept.facts[0].id == memory.facts[0].id
    bare = engine.update(DEFAULT, memory.id, MemoryPatch(text="Mila deploys nowhere")).memory
    assert bare.facts == ()
    found = engine.search(DEFAULT, SearchQuery("TypeScript", hybrid=True))
    assert found.hits[0].parts.lexical == 0
    assert list(engine.check()) == []


def test_duplicates_are_compared_by_text_and_not_by_facts(engine: MemoryEngine):
    added(engine, facts=FACTS)
    again = engine.add(DEFAULT, MemoryDraft(FACTS[0], "notes"), on_duplicate=OnDuplicate.SUPERSEDE)
    assert again.action is AddAction.ADDED
    nearest = engine.nearest(DEFAULT, FACTS[1])
    assert nearest is not None
    assert nearest[1] < 0.9


def test_deleting_a_memory_deletes_its_facts_and_tags(engine: MemoryEngine):
    memory = added(engine, facts=FACTS, tags=("work",))
    engine.delete(DEFAULT, memory.id)
    assert engine.search(DEFAULT, SearchQuery("Mila", filters=Filters(tags=("work",)))).hits == ()
    assert engine.stats(DEFAULT).passages == 0
    with engine.namespace(DEFAULT) as (connection, _):
        for table in ("facts", "memory_tags", "unsplit"):
            assert connection.execute(f"SELECT count(*) FROM {table}").get == 0, table
    assert list(engine.check()) == []


def test_archived_memories_are_not_found_by_their_facts(engine: MemoryEngine):
    memory = added(engine, facts=FACTS)
    engine.archive(DEFAULT, [memory.id])
    assert engine.search(DEFAULT, SearchQuery("Lambda")).hits == ()
    assert list(engine.check()) == []


def test_a_replacing_memory_inherits_the_tags(engine: MemoryEngine):
    memory = added(engine, facts=FACTS, tags=("Work", "ts"))
    outcome = engine.supersede(DEFAULT, memory.id, text="Mila prefers Rust")
    new = engine.get(DEFAULT, [outcome.new_id])[outcome.new_id]
    assert (new.tags, new.facts) == (("ts", "Work"), ())
    with engine.namespace(DEFAULT) as (connection, _):
        assert connection.execute("SELECT memory_id FROM unsplit").get == new.id


def test_tags_keep_their_case_and_are_matched_ignoring_it(engine: MemoryEngine):
    memory = added(engine, tags=("TypeScript", "typescript", "Ｗork"))
    assert memory.tags == ("TypeScript", "Ｗork")
    for tag in ("TYPESCRIPT", "work"):
        page = engine.page(DEFAULT, Listing(tags=(tag,)), offset=0, limit=9)
        assert [one.id for one in page.memories] == [memory.id]
    changed = engine.update(DEFAULT, memory.id, MemoryPatch(add_tags=("new",), remove_tags=("typescript",))).memory
    assert changed.tags == ("new", "Ｗork")


def test_tag_filters_apply_before_top_k_for_any_or_all_tags(engine: MemoryEngine):
    both = added(engine, "tea with milk", tags=("tea", "milk"))
    tea = added(engine, "tea with lemon", tags=("tea",))
    for number in range(5):
        added(engine, f"tea with tea number {number}")

    def found(*tags: str, all_tags: bool = False) -> set[int]:
        filters = Filters(tags=tags, all_tags=all_tags)
        return {hit.memory.id for hit in engine.search(DEFAULT, SearchQuery("tea", 2, filters=filters)).hits}

    assert found("tea", "milk") == {both.id, tea.id}
    assert found("Tea", "MILK", all_tags=True) == {both.id}
    assert found("coffee") == set()


@pytest.mark.parametrize("hybrid", [True, False])
def test_a_tag_named_by_the_query_raises_the_score_by_a_fifth(engine: MemoryEngine, hybrid: bool):
    plain = added(engine, "likes green tea")
    tagged = added(engine, "likes green tea", tags=("Hot Drinks",))
    hits = engine.search(DEFAULT, SearchQuery("green tea", hybrid=hybrid)).hits
    assert [hit.memory.id for hit in hits] == [plain.id, tagged.id]
    hits = engine.search(DEFAULT, SearchQuery("green tea among hot drinks", hybrid=hybrid)).hits
    assert [hit.memory.id for hit in hits] == [tagged.id, plain.id]
    raw = [hit.parts.raw_score for hit in hits]
    assert raw[0] == pytest.approx(1.2 * raw[1])
    assert sum(hits[0].parts.parts.values()) == pytest.approx(raw[0])


def test_history_contains_facts_and_tags(engine: MemoryEngine):
    memory = added(engine, facts=FACTS[:1], tags=("a",))
    engine.update(DEFAULT, memory.id, MemoryPatch(facts=(), tags=()))
    with engine.namespace(DEFAULT) as (connection, _):
        row = connection.execute(
            "SELECT before ->> '$.facts[0].text', before ->> '$.tags' FROM history ORDER BY id DESC"
        )
        assert next(iter(row)) == (FACTS[0], '["a"]')


@pytest.mark.parametrize("tags", [("",), (" ",), ("x" * 101,), tuple(map(str, range(51)))])
def test_bad_tags_are_refused_and_nothing_is_stored(engine: MemoryEngine, tags: tuple[str, ...]):
    with pytest.raises(InvalidRequest, match="tag"):
        engine.add(DEFAULT, MemoryDraft(TEXT, "notes", tags=tags))
    assert engine.count(DEFAULT) == 0


def test_facts_outside_of_the_scope_are_neither_visible_nor_changed(engine: MemoryEngine):
    memory = added(engine, facts=FACTS, tags=("secret",))
    part = Scope(sources=("other",))
    assert engine.search(part, SearchQuery("Mila Lambda secret", filters=Filters(tags=("secret",)))).hits == ()
    with pytest.raises(MemoryNotFound):
        engine.update(part, memory.id, MemoryPatch(facts=("x",)))
    assert engine.page(part, Listing(tags=("secret",)), offset=0, limit=9).total == 0


def test_indexes_loaded_from_a_snapshot_contain_facts(settings: Settings, embedder: NotingEmbedder):
    with closing(MemoryEngine.open(settings, embedder)) as engine:
        memory = added(engine, facts=FACTS)
        engine.search(DEFAULT, SearchQuery("Lambda"))
    with closing(MemoryEngine.open(settings, embedder)) as again:
        assert again.search(DEFAULT, SearchQuery("deploys Lambda")).hits[0].facts[0].fact.id == memory.facts[2].id
        assert list(again.check()) == []


def test_facts_do_not_separate_neighbouring_memories(engine: MemoryEngine):
    drafts = [
        MemoryDraft("The dragon arrived", "talk", document_at=DOCUMENT_AT),
        MemoryDraft("Rain and wind all day", "talk", document_at=DOCUMENT_AT),
        MemoryDraft("It was green", "talk", document_at=DOCUMENT_AT),
    ]
    _, between, behind = engine.add_batch(DEFAULT, drafts)

    def lent() -> float:
        hits = engine.search(DEFAULT, SearchQuery("dragon", 9)).hits
        return next(hit.parts.lexical for hit in hits if hit.memory.id == behind)

    assert lent() > 0
    engine.update(DEFAULT, between, MemoryPatch(facts=("Rain all day", "Wind all day", "A day of both")))
    assert lent() > 0
