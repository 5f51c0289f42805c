"""Links between memories that callers create, and conflicts: links of a type that only the service creates.

A link is visible to a caller who sees both of its ends. Links of engine operations, such as superseding, are written
with their rows (`souvenir.store.transaction`). Each function takes a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import islice

from souvenir.core.timestamps import to_us
from souvenir.core.types import Link, LinkType
from souvenir.store.memories.reads import CONFLICTS_WITH
from souvenir.store.namespaces import Namespace, visible_condition
from souvenir.store.rows import ids_parameter, readable, select
from souvenir.store.sql import Connection, SqlValue

_COLUMNS = "l.from_id, l.to_id, l.type, l.created_at"


def links_of(
    connection: Connection, namespace: Namespace, memory_id: int, *, link_type: str | None, incoming: bool
) -> list[Link]:
    """Return the outgoing links of a memory, then with `incoming` the incoming ones, by the id of the other end."""
    found = _links(connection, namespace, "from_id", "to_id", memory_id, link_type)
    return found + (_links(connection, namespace, "to_id", "from_id", memory_id, link_type) if incoming else [])


def _links(
    connection: Connection, namespace: Namespace, here: str, there: str, memory_id: int, link_type: str | None
) -> list[Link]:
    visible, parameters = visible_condition(namespace.sources, "m.source")
    return list(
        readable(
            connection,
            Link,
            f"SELECT {_COLUMNS} FROM links l JOIN memories m ON m.id = l.{there} "
            f"WHERE l.{here} = ? AND (CAST(? AS TEXT) IS NULL OR l.type = ?) AND {visible} ORDER BY l.{there}, l.type",
            (memory_id, link_type, link_type, *parameters),
            table="links",
        )
    )


USER_TYPES = tuple(one.value for one in LinkType if one is not LinkType.SUPERSEDES)
"""Types of the links that a search follows: a superseded memory is out of date."""


def linked_with(
    connection: Connection, sources: tuple[str, ...] | None, ids: Iterable[int], *, at: datetime | None, limit: int
) -> list[tuple[int, int]]:
    """Return pairs of one of the memories and a visible one that a user linked with it in any direction.

    An extraction relates a memory to similar ones in the transaction that stores it, a user relates memories that
    exist: these links differ in whether they are as old as the memory. Those of extractions do not improve a ranking of
    short memories (`python -m benchmarks.retrieval.links`).

    :param at: Only links that existed at this time and still do. :param limit: Maximum number of links.
    """
    visible, parameters = visible_condition(sources, "m.source")
    chosen = ids_parameter(ids)
    types = ", ".join(f"'{one}'" for one in USER_TYPES)
    ends = [
        f"SELECT {one} AS here, {other} AS there, l.created_at FROM json_each(?) j CROSS JOIN links l "
        f"ON l.{one} = j.value JOIN memories f ON f.id = l.from_id "
        f"WHERE l.type IN ({types}) AND NOT (l.type = '{LinkType.RELATED_TO}' AND l.created_at = f.created_at)"
        for one, other in (("from_id", "to_id"), ("to_id", "from_id"))
    ]
    # Sorting or limiting them in SQL takes eight times as long as finding that there are none.
    found = select(
        connection,
        tuple[int, int],
        f"SELECT here, there FROM ({' UNION ALL '.join(ends)}) l JOIN memories m ON m.id = l.there "
        f"WHERE (CAST(? AS BIGINT) IS NULL OR l.created_at <= ?) AND {visible}",
        (chosen, chosen, *[None if at is None else to_us(at)] * 2, *parameters),
    )
    return list(dict.fromkeys(islice(found, limit)))


def remove_link(connection: Connection, from_id: int, to_id: int, link_type: str) -> bool:
    """Delete a link; return whether it existed."""
    connection.execute("DELETE FROM links WHERE from_id = ? AND to_id = ? AND type = ?", (from_id, to_id, link_type))
    return connection.changes() > 0


# --- conflicts -------------------------------------------------------------------------------------------------------


ConflictPair = tuple[int, int]
"""Ids of the memory that carries the flag, and of the one that it contradicts."""

_FROM = "FROM links l JOIN memories f ON f.id = l.from_id JOIN memories o ON o.id = l.to_id"
_OPEN = "f.archived = 0 AND o.archived = 0"


def count_open_conflicts(connection: Connection, namespace: Namespace) -> int:
    """Count the conflicts between two active memories."""
    where, parameters = _conflicts_where(namespace)
    return int(connection.execute(f"SELECT count(*) {_FROM} WHERE {where} AND {_OPEN}", parameters).get)


def open_conflicts(connection: Connection, namespace: Namespace, *, limit: int, offset: int) -> list[ConflictPair]:
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


def conflicts(connection: Connection, namespace: Namespace, *, limit: int) -> list[ConflictPair]:
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


def _conflicts_where(namespace: Namespace) -> tuple[str, list[SqlValue]]:
    of_flagger, parameters = visible_condition(namespace.sources, "f.source")
    of_other, others = visible_condition(namespace.sources, "o.source")
    where = f"l.type = ? AND f.namespace_id = ? AND o.namespace_id = f.namespace_id AND {of_flagger} AND {of_other}"
    return where, [CONFLICTS_WITH, namespace.id, *parameters, *others]
