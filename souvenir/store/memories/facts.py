"""Tables of facts and of memories that wait to be split into facts.

Passages of facts are written by `souvenir.store.passages`. Each function takes a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from souvenir.core.timestamps import to_us
from souvenir.core.types import Fact, FactsBy, SourceFilter
from souvenir.store.namespaces import Namespace, source_condition, visible_condition
from souvenir.store.rows import ids_parameter, readable, select
from souvenir.store.sql import Connection

SPLIT = "split"
"""The action, in the history, of a later split of a memory into facts; it does not change the text."""


def insert(
    connection: Connection, namespace_id: int, memory_id: int, ordinal: int, text: str, by: FactsBy, now: datetime
) -> Fact:
    fact_id = connection.execute(
        "INSERT INTO facts (namespace_id, memory_id, ordinal, text, made_by, created_at) VALUES (?, ?, ?, ?, ?, ?) "
        "RETURNING id",
        (namespace_id, memory_id, ordinal, text, by.value, to_us(now)),
    ).get
    return Fact(int(fact_id), text, by, now)


def place(connection: Connection, fact_id: int, ordinal: int) -> None:
    """Change the position of a fact among those of its memory."""
    connection.execute("UPDATE facts SET ordinal = ? WHERE id = ?", (ordinal, fact_id))


def delete(connection: Connection, fact_ids: Iterable[int]) -> None:
    connection.execute("DELETE FROM facts WHERE id IN (SELECT value FROM json_each(?))", (ids_parameter(fact_ids),))


# --- the split queue -------------------------------------------------------------------------------------------------


def enqueue(connection: Connection, namespace_id: int, memory_id: int, now: datetime) -> None:
    """Queue a memory for splitting."""
    connection.execute(
        "INSERT INTO unsplit (memory_id, namespace_id, since) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (memory_id, namespace_id, to_us(now)),
    )


def dequeue(connection: Connection, memory_ids: Iterable[int]) -> None:
    connection.execute(
        "DELETE FROM unsplit WHERE memory_id IN (SELECT value FROM json_each(?))", (ids_parameter(memory_ids),)
    )


# --- pages -----------------------------------------------------------------------------------------------------------


def page(
    connection: Connection, namespace: Namespace, *, memory_id: int | None, offset: int, limit: int
) -> tuple[list[tuple[int, Fact]], int]:
    """Return facts with the ids of their memories, by memory and position, and the total."""
    visible, parameters = visible_condition(namespace.sources, "m.source")
    where = f"f.namespace_id = ? AND {visible}"
    parameters = [namespace.id, *parameters]
    if memory_id is not None:
        where += " AND f.memory_id = ?"
        parameters.append(memory_id)
    chosen = f"FROM facts f JOIN memories m ON m.id = f.memory_id WHERE {where}"
    total = int(connection.execute(f"SELECT count(*) {chosen}", parameters).get)
    rows = readable(
        connection,
        tuple[int, int, Fact],
        f"SELECT f.id, f.memory_id, f.id, f.text, f.made_by, f.created_at {chosen} "
        "ORDER BY f.memory_id, f.ordinal LIMIT ? OFFSET ?",
        (*parameters, limit, offset),
        table="facts",
    )
    return [(of_memory, fact) for _, of_memory, fact in rows], total


# --- reads of the split queue ----------------------------------------------------------------------------------------


_WAITS = "EXISTS (SELECT 1 FROM unsplit u WHERE u.memory_id = memories.id)"
_HAS_NONE = "(archived = 0 AND NOT EXISTS (SELECT 1 FROM facts f WHERE f.memory_id = memories.id))"


def next_to_split(
    connection: Connection,
    namespace: Namespace,
    *,
    source: SourceFilter | None,
    waiting_only: bool,
    after_id: int,
    limit: int,
) -> list[int]:
    """Return the next queued memories in id order; without `waiting_only` also those without facts."""
    visible, values = visible_condition(namespace.sources)
    conditions, parameters = [visible, _WAITS if waiting_only else f"({_WAITS} OR {_HAS_NONE})"], [*values]
    if source is not None:
        condition, values = source_condition(source)
        conditions.append(condition)
        parameters += values
    return list(
        select(
            connection,
            int,
            f"SELECT id FROM memories WHERE namespace_id = ? AND id > ? AND {' AND '.join(conditions)} "
            "ORDER BY id LIMIT ?",
            (namespace.id, after_id, *parameters, limit),
        )
    )


def is_queued(connection: Connection, memory_id: int) -> bool:
    return connection.execute("SELECT 1 FROM unsplit WHERE memory_id = ?", (memory_id,)).fetchone() is not None


def namespaces_to_split(connection: Connection) -> list[str]:
    """Return the namespaces that have queued memories."""
    return list(
        select(
            connection,
            str,
            "SELECT name FROM namespaces n "
            "WHERE EXISTS (SELECT 1 FROM unsplit u WHERE u.namespace_id = n.id) ORDER BY id",
        )
    )
