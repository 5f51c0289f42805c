"""Rows of exports and imports other than the memories: histories, preserved ids, and the mapping of old to new ids.

Each function takes a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate

from souvenir.core.labels import is_visible
from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us
from souvenir.core.types import Filters, HistoryEntry, JsonObject, Link, Memory
from souvenir.store.memories import reads
from souvenir.store.memories.reads import MERGED_FROM
from souvenir.store.namespaces import Namespace, source_condition, visible_condition
from souvenir.store.rows import UNREADABLE, ids_parameter, readable, select
from souvenir.store.sql import Connection, SqlValue
from souvenir.store.unreadable import report


@dataclass(frozen=True, slots=True)
class StoredLine:
    """The memory of a line of an import, and whether it was added for it."""

    memory_id: int
    added: bool


@dataclass(frozen=True, slots=True)
class ChangedId:
    """An id in an import's file, and the id of its memory in this database."""

    old: int
    new: int


def count_selected(connection: Connection, namespace: Namespace, filters: Filters) -> int:
    """Count the memories on all pages of `selected`."""
    where, parameters = _where(namespace, filters)
    return int(connection.execute(f"SELECT count(*) FROM memories WHERE {where}", parameters).get)


def selected(
    connection: Connection, namespace: Namespace, filters: Filters, *, after_id: int, limit: int
) -> list[Memory]:
    """Return the next visible memories in id order, including archived ones; empty at the end."""
    where, parameters = _where(namespace, filters)
    query = f"SELECT id FROM memories WHERE {where} AND id > ? ORDER BY id LIMIT ?"
    while ids := list(select(connection, int, query, (*parameters, after_id, limit))):
        found = reads.memories(connection, namespace, ids)
        if found:
            return [found[memory_id] for memory_id in sorted(found)]
        # All of them are unreadable.
        after_id = ids[-1]
    return []


def _where(namespace: Namespace, filters: Filters) -> tuple[str, list[SqlValue]]:
    visible, values = visible_condition(namespace.sources)
    conditions, parameters = ["namespace_id = ?", visible], [namespace.id, *values]
    if filters.sources:
        parts = [source_condition(source) for source in filters.sources]
        conditions.append(f"({' OR '.join(condition for condition, _ in parts)})")
        parameters += [value for _, values in parts for value in values]
    for operator, moment in ((">=", filters.since), ("<=", filters.until)):
        if moment is not None:
            conditions.append(f"coalesce(document_at, created_at) {operator} ?")
            parameters.append(to_us(moment))
    return " AND ".join(conditions), parameters


def keyed_memories(connection: Connection, namespace: Namespace, source: str) -> dict[str, Memory]:
    """Return the active memories of a source that have a key, by key."""
    rows = select(
        connection,
        int,
        "SELECT id FROM memories WHERE namespace_id = ? AND source = ? AND key IS NOT NULL AND archived = 0",
        (namespace.id, source),
    )
    found = reads.memories(connection, namespace, list(rows))
    return {memory.key: memory for memory in found.values() if memory.key is not None}


def histories(connection: Connection, namespace: Namespace, memory_ids: Iterable[int]) -> dict[int, list[HistoryEntry]]:
    """Return every change of these visible memories, oldest first; states in invisible sources are omitted."""
    found: dict[int, list[HistoryEntry]] = {memory_id: [] for memory_id in memory_ids}
    rows = readable(
        connection,
        tuple[int, int, str, str, datetime, str | None, bool, JsonObject | None, JsonObject | None],
        "SELECT id, memory_id, action, actor, at, job_id, imported, before, after FROM history "
        "WHERE memory_id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (ids_parameter(found),),
        table="history",
    )
    for row_id, memory_id, action, actor, at, job_id, imported, *states in list(rows):
        try:
            before, after = (shown_state(connection, namespace, state) for state in states)
        except UNREADABLE:
            report(connection, "history", row_id)
        else:
            found[memory_id].append(HistoryEntry(action, actor, at, before, after, job_id, imported))
    return found


