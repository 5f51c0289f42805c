"""Links between memories that callers make, list and take away. Each function takes a connection inside a transaction.

A link shows to whoever sees both of its ends. Those of a verb of the engine are made with the rows
(`souvenir.store.transaction`).
"""

from __future__ import annotations

from typing import Any

import apsw

from souvenir.store.reads import Namespace, visible_condition
from souvenir.store.rows import link_of
from souvenir.types import Link

_COLUMNS = "l.from_id, l.to_id, l.type, l.created_at"


def links_of(
    connection: apsw.Connection, namespace: Namespace, memory_id: int, *, link_type: str | None, incoming: bool
) -> list[Link]:
    """Those that begin at a memory, and with `incoming` then those that end there, in the order of the other end."""
    found = _links(connection, namespace, "from_id", "to_id", memory_id, link_type)
    return found + (_links(connection, namespace, "to_id", "from_id", memory_id, link_type) if incoming else [])


def _links(
    connection: apsw.Connection, namespace: Namespace, here: str, there: str, memory_id: int, link_type: str | None
) -> list[Link]:
    visible, parameters = visible_condition(namespace.sources, "m.source")
    rows: Any = connection.execute(
        f"SELECT {_COLUMNS} FROM links l JOIN memories m ON m.id = l.{there} "
        f"WHERE l.{here} = ? AND (? IS NULL OR l.type = ?) AND {visible} ORDER BY l.{there}, l.type",
        (memory_id, link_type, link_type, *parameters),
    )
    return [link_of(row) for row in rows]


def remove_link(connection: apsw.Connection, from_id: int, to_id: int, link_type: str) -> bool:
    """Whether there was one."""
    connection.execute("DELETE FROM links WHERE from_id = ? AND to_id = ? AND type = ?", (from_id, to_id, link_type))
    return connection.changes() > 0
