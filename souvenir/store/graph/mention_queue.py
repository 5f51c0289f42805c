"""The graph's queue: messages and memories whose mentions are not yet extracted, oldest first.

A row is written in the transaction of its message or memory, so none is lost in a crash. An item that is queued again
gets a new `id`, by which a worker detects that the text has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from souvenir.core.types import MessageRole, RecordKind
from souvenir.store.rows import ids_parameter, readable, select
from souvenir.store.sql import Connection, SqlValue


class Unread(NamedTuple):
    """A queued item with its current text. `id` is that of the queue's row.

    :param at: When it was said, or occurred. :param role: The role of a message.
    """

    id: int
    kind: RecordKind
    owner_id: int
    text: str
    at: datetime
    role: MessageRole | None


def put(connection: Connection, namespace_id: int, kind: RecordKind, owner_ids: Iterable[int]) -> None:
    """Queue these if the namespace is an agent."""
    chosen = ids_parameter(owner_ids)
    _dequeue(connection, kind, "SELECT value FROM json_each(?2)", chosen)
    connection.execute(
        "INSERT INTO unread (namespace_id, kind, owner_id) SELECT a.namespace_id, ?2, j.value "
        "FROM agents a CROSS JOIN json_each(?3) j WHERE a.namespace_id = ?1",
        (namespace_id, kind.value, chosen),
    )


def put_all(connection: Connection, namespace_id: int) -> None:
    """Queue everything in the namespace again."""
    for kind, rows in (
        (RecordKind.MESSAGE, "messages WHERE namespace_id = {0}"),
        (RecordKind.MEMORY, "memories WHERE namespace_id = {0} AND archived = 0"),
    ):
        _dequeue(connection, kind, f"SELECT id FROM {rows.format('?2')}", namespace_id)
        connection.execute(
            "INSERT INTO unread (namespace_id, kind, owner_id) "
            f"SELECT namespace_id, ?2, id FROM {rows.format('?1')} ORDER BY id",
            (namespace_id, kind.value),
        )


def _dequeue(connection: Connection, kind: RecordKind, owners: str, parameter: SqlValue) -> None:
    """Remove rows that are queued again, with new ids: one that is being read must be read again."""
    connection.execute(f"DELETE FROM unread WHERE kind = ?1 AND owner_id IN ({owners})", (kind.value, parameter))


def take(connection: Connection, unread_id: int) -> bool:
    """Remove a row of the queue; return whether it was still queued."""
    connection.execute("DELETE FROM unread WHERE id = ?", (unread_id,))
    return connection.changes() > 0


def forget(connection: Connection, kind: RecordKind, owner_ids: Iterable[int]) -> None:
    query = "DELETE FROM unread WHERE kind = ? AND owner_id IN (SELECT value FROM json_each(?))"
    connection.execute(query, (kind.value, ids_parameter(owner_ids)))


def following(connection: Connection, namespace_id: int, *, limit: int) -> tuple[list[Unread], list[int]]:
    """Return the next items of a namespace, and the rows of the queue whose messages or memories cannot be read."""
    query = "SELECT id FROM unread WHERE namespace_id = ? ORDER BY id LIMIT ?"
    queued = list(select(connection, int, query, (namespace_id, limit)))
    found = list(
        readable(
            connection,
            Unread,
            "SELECT u.id, u.kind, u.owner_id, coalesce(s.content, m.text), "
            "coalesce(s.created_at, m.document_at, m.created_at), s.role FROM unread u "
            "LEFT JOIN messages s ON u.kind = 'message' AND s.id = u.owner_id "
            "LEFT JOIN memories m ON u.kind = 'memory' AND m.id = u.owner_id "
            "WHERE u.id IN (SELECT value FROM json_each(?)) ORDER BY u.id",
            (ids_parameter(queued),),
            table="unread",
        )
    )
    known = {one.id for one in found}
    return found, [unread_id for unread_id in queued if unread_id not in known]


def every_read(connection: Connection, namespace_id: int) -> Iterator[Unread]:
    """Yield lazily the messages and memories that are not queued; `id` is meaningless."""
    yield from readable(
        connection,
        Unread,
        "SELECT id, 'message', id, content, created_at, role FROM messages m WHERE namespace_id = ?1 "
        "AND NOT EXISTS (SELECT 1 FROM unread u WHERE u.kind = 'message' AND u.owner_id = m.id)",
        (namespace_id,),
        table="messages",
    )
    yield from readable(
        connection,
        Unread,
        "SELECT id, 'memory', id, text, coalesce(document_at, created_at), NULL FROM memories m "
        "WHERE namespace_id = ?1 AND archived = 0 "
        "AND NOT EXISTS (SELECT 1 FROM unread u WHERE u.kind = 'memory' AND u.owner_id = m.id)",
        (namespace_id,),
        table="memories",
    )


def namespaces(connection: Connection) -> list[tuple[int, str]]:
    """Return ids and names of the namespaces with queued, unmatched or unmentioned items that are not being removed."""
    query = (
        "SELECT id, name FROM namespaces n WHERE (EXISTS (SELECT 1 FROM unread u WHERE u.namespace_id = n.id) "
        "OR EXISTS (SELECT 1 FROM unmatched u WHERE u.namespace_id = n.id) "
        "OR EXISTS (SELECT 1 FROM concepts c WHERE c.namespace_id = n.id AND c.owners = 0)) "
        "AND id NOT IN (SELECT owner_id FROM removals WHERE kind = 'namespace') ORDER BY id"
    )
    return list(select(connection, tuple[int, str], query))


def count(connection: Connection, namespace_id: int) -> int:
    return int(connection.execute("SELECT count(*) FROM unread WHERE namespace_id = ?", (namespace_id,)).get)


def count_all(connection: Connection) -> int:
    """Count the queue over all namespaces."""
    return int(connection.execute("SELECT count(*) FROM unread").get)