def shown_state(connection: Connection, namespace: Namespace, state: JsonObject | None) -> JsonObject | None:
    """Return the visible part of a state in a history; None if it was in an invisible source."""
    if state is None or namespace.sources is None:
        return state
    if not is_visible(state["source"], namespace.sources):
        return None
    named = state["metadata"].get(MERGED_FROM)
    if not isinstance(named, list):
        return state
    visible = reads.visible_ids(connection, namespace, [one for one in named if isinstance(one, int)])
    return {**state, "metadata": {**state["metadata"], MERGED_FROM: [one for one in named if one in visible]}}


def insert_history(
    connection: Connection, namespace_id: int, memory_id: int, entries: Sequence[HistoryEntry], now: datetime
) -> None:
    """Insert the history that an import brought, marked as imported; a time in the future becomes the present.

    An entry of the future would hide the memory from every read of an earlier time, and lead the audit for good. For
    the same reason none is dated before the one that precedes it.
    """
    times = accumulate((to_us(min(entry.at, now)) for entry in entries), max)
    connection.executemany(
        "INSERT INTO history (namespace_id, memory_id, action, actor, at, before, after, imported) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
        [
            (
                namespace_id,
                memory_id,
                entry.action,
                entry.actor,
                at,
                None if entry.before is None else to_json(entry.before),
                None if entry.after is None else to_json(entry.after),
            )
            for entry, at in zip(entries, times, strict=True)
        ],
    )


def insert_link(connection: Connection, link: Link) -> bool:
    """Insert a link; return whether it is new."""
    connection.execute(
        "INSERT INTO links (from_id, to_id, type, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (link.from_id, link.to_id, link.type, to_us(link.created_at)),
    )
    return connection.changes() > 0


IMPORT_ID = "import_id"
"""Metadata key of a memory: its identity in the store that it was imported from."""


def imported_ids(connection: Connection, namespace_id: int) -> dict[str, int]:
    """Return the memories with an identity of an import; of several with one, the newest."""
    query = (
        f"SELECT metadata ->> '{IMPORT_ID}', id FROM memories WHERE namespace_id = ? "
        f"AND json_type(metadata, '$.{IMPORT_ID}') = 'text' ORDER BY id"
    )
    return dict(select(connection, tuple[str, int], query, (namespace_id,)))


def has_link(connection: Connection, from_id: int, to_id: int, link_type: str) -> bool:
    query = "SELECT 1 FROM links WHERE from_id = ? AND to_id = ? AND type = ?"
    return connection.execute(query, (from_id, to_id, link_type)).fetchone() is not None


def remember_ids(connection: Connection, job_id: str, stored: Mapping[int, StoredLine]) -> None:
    connection.executemany(
        "INSERT INTO import_ids (job_id, old_id, new_id, added) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (job_id, old_id) DO UPDATE SET new_id = excluded.new_id, added = excluded.added",
        [(job_id, old_id, line.memory_id, line.added) for old_id, line in stored.items()],
    )


def remembered_ids(connection: Connection, job_id: str, old_ids: Iterable[int]) -> dict[int, StoredLine]:
    """Return the memory for each id of the import's file that was processed and not deleted since."""
    return dict(
        select(
            connection,
            tuple[int, StoredLine],
            "SELECT i.old_id, i.new_id, i.added FROM import_ids i JOIN memories m ON m.id = i.new_id "
            "WHERE i.job_id = ? AND i.old_id IN (SELECT value FROM json_each(?))",
            (job_id, ids_parameter(old_ids)),
        )
    )


def changed_ids(connection: Connection, job_id: str, *, limit: int) -> tuple[int, list[ChangedId]]:
    """The number of ids of the file that stand for a memory with another id here, and the first of them."""
    changed = "FROM import_ids WHERE job_id = ? AND new_id <> old_id"
    count = int(connection.execute(f"SELECT count(*) {changed}", (job_id,)).get)
    query = f"SELECT old_id, new_id {changed} ORDER BY old_id LIMIT ?"
    return count, list(select(connection, ChangedId, query, (job_id, limit)))


def forget_ids(connection: Connection, job_id: str) -> None:
    connection.execute("DELETE FROM import_ids WHERE job_id = ?", (job_id,))
