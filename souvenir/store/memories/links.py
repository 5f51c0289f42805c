"""Links between memories that callers create, and conflicts: links of a type that only the service creates.

A link is visible to a caller who sees both of its ends. Links of engine operations, such as superseding, are written
with their rows (`souvenir.store.transaction`). Each function takes a connection inside a transaction.
"""

from __future__ import annotations

import apsw

from souvenir.core.types import Link
from souvenir.store.memories.reads import CONFLICTS_WITH
from souvenir.store.namespaces import Namespace, visible_condition
from souvenir.store.rows import readable, select

_COLUMNS = "l.from_id, l.to_id, l.type, l.created_at"


def links_of(
    connection: apsw.Connection, namespace: Namespace, memory_id: int, *, link_type: str | None, incoming: bool
) -> list[Link]:
    """Return the outgoing links of a memory, then with `incoming` the incoming ones, by the id of the other end."""
    found = _links(connection, namespace, "from_id", "to_id", memory_id, link_type)
    return found + (_links(connection, namespace, "to_id", "from_id", memory_id, link_type) if incoming else [])


def _links(
    connection: apsw.Connection, namespace: Namespace, here: str, there: str, memory_id: int, link_type: str | None
) -> list[Link]:
    visible, parameters = visible_condition(namespace.sources, "m.source")
    return list(
        readable(
            connection,
            Link,
            f"SELECT {_COLUMNS} FROM links l JOIN memories m ON m.id = l.{there} "
            f"WHERE l.{here} = ? AND (? IS NULL OR l.type = ?) AND {visible} ORDER BY l.{there}, l.type",
            (memory_id, link_type, link_type, *parameters),
            table="links",
        )
    )


def remove_link(connection: apsw.Connection, from_id: int, to_id: int, link_type: str) -> bool:
    """Delete a link; return whether it existed."""
    connection.execute("DELETE FROM links WHERE from_id = ? AND to_id = ? AND type = ?", (from_id, to_id, link_type))
    return connection.changes() > 0


# --- conflicts -------------------------------------------------------------------------------------------------------


ConflictPair = tuple[int, int]
"""Ids of the memory that carries the flag, and of the one that it contradicts."""

_FROM = "FROM links l JOIN memories f ON f.id = l.from_id JOIN memories o ON o.id = l.to_id"
_OPEN = "f.archived = 0 AND o.archived = 0"


def count_open_conflicts(connection: apsw.Connection, namespace: Namespace) -> int:
    """Count the conflicts between two active memories."""
    where, parameters = _conflicts_where(namespace)
    return int(connection.execute(f"SELECT count(*) {_FROM} WHERE {where} AND {_OPEN}", parameters).get)


def open_conflicts(connection: apsw.Connection, namespace: Namespace, *, limit: int, offset: int) -> list[ConflictPair]:
    """Return the conflicts between two active memories, newest first."""
    where, parameters = _conflicts_where(namespace)
    return list(
        select(
            connection,
            tuple[int, int],
            f"SELECT l.from_id, l.to_id {_FROM} WHERE {where} AND {_OPEN} "
            "ORDER BY l.created_at DESC, l.from_id DESC, l.to_id DESC LIMIT ? OFFSET ?",
            (*parameters, limit, offset),
        )
    )


def conflicts(connection: apsw.Connection, namespace: Namespace, *, limit: int) -> list[ConflictPair]:
    """Return the oldest conflicts, including those with an archived end."""
    where, parameters = _conflicts_where(namespace)
    return list(
        select(
            connection,
            tuple[int, int],
            f"SELECT l.from_id, l.to_id {_FROM} WHERE {where} ORDER BY l.created_at, l.from_id, l.to_id LIMIT ?",
            (*parameters, limit),
        )
    )


def _conflicts_where(namespace: Namespace) -> tuple[str, list[apsw.SQLiteValue]]:
    of_flagger, parameters = visible_condition(namespace.sources, "f.source")
    of_other, others = visible_condition(namespace.sources, "o.source")
    where = f"l.type = ? AND f.namespace_id = ? AND o.namespace_id = f.namespace_id AND {of_flagger} AND {of_other}"
    return where, [CONFLICTS_WITH, namespace.id, *parameters, *others]
