"""The feed of changes: what happened to which object, in the order of the commits, and never any stored text.

Triggers of the schema (migration 0012) write an event in the transaction of its change, so the feed has each change
exactly once. An event contains ids; sources, labels and the names of sessions are looked up when it is read, so that
nothing of a deleted object is left in it. Ids are never used twice, also not after a restore of a backup.

A key that is limited to sources sees the events of the memories that are in them, and by digests of paths
(`souvenir.core.labels.place_digests`) the deletion of a memory that was, and its move to another source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import Any, NamedTuple

from souvenir.core.labels import PARENT, is_visible, place_digest, split_digests
from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us
from souvenir.core.types import JsonObject
from souvenir.store.namespaces import visible_condition
from souvenir.store.rows import first, ids_parameter, readable, select
from souvenir.store.sql import Connection, SqlValue

TYPES = (
    "memory.added",
    "memory.updated",
    "memory.archived",
    "memory.deleted",
    "memory.linked",
    "memory.unlinked",
    "conflict.found",
    "conflict.resolved",
    "message.added",
    "message.updated",
    "message.deleted",
    "block.added",
    "block.updated",
    "block.deleted",
    "extraction.queued",
    "extraction.started",
    "extraction.completed",
    "extraction.failed",
    "extraction.cancelled",
    "job.queued",
    "job.started",
    "job.completed",
    "job.failed",
    "job.cancelled",
)
"""Every type of event. The jobs of extractions have types of their own."""

MEMORY, CONFLICT, MESSAGE, BLOCK, EXTRACTION, JOB = "memory", "conflict", "message", "block", "extraction", "job"
JOBS = (EXTRACTION, JOB)

FORGOTTEN_AT_ONCE = 1_000
"""Maximum number of events that one transaction deletes."""

SOURCE = "source"


@dataclass(frozen=True, slots=True)
class Event:
    """A committed change.

    :param data: Ids and kinds, with what is looked up when it is read.
    :param memory_id: The added, changed or deleted memory.
    :param places: Digests of the paths that a source was in which the memory is not in any more.
    :param actor: Of a job.
    :param ends: The sources of two linked memories, as they are now; None if one was deleted.
    """

    id: int
    namespace: str
    type: str
    at: datetime
    memory_id: int | None
    data: JsonObject
    places: bytes | None
    actor: str | None
    ends: tuple[str, str] | None = None

    @property
    def noun(self) -> str:
        return self.type.partition(".")[0]


@dataclass(frozen=True, slots=True)
class EventFilter:
    """The events that a reader sees.

    :param nouns: The first parts of their types. :param sources: The visible source paths; None for all.
    :param actor: Whose jobs are included; None for everyone's.
    :param type: Only events of this type.
    """

    nouns: frozenset[str]
    sources: tuple[str, ...] | None = None
    actor: str | None = None
    type: str | None = None

    def shown(self, event: Event) -> Event | None:
        """Return the event as the reader sees it; None if it is not visible."""
        if event.noun not in self.nouns or (self.type is not None and event.type != self.type):
            return None
        if event.noun in JOBS and self.actor is not None and event.actor != self.actor:
            return None
        if self.sources is None:
            return event
        if event.noun in JOBS:
            return _without_source(event, self.sources)
        if event.memory_id is None:
            both = event.ends is not None and all(is_visible(source, self.sources) for source in event.ends)
            return event if both else None
        if is_visible(event.data.get(SOURCE, PARENT), self.sources):
            return event
        left = set() if event.places is None else split_digests(event.places)
        was_visible = not left.isdisjoint(map(place_digest, self.sources))
        return _without_source(event, self.sources) if was_visible else None

    def condition(self) -> tuple[str, list[SqlValue]]:
        """Return an SQL condition that is true of every visible event, and of few others, and its parameters."""
        conditions = ["substr(type, 1, instr(type, '.') - 1) IN (SELECT atom FROM json_each(?))"]
        parameters: list[SqlValue] = [to_json(sorted(self.nouns))]
        if self.type is not None:
            conditions.append("type = ?")
            parameters.append(self.type)
        if self.actor is not None:
            conditions.append("(actor IS NULL OR actor = ?)")
            parameters.append(self.actor)
        if self.sources is not None:
            visible, values = visible_condition(self.sources, "m.source")
            present = f"EXISTS (SELECT 1 FROM memories m WHERE m.id = e.memory_id AND {visible})"
            former = ("instr(places, ?) > 0" for _ in self.sources)
            conditions.append(f"({' OR '.join(['memory_id IS NULL', present, *former])})")
            parameters += [*values, *map(place_digest, self.sources)]
        return " AND ".join(conditions), parameters


def _without_source(event: Event, visible: tuple[str, ...]) -> Event:
    """Leave out the source, as it is now, if it is not visible."""
    source = event.data.get(SOURCE)
    if source is None or is_visible(source, visible):
        return event
    return replace(event, data={name: value for name, value in event.data.items() if name != SOURCE})


class EventPage(NamedTuple):
    """Visible events.

    :param read_to: The id up to which the feed was read. :param is_last: Whether that was its end.
    """

    events: list[Event]
    read_to: int
    is_last: bool


EVERYTHING = EventFilter(frozenset(one.partition(".")[0] for one in TYPES))


_IN_NAMESPACE = "e.namespace_id = (SELECT id FROM namespaces WHERE name = ?)"
_OF_EVENTS = "FROM json_each(?) chosen JOIN events e ON e.id = chosen.value"
_STATE = "CASE WHEN json_valid({0}) THEN {0} ELSE '{{}}' END"
_CHANGED = (
    f"SELECT json_group_array(a.key) FROM json_each({_STATE.format('h.after')}) a "
    f"WHERE (h.after -> a.key) IS DISTINCT FROM ({_STATE.format('h.before')} -> a.key) "
    "AND a.key NOT IN ('created_at', 'updated_at')"
)
"""The names of the fields that differ between the states of a history row `h`."""

_LOOKUPS: Mapping[str, str] = {
    "memories": f"SELECT m.id, e.id, json_object('source', m.source) {_OF_EVENTS} JOIN memories m "
    "ON m.id = e.memory_id",
    "history": "SELECT h.id, e.id, json_object('action', h.action, 'actor', h.actor, 'job_id', h.job_id, "
    f"'changed', CASE WHEN h.before IS NOT NULL THEN json(({_CHANGED})) END) {_OF_EVENTS} "
    "JOIN history h ON h.id = CASE e.type WHEN 'memory.deleted' THEN "
    "(SELECT min(id) FROM history WHERE memory_id = e.memory_id AND id > e.history_id) ELSE e.history_id END",
    "messages": f"SELECT m.id, e.id, json_object('session_id', s.name, 'role', m.role) {_OF_EVENTS} "
    "JOIN messages m ON m.uid = e.data ->> 'id' JOIN sessions s ON s.id = m.session_id WHERE e.type LIKE 'message.%'",
    "blocks": f"SELECT b.id, e.id, json_object('label', b.label) {_OF_EVENTS} "
    "JOIN blocks b ON b.uid = e.data ->> 'id' WHERE e.type LIKE 'block.%'",
    "extractions": f"SELECT 0, e.id, json_object('source', x.source) {_OF_EVENTS} "
    "JOIN extractions x ON x.job_id = e.data ->> 'job_id' WHERE e.type LIKE 'extraction.%'",
}
"""By table: the id of an object, of an event about it, and what the event shows of it."""


# --- reading ---------------------------------------------------------------------------------------------------------


def last_of(connection: Connection, namespace: str) -> int:
    """Return the id of the last event of a namespace, kept or not; 0 before the first one.

    Writes to a namespace are serial, so its later events have greater ids. Those of other namespaces may not.
    """
    query = (
        "SELECT max(coalesce((SELECT max(id) FROM events e WHERE e.namespace_id = n.id), 0), coalesce(f.last_id, 0)) "
        "FROM namespaces n LEFT JOIN forgotten_events f ON f.namespace_id = n.id WHERE n.name = ?"
    )
    return first(connection, int, query, (namespace,)) or 0


def is_complete(connection: Connection, namespace: str, after: int) -> bool:
    """Return whether all later events of a namespace are kept, so that a reader who knows that one missed none."""
    known = (
        "SELECT coalesce(f.last_id, 0) FROM namespaces n LEFT JOIN forgotten_events f ON f.namespace_id = n.id "
        "WHERE n.name = ?"
    )
    forgotten = first(connection, int, known, (namespace,)) or 0
    return forgotten <= after <= last_of(connection, namespace)


def events_after(
    connection: Connection, namespace: str, after: int, *, limit: int, chosen: EventFilter = EVERYTHING
) -> EventPage:
    """Read the first events of a namespace with greater ids.

    :param limit: The number of events to read; fewer may be visible.
    """
    condition, parameters = chosen.condition()
    rest = f"{_IN_NAMESPACE} AND e.id > ? AND {condition} ORDER BY e.id LIMIT ?"
    rows = _rows(connection, rest, [namespace, after, *parameters, limit])
    read_to = rows[-1].id if rows else max(after, last_of(connection, namespace))
    return EventPage(_shown(connection, chosen, rows), read_to, len(rows) < limit)


def events_of(connection: Connection, after: Mapping[str, int], *, limit: int) -> list[Event]:
    """Read the first events of several namespaces, each after an id of its own, in the order of the ids."""
    ids = (
        "SELECT x.id FROM json_each(?) c JOIN namespaces m ON m.name = c.key "
        "JOIN events x ON x.namespace_id = m.id AND x.id > c.value ORDER BY x.id LIMIT ?"
    )
    rows = _rows(connection, f"e.id IN ({ids}) ORDER BY e.id", [to_json(dict(after)), limit])
    return _shown(connection, EVERYTHING, rows)


def recent_events(
    connection: Connection, namespace: str, *, limit: int, chosen: EventFilter = EVERYTHING
) -> list[Event]:
    """Return the last visible events, in the order of the commits."""
    condition, parameters = chosen.condition()
    found: list[Event] = []
    before = last_of(connection, namespace) + 1
    while len(found) < limit:
        rest = f"{_IN_NAMESPACE} AND e.id < ? AND {condition} ORDER BY e.id DESC LIMIT ?"
        rows = _rows(connection, rest, [namespace, before, *parameters, limit])
        found = _shown(connection, chosen, rows[::-1]) + found
        if len(rows) < limit:
            break
        before = rows[-1].id
    return found[-limit:]


def _rows(connection: Connection, rest: str, parameters: Sequence[SqlValue]) -> list[Event]:
    query = (
        "SELECT e.id, n.name, e.type, e.at, e.memory_id, coalesce(e.data, json_object('id', e.memory_id)), e.places, "
        f"e.actor FROM events e JOIN namespaces n ON n.id = e.namespace_id WHERE {rest}"
    )
    return list(readable(connection, Event, query, parameters, table="events"))


def _shown(connection: Connection, chosen: EventFilter, rows: Sequence[Event]) -> list[Event]:
    """Return the visible events with what is looked up of their objects, as these are now."""
    ids = (ids_parameter(row.id for row in rows),)
    found: dict[int, dict[str, Any]] = {row.id: dict(row.data) for row in rows}
    for table, query in _LOOKUPS.items():
        for _, event_id, fields in readable(connection, tuple[int, int, JsonObject], query, ids, table=table):
            found[event_id].update((name, value) for name, value in fields.items() if value is not None)
    ends = dict(_ends(connection, ids))
    completed = (replace(row, data=found[row.id], ends=ends.get(row.id)) for row in rows)
    return [shown for event in completed if (shown := chosen.shown(event)) is not None]


# The ids of other events are no numbers.
_END = (
    "CASE WHEN e.type LIKE 'memory.%' OR e.type LIKE 'conflict.%' "
    "THEN CAST(coalesce(e.data ->> '{0}', e.data ->> '{1}') AS BIGINT) END"
)


def _ends(connection: Connection, ids: tuple[str]) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield the sources of the two memories that an event is about, if both still exist."""
    rows = readable(
        connection,
        tuple[int, int, str, str],
        f"SELECT f.id, e.id, f.source, t.source {_OF_EVENTS} "
        f"JOIN memories f ON f.id = {_END.format('from_id', 'id')} "
        f"JOIN memories t ON t.id = {_END.format('to_id', 'conflicts_with')} WHERE e.memory_id IS NULL",
        ids,
        table="memories",
    )
    for _, event_id, of_one, of_other in rows:
        yield event_id, (of_one, of_other)


