"""The messages that a model has not analysed for claims yet, and what it gets with them.

System messages are never analysed, and an edited message is queued again by `souvenir.store.graph.mentions`. Each
function takes a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from souvenir.core.timestamps import to_us
from souvenir.core.types import MessageRole
from souvenir.store.graph.claims import MessageRange
from souvenir.store.rows import CHOSEN, first, grouped, ids_parameter, select
from souvenir.store.sql import Connection, SqlValue

MAX_MESSAGES = 400
"""Messages of one session fetched at once, before they are cut to the size of a model call."""


class Undescribed(NamedTuple):
    """A message that a model has not analysed yet."""

    id: int
    position: int
    role: MessageRole
    speaker: str | None
    content: str
    at: datetime


_COLUMNS = (
    "m.id, m.position, m.role, coalesce(m.speaker, CASE m.role WHEN 'user' THEN u.name END), m.content, m.created_at"
)
_WAITS = (
    "m.role <> 'system' AND NOT EXISTS (SELECT 1 FROM described d WHERE d.message_id = m.id) "
    "AND NOT EXISTS (SELECT 1 FROM unread r WHERE r.kind = 'message' AND r.owner_id = m.id)"
)


def following_session(
    connection: Connection,
    namespace_id: int,
    *,
    after: tuple[int, int],
    quiet_since: datetime | None,
    only: str | None = None,
) -> int | None:
    """Return the first session with an undescribed message after this place whose mentions are extracted.

    :param after: A session's row and a position in it.
    :param quiet_since: Of open sessions, only those without a message since then.
    :param only: The name of the only session; `quiet_since` does not apply to it.
    """
    query = (
        "SELECT s.id FROM sessions s WHERE s.namespace_id = ?1 AND s.id >= ?2 "
        "AND (CAST(?5 AS TEXT) IS NULL OR s.name = ?5) AND (CAST(?5 AS TEXT) IS NOT NULL OR s.ended_at IS NOT NULL "
        "OR s.last_message_at <= CAST(?4 AS BIGINT)) AND EXISTS ("
        f"SELECT 1 FROM messages m WHERE m.session_id = s.id AND (s.id > ?2 OR m.position > ?3) AND {_WAITS}) "
        "ORDER BY s.id LIMIT 1"
    )
    return first(
        connection, int, query, (namespace_id, *after, None if quiet_since is None else to_us(quiet_since), only)
    )


def waiting_agents(connection: Connection, *, quiet_since: datetime) -> list[str]:
    """Return the agents with undescribed messages in ended or idle sessions: those that have waited longest first."""
    query = (
        "SELECT n.name FROM agents a JOIN namespaces n ON n.id = a.namespace_id "
        "JOIN sessions s ON s.namespace_id = n.id WHERE (s.ended_at IS NOT NULL OR s.last_message_at <= ?) "
        f"AND EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id AND {_WAITS}) "
        "AND n.id NOT IN (SELECT owner_id FROM removals WHERE kind = 'namespace') "
        "GROUP BY n.name ORDER BY min(s.last_message_at), n.name"
    )
    return list(select(connection, str, query, (to_us(quiet_since),)))


def following_messages(connection: Connection, session_id: int, *, after_position: int) -> list[Undescribed]:
    """Return the undescribed messages of a session after this position, in order."""
    waiting = f"m.session_id = ? AND m.position > ? AND {_WAITS} ORDER BY m.position LIMIT ?"
    return _messages(connection, waiting, session_id, after_position, MAX_MESSAGES)


def before(connection: Connection, session_id: int, position: int, *, limit: int) -> list[Undescribed]:
    """Return the last messages of a session before this position, in order, including described ones."""
    earlier = "m.session_id = ? AND m.position < ? AND m.role <> 'system' ORDER BY m.position DESC LIMIT ?"
    return _messages(connection, earlier, session_id, position, limit)[::-1]


def still_undescribed(connection: Connection, namespace_id: int, message_ids: Iterable[int]) -> list[Undescribed]:
    """Return those of these messages that still exist and are undescribed, with their mentions extracted."""
    chosen = f"m.namespace_id = ? AND m.id {CHOSEN} AND {_WAITS} ORDER BY m.id"
    return _messages(connection, chosen, namespace_id, ids_parameter(message_ids))


def has_queued_messages(connection: Connection, namespace_id: int) -> bool:
    """Return whether messages are still queued for the extraction of mentions."""
    query = "SELECT EXISTS (SELECT 1 FROM unread WHERE namespace_id = ? AND kind = 'message')"
    return bool(connection.execute(query, (namespace_id,)).get)


def names_in(connection: Connection, session_id: int) -> list[tuple[str, str]]:
    """Return key and form of each concept mentioned in a session, the most mentioned first."""
    query = (
        "SELECT c.key, n.form FROM messages m JOIN mentions n ON n.kind = 'message' AND n.owner_id = m.id "
        "JOIN concepts c ON c.id = n.concept_id WHERE m.session_id = ? GROUP BY c.key, n.form "
        "ORDER BY count(*) DESC, c.key, n.form"
    )
    return list(select(connection, tuple[str, str], query, (session_id,)))


def keys_by_message(connection: Connection, message_ids: Iterable[int]) -> dict[int, list[str]]:
    """Return the keys of the concepts that each of these messages mentions."""
    mentioned = "mentions n JOIN concepts c ON c.id = n.concept_id WHERE n.kind = 'message'"
    query = f"SELECT n.owner_id, c.key FROM {mentioned} AND n.owner_id {CHOSEN}"
    return grouped(select(connection, tuple[int, str], query, (ids_parameter(message_ids),)))


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


def mark(connection: Connection, namespace_id: int, message_ids: Iterable[int], job_id: str) -> None:
    """Mark messages as described."""
    connection.executemany(
        "INSERT INTO described (message_id, namespace_id, job_id) VALUES (?, ?, ?) "
        "ON CONFLICT (message_id) DO UPDATE SET namespace_id = excluded.namespace_id, job_id = excluded.job_id",
        [(id_, namespace_id, job_id) for id_ in message_ids],
    )


def unmark(connection: Connection, namespace_id: int, job_id: str) -> int:
    """Queue the messages that a job described again; return how many there are."""
    connection.execute("DELETE FROM described WHERE job_id = ? AND namespace_id = ?", (job_id, namespace_id))
    return connection.changes()


def _messages(connection: Connection, rest: str, *parameters: SqlValue) -> list[Undescribed]:
    query = f"SELECT {_COLUMNS} FROM messages m LEFT JOIN users u ON u.id = m.user_id WHERE {rest}"
    return list(select(connection, Undescribed, query, parameters))
