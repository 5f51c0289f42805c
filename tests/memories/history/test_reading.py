"""Memories as of a time, compared with what was stored then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from souvenir.core.errors import MemoryNotFound
from souvenir.core.labels import is_visible
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Listing, MemoryDraft, MemoryPatch, Page, Scope, SourceFilter, SourceMatch
from souvenir.memories.engine import MemoryEngine
from tests.memories.engine.verbs import DEFAULT, add, stored
from tests.memories.history.living import live, without_forgotten
from tests.thoroughness import sampled


@pytest.mark.parametrize("seed", range(sampled(2, 6)))
def test_a_listing_as_of_a_time_equals_the_store_at_that_time(engine: MemoryEngine, seed: int):
    moments = live(engine, Random(seed), 80)
    held = {memory.id for memory in stored(engine)}
    ever = {memory.id for moment in moments for memory in moment.memories}
    assert ever - held, "nothing was forgotten"
    assert any(one.facts and one.tags for moment in moments for one in moment.memories), "nothing was owned"
    for moment in moments:
        expected = without_forgotten(moment.memories, ever - held)
        assert list(engine.page(DEFAULT, as_of=moment.at, offset=0, limit=1000).memories) == expected
        in_a = [one for one in expected if is_visible(one.source, ("a",))]
        source = SourceFilter("a", SourceMatch.PATH)
        page = engine.page(DEFAULT, Listing(source), moment.at, offset=1, limit=2)
        assert page == Page(tuple(in_a[1:3]), len(in_a))
        pinned = engine.page(DEFAULT, Listing(pinned=True), moment.at, offset=0, limit=1000).memories
        assert list(pinned) == [one for one in expected if one.pinned]
        for one in expected[:3]:
            assert engine.memory(DEFAULT, one.id, moment.at) == one


def test_a_memory_is_not_found_before_it_was_stored_or_after_it_was_erased(engine: MemoryEngine):
    before = utc_now()
    memory_id = add(engine, "red apple")
    between = utc_now()
    assert engine.memory(DEFAULT, memory_id, between).text == "red apple"
    with pytest.raises(MemoryNotFound):
        engine.memory(DEFAULT, memory_id, before)
    engine.delete(DEFAULT, memory_id)
    with pytest.raises(MemoryNotFound):
        engine.memory(DEFAULT, memory_id, between)
    assert engine.page(DEFAULT, as_of=between, offset=0, limit=9).total == 0
    assert engine.page(Scope("nobody"), as_of=between, offset=0, limit=9).total == 0


def test_backdated_imports_are_not_found_before_the_import(engine: MemoryEngine):
    created = datetime(2020, 1, 1, tzinfo=UTC)
    memory_id = add(engine, "red apple")
    stored_at = utc_now()
    engine.write(DEFAULT, lambda tx: tx.update(memory_id, MemoryPatch(created_at=created), ()))
    assert engine.page(DEFAULT, as_of=created + timedelta(days=1), offset=0, limit=9).total == 0
    assert engine.memory(DEFAULT, memory_id, stored_at).created_at > created
    assert engine.memory(DEFAULT, memory_id, utc_now()).created_at == created


def test_a_limited_scope_sees_memories_in_it_then_and_now(engine: MemoryEngine):
    ids = engine.add_batch(DEFAULT, [MemoryDraft(f"text {source}", source) for source in ("a/1", "a/2", "b/1", "b/2")])
    merged = engine.merge(DEFAULT, [ids[0], ids[2]], text="both", source="a/1").id
    at = utc_now()
    engine.update(DEFAULT, ids[1], MemoryPatch(source="b/3"))
    engine.update(DEFAULT, ids[3], MemoryPatch(source="a/3"))
    part = Scope(sources=("a",))
    seen = engine.page(part, as_of=at, offset=0, limit=9).memories
    assert [memory.id for memory in seen] == [ids[0], merged]
    assert seen[1].metadata == {"source_memory_ids": [ids[0]]}
    assert [link.to_id for link in seen[1].links] == [ids[0]]
    assert engine.page(part, as_of=at, offset=0, limit=9).total == 2
    for outside in (ids[1], ids[2], ids[3]):
        with pytest.raises(MemoryNotFound):
            engine.memory(part, outside, at)
    assert engine.memory(part, ids[3], utc_now()).source == "a/3"
