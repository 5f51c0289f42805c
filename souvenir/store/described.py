"""Every statement about which messages a model has read for what it claims of concepts, and which it may read next.

Those of the system are never read. A message that was edited waits again: `souvenir.store.mentions` sees to it. Each
function takes a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

import apsw

from souvenir.moments import from_us, to_us
from souvenir.store.rows import ids_parameter
from souvenir.types import MessageRole

MAX_MESSAGES = 400
"""Of one session that are looked at together, before they are cut to what a model reads at once."""


class Undescribed(NamedTuple):
    """A message as it stands."""

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
    connection: apsw.Connection,
    namespace_id: int,
    *,
    after: tuple[int, int],
    quiet_since: datetime | None,
    only: str | None = None,
) -> int | None:
    """The first session with a message behind this place that waits to be described, and whose mentions are found.

    :param after: A session's row and a position in it.
    :param quiet_since: Of sessions that have not ended, only those without a message since then.
    :param only: The one session of that name; its quiet does not matter.
    """
    row: Any = connection.execute(
        "SELECT s.id FROM sessions s WHERE s.namespace_id = ?1 AND s.id >= ?2 AND (?5 IS NULL OR s.name = ?5) "
        "AND (?5 IS NOT NULL OR s.ended_at IS NOT NULL OR s.last_message_at <= ?4) AND EXISTS ("
        f"SELECT 1 FROM messages m WHERE m.session_id = s.id AND (s.id > ?2 OR m.position > ?3) AND {_WAITS}) "
        "ORDER BY s.id LIMIT 1",
        (namespace_id, *after, None if quiet_since is None else to_us(quiet_since), only),
    ).fetchone()
    return None if row is None else int(row[0])


def following_messages(connection: apsw.Connection, session_id: int, *, after_position: int) -> list[Undescribed]:
    """Those of a session that wait behind this position, in their order."""
    return _messages(
        connection,
        f"m.session_id = ? AND m.position > ? AND {_WAITS} ORDER BY m.position LIMIT ?",
        session_id,
        after_position,
        MAX_MESSAGES,
    )


def before(connection: apsw.Connection, session_id: int, position: int, *, limit: int) -> list[Undescribed]:
    """The last messages of a session before this position, in their order, also those that were described."""
    found = _messages(
        connection,
        "m.session_id = ? AND m.position < ? AND m.role <> 'system' ORDER BY m.position DESC LIMIT ?",
        session_id,
        position,
        limit,
    )
    return found[::-1]


def as_they_are(connection: apsw.Connection, namespace_id: int, message_ids: Iterable[int]) -> list[Undescribed]:
    """Those of these messages that are still there and wait, their mentions being found."""
    return _messages(
        connection,
        f"m.namespace_id = ? AND m.id IN (SELECT value FROM json_each(?)) AND {_WAITS} ORDER BY m.id",
        namespace_id,
        ids_parameter(message_ids),
    )


def waiting_to_be_read(connection: apsw.Connection, namespace_id: int) -> bool:
    """Whether mentions of messages are still to be found."""
    query = "SELECT EXISTS (SELECT 1 FROM unread WHERE namespace_id = ? AND kind = 'message')"
    return bool(connection.execute(query, (namespace_id,)).get)


def names_in(connection: apsw.Connection, session_id: int) -> list[tuple[str, str]]:
    """Key and form of each concept that the messages of a session mention, the most mentioned first."""
    rows: Any = connection.execute(
        "SELECT c.key, n.form FROM messages m JOIN mentions n ON n.kind = 'message' AND n.owner_id = m.id "
        "JOIN concepts c ON c.id = n.concept_id WHERE m.session_id = ? GROUP BY c.key, n.form "
        "ORDER BY count(*) DESC, c.key, n.form",
        (session_id,),
    )
    return [(key, form) for key, form in rows]


def keys_by_message(connection: apsw.Connection, message_ids: Iterable[int]) -> dict[int, set[str]]:
    """What each of these messages mentions, by its key."""
    rows: Any = connection.execute(
        "SELECT n.owner_id, c.key FROM mentions n JOIN concepts c ON c.id = n.concept_id "
        "WHERE n.kind = 'message' AND n.owner_id IN (SELECT value FROM json_each(?))",
        (ids_parameter(message_ids),),
    )
    found: dict[int, set[str]] = {}
    for message_id, key in rows:
        found.setdefault(message_id, set()).add(key)
    return found


def mark(connection: apsw.Connection, namespace_id: int, message_ids: Iterable[int], job_id: str) -> None:
    """Let these wait no more."""
    connection.executemany(
        "INSERT OR REPLACE INTO described (message_id, namespace_id, job_id) VALUES (?, ?, ?)",
        [(id_, namespace_id, job_id) for id_ in message_ids],
    )


def unmark(connection: apsw.Connection, namespace_id: int, job_id: str) -> int:
    """Let the messages that a job read wait again; how many those are."""
    connection.execute("DELETE FROM described WHERE job_id = ? AND namespace_id = ?", (job_id, namespace_id))
    return connection.changes()


def _messages(connection: apsw.Connection, rest: str, *parameters: Any) -> list[Undescribed]:
    rows: Any = connection.execute(
        f"SELECT {_COLUMNS} FROM messages m LEFT JOIN users u ON u.id = m.user_id WHERE {rest}", parameters
    )
    return [
        Undescribed(id_, position, MessageRole(role), speaker, content, from_us(at))
        for id_, position, role, speaker, content, at in rows
    ]
