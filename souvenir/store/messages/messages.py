"""Rows of messages, identified by `uid`.

Passages of messages are written by `souvenir.store.passages`; a caller that writes a message keeps both consistent.
Each function takes a connection inside a transaction.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import apsw

from souvenir.core.passages import PassageOwner, SpokenBy, Utterance
from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us
from souvenir.core.types import JsonObject, MessageRole, PassageKind, RecordKind
from souvenir.store.graph import mention_queue
from souvenir.store.messages.sessions import MessagePlace
from souvenir.store.rows import ids_parameter, select


@dataclass(frozen=True, slots=True)
class Message:
    """Something that was said. `session_id` and `user` are the names that callers know.

    :param position: Ascends within the session in the order of storing, without gaps but where one was deleted.
    :param speaker: The name of who says it, if a caller gave one; it is searched with the content.
    :param created_at: When it was said.
    :param indexed: Whether it can be found yet.
    :param session_row: The id of the session's row, as passages have it; likewise `user_row`.
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
        """What its passages say of it."""
        turn = Utterance(self.session_row, self.position, self.role, self.user_row, self.speaker)
        return PassageOwner(PassageKind.MESSAGE, self.id, "", self.created_at, archived=False, turn=turn)


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A message somebody asks to store. Without `created_at` it was said now.

    :param session_id: Of a session that is made if it is new; without it, that of the running conversation.
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
    """Which messages are wanted; None lets all pass, and `since` and `until` are inclusive."""

    session_id: str | None = None
    user: str | None = None
    role: MessageRole | None = None
    since: datetime | None = None
    until: datetime | None = None
    exclude_session_id: str | None = None


_SELECT = (
    "SELECT m.id, m.uid, a.uid, s.name, m.position, m.role, m.content, u.name, m.speaker, m.metadata, m.created_at, "
    "m.edited_at, m.indexed, m.session_id, m.user_id FROM messages m CROSS JOIN agents a ON "
    "a.namespace_id = m.namespace_id CROSS JOIN sessions s ON s.id = m.session_id LEFT JOIN users u ON u.id = m.user_id"
)
"""The order of the joins is fixed: the messages are chosen first. Where few are chosen by something else, a plus before
`m.namespace_id` keeps SQLite from reading all of the namespace's instead."""


def insert(
    connection: apsw.Connection,
    namespace_id: int,
    draft: MessageDraft,
    place: MessagePlace,
    *,
    agent_uid: str,
    created_at: datetime,
    indexed: bool,
) -> Message:
    uid = str(uuid.uuid4())
    connection.execute(
        "INSERT INTO messages (uid, namespace_id, session_id, position, role, content, user_id, speaker, metadata, "
        "created_at, indexed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
        ),
    )
    message_id = connection.last_insert_rowid()
    mention_queue.put(connection, namespace_id, RecordKind.MESSAGE, [message_id])
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
    connection: apsw.Connection, message_id: int, *, content: str | None, metadata: JsonObject | None, at: datetime
) -> None:
    """Replace what is given. New content counts as indexed: the caller stores its passages."""
    connection.execute(
        "UPDATE messages SET content = coalesce(?, content), metadata = coalesce(?, metadata), edited_at = ?, "
        "indexed = iif(?, 1, indexed) WHERE id = ?",
        (
            content,
            None if metadata is None else to_json(dict(metadata)),
            to_us(at),
            content is not None,
            message_id,
        ),
    )


def mark_indexed(connection: apsw.Connection, message_id: int) -> None:
    connection.execute("UPDATE messages SET indexed = 1 WHERE id = ?", (message_id,))


def by_uid(connection: apsw.Connection, namespace_id: int, uids: Sequence[str]) -> dict[str, Message]:
    """Those of the messages that exist."""
    rows = select(
        connection,
        Message,
        f"{_SELECT} WHERE m.uid IN (SELECT value FROM json_each(?)) AND +m.namespace_id = ?",
        (json.dumps(list(uids)), namespace_id),
    )
    return {message.uid: message for message in rows}


def by_id(connection: apsw.Connection, namespace_id: int, ids: Iterable[int]) -> dict[int, Message]:
    """Those of the messages that exist."""
    rows = select(
        connection,
        Message,
        f"{_SELECT} WHERE m.id IN (SELECT value FROM json_each(?)) AND +m.namespace_id = ?",
        (ids_parameter(ids), namespace_id),
    )
    return {message.id: message for message in rows}


