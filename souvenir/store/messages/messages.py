"""Rows of messages, identified by `uid`, now or as they were at a time (`as_of`).

An edit keeps the replaced state as a version; a deleted message is deleted at every time. Passages of messages are
written by `souvenir.store.passages`; a caller that writes a message keeps both consistent. Each function takes a
connection inside a transaction.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from souvenir.core.passages import PassageOwner, SpokenBy, Utterance
from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us
from souvenir.core.types import JsonObject, MessageRole, PassageKind
from souvenir.store.admin.keys import key_id_of
from souvenir.store.messages.sessions import MessagePlace
from souvenir.store.rows import ids_parameter, only, readable, select
from souvenir.store.sql import Connection, SqlValue


@dataclass(frozen=True, slots=True)
class Message:
    """A message. `session_id` and `user` are the public names.

    :param position: Ascends within the session in insertion order, without gaps except for deleted messages.
    :param speaker: The speaker's name, if a caller gave one; it is searched together with the content.
    :param created_at: When it was said.
    :param indexed: Whether it can be found by search yet.
    :param session_row: The row id of the session, as in passages; likewise `user_row`.
    """

    id: int
    uid: str
    agent_uid: str
    session_id: str
    position: int
    role: MessageRole
    content: str
    user: str | None
    speaker: str | None
    metadata: JsonObject | None
    created_at: datetime
    edited_at: datetime | None
    indexed: bool
    session_row: int
    user_row: int | None

    @property
    def spoken_by(self) -> SpokenBy:
        return SpokenBy(self.role, self.speaker)

    @property
    def owner(self) -> PassageOwner:
        """The attributes that its passages copy."""
        turn = Utterance(self.session_row, self.position, self.role, self.user_row, self.speaker)
        return PassageOwner(PassageKind.MESSAGE, self.id, "", self.created_at, archived=False, turn=turn)


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A message to store. `created_at` defaults to now.

    :param session_id: Created if it is new; the default is the active session.
    """

    role: MessageRole
    content: str
    metadata: JsonObject | None = None
    session_id: str | None = None
    user: str | None = None
    speaker: str | None = None
    created_at: datetime | None = None

    @property
    def spoken_by(self) -> SpokenBy:
        return SpokenBy(self.role, self.speaker)


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Filters of messages; None does not filter, and `since` and `until` are inclusive."""

    session_id: str | None = None
    user: str | None = None
    role: MessageRole | None = None
    since: datetime | None = None
    until: datetime | None = None
    exclude_session_id: str | None = None


_JOINED = (
    "FROM messages m CROSS JOIN agents a ON a.namespace_id = m.namespace_id CROSS JOIN sessions s ON "
    "s.id = m.session_id LEFT JOIN users u ON u.id = m.user_id"
)
"""The join order is fixed: messages are selected first. Where another condition is more selective, a plus before
`m.namespace_id` keeps SQLite from scanning the whole namespace instead."""

_SELECT = (
    "SELECT m.id, m.uid, a.uid, s.name, m.position, m.role, m.content, u.name, m.speaker, m.metadata, m.created_at, "
    f"m.edited_at, m.indexed, m.session_id, m.user_id {_JOINED}"
)

_THEN = "v.id IS NOT NULL"
_SELECT_THEN = (
    "SELECT m.id, m.uid, a.uid, s.name, m.position, m.role, coalesce(v.content, m.content), u.name, m.speaker, "
    f"CASE WHEN {_THEN} THEN v.metadata ELSE m.metadata END, m.created_at, "
    f"CASE WHEN {_THEN} THEN v.edited_at ELSE m.edited_at END, m.indexed, m.session_id, m.user_id {_JOINED} "
    "LEFT JOIN message_versions v ON v.id = "
    "(SELECT id FROM message_versions WHERE message_id = m.id AND replaced_at > ? ORDER BY id LIMIT 1)"
)
"""The messages as they were at a time, which is the first parameter."""

_STORED_BY = "coalesce(m.stored_at, m.created_at) <= ?"


def insert(
    connection: Connection,
    namespace_id: int,
    draft: MessageDraft,
    place: MessagePlace,
    *,
    agent_uid: str,
    actor: str,
    created_at: datetime,
    stored_at: datetime,
    indexed: bool,
) -> Message:
    """Store a message; the caller queues it for the graph."""
    uid = str(uuid.uuid4())
    message_id = only(
        connection,
        int,
        "INSERT INTO messages (uid, namespace_id, session_id, position, role, content, user_id, speaker, metadata, "
        "created_at, indexed, key_id, stored_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            uid,
            namespace_id,
            place.session_row,
            place.position,
            draft.role.value,
            draft.content,
            place.user_row,
            draft.speaker,
            None if draft.metadata is None else to_json(dict(draft.metadata)),
            to_us(created_at),
            indexed,
            key_id_of(actor),
            to_us(stored_at),
        ),
    )
    return Message(
        id=message_id,
        uid=uid,
        agent_uid=agent_uid,
        session_id=place.session_id,
        position=place.position,
        role=draft.role,
        content=draft.content,
        user=place.user,
        speaker=draft.speaker,
        metadata=draft.metadata,
        created_at=created_at,
        edited_at=None,
        indexed=indexed,
        session_row=place.session_row,
        user_row=place.user_row,
    )


def update(
    connection: Connection, message_id: int, *, content: str | None, metadata: JsonObject | None, at: datetime
) -> None:
    """Replace the given fields. New content counts as indexed: the caller stores its passages."""
    connection.execute(
        "UPDATE messages SET content = coalesce(?, content), metadata = coalesce(?, metadata), edited_at = ?, "
        "indexed = max(?, indexed) WHERE id = ?",
        (
            content,
            None if metadata is None else to_json(dict(metadata)),
            to_us(at),
            content is not None,
            message_id,
        ),
    )


def keep_version(connection: Connection, message_id: int, *, actor: str, at: datetime) -> None:
    """Keep the present state of a message, which an edit at this time is about to replace."""
    connection.execute(
        "INSERT INTO message_versions (namespace_id, message_id, content, metadata, edited_at, replaced_at, key_id) "
        "SELECT namespace_id, id, content, metadata, edited_at, ?, ? FROM messages WHERE id = ?",
        (to_us(at), key_id_of(actor), message_id),
    )


def mark_indexed(connection: Connection, message_id: int) -> None:
    connection.execute("UPDATE messages SET indexed = 1 WHERE id = ?", (message_id,))


def by_uid(
    connection: Connection, namespace_id: int, uids: Sequence[str], as_of: datetime | None = None
) -> dict[str, Message]:
    """Return the existing ones of these messages."""
    chosen, stored, given = _at(as_of)
    rows = readable(
        connection,
        Message,
        f"{chosen} WHERE m.uid IN (SELECT atom FROM json_each(?)) AND +m.namespace_id = ?{stored}",
        (*given, json.dumps(list(uids)), namespace_id, *given),
        table="messages",
    )
    return {message.uid: message for message in rows}


def exists(connection: Connection, namespace_id: int, uid: str, as_of: datetime | None = None) -> bool:
    _, stored, given = _at(as_of)
    query = f"SELECT EXISTS (SELECT 1 FROM messages m WHERE m.uid = ? AND m.namespace_id = ?{stored})"
    return bool(connection.execute(query, (uid, namespace_id, *given)).get)


def by_id(
    connection: Connection, namespace_id: int, ids: Iterable[int], as_of: datetime | None = None
) -> dict[int, Message]:
    """Return the existing ones of these messages."""
    chosen, stored, given = _at(as_of)
    rows = readable(
        connection,
        Message,
        f"{chosen} WHERE m.id IN (SELECT value FROM json_each(?)) AND +m.namespace_id = ?{stored}",
        (*given, ids_parameter(ids), namespace_id, *given),
        table="messages",
    )
    return {message.id: message for message in rows}


def newest(
    connection: Connection,
    namespace_id: int,
    chosen: MessageFilter,
    *,
    limit: int,
    offset: int = 0,
    as_of: datetime | None = None,
) -> list[Message]:
    where, parameters = condition(namespace_id, chosen)
    select_from, stored, given = _at(as_of)
    return list(
        readable(
            connection,
            Message,
            f"{select_from} WHERE {where}{stored} ORDER BY m.created_at DESC, m.id DESC LIMIT ? OFFSET ?",
            (*given, *parameters, *given, limit, offset),
            table="messages",
        )
    )


def page(
    connection: Connection,
    namespace_id: int,
    chosen: MessageFilter,
    *,
    offset: int,
    limit: int,
    as_of: datetime | None = None,
) -> tuple[list[Message], int]:
    """Return messages, newest first, and the total."""
    found = newest(connection, namespace_id, chosen, limit=limit, offset=offset, as_of=as_of)
    where, parameters = condition(namespace_id, chosen)
    _, stored, given = _at(as_of)
    counted = connection.execute(f"SELECT count(*) FROM messages m WHERE {where}{stored}", (*parameters, *given))
    return found, int(counted.get)


def of_session(
    connection: Connection, session_row: int, *, offset: int, limit: int, as_of: datetime | None = None
) -> tuple[list[Message], int]:
    """Return messages in insertion order, and the total."""
    chosen, stored, given = _at(as_of)
    rows = readable(
        connection,
        Message,
        f"{chosen} WHERE m.session_id = ?{stored} ORDER BY m.position LIMIT ? OFFSET ?",
        (*given, session_row, *given, limit, offset),
        table="messages",
    )
    found = list(rows)
    query = f"SELECT count(*) FROM messages m WHERE m.session_id = ?{stored}"
    return found, int(connection.execute(query, (session_row, *given)).get)


MAX_WITH_WORDS = 50
"""So many messages of a session with the same words are compared."""


def with_words(connection: Connection, session_row: int, words: str) -> list[Message]:
    """Return the messages of a session that contain a text verbatim, newest first."""
    return list(
        readable(
            connection,
            Message,
            f"{_SELECT} WHERE m.session_id = ? AND instr(m.content, ?) > 0 ORDER BY m.position DESC LIMIT ?",
            (session_row, words, MAX_WITH_WORDS),
            table="messages",
        )
    )


def count_before(connection: Connection, message: Message) -> int:
    """Return how many messages of its session precede a message."""
    query = "SELECT count(*) FROM messages WHERE session_id = ? AND position < ?"
    return int(connection.execute(query, (message.session_row, message.position)).get)


def every(connection: Connection, namespace_id: int) -> Iterator[Message]:
    """Yield all messages lazily, oldest first."""
    query = f"{_SELECT} WHERE m.namespace_id = ? ORDER BY m.created_at, m.id"
    return readable(connection, Message, query, (namespace_id,), table="messages")


def around(
    connection: Connection,
    namespace_id: int,
    ids: Iterable[int],
    *,
    before: int,
    after: int,
    as_of: datetime | None = None,
) -> list[Message]:
    """Return these messages and their neighbours by position, without duplicates: session by session, in order."""
    chosen, stored, given = _at(as_of)
    return list(
        readable(
            connection,
            Message,
            f"{chosen} WHERE +m.namespace_id = ? AND m.id IN (SELECT n.id FROM json_each(?) j "
            "JOIN messages h ON h.id = j.value JOIN messages n ON n.session_id = h.session_id "
            f"AND n.position BETWEEN h.position - ? AND h.position + ?){stored} ORDER BY m.session_id, m.position",
            (*given, namespace_id, ids_parameter(ids), before, after, *given),
            table="messages",
        )
    )


class StoredThen(NamedTuple):
    """A message that was stored at a time.

    :param same: Whether its content was not edited since.
    """

    id: int
    session_row: int
    same: bool


def stored_then(connection: Connection, namespace_id: int, as_of: datetime) -> list[StoredThen]:
    """Return all messages that were stored then, in id order."""
    at = to_us(as_of)
    return list(
        select(
            connection,
            StoredThen,
            "SELECT m.id, m.session_id, m.id NOT IN (SELECT n.id FROM message_versions v JOIN messages n ON "
            "n.id = v.message_id WHERE v.namespace_id = ? AND v.replaced_at > ? AND v.content <> n.content) "
            f"FROM messages m WHERE m.namespace_id = ? AND {_STORED_BY} ORDER BY m.id",
            (namespace_id, at, namespace_id, at),
        )
    )


def matching(connection: Connection, namespace_id: int, chosen: MessageFilter, ids: Iterable[int]) -> set[int]:
    """Return those of the messages that a filter includes."""
    where, parameters = condition(namespace_id, chosen)
    query = f"SELECT m.id FROM messages m WHERE m.id IN (SELECT value FROM json_each(?)) AND {where}"
    return set(select(connection, int, query, (ids_parameter(ids), *parameters)))


def _at(as_of: datetime | None) -> tuple[str, str, tuple[int, ...]]:
    """Return the query of messages at a time, a condition to add to it, and the parameter of each."""
    if as_of is None:
        return _SELECT, "", ()
    return _SELECT_THEN, f" AND {_STORED_BY}", (to_us(as_of),)


def pending(
    connection: Connection, namespace_id: int, session_id: str | None, *, after_id: int, limit: int
) -> list[Message]:
    """Return the next unindexed messages, of one session or of all, in id order."""
    of_session = "" if session_id is None else "AND s.name = ?"
    named = () if session_id is None else (session_id,)
    return list(
        readable(
            connection,
            Message,
            f"{_SELECT} WHERE m.namespace_id = ? AND m.indexed = 0 AND m.id > ? {of_session} ORDER BY m.id LIMIT ?",
            (namespace_id, after_id, *named, limit),
            table="messages",
        )
    )


def namespaces_with_pending(connection: Connection) -> list[str]:
    """Return the namespaces with unindexed messages that are not being removed."""
    return list(
        select(
            connection,
            str,
            "SELECT name FROM namespaces WHERE id IN (SELECT namespace_id FROM messages WHERE indexed = 0) "
            "AND id NOT IN (SELECT owner_id FROM removals WHERE kind = 'namespace') ORDER BY id",
        )
    )


def condition(namespace_id: int, chosen: MessageFilter) -> tuple[str, list[SqlValue]]:
    """Return an SQL condition on rows of messages, called `m`, and its parameters."""
    conditions = ["m.namespace_id = ?" if chosen.session_id is None else "+m.namespace_id = ?"]
    parameters: list[SqlValue] = [namespace_id]
    for column, table, name in (("session_id", "sessions", chosen.session_id), ("user_id", "users", chosen.user)):
        if name is not None:
            conditions.append(f"m.{column} = (SELECT id FROM {table} WHERE namespace_id = ? AND name = ?)")
            parameters += [namespace_id, name]
    if chosen.exclude_session_id is not None:
        conditions.append("m.session_id IS DISTINCT FROM (SELECT id FROM sessions WHERE namespace_id = ? AND name = ?)")
        parameters += [namespace_id, chosen.exclude_session_id]
    if chosen.role is not None:
        conditions.append("m.role = ?")
        parameters.append(chosen.role.value)
    for operator, moment in ((">=", chosen.since), ("<=", chosen.until)):
        if moment is not None:
            conditions.append(f"m.created_at {operator} ?")
            parameters.append(to_us(moment))
    return " AND ".join(conditions), parameters
