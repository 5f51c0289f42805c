"""Every read of memories and passages. Each function takes a connection inside a read transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import apsw
import numpy as np

from souvenir.moments import from_us
from souvenir.store.rows import MEMORY_COLUMNS, ids_parameter, link_of, memory_of, passage_of, same_json
from souvenir.types import (
    FloatVector,
    JsonObject,
    Memory,
    Passage,
    SourceFilter,
    SourceMatch,
)

SUPERSEDES = "supersedes"


@dataclass(frozen=True, slots=True)
class Namespace:
    id: int
    name: str
    created_at: datetime
    changed_at: datetime


def namespace_named(connection: apsw.Connection, name: str) -> Namespace | None:
    row: Any = connection.execute(
        "SELECT id, name, created_at, changed_at FROM namespaces WHERE name = ?", (name,)
    ).fetchone()
    return None if row is None else Namespace(row[0], row[1], from_us(row[2]), from_us(row[3]))


def meta(connection: apsw.Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def source_condition(source: SourceFilter) -> tuple[str, list[Any]]:
    """SQL that is true of a `source` column that the filter selects, and its parameters."""
    match source.match:
        case SourceMatch.PREFIX:
            return "substr(source, 1, length(?)) = ?", [source.pattern, source.pattern]
        case SourceMatch.PATH:
            path = source.pattern + "/"
            return "(source = ? OR substr(source, 1, length(?)) = ?)", [source.pattern, path, path]
        case SourceMatch.SUBSTRING:
            return "instr(source, ?) > 0", [source.pattern]


def _where(namespace_id: int, source: SourceFilter | None, pinned: bool | None) -> tuple[str, list[Any]]:
    conditions, parameters = ["namespace_id = ?"], [namespace_id]
    if source is not None:
        condition, values = source_condition(source)
        conditions.append(condition)
        parameters += values
    if pinned is not None:
        conditions.append("pinned = ?")
        parameters.append(pinned)
    return " AND ".join(conditions), parameters


def memories(connection: apsw.Connection, namespace_id: int, ids: Iterable[int]) -> dict[int, Memory]:
    """The memories of this namespace among `ids`, with their links, by id."""
    rows = connection.execute(
        f"SELECT {MEMORY_COLUMNS} FROM memories WHERE id IN (SELECT value FROM json_each(?)) AND namespace_id = ?",
        (ids_parameter(ids), namespace_id),
    )
    return with_links(connection, {row[0]: memory_of(row) for row in rows})


def with_links(connection: apsw.Connection, found: dict[int, Memory]) -> dict[int, Memory]:
    """The same memories with what their links say: what they supersede, its text, and what superseded them.

    A merged memory supersedes several and has no one previous text.
    """
    ids = ids_parameter(found)
    outgoing: list[Any] = connection.execute(
        "SELECT l.from_id, l.to_id, l.type, l.created_at, m.text FROM links l JOIN memories m ON m.id = l.to_id "
        "WHERE l.from_id IN (SELECT value FROM json_each(?)) ORDER BY l.from_id, l.to_id",
        (ids,),
    ).fetchall()
    for *columns, text in outgoing:
        link = link_of(tuple(columns))
        memory = found[link.from_id]
        only = not memory.links
        found[link.from_id] = replace(memory, links=(*memory.links, link), previous_text=text if only else None)
    incoming: list[Any] = connection.execute(
        "SELECT to_id, from_id FROM links "
        "WHERE to_id IN (SELECT value FROM json_each(?)) AND type = ? ORDER BY from_id",
        (ids, SUPERSEDES),
    ).fetchall()
    for to_id, from_id in incoming:
        found[to_id] = replace(found[to_id], superseded_by=from_id)
    return found


def list_memories(
    connection: apsw.Connection,
    namespace_id: int,
    *,
    source: SourceFilter | None,
    pinned: bool | None,
    offset: int,
    limit: int,
) -> list[Memory]:
    """In the order in which they were stored, archived ones included."""
    where, parameters = _where(namespace_id, source, pinned)
    rows = connection.execute(
        f"SELECT {MEMORY_COLUMNS} FROM memories WHERE {where} ORDER BY id LIMIT ? OFFSET ?",
        (*parameters, limit, offset),
    )
    return list(with_links(connection, {row[0]: memory_of(row) for row in rows}).values())


def count_memories(
    connection: apsw.Connection, namespace_id: int, *, source: SourceFilter | None = None, pinned: bool | None = None
) -> int:
    where, parameters = _where(namespace_id, source, pinned)
    return int(connection.execute(f"SELECT count(*) FROM memories WHERE {where}", parameters).get)


def count_passages(connection: apsw.Connection, namespace_id: int) -> int:
    return int(connection.execute("SELECT count(*) FROM passages WHERE namespace_id = ?", (namespace_id,)).get)


def memory_ids(
    connection: apsw.Connection, namespace_id: int, *, source: SourceFilter | None = None, pinned: bool | None = None
) -> list[int]:
    where, parameters = _where(namespace_id, source, pinned)
    return [row[0] for row in connection.execute(f"SELECT id FROM memories WHERE {where} ORDER BY id", parameters)]


def keyed_memory_id(connection: apsw.Connection, namespace_id: int, source: str, key: str) -> int | None:
    """The living memory that (source, key) names."""
    row = connection.execute(
        "SELECT id FROM memories WHERE namespace_id = ? AND source = ? AND key = ? AND archived = 0",
        (namespace_id, source, key),
    ).fetchone()
    return None if row is None else int(row[0])


def owners_with_metadata(connection: apsw.Connection, namespace_id: int, wanted: JsonObject) -> list[int]:
    """Ids of the memories whose metadata holds every wanted key with an equal JSON value."""
    conditions: list[str] = ["namespace_id = ?"]
    parameters: list[Any] = [namespace_id]
    nested = {key: value for key, value in wanted.items() if isinstance(value, Mapping | list)}
    for key, value in wanted.items():
        # SQL compares nested values as text, which depends on the order of keys: it only finds candidates for them.
        equal = "" if key in nested else "AND e.value IS w.value"
        conditions.append(
            f"EXISTS (SELECT 1 FROM json_each(metadata) e, json_each(?) w WHERE e.key = ? AND e.type = w.type {equal})"
        )
        parameters += [json.dumps([value]), key]
    rows: Any = connection.execute(f"SELECT id, metadata FROM memories WHERE {' AND '.join(conditions)}", parameters)
    return [
        id_
        for id_, metadata in rows
        if not nested or all(same_json(json.loads(metadata)[key], value) for key, value in nested.items())
    ]


@dataclass(frozen=True, slots=True)
class NamespaceView:
    """One state of a namespace, for loading its index."""

    connection: apsw.Connection
    namespace_id: int

    @property
    def change_seq(self) -> int:
        row = self.connection.execute("SELECT change_seq FROM namespaces WHERE id = ?", (self.namespace_id,)).get
        return int(row or 0)

    def attributes(self) -> list[tuple[int, int, int, str, int, int]]:
        """What filters read, a row a passage: id, owner_id, profile, source, occurred_at in microseconds, archived."""
        rows: list[Any] = self.connection.execute(
            "SELECT id, owner_id, profile, source, occurred_at, archived FROM passages WHERE namespace_id = ?",
            (self.namespace_id,),
        ).fetchall()
        return rows

    def passages(self, ids: Iterable[int] | None) -> Iterator[tuple[Passage, FloatVector]]:
        """Passages with their vectors (dim,), in id order; all of them, or those among `ids`."""
        chosen = "" if ids is None else "AND p.id IN (SELECT value FROM json_each(?))"
        parameters: tuple[Any, ...] = (self.namespace_id,) if ids is None else (self.namespace_id, ids_parameter(ids))
        rows = self.connection.execute(
            "SELECT p.id, p.kind, p.owner_id, p.ordinal, p.text, p.profile, p.source, p.occurred_at, p.archived, "
            f"v.vector FROM passages p JOIN vectors v ON v.passage_id = p.id WHERE p.namespace_id = ? {chosen} "
            "ORDER BY p.id",
            parameters,
        )
        for row in rows:
            yield passage_of(row[:-1]), np.frombuffer(row[-1], dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Counts:
    memories: int
    passages: int
    namespaces: int


def counts(connection: apsw.Connection) -> Counts:
    row: Any = connection.execute(
        "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM passages), (SELECT count(*) FROM namespaces)"
    ).fetchone()
    return Counts(*row)
