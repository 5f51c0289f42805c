"""The rows of users and sessions: whom an agent talks with, and which messages are one conversation.

Each function takes a connection inside a transaction. A session is called by its `name`, which is the id that callers
give or get; `id` is the row's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import apsw

from souvenir.errors import SessionEnded
from souvenir.moments import from_us, to_us
from souvenir.store.rows import to_json
from souvenir.types import JsonObject


@dataclass(frozen=True, slots=True)
class User:
    """Known since `created_at`; `messages` counts those that are of them now."""

    id: int
    name: str
    created_at: datetime
    messages: int


@dataclass(frozen=True, slots=True)
class Session:
    """`implicit` if it was made because a caller named none; `messages` counts those that it has now."""

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
    """Of one user, and those only that have ended or have not; None lets all pass."""

    user: str | None = None
    open: bool | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message comes to stand, and the user whom it is of: one that it names, else whom its session is with."""

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


def ensure_user(connection: apsw.Connection, namespace_id: int, name: str, at: datetime) -> int:
    """The row of the user of that name, who is made if they are new, and was known then already."""
    row: Any = connection.execute(
        "SELECT id, created_at FROM users WHERE namespace_id = ? AND name = ?", (namespace_id, name)
    ).fetchone()
    if row is None:
        connection.execute(
            "INSERT INTO users (namespace_id, name, created_at) VALUES (?, ?, ?)", (namespace_id, name, to_us(at))
        )
        return connection.last_insert_rowid()
    if to_us(at) < row[1]:
        connection.execute("UPDATE users SET created_at = ? WHERE id = ?", (to_us(at), row[0]))
    return int(row[0])


def user_row(connection: apsw.Connection, namespace_id: int, name: str) -> int | None:
    row: Any = connection.execute(
        "SELECT id FROM users WHERE namespace_id = ? AND name = ?", (namespace_id, name)
    ).fetchone()
    return None if row is None else int(row[0])


def users(
    connection: apsw.Connection, namespace_id: int, *, offset: int = 0, limit: int = -1
) -> tuple[list[User], int]:
    """In the order of their names, and how many there are; a limit below zero is none."""
    rows: list[Any] = connection.execute(
        "SELECT id, name, created_at, (SELECT count(*) FROM messages m WHERE m.user_id = users.id) FROM users "
        "WHERE namespace_id = ? ORDER BY name LIMIT ? OFFSET ?",
        (namespace_id, limit, offset),
    ).fetchall()
    total = connection.execute("SELECT count(*) FROM users WHERE namespace_id = ?", (namespace_id,)).get
    return [User(id_, name, from_us(created_at), messages) for id_, name, created_at, messages in rows], int(total)


def find(connection: apsw.Connection, namespace_id: int, name: str) -> Session | None:
    row: Any = connection.execute(f"{_SELECT} WHERE s.namespace_id = ? AND s.name = ?", (namespace_id, name)).fetchone()
    return None if row is None else _session_of(row)


def row_of(connection: apsw.Connection, namespace_id: int, name: str) -> int | None:
    row: Any = connection.execute(
        "SELECT id FROM sessions WHERE namespace_id = ? AND name = ?", (namespace_id, name)
    ).fetchone()
    return None if row is None else int(row[0])


def open_row(connection: apsw.Connection, namespace_id: int, name: str) -> int | None:
    """The row of a session that takes messages; None if there is no session of that name.

    :raises SessionEnded: If it takes none any more.
    """
    row: Any = connection.execute(
        "SELECT id, ended_at FROM sessions WHERE namespace_id = ? AND name = ?", (namespace_id, name)
    ).fetchone()
    if row is not None and row[1] is not None:
        raise SessionEnded(name)
    return None if row is None else int(row[0])


