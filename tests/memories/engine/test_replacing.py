"""Superseding, merging and deleting: links, refusals, and permanent deletion."""

from __future__ import annotations

from pathlib import Path

import pytest

from souvenir.core.errors import InvalidRequest, MemoryArchived, MemoryNotFound
from souvenir.core.settings import Settings
from souvenir.core.types import Listing, MemoryPatch, SearchQuery, SourceFilter, SourceMatch
from souvenir.memories.engine import MemoryEngine
from tests.memories.engine.verbs import DEFAULT, add, memory, stored, texts


def test_a_chain_of_superseded_memories_names_its_neighbours(engine: MemoryEngine):
    first = add(engine, "first")
    second = engine.supersede(DEFAULT, first, text="second").new_id
    third = engine.supersede(DEFAULT, second, text="third").new_id
    found = stored(engine)
    assert [(one.archived, one.previous_text, one.superseded_by) for one in found] == [
        (True, None, second),
        (True, "first", third),
        (False, "second", None),
    ]
    assert [(link.from_id, link.to_id, link.type) for link in found[2].links] == [(third, second, "supersedes")]
    with pytest.raises(MemoryArchived):
        engine.supersede(DEFAULT, first, text="again")


def test_deleting_a_memory_removes_it_from_linked_memories(engine: MemoryEngine):
    first = add(engine, "first")
    second = engine.supersede(DEFAULT, first, text="second").new_id
    third = engine.supersede(DEFAULT, second, text="third").new_id
    engine.delete(DEFAULT, second)
    for memory_id in (first, third):
        found = memory(engine, memory_id)
        assert (found.previous_text, found.superseded_by, found.links) == (None, None, ())
    assert memory(engine, first).archived
    assert list(engine.check()) == []


def test_a_merged_memory_links_to_all_that_it_replaced(engine: MemoryEngine):
    ids = [add(engine, f"part {number}", f"s{number}", key="k") for number in range(3)]
    outcome = engine.merge(DEFAULT, [ids[2], ids[0], ids[1], ids[0]], text="whole", source="merged")
    assert outcome.archived == tuple(ids)
    merged = memory(engine, outcome.id)
    assert (merged.text, merged.source, merged.metadata) == ("whole", "merged", {"source_memory_ids": ids})
    assert ([link.to_id for link in merged.links], merged.previous_text) == (ids, None)
    assert all(memory(engine, id_).superseded_by == merged.id and memory(engine, id_).archived for id_ in ids)


@pytest.mark.parametrize("ids", [[], [1], [1, 1]])
def test_a_merge_of_fewer_than_two_is_refused(engine: MemoryEngine, ids: list[int]):
    add(engine, "one")
    with pytest.raises(InvalidRequest):
        engine.merge(DEFAULT, ids, text="whole", source="merged")
    assert texts(engine) == ["one"]


def test_a_merge_with_a_missing_memory_changes_nothing(engine: MemoryEngine):
    add(engine, "one")
    before = stored(engine)
    with pytest.raises(MemoryNotFound) as caught:
        engine.merge(DEFAULT, [before[0].id, 999], text="whole", source="merged")
    assert caught.value.memory_id == 999
    assert stored(engine) == before
    assert list(engine.check()) == []


def test_a_deleted_memory_is_in_no_file_except_backups(engine: MemoryEngine, settings: Settings):
    canary = "zyzzyva"
    memory_id = add(engine, f"the {canary} sleeps", f"path/{canary}", metadata={"x": canary})
    add(engine, "a quokka stays")
    new_id = engine.supersede(DEFAULT, memory_id, text=f"the {canary} wakes").new_id
    engine.search(DEFAULT, SearchQuery(canary))
    engine.snapshot()
    assert any(canary.encode() in content for content in contents(settings.data_dir))
    engine.delete_many(DEFAULT, [memory_id, new_id])
    assert engine.search(DEFAULT, SearchQuery(canary)).repairs == {}
    engine.close()
    assert not any(canary.encode() in content for content in contents(settings.data_dir))
    assert any(b"quokka" in content for content in contents(settings.data_dir))


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


def test_a_delete_by_source_makes_a_backup_and_deletes_nothing_else(engine: MemoryEngine):
    for source in ("a/b", "a/bc", "a/b/c", "b"):
        add(engine, f"text of {source}", source)
    assert engine.delete_by_source(DEFAULT, SourceFilter("nowhere")).deleted_ids == ()
    assert list(engine.backups()) == []
    outcome = engine.delete_by_source(DEFAULT, SourceFilter("a/b", SourceMatch.PATH))
    assert len(outcome.deleted_ids) == 2
    assert [found.source for found in stored(engine)] == ["a/bc", "b"]
    [backup] = engine.backups()
    assert (backup.reason, backup.memories) == ("pre_delete", 4)
    engine.delete_by_source(DEFAULT, SourceFilter("b"), back_up=False)
    assert len(engine.backups()) == 1
    engine.restore(backup.name)
    assert [found.source for found in stored(engine)] == ["a/b", "a/bc", "a/b/c", "b"]
    assert list(engine.check()) == []


def test_pages_are_in_insertion_order_and_count_the_selected_memories(engine: MemoryEngine):
    ids = [add(engine, f"text {number}", f"s{number % 2}", pinned=number == 3) for number in range(5)]
    page = engine.page(DEFAULT, offset=1, limit=2)
    assert ([found.id for found in page.memories], page.total) == (ids[1:3], 5)
    page = engine.page(DEFAULT, Listing(SourceFilter("s0")), offset=0, limit=2)
    assert ([found.id for found in page.memories], page.total) == ([ids[0], ids[2]], 3)
    page = engine.page(DEFAULT, Listing(pinned=True), offset=0, limit=10)
    assert ([found.id for found in page.memories], page.total) == ([ids[3]], 1)
    assert engine.page(DEFAULT, offset=5, limit=10).memories == ()
    assert engine.count(DEFAULT, SourceFilter("s1")) == 2


def test_a_memory_superseded_twice_names_the_newest_that_replaced_it(engine: MemoryEngine):
    old = add(engine, "old")
    first = engine.supersede(DEFAULT, old, text="first").new_id
    engine.update(DEFAULT, old, MemoryPatch(archived=False))
    second = engine.supersede(DEFAULT, old, text="second").new_id
    assert memory(engine, old).superseded_by == second
    engine.delete(DEFAULT, second)
    assert memory(engine, old).superseded_by == first