# --- forgetting ------------------------------------------------------------------------------------------------------


def begin_again(connection: Connection) -> None:
    """Forget all events, since the database is not what their readers saw: they must load everything again."""
    # Also readers of the very last event are to notice.
    begins_after = int(connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").get or 0) + 1
    connection.execute("DELETE FROM events")
    connection.execute("DELETE FROM sqlite_sequence WHERE name = 'events'")
    connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('events', ?)", (begins_after,))
    connection.execute(
        "INSERT INTO forgotten_events (namespace_id, last_id) SELECT id, CAST(? AS BIGINT) FROM namespaces WHERE TRUE "
        "ON CONFLICT (namespace_id) DO UPDATE SET last_id = excluded.last_id",
        (begins_after,),
    )


def forget_before(connection: Connection, before: datetime) -> int:
    """Delete the oldest events before a time, at most `FORGOTTEN_AT_ONCE`; return how many there were."""
    oldest = "SELECT id, namespace_id, at FROM events ORDER BY id LIMIT ?"
    rows = select(connection, tuple[int, int, int], oldest, (FORGOTTEN_AT_ONCE,))
    expired = list(takewhile(lambda row: row[2] < to_us(before), rows))
    return _forget(connection, [(event_id, namespace_id) for event_id, namespace_id, _ in expired])


def forget_beyond(connection: Connection, most: int) -> int:
    """Delete the oldest events of namespaces with more than `most`, not all at once; return how many there were."""
    beyond = "SELECT id FROM events e WHERE e.namespace_id = n.id ORDER BY id DESC LIMIT 1 OFFSET ?"
    query = f"SELECT e.id, n.id FROM namespaces n JOIN events e ON e.namespace_id = n.id AND e.id <= ({beyond})"
    rest = "ORDER BY n.id, e.id LIMIT ?"
    return _forget(connection, list(select(connection, tuple[int, int], f"{query} {rest}", (most, FORGOTTEN_AT_ONCE))))


def _forget(connection: Connection, events: Sequence[tuple[int, int]]) -> int:
    """:param events: Ids, with those of their namespaces, which have no older events."""
    chosen = ids_parameter(event_id for event_id, _ in events)
    connection.execute("DELETE FROM events WHERE id IN (SELECT value FROM json_each(?))", (chosen,))
    last: dict[int, int] = {}
    for event_id, namespace_id in events:
        last[namespace_id] = max(event_id, last.get(namespace_id, 0))
    connection.executemany(
        "INSERT INTO forgotten_events (namespace_id, last_id) VALUES (?, ?) "
        "ON CONFLICT (namespace_id) DO UPDATE SET last_id = max(forgotten_events.last_id, excluded.last_id)",
        list(last.items()),
    )
    return len(events)