def page(
    connection: apsw.Connection, namespace_id: int, chosen: SessionFilter, *, offset: int, limit: int
) -> tuple[list[Session], int]:
    """Newest first, and how many there are."""
    conditions, parameters = ["s.namespace_id = ?"], list[Any]([namespace_id])
    if chosen.user is not None:
        conditions.append("s.user_id = (SELECT id FROM users WHERE namespace_id = s.namespace_id AND name = ?)")
        parameters.append(chosen.user)
    if chosen.open is not None:
        conditions.append(f"s.ended_at IS {'' if chosen.open else 'NOT '}NULL")
    where = " AND ".join(conditions)
    rows: list[Any] = connection.execute(
        f"{_SELECT} WHERE {where} ORDER BY s.started_at DESC, s.id DESC LIMIT ? OFFSET ?", (*parameters, limit, offset)
    ).fetchall()
    total = connection.execute(f"SELECT count(*) FROM sessions s WHERE {where}", parameters).get
    return [_session_of(row) for row in rows], int(total)


def every(connection: apsw.Connection, namespace_id: int) -> Iterator[Session]:
    """All of them, oldest first, read as they are asked for."""
    rows = connection.execute(f"{_SELECT} WHERE s.namespace_id = ? ORDER BY s.started_at, s.id", (namespace_id,))
    return map(_session_of, rows)


def insert(
    connection: apsw.Connection,
    namespace_id: int,
    *,
    name: str,
    user_row: int | None,
    title: str | None,
    metadata: JsonObject | None,
    implicit: bool,
    started_at: datetime,
) -> int:
    """The row of a new session."""
    connection.execute(
        "INSERT INTO sessions (namespace_id, name, user_id, title, metadata, implicit, started_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
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
    return connection.last_insert_rowid()


def running_row(
    connection: apsw.Connection, namespace_id: int, user_row: int | None, at: datetime, idle: timedelta
) -> int | None:
    """The newest session of that user that nobody named, nobody ended, and whose last message is near that time."""
    row: Any = connection.execute(
        "SELECT id FROM sessions WHERE namespace_id = ? AND user_id IS ? AND implicit = 1 AND ended_at IS NULL "
        "AND last_message_at BETWEEN ? AND ? ORDER BY last_message_at DESC LIMIT 1",
        (namespace_id, user_row, to_us(at) - _us(idle), to_us(at) + _us(idle)),
    ).fetchone()
    return None if row is None else int(row[0])


def take_place(
    connection: apsw.Connection, session_row: int, at: datetime, user_row: int | None, user: str | None
) -> Place:
    """The next position in a session, for a message of that time; who the session is with is known from then on."""
    at_us = to_us(at)
    row: Any = connection.execute(
        "UPDATE sessions SET next_position = next_position + 1, started_at = min(started_at, ?), "
        "last_message_at = max(coalesce(last_message_at, ?), ?), user_id = coalesce(user_id, ?) WHERE id = ? "
        "RETURNING name, next_position - 1, user_id, (SELECT u.name FROM users u WHERE u.id = sessions.user_id)",
        (at_us, at_us, at_us, user_row, session_row),
    ).fetchone()
    session_id, position, with_row, with_name = row
    if user_row is None:
        user_row, user = with_row, with_name
    return Place(session_row, session_id, position, user_row, user)


def end(connection: apsw.Connection, session_row: int, now: datetime) -> None:
    """One that has ended keeps its end."""
    connection.execute("UPDATE sessions SET ended_at = coalesce(ended_at, ?) WHERE id = ?", (to_us(now), session_row))


def change(connection: apsw.Connection, session_row: int, *, title: str | None, metadata: JsonObject | None) -> None:
    """Replace what is given."""
    connection.execute(
        "UPDATE sessions SET title = coalesce(?, title), metadata = coalesce(?, metadata) WHERE id = ?",
        (title, None if metadata is None else to_json(dict(metadata)), session_row),
    )


def _session_of(row: tuple[Any, ...]) -> Session:
    id_, name, user, title, metadata, implicit, started_at, last_message_at, ended_at, messages = row
    return Session(
        id=id_,
        name=name,
        user=user,
        title=title,
        metadata=None if metadata is None else json.loads(metadata),
        implicit=bool(implicit),
        started_at=from_us(started_at),
        last_message_at=None if last_message_at is None else from_us(last_message_at),
        ended_at=None if ended_at is None else from_us(ended_at),
        messages=messages,
    )


def _us(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)
