"""Rows of feedback: judgements of search results, and reports of memories that searches missed.

Every judgement is a row; of one caller's judgements on a memory, the latest counts, and the latest `KEPT` are kept, as
of reports.
Each function takes a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from souvenir.core.timestamps import to_us
from souvenir.store.rows import ids_parameter, readable, select
from souvenir.store.sql import Connection

KEPT = 50
"""Judgements and reports kept per caller and memory; a search reads all judgements of the memories that it found."""

PRIOR = 2
"""Votes for neither side that `balances` adds: with it, one vote is a third of full agreement and ten are 5 in 6."""


@dataclass(frozen=True, slots=True)
class FeedbackEntry:
    """One judgement, without its author."""

    id: int
    created_at: datetime
    memory_id: int
    query: str
    useful: bool
    search_id: str


@dataclass(frozen=True, slots=True)
class NewFeedback:
    memory_id: int
    useful: bool
    query: str
    search_id: str


def insert(connection: Connection, namespace_id: int, new: NewFeedback, actor: str, now: datetime) -> None:
    """Store a judgement, and delete the oldest of the same caller on the same memory if there are too many."""
    connection.execute(
        "INSERT INTO feedback (namespace_id, memory_id, useful, query, search_id, actor, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (namespace_id, new.memory_id, new.useful, new.query, new.search_id, actor, to_us(now)),
    )
    connection.execute(
        "DELETE FROM feedback WHERE id IN (SELECT id FROM feedback WHERE memory_id = ? AND actor = ? "
        "ORDER BY id DESC LIMIT 9223372036854775807 OFFSET ?)",
        (new.memory_id, actor, KEPT),
    )


def of_memory(connection: Connection, memory_id: int, *, limit: int) -> list[FeedbackEntry]:
    """Return the latest judgements of a memory, newest first."""
    return list(
        readable(
            connection,
            FeedbackEntry,
            "SELECT id, created_at, memory_id, query, useful, search_id FROM feedback WHERE memory_id = ? "
            "ORDER BY id DESC LIMIT ?",
            (memory_id, limit),
            table="feedback",
        )
    )


def delete(connection: Connection, namespace_id: int, feedback_id: int) -> int | None:
    """Delete a judgement; return the id of its memory, or None if the namespace has no such judgement."""
    found: int | None = connection.execute(
        "DELETE FROM feedback WHERE id = ? AND namespace_id = ? RETURNING memory_id", (feedback_id, namespace_id)
    ).get
    return found


def latest_votes(by: str, condition: str) -> str:
    """Return a query for the latest of the judgements that have these columns in common."""
    return (
        "SELECT query, memory_id, useful, created_at FROM (SELECT query, memory_id, useful, created_at, "
        f"row_number() OVER (PARTITION BY {by} ORDER BY id DESC) AS age FROM feedback WHERE {condition}) AS judgements "
        "WHERE age = 1"
    )


def balances(connection: Connection, memory_ids: Sequence[int]) -> dict[int, float]:
    """Return ``(useful - not useful) / (votes + PRIOR)``, in (-1, 1), of those memories that have feedback.

    A caller has one vote on a memory: the latest judgement.
    """
    votes = latest_votes("memory_id, actor", "memory_id IN (SELECT value FROM json_each(?))")
    rows = select(
        connection,
        tuple[int, int, int],
        f"SELECT memory_id, sum(useful), count(*) FROM ({votes}) AS votes GROUP BY memory_id",
        (ids_parameter(memory_ids),),
    )
    return {memory_id: (2 * useful - votes) / (votes + PRIOR) for memory_id, useful, votes in rows}


# --- missed memories -----------------------------------------------------------------------------------------------


def insert_missed(
    connection: Connection, namespace_id: int, memory_id: int, context: str | None, actor: str, now: datetime
) -> int:
    """Store a report, and delete the oldest of the same caller on the same memory if there are too many.

    :return: The number of reports of the memory.
    """
    connection.execute(
        "INSERT INTO missed_memories (namespace_id, memory_id, context, actor, created_at) VALUES (?, ?, ?, ?, ?)",
        (namespace_id, memory_id, context, actor, to_us(now)),
    )
    connection.execute(
        "DELETE FROM missed_memories WHERE id IN (SELECT id FROM missed_memories WHERE memory_id = ? AND actor = ? "
        "ORDER BY id DESC LIMIT 9223372036854775807 OFFSET ?)",
        (memory_id, actor, KEPT),
    )
    return int(connection.execute("SELECT count(*) FROM missed_memories WHERE memory_id = ?", (memory_id,)).get)


def identical(connection: Connection, namespace_id: int, source: str, text: str, *, first_id: int = 0) -> int | None:
    """Return the first active memory of a source with exactly this text, from an id on; reads all of the source."""
    found: int | None = connection.execute(
        "SELECT id FROM memories WHERE namespace_id = ? AND source = ? AND id >= ? AND text = ? AND archived = 0 "
        "ORDER BY id LIMIT 1",
        (namespace_id, source, first_id, text),
    ).get
    return found


def next_id(connection: Connection) -> int:
    """Return an id that no memory has yet, and below which none will be added."""
    return 1 + int(connection.execute("SELECT coalesce(max(id), 0) FROM memories").get)
