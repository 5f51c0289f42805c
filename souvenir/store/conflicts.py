"""Which memories say otherwise than which: links of one type, from the memory that carries the flag to the other.

A flag is there for whoever sees both of its ends.
"""

from __future__ import annotations

from typing import Any

import apsw

from souvenir.store.reads import CONFLICTS_WITH, Namespace, visible_condition

Flag = tuple[int, int]
"""Ids of the memory that carries it, and of the one that it contradicts."""

_FROM = "FROM links l JOIN memories f ON f.id = l.from_id JOIN memories o ON o.id = l.to_id"
_OPEN = "f.archived = 0 AND o.archived = 0"


def count_open(connection: apsw.Connection, namespace: Namespace) -> int:
    """Flags between two living memories."""
    where, parameters = _where(namespace)
    return int(connection.execute(f"SELECT count(*) {_FROM} WHERE {where} AND {_OPEN}", parameters).get)


def open_flags(connection: apsw.Connection, namespace: Namespace, *, limit: int, offset: int) -> list[Flag]:
    """Those between two living memories, the newest flag first."""
    where, parameters = _where(namespace)
    rows: Any = connection.execute(
        f"SELECT l.from_id, l.to_id {_FROM} WHERE {where} AND {_OPEN} "
        "ORDER BY l.created_at DESC, l.from_id DESC, l.to_id DESC LIMIT ? OFFSET ?",
        (*parameters, limit, offset),
    )
    return list(rows)


def flags(connection: apsw.Connection, namespace: Namespace, *, limit: int) -> list[Flag]:
    """The oldest, also those of which an end is archived."""
    where, parameters = _where(namespace)
    rows: Any = connection.execute(
        f"SELECT l.from_id, l.to_id {_FROM} WHERE {where} ORDER BY l.created_at, l.from_id, l.to_id LIMIT ?",
        (*parameters, limit),
    )
    return list(rows)


def _where(namespace: Namespace) -> tuple[str, list[Any]]:
    of_flagger, parameters = visible_condition(namespace.sources, "f.source")
    of_other, others = visible_condition(namespace.sources, "o.source")
    where = f"l.type = ? AND f.namespace_id = ? AND o.namespace_id = f.namespace_id AND {of_flagger} AND {of_other}"
    return where, [CONFLICTS_WITH, namespace.id, *parameters, *others]
