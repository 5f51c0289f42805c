"""Tags over all memories: counts, renaming, merging and deleting."""

from __future__ import annotations

import pytest

from souvenir.core.errors import InvalidRequest, TagNotFound
from souvenir.core.types import MemoryPatch, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.tags import Tags
from tests.memories.engine.verbs import ANN, DEFAULT, add, memory


def counts(engine: MemoryEngine, scope: Scope = DEFAULT, **more: object) -> list[tuple[str, int]]:
    return [(one.tag, one.count) for one in Tags(engine).list(scope, limit=100, **more).tags]  # type: ignore[arg-type]


def test_tags_are_counted_ignoring_case_and_keep_their_first_spelling(engine: MemoryEngine):
    first = add(engine, "one", tags=("Work", "idea"))
    last = add(engine, "two", tags=("WORK",))
    add(engine, "three", tags=("work", "gone"), archived=True)
    add(engine, "four", scope=ANN, tags=("theirs",))
    assert counts(engine) == [("Work", 2), ("idea", 1)]
    [work] = Tags(engine).list(DEFAULT, regex="^work$", limit=1).tags
    assert work.first_used_at == memory(engine, first).created_at
    assert work.last_used_at == memory(engine, last).created_at
    assert counts(engine, Scope("never-written")) == []


def test_only_tags_of_visible_memories_are_listed(engine: MemoryEngine):
    add(engine, "one", "mine/a", tags=("a", "both"))
    add(engine, "two", "theirs", tags=("b", "both"))
    assert counts(engine, Scope(sources=("mine",))) == [("a", 1), ("both", 1)]


def test_tags_can_be_filtered_by_a_regex_and_paged(engine: MemoryEngine):
    add(engine, "one", tags=("proj/a", "proj/b", "Project", "other"))
    assert counts(engine, regex="^PROJ") == [("proj/a", 1), ("proj/b", 1), ("Project", 1)]
    page = Tags(engine).list(DEFAULT, regex="proj", offset=1, limit=1)
    assert ([one.tag for one in page.tags], page.total) == (["proj/b"], 3)


@pytest.mark.parametrize("regex", ["(", "(?=look)", "a{9999999}"])
def test_an_invalid_regex_is_refused_with_one_sentence(engine: MemoryEngine, regex: str):
    with pytest.raises(InvalidRequest, match=r"The regex cannot be used: .*; write it in the syntax of RE2"):
        Tags(engine).list(DEFAULT, regex=regex, limit=1)


def test_renaming_a_tag_changes_every_memory(engine: MemoryEngine):
    ids = [add(engine, "one", tags=("old", "x")), add(engine, "two", tags=("OLD", "New"))]
    archived, other = add(engine, "three", tags=("Old",), archived=True), add(engine, "four", tags=("x",))
    since = Tags(engine).list(DEFAULT, regex="^old$", limit=1).tags[0].first_used_at
    untouched = memory(engine, other)
    assert Tags(engine).rename(DEFAULT, " old ", "new") == 3
    assert [memory(engine, id_).tags for id_ in ids] == [("new", "x"), ("new",)]
    assert memory(engine, archived).tags == ("new",)
    assert memory(engine, other) == untouched
    assert Tags(engine).list(DEFAULT, regex="^new$", limit=1).tags[0].first_used_at == since
    history = engine.history(DEFAULT, ids[0]).entries
    assert [(entry.action, (entry.after or {}).get("tags")) for entry in history] == [
        ("add", ["old", "x"]),
        ("update", ["new", "x"]),
    ]
    assert list(engine.check()) == []


def test_the_spelling_of_a_tag_can_be_changed(engine: MemoryEngine):
    tagged = add(engine, "one", tags=("work",))
    assert Tags(engine).rename(DEFAULT, "WORK", "Work") == 1
    assert memory(engine, tagged).tags == ("Work",)


def test_tags_can_be_merged_into_one(engine: MemoryEngine):
    ids = [add(engine, "one", tags=("a", "b")), add(engine, "two", tags=("c", "x"))]
    assert Tags(engine).merge(DEFAULT, ["a", "B", "c"], "b") == 2
    assert [memory(engine, id_).tags for id_ in ids] == [("b",), ("b", "x")]


def test_deleting_a_tag_keeps_its_memories(engine: MemoryEngine):
    tagged = add(engine, "one", tags=("a", "b"))
    assert Tags(engine).delete(DEFAULT, "A") == 1
    assert (memory(engine, tagged).tags, counts(engine)) == (("b",), [("b", 1)])


def test_tag_changes_are_limited_to_visible_memories(engine: MemoryEngine):
    mine, theirs = add(engine, "one", "mine", tags=("a",)), add(engine, "two", "theirs", tags=("a", "b"))
    assert Tags(engine).rename(Scope(sources=("mine",)), "a", "c") == 1
    assert [memory(engine, id_).tags for id_ in (mine, theirs)] == [("c",), ("a", "b")]
    with pytest.raises(TagNotFound):
        Tags(engine).delete(Scope(sources=("mine",)), "b")


def test_an_unused_tag_is_not_found_and_nothing_changes(engine: MemoryEngine):
    tagged = add(engine, "one", tags=("a",))
    with pytest.raises(TagNotFound, match="No memory has the tag 'b'"):
        Tags(engine).merge(DEFAULT, ["a", "b"], "c")
    with pytest.raises(InvalidRequest):
        Tags(engine).rename(DEFAULT, "a", " ")
    assert memory(engine, tagged).tags == ("a",)


def test_a_tag_added_later_has_the_time_of_its_addition(engine: MemoryEngine):
    tagged = add(engine, "one")
    engine.update(DEFAULT, tagged, MemoryPatch(add_tags=("late",)))
    [late] = Tags(engine).list(DEFAULT, limit=1).tags
    assert late.first_used_at == memory(engine, tagged).updated_at > memory(engine, tagged).created_at
