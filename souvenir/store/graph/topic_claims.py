"""Names and summaries that a language model gave to topics, in jobs that can be undone.

Each is supported by a message of its topic, and was written from all messages between two positions of a session, so
the schema deletes it when any of these is edited or deleted. It is shown while its message belongs to the topic. Each
function takes a connection inside a transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from souvenir.core.timestamps import to_us
from souvenir.core.types import TopicClaimKind
from souvenir.store.rows import CHOSEN, ids_parameter, readable, select
from souvenir.store.sql import Connection


class MessageRange(NamedTuple):
    """The messages of a session between two positions, both included."""

    session_id: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class TopicClaim:
    """:param message: The public id of the message that supports it."""

    id: int
    topic_id: int
    kind: TopicClaimKind
    text: str
    message: str
    created_at: datetime


def insert(
    connection: Connection,
    namespace_id: int,
    topic_id: int,
    kind: TopicClaimKind,
    text: str,
    *,
    message_id: int,
    written_from: MessageRange,
    job_id: str,
    now: datetime,
) -> bool:
    """Insert a claim, unless its topic no longer exists; return whether it does."""
    connection.execute(
        "INSERT INTO topic_claims (namespace_id, topic_id, kind, text, message_id, session_id, first_position, "
        "last_position, job_id, created_at) SELECT namespace_id, id, ?, ?, ?, ?, ?, ?, ?, ? FROM topics "
        "WHERE id = ? AND namespace_id = ?",
        (kind.value, text, message_id, *written_from, job_id, to_us(now), topic_id, namespace_id),
    )
    return connection.changes() > 0


def current(
    connection: Connection, topic_ids: Iterable[int], hidden: Iterable[int]
) -> dict[int, dict[TopicClaimKind, str]]:
    """Return the latest claims of topics by kind.

    :param hidden: Messages; claims that were written from one of them are left out.
    """
    query = (
        "SELECT c.topic_id, c.kind, c.text FROM topic_claims c JOIN messages q ON q.id = c.message_id "
        f"WHERE c.topic_id {CHOSEN} AND EXISTS (SELECT 1 FROM topic_segments s WHERE s.topic_id = c.topic_id "
        "AND s.session_id = q.session_id AND q.position BETWEEN s.first_position AND s.last_position) "
        "AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.session_id = c.session_id "
        f"AND m.position BETWEEN c.first_position AND c.last_position AND m.id {CHOSEN}) ORDER BY c.id"
    )
    rows = select(connection, tuple[int, TopicClaimKind, str], query, (ids_parameter(topic_ids), ids_parameter(hidden)))
    found: defaultdict[int, dict[TopicClaimKind, str]] = defaultdict(dict)
    for topic_id, kind, text in rows:
        found[topic_id][kind] = text
    return found


def of_job(connection: Connection, namespace_id: int, job_id: str) -> list[TopicClaim]:
    """Return a job's remaining claims, oldest first."""
    query = (
        "SELECT c.id, c.topic_id, c.kind, c.text, m.uid, c.created_at FROM topic_claims c "
        "JOIN messages m ON m.id = c.message_id WHERE c.namespace_id = ? AND c.job_id = ? ORDER BY c.id"
    )
    rows = readable(connection, TopicClaim, query, (namespace_id, job_id), table="topic_claims")
    return list(rows)


def delete_of_job(connection: Connection, namespace_id: int, job_id: str) -> int:
    """Delete the claims of a job; return how many there were."""
    connection.execute("DELETE FROM topic_claims WHERE namespace_id = ? AND job_id = ?", (namespace_id, job_id))
    return connection.changes()


def contents(connection: Connection, place: MessageRange) -> list[str]:
    """Return the texts of messages, in order."""
    query = "SELECT content FROM messages WHERE session_id = ? AND position BETWEEN ? AND ? ORDER BY position"
    return list(select(connection, str, query, place))


def topics_between(connection: Connection, place: MessageRange) -> list[tuple[int, int, int]]:
    """Return the segments that contain some of these messages: topic, position of the first and the last message."""
    query = (
        "SELECT topic_id, first_position, last_position FROM topic_segments WHERE session_id = ? "
        "AND last_position >= ? AND first_position <= ? ORDER BY first_position"
    )
    return list(select(connection, tuple[int, int, int], query, place))


def is_unassigned(connection: Connection, session_id: int) -> bool:
    """Return whether a session waits for its messages to be assigned to topics."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM unsorted WHERE session_id = ?)", (session_id,)).get)
