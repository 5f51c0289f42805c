"""Rows of users and sessions, and the newest messages of a session for working memory.

Each function takes a connection inside a transaction. A session is identified by its public `name`; `id` is the row
id.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from souvenir.core.errors import SessionEnded, SessionNotFound
from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us
from souvenir.core.types import JsonObject, MessageRole
from souvenir.store.rows import first, only, readable
from souvenir.store.sql import NO_LIMIT, Connection, SqlValue


@dataclass(frozen=True, slots=True)
class User:
    """`created_at` is the earliest time the user was seen; `messages` counts their current messages."""

    id: int
    name: str
    created_at: datetime
    messages: int


@dataclass(frozen=True, slots=True)
class Session:
    """`implicit` if it was created for a message without a session; `messages` counts its current messages."""

    id: int
    name: str
    user: str | None
    title: str | None
    metadata: JsonObject | None
    implicit: bool
    started_at: datetime
    last_message_at: datetime | None
    ended_at: datetime | None
    messages: int


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Filters by user, and by whether the session is still open; None does not filter."""

    user: str | None = None
    open: bool | None = None


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """The place of a new message, and its user: the one that it names, else the session's."""

    session_row: int
    session_id: str
    position: int
    user_row: int | None
    user: str | None


_SELECT = (
    "SELECT s.id, s.name, u.name, s.title, s.metadata, s.implicit, s.started_at, s.last_message_at, s.ended_at, "
    "(SELECT count(*) FROM messages m WHERE m.session_id = s.id) "
    "FROM sessions s LEFT JOIN users u ON u.id = s.user_id"
)


def ensure_user(connection: Connection, namespace_id: int, name: str, at: datetime) -> int:
    """Return the row of the user of that name; create it if new, and backdate `created_at` to an earlier time."""
    known = first(
        connection,
        tuple[int, datetime],
        "SELECT id, created_at FROM users WHERE namespace_id = ? AND name = ?",
        (namespace_id, name),
    )
    if known is None:
        query = "INSERT INTO users (namespace_id, name, created_at) VALUES (?, ?, ?) RETURNING id"
        return only(connection, int, query, (namespace_id, name, to_us(at)))
    id_, known_since = known
    if at < known_since:
        connection.execute("UPDATE users SET created_at = ? WHERE id = ?", (to_us(at), id_))
    return id_


def user_row(connection: Connection, namespace_id: int, name: str) -> int | None:
    return first(connection, int, "SELECT id FROM users WHERE namespace_id = ? AND name = ?", (namespace_id, name))


def users(
    connection: Connection, namespace_id: int, *, offset: int = 0, limit: int = NO_LIMIT
) -> tuple[list[User], int]:
    """Return users by name, and the total; a negative limit means no limit."""
    rows = list(
        readable(
            connection,
            User,
            "SELECT id, name, created_at, (SELECT count(*) FROM messages m WHERE m.user_id = users.id) FROM users "
            "WHERE namespace_id = ? ORDER BY name LIMIT ? OFFSET ?",
            (namespace_id, limit, offset),
            table="users",
        )
    )
    total = connection.execute("SELECT count(*) FROM users WHERE namespace_id = ?", (namespace_id,)).get
    return rows, int(total)


def find(connection: Connection, namespace_id: int, name: str) -> Session | None:
    return first(connection, Session, f"{_SELECT} WHERE s.namespace_id = ? AND s.name = ?", (namespace_id, name))


def require_session(connection: Connection, namespace_id: int, name: str) -> Session:
    """:raises SessionNotFound: If there is no such session."""
    found = find(connection, namespace_id, name)
    if found is None:
        raise SessionNotFound(name)
    return found


def row_of(connection: Connection, namespace_id: int, name: str) -> int | None:
    return first(connection, int, "SELECT id FROM sessions WHERE namespace_id = ? AND name = ?", (namespace_id, name))


def require_row(connection: Connection, namespace_id: int, name: str) -> int:
    """:raises SessionNotFound: If there is no such session."""
    row = row_of(connection, namespace_id, name)
    if row is None:
        raise SessionNotFound(name)
    return row


def open_row(connection: Connection, namespace_id: int, name: str) -> int | None:
    """Return the row of an open session; None if there is no session of that name.

    :raises SessionEnded: If it has ended.
    """
    row = first(
        connection,
        tuple[int, int | None],
        "SELECT id, ended_at FROM sessions WHERE namespace_id = ? AND name = ?",
        (namespace_id, name),
    )
    if row is None:
        return None
    id_, ended_at = row
    if ended_at is not None:
        raise SessionEnded(name)
    return id_


