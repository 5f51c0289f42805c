"""What an export reads and an import writes beside the memories: histories, kept ids, and which id became which.

Each function takes a connection inside a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from souvenir.moments import from_us, to_us
from souvenir.sources import is_visible
from souvenir.store import reads
from souvenir.store.reads import MERGED_FROM, Namespace, source_condition, visible_condition
from souvenir.store.rows import ids_parameter, to_json
from souvenir.types import Filters, HistoryEntry, JsonObject, Link, Memory

MAX_KEPT_ID = 2**52
"""An import keeps no id above this, so that no file can use the counter up; JSON readers hold numbers to 2 ** 53."""


@dataclass(frozen=True, slots=True)
class StoredLine:
    """The memory that stands for a line of an import, and whether it was added for it."""

    memory_id: int
    added: bool


def count_selected(connection: apsw.Connection, namespace: Namespace, filters: Filters) -> int:
    """How many memories `selected` gives on all pages."""
    where, parameters = _where(namespace, filters)
    return int(connection.execute(f"SELECT count(*) FROM memories WHERE {where}", parameters).get)


def selected(
    connection: apsw.Connection, namespace: Namespace, filters: Filters, *, after_id: int, limit: int
) -> list[Memory]:
    """The next visible memories in the order of their ids, archived ones included."""
    where, parameters = _where(namespace, filters)
    rows: Any = connection.execute(
        f"SELECT id FROM memories WHERE {where} AND id > ? ORDER BY id LIMIT ?", (*parameters, after_id, limit)
    )
    found = reads.memories(connection, namespace, [memory_id for (memory_id,) in rows])
    return [found[memory_id] for memory_id in sorted(found)]


def _where(namespace: Namespace, filters: Filters) -> tuple[str, list[Any]]:
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


def keyed_memories(connection: apsw.Connection, namespace: Namespace, source: str) -> dict[str, Memory]:
    """The living memories of a source that have a key, by it."""
    rows: Any = connection.execute(
        "SELECT id FROM memories WHERE namespace_id = ? AND source = ? AND key IS NOT NULL AND archived = 0",
        (namespace.id, source),
    )
    found = reads.memories(connection, namespace, [memory_id for (memory_id,) in rows])
    return {memory.key: memory for memory in found.values() if memory.key is not None}


def histories(
    connection: apsw.Connection, namespace: Namespace, memory_ids: Iterable[int]
) -> dict[int, list[HistoryEntry]]:
    """Every change of these visible memories, oldest first; what they were in sources outside is left out."""
    found: dict[int, list[HistoryEntry]] = {memory_id: [] for memory_id in memory_ids}
    rows: Any = connection.execute(
        "SELECT memory_id, action, actor, at, job_id, before, after FROM history "
        "WHERE memory_id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (ids_parameter(found),),
    )
    for memory_id, action, actor, at, job_id, *columns in rows.fetchall():
        before, after = (shown_state(connection, namespace, _state(column)) for column in columns)
        found[memory_id].append(HistoryEntry(action, actor, from_us(at), before, after, job_id))
    return found


def _state(column: str | None) -> dict[str, Any] | None:
    return None if column is None else json.loads(column)


def shown_state(connection: apsw.Connection, namespace: Namespace, state: dict[str, Any] | None) -> JsonObject | None:
    """A state of a history as far as it may be seen; None if it lay outside."""
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
    connection: apsw.Connection, namespace_id: int, memory_id: int, entries: Sequence[HistoryEntry]
) -> None:
    connection.executemany(
        "INSERT INTO history (namespace_id, memory_id, action, actor, at, before, after) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (
                namespace_id,
                memory_id,
                entry.action,
                entry.actor,
                to_us(entry.at),
                None if entry.before is None else to_json(entry.before),
                None if entry.after is None else to_json(entry.after),
            )
            for entry in entries
        ],
    )


def last_memory_id(connection: apsw.Connection) -> int:
    """The highest id that was ever given out."""
    return int(connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'memories'").get or 0)


def kept_id(connection: apsw.Connection, wanted: int | None) -> int | None:
    """The id itself if nothing ever had it and no later one was given out, else None, for a new one."""
    if wanted is None or not last_memory_id(connection) < wanted <= MAX_KEPT_ID:
        return None
    return wanted


def insert_link(connection: apsw.Connection, link: Link) -> bool:
    """Whether it is new."""
    connection.execute(
        "INSERT INTO links (from_id, to_id, type, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (link.from_id, link.to_id, link.type, to_us(link.created_at)),
    )
    return connection.changes() > 0


def remember_ids(connection: apsw.Connection, job_id: str, stored: Mapping[int, StoredLine]) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO import_ids (job_id, old_id, new_id, added) VALUES (?, ?, ?, ?)",
        [(job_id, old_id, line.memory_id, line.added) for old_id, line in stored.items()],
    )


def remembered_ids(connection: apsw.Connection, job_id: str, old_ids: Iterable[int]) -> dict[int, StoredLine]:
    """What stands for each id of the import's file, if it was seen and is not deleted since."""
    rows: Any = connection.execute(
        "SELECT i.old_id, i.new_id, i.added FROM import_ids i JOIN memories m ON m.id = i.new_id "
        "WHERE i.job_id = ? AND i.old_id IN (SELECT value FROM json_each(?))",
        (job_id, ids_parameter(old_ids)),
    )
    return {old_id: StoredLine(new_id, bool(added)) for old_id, new_id, added in rows}


def forget_ids(connection: apsw.Connection, job_id: str) -> None:
    connection.execute("DELETE FROM import_ids WHERE job_id = ?", (job_id,))


def rename_sources(connection: apsw.Connection, memory_id: int, new_of_old: Mapping[int, int]) -> None:
    """Let the metadata of a memory and of its history name what it was merged from by the ids of this database.

    An id without a new one is left out.
    """
    row: Any = connection.execute("SELECT metadata FROM memories WHERE id = ?", (memory_id,)).get
    metadata = _renamed(json.loads(row), new_of_old)
    connection.execute("UPDATE memories SET metadata = ? WHERE id = ?", (to_json(metadata), memory_id))
    entries: Any = connection.execute("SELECT id, before, after FROM history WHERE memory_id = ?", (memory_id,))
    for entry_id, *columns in entries.fetchall():
        states = [_state(column) for column in columns]
        renamed = [state and {**state, "metadata": _renamed(state["metadata"], new_of_old)} for state in states]
        connection.execute(
            "UPDATE history SET before = ?, after = ? WHERE id = ?",
            (*(None if state is None else to_json(state) for state in renamed), entry_id),
        )


def _renamed(metadata: Mapping[str, Any], new_of_old: Mapping[int, int]) -> dict[str, Any]:
    if MERGED_FROM not in metadata:
        return dict(metadata)
    return {**metadata, MERGED_FROM: [new_of_old[old] for old in metadata[MERGED_FROM] if old in new_of_old]}
