"""The table of events: each change once, in the order of the commits, visible by source, and without stored text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from souvenir.conversations.blocks import BlockChange, Blocks
from souvenir.conversations.messages import Conversations
from souvenir.core.errors import KeyTaken
from souvenir.core.settings import Settings
from souvenir.core.types import LinkType, MemoryDraft, MemoryPatch, MessageRole, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.links import Links
from souvenir.store.admin import events, jobs
from souvenir.store.admin.events import EVERYTHING, Event, EventFilter
from souvenir.store.admin.jobs import JobStatus
from souvenir.store.messages.blocks import BlockDraft
from souvenir.store.messages.messages import MessageDraft
from souvenir.store.pending_removals import Removable, Target, advance, begin
from souvenir.store.sql import Connection
from tests.fake_embedder import FakeEmbedder

ANN = Scope("ann", "tester")
NOW = datetime(2031, 5, 1, tzinfo=UTC)
SECRET = "person/a-name-to-forget"
TEAM_A = EventFilter(frozenset({"memory", "conflict"}), ("team/a",))


@pytest.fixture
def engine(settings: Settings) -> Iterator[MemoryEngine]:
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        yield engine


def add(engine: MemoryEngine, text: str, source: str, **fields: Any) -> int:
    memory_id = engine.add(ANN, MemoryDraft(text, source, **fields)).id
    assert memory_id is not None
    return memory_id


def recent(engine: MemoryEngine, chosen: EventFilter = EVERYTHING, limit: int = 100) -> list[Event]:
    with engine.namespace(ANN) as (connection, _):
        return events.recent_events(connection, ANN.namespace, limit=limit, chosen=chosen)


def shown(engine: MemoryEngine, chosen: EventFilter = EVERYTHING) -> list[tuple[str, Mapping[str, Any]]]:
    return [(event.type, event.data) for event in recent(engine, chosen)]


def test_changes_of_a_memory_are_events_with_ids_actor_source_and_changed_fields(engine: MemoryEngine):
    one = add(engine, "tea", "team/a")
    engine.update(ANN, one, MemoryPatch(pinned=True))
    engine.update(ANN, one, MemoryPatch(pinned=False))
    new = engine.supersede(ANN, one, text="black tea").new_id
    last = {"id": one, "source": "team/a", "actor": "tester"}
    links = {"from_id": new, "to_id": one, "type": "supersedes"}
    assert shown(engine) == [
        ("memory.added", {**last, "action": "add"}),
        ("memory.updated", {**last, "action": "update", "changed": ["pinned"]}),
        ("memory.updated", {**last, "action": "update", "changed": ["pinned"]}),
        ("memory.archived", {**last, "action": "superseded", "changed": ["archived", "valid_to"]}),
        ("memory.added", {**last, "id": new, "action": "supersede"}),
        ("memory.linked", links),
    ]
    engine.delete(ANN, one)
    assert shown(engine)[-2:] == [
        ("memory.unlinked", links),
        ("memory.deleted", {"id": one, "action": "delete", "actor": "tester"}),
    ]
    assert shown(engine)[1] == ("memory.updated", {"id": one, "action": "update", "actor": "tester"})


def test_an_update_names_the_fields_that_differ(engine: MemoryEngine):
    one = add(engine, "tea", "team/a", tags=("hot",))
    engine.update(ANN, one, MemoryPatch(text="green tea", source="team/b", tags=("hot", "green")))
    engine.update(ANN, one, MemoryPatch(archived=True))
    changed = [(event.type, event.data.get("changed")) for event in recent(engine)]
    assert changed == [
        ("memory.added", None),
        ("memory.updated", ["text", "source", "tags"]),
        ("memory.archived", ["archived"]),
    ]


def test_changes_of_messages_and_blocks_are_events(engine: MemoryEngine):
    conversations, blocks = Conversations(engine), Blocks(engine)
    [message] = conversations.add(ANN, [MessageDraft(MessageRole.USER, "hello", session_id="first")])
    conversations.edit(ANN, message.uid, content="hello again")
    block = blocks.create(ANN, BlockDraft("human", "likes tea", None, 100, read_only=False))
    blocks.update(ANN, "human", BlockChange(value="likes coffee"))
    blocks.delete(ANN, "human")
    said = {"id": message.uid, "session_id": "first", "role": "user"}
    assert shown(engine) == [
        ("message.added", said),
        ("message.updated", said),
        ("block.added", {"id": block.uid, "version": 1}),
        ("block.updated", {"id": block.uid, "version": 2}),
        ("block.deleted", {"id": block.uid}),
    ]


def test_jobs_are_queued_started_and_ended_once_however_often_they_report_progress(engine: MemoryEngine):
    def run(connection: Connection) -> None:
        for kind, status in (("dedup", JobStatus.FAILED), ("extract", JobStatus.COMPLETED)):
            jobs.insert(connection, kind, kind, ANN, {}, NOW)
            first = jobs.claim(connection, NOW, jobs.lane_of(kind))
            assert first is not None
            for done in range(5):
                jobs.advance(connection, kind, first.turn, done=done, total=5, state={})
            jobs.requeue(connection, kind, first.turn, waits_for="the model")
            second = jobs.claim(connection, NOW, jobs.lane_of(kind))
            assert second is not None
            jobs.finish(connection, kind, second.turn, status, NOW, result='{"stored_count": 2, "text": "a secret"}')

    engine.write_rows(run)
    counts = {"extracted_count": None, "stored_count": 2, "updated_count": None, "deleted_count": None}
    assert shown(engine) == [
        ("job.queued", {"job_id": "dedup", "kind": "dedup"}),
        ("job.started", {"job_id": "dedup", "kind": "dedup"}),
        ("job.failed", {"job_id": "dedup", "kind": "dedup"}),
        ("extraction.queued", {"job_id": "extract", "kind": "extract"}),
        ("extraction.started", {"job_id": "extract", "kind": "extract"}),
        ("extraction.completed", {"job_id": "extract", "kind": "extract", **counts}),
    ]
    assert recent(engine, EventFilter(frozenset({"job", "extraction"}), actor="another")) == []
    assert len(recent(engine, EventFilter(frozenset({"job", "extraction"}), ("team/a",), actor="tester"))) == 6


def test_conflicts_are_found_and_resolved_with_the_activity_of_both_memories(engine: MemoryEngine):
    old, new = add(engine, "tea", "team/a"), add(engine, "coffee", "team/a/b")
    engine.write(ANN, lambda tx: tx.link(new, old, "conflicts_with"))
    engine.update(ANN, old, MemoryPatch(archived=True))
    engine.update(ANN, old, MemoryPatch(archived=False))
    engine.delete(ANN, old)
    data = {"id": new, "conflicts_with": old}
    conflicts = [(kind, of) for kind, of in shown(engine) if kind.startswith("conflict")]
    assert conflicts == [("conflict.found", data), ("conflict.resolved", data)] * 2


def test_a_write_that_fails_leaves_no_event(engine: MemoryEngine):
    add(engine, "tea", "team/a", key="drink")
    one = add(engine, "coffee", "team/b", key="drink")
    with pytest.raises(KeyTaken):
        engine.update(ANN, one, MemoryPatch(source="team/a"))
    assert [event.type for event in recent(engine)] == ["memory.added"] * 2


def test_a_deleted_source_is_in_no_event(engine: MemoryEngine):
    one = add(engine, "tea", SECRET)
    engine.update(ANN, one, MemoryPatch(source=SECRET + "/more"))
    engine.delete(ANN, one)
    with engine.namespace(ANN) as (connection, _):
        rows = list(connection.execute("SELECT * FROM events"))
    assert len(rows) == 3
    assert not any("forget" in str(value) for row in rows for value in row)


def test_a_reader_limited_to_sources_sees_their_memories_come_change_leave_and_go(engine: MemoryEngine):
    one, other = add(engine, "tea", "team/a/b"), add(engine, "coffee", "team/ab")
    engine.update(ANN, one, MemoryPatch(pinned=True))
    engine.update(ANN, one, MemoryPatch(pinned=False, source="team/b"))
    three, four = add(engine, "milk", "team/a"), add(engine, "water", "team/a/x")
    Links(engine).add(ANN, three, four, LinkType.RELATED_TO)
    Links(engine).add(ANN, three, other, LinkType.RELATED_TO)
    engine.delete(ANN, other)
    engine.delete(ANN, four)
    seen = [(event.type, event.data.get("id"), event.data.get("source")) for event in recent(engine, TEAM_A)]
    assert seen == [
        ("memory.updated", one, None),
        ("memory.added", three, "team/a"),
        ("memory.deleted", four, None),
    ]


def test_a_source_that_climbs_is_visible_to_no_limited_reader(engine: MemoryEngine):
    one = add(engine, "tea", "team/a/../b")
    engine.delete(ANN, one)
    assert recent(engine, TEAM_A) == []


def test_pages_of_events_continue_where_the_last_one_ended(engine: MemoryEngine):
    ids = [add(engine, f"text {number}", "team/a" if number % 3 else "team/b") for number in range(20)]
    found: list[int] = []
    page = events.EventPage([], 0, is_last=False)
    with engine.namespace(ANN) as (connection, _):
        while not page.is_last:
            page = events.events_after(connection, "ann", page.read_to, limit=4, chosen=TEAM_A)
            found += [event.data["id"] for event in page.events]
        assert page.read_to == events.last_of(connection, "ann")
    assert found == [one for number, one in enumerate(ids) if number % 3]
    assert [event.data["id"] for event in recent(engine, TEAM_A, limit=5)] == found[-5:]


def test_events_of_another_namespace_are_not_read(engine: MemoryEngine):
    engine.add(Scope("ben"), MemoryDraft("tea", "team/a"))
    with engine.namespace(ANN) as (connection, _):
        assert events.events_after(connection, "ann", 0, limit=10).events == []
        assert recent(engine) == []


def test_late_readers_learn_that_events_were_trimmed_by_number_and_age(engine: MemoryEngine):
    for number in range(10):
        add(engine, f"text {number}", "team/a")
    engine.add(Scope("ben"), MemoryDraft("tea", "team/a"))
    first = recent(engine)[0].id
    assert engine.write_rows(lambda connection: events.forget_beyond(connection, 4)) == 6
    assert engine.write_rows(lambda connection: events.forget_beyond(connection, 4)) == 0
    assert [event.id for event in recent(engine)] == list(range(first + 6, first + 10))
    with engine.namespace(ANN) as (connection, _):
        complete = [after for after in range(first + 12) if events.is_complete(connection, "ann", after)]
        assert complete == list(range(first + 5, first + 10))
        assert events.is_complete(connection, "ben", first + 10)
    later = datetime.now(UTC) + timedelta(minutes=1)
    assert engine.write_rows(lambda connection: events.forget_before(connection, later - timedelta(days=1))) == 0
    assert engine.write_rows(lambda connection: events.forget_before(connection, later)) == 5
    assert recent(engine) == []
    assert add(engine, "one more", "team/a")
    assert recent(engine)[0].id > first + 10


def test_a_restore_begins_the_feed_again_with_ids_that_no_reader_knows(engine: MemoryEngine):
    add(engine, "tea", "team/a")
    backup = engine.back_up(reason="manual").name
    for number in range(5):
        add(engine, f"text {number}", "team/a")
    last = recent(engine)[-1].id
    engine.restore(backup)
    with engine.namespace(ANN) as (connection, _):
        assert not any(events.is_complete(connection, "ann", after) for after in range(last + 1))
    assert recent(engine) == []
    add(engine, "after the restore", "team/a")
    assert recent(engine)[0].id > last


def test_events_of_a_removed_namespace_are_deleted_in_parts(engine: MemoryEngine):
    for number in range(5):
        add(engine, f"text {number}", SECRET)
    engine.add(Scope("ben"), MemoryDraft("tea", "team/a"))

    def remove(connection: Connection) -> None:
        namespace_id = int(connection.execute("SELECT id FROM namespaces WHERE name = 'ann'").get)
        begin(connection, [Target(Removable.NAMESPACE, namespace_id)], "work")
        while advance(connection, "work", NOW, at_once=2) is not None:
            pass

    engine.write_rows(remove)
    with engine.namespace(ANN) as (connection, _):
        assert not events.events_of(connection, {"ann": 0}, limit=100)
        assert {event.namespace for event in events.events_of(connection, {"ann": 0, "ben": 0}, limit=100)} == {"ben"}