def page(
    connection: Connection, namespace_id: int, chosen: SessionFilter, *, offset: int, limit: int
) -> tuple[list[Session], int]:
    """Return sessions, newest first, and the total."""
    conditions = ["s.namespace_id = ?"]
    parameters: list[SqlValue] = [namespace_id]
    if chosen.user is not None:
        conditions.append("s.user_id = (SELECT id FROM users WHERE namespace_id = s.namespace_id AND name = ?)")
        parameters.append(chosen.user)
    if chosen.open is not None:
        conditions.append(f"s.ended_at IS {'' if chosen.open else 'NOT '}NULL")
    where = " AND ".join(conditions)
    rows = list(
        readable(
            connection,
            Session,
            f"{_SELECT} WHERE {where} ORDER BY s.started_at DESC, s.id DESC LIMIT ? OFFSET ?",
            (*parameters, limit, offset),
            table="sessions",
        )
    )
    total = connection.execute(f"SELECT count(*) FROM sessions s WHERE {where}", parameters).get
    return list(rows), int(total)


def every(connection: Connection, namespace_id: int) -> Iterator[Session]:
    """Yield all sessions lazily, oldest first."""
    query = f"{_SELECT} WHERE s.namespace_id = ? ORDER BY s.started_at, s.id"
    return readable(connection, Session, query, (namespace_id,), table="sessions")


def insert(
    connection: Connection,
    namespace_id: int,
    *,
    name: str,
    user_row: int | None,
    title: str | None,
    metadata: JsonObject | None,
    implicit: bool,
    started_at: datetime,
) -> int:
    """Insert a session and return its row."""
    return only(
        connection,
        int,
        "INSERT INTO sessions (namespace_id, name, user_id, title, metadata, implicit, started_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            namespace_id,
            name,
            user_row,
            title,
            None if metadata is None else to_json(dict(metadata)),
            implicit,
            to_us(started_at),
        ),
    )


def running_row(
    connection: Connection, namespace_id: int, user_row: int | None, at: datetime, idle: timedelta
) -> int | None:
    """Return the newest open implicit session of that user whose last message is within `idle` of that time."""
    return first(
        connection,
        int,
        "SELECT id FROM sessions WHERE namespace_id = ? AND user_id IS NOT DISTINCT FROM ? AND implicit = 1 "
        "AND ended_at IS NULL AND last_message_at BETWEEN ? AND ? ORDER BY last_message_at DESC LIMIT 1",
        (namespace_id, user_row, to_us(at) - _us(idle), to_us(at) + _us(idle)),
    )


def take_place(
    connection: Connection, session_row: int, at: datetime, user_row: int | None, user: str | None
) -> MessagePlace:
    """Reserve the next position in a session for a message; a session without a user gets the message's."""
    at_us = to_us(at)
    session_id, position, with_row, with_name = only(
        connection,
        tuple[str, int, int | None, str | None],
        "UPDATE sessions SET next_position = next_position + 1, started_at = min(started_at, ?), "
        "last_message_at = max(coalesce(last_message_at, ?), ?), user_id = coalesce(user_id, ?) WHERE id = ? "
        "RETURNING name, next_position - 1, user_id, (SELECT u.name FROM users u WHERE u.id = sessions.user_id)",
        (at_us, at_us, at_us, user_row, session_row),
    )
    if user_row is None:
        user_row, user = with_row, with_name
    return MessagePlace(session_row, session_id, position, user_row, user)


def end(connection: Connection, session_row: int, now: datetime) -> None:
    """End a session; one that has already ended keeps its end."""
    connection.execute("UPDATE sessions SET ended_at = coalesce(ended_at, ?) WHERE id = ?", (to_us(now), session_row))


def change(connection: Connection, session_row: int, *, title: str | None, metadata: JsonObject | None) -> None:
    """Replace the given fields."""
    connection.execute(
        "UPDATE sessions SET title = coalesce(?, title), metadata = coalesce(?, metadata) WHERE id = ?",
        (title, None if metadata is None else to_json(dict(metadata)), session_row),
    )


def _us(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


# --- working memory --------------------------------------------------------------------------------------------------


WindowRow = tuple[int, MessageRole, str, int]
"""Position, role, content, and the time in microseconds."""


def window_messages(connection: Connection, session_row: int, limit: int) -> list[WindowRow]:
    """Return the messages in working memory in insertion order; none of a session that has ended."""
    rows = readable(
        connection,
        tuple[int, int, MessageRole, str, int],
        "SELECT m.id, m.position, m.role, m.content, m.created_at FROM sessions s "
        "JOIN messages m ON m.session_id = s.id AND m.position >= s.window_from "
        "WHERE s.id = ? AND s.ended_at IS NULL ORDER BY m.position DESC LIMIT ?",
        (session_row, limit),
        table="messages",
    )
    return [(position, role, content, at_us) for _, position, role, content, at_us in rows][::-1]


def clear_window(connection: Connection, session_row: int) -> None:
    """Empty the working memory: it begins with the next message."""
    connection.execute("UPDATE sessions SET window_from = next_position WHERE id = ?", (session_row,))