def newest(
    connection: apsw.Connection, namespace_id: int, chosen: MessageFilter, *, limit: int, offset: int = 0
) -> list[Message]:
    where, parameters = condition(namespace_id, chosen)
    return list(
        select(
            connection,
            Message,
            f"{_SELECT} WHERE {where} ORDER BY m.created_at DESC, m.id DESC LIMIT ? OFFSET ?",
            (*parameters, limit, offset),
        )
    )


def page(
    connection: apsw.Connection, namespace_id: int, chosen: MessageFilter, *, offset: int, limit: int
) -> tuple[list[Message], int]:
    """Newest first, and how many there are."""
    found = newest(connection, namespace_id, chosen, limit=limit, offset=offset)
    where, parameters = condition(namespace_id, chosen)
    return found, int(connection.execute(f"SELECT count(*) FROM messages m WHERE {where}", parameters).get)


def of_session(connection: apsw.Connection, session_row: int, *, offset: int, limit: int) -> tuple[list[Message], int]:
    """In the order of storing, and how many there are."""
    rows = select(
        connection,
        Message,
        f"{_SELECT} WHERE m.session_id = ? ORDER BY m.position LIMIT ? OFFSET ?",
        (session_row, limit, offset),
    )
    found = list(rows)
    return found, int(connection.execute("SELECT count(*) FROM messages WHERE session_id = ?", (session_row,)).get)


def every(connection: apsw.Connection, namespace_id: int) -> Iterator[Message]:
    """All of them, oldest first, read as they are asked for."""
    query = f"{_SELECT} WHERE m.namespace_id = ? ORDER BY m.created_at, m.id"
    return select(connection, Message, query, (namespace_id,))


def around(
    connection: apsw.Connection, namespace_id: int, ids: Iterable[int], *, before: int, after: int
) -> list[Message]:
    """These messages and those at the positions around them, each once: session by session, in order."""
    return list(
        select(
            connection,
            Message,
            f"{_SELECT} WHERE +m.namespace_id = ? AND m.id IN (SELECT n.id FROM json_each(?) j "
            "JOIN messages h ON h.id = j.value JOIN messages n ON n.session_id = h.session_id "
            "AND n.position BETWEEN h.position - ? AND h.position + ?) ORDER BY m.session_id, m.position",
            (namespace_id, ids_parameter(ids), before, after),
        )
    )


def pending(
    connection: apsw.Connection, namespace_id: int, session_id: str | None, *, after_id: int, limit: int
) -> list[Message]:
    """The next messages that are not indexed, of one session or of all, in the order of their ids."""
    of_session = "" if session_id is None else "AND s.name = ?"
    named = () if session_id is None else (session_id,)
    return list(
        select(
            connection,
            Message,
            f"{_SELECT} WHERE m.namespace_id = ? AND m.indexed = 0 AND m.id > ? {of_session} ORDER BY m.id LIMIT ?",
            (namespace_id, after_id, *named, limit),
        )
    )


def namespaces_with_pending(connection: apsw.Connection) -> list[str]:
    """Those that hold messages that are not indexed, and are not being removed."""
    return list(
        select(
            connection,
            str,
            "SELECT name FROM namespaces WHERE id IN (SELECT namespace_id FROM messages WHERE indexed = 0) "
            "AND id NOT IN (SELECT owner_id FROM removals WHERE kind = 'namespace') ORDER BY id",
        )
    )


def condition(namespace_id: int, chosen: MessageFilter) -> tuple[str, list[apsw.SQLiteValue]]:
    """SQL that is true of a chosen row of messages, called `m`, and its parameters."""
    conditions = ["m.namespace_id = ?" if chosen.session_id is None else "+m.namespace_id = ?"]
    parameters: list[apsw.SQLiteValue] = [namespace_id]
    for column, table, name in (("session_id", "sessions", chosen.session_id), ("user_id", "users", chosen.user)):
        if name is not None:
            conditions.append(f"m.{column} = (SELECT id FROM {table} WHERE namespace_id = ? AND name = ?)")
            parameters += [namespace_id, name]
    if chosen.exclude_session_id is not None:
        conditions.append("m.session_id IS NOT (SELECT id FROM sessions WHERE namespace_id = ? AND name = ?)")
        parameters += [namespace_id, chosen.exclude_session_id]
    if chosen.role is not None:
        conditions.append("m.role = ?")
        parameters.append(chosen.role.value)
    for operator, moment in ((">=", chosen.since), ("<=", chosen.until)):
        if moment is not None:
            conditions.append(f"m.created_at {operator} ?")
            parameters.append(to_us(moment))
    return " AND ".join(conditions), parameters
