"""Which memories are to be split, and where some wait for it. Each function takes a connection inside a transaction."""

from __future__ import annotations

from typing import Any

import apsw

from souvenir.store.reads import Namespace, source_condition, visible_condition
from souvenir.types import SourceFilter

_WAITS = "EXISTS (SELECT 1 FROM unsplit u WHERE u.memory_id = memories.id)"
_HAS_NONE = "(archived = 0 AND NOT EXISTS (SELECT 1 FROM facts f WHERE f.memory_id = memories.id))"


def to_split(
    connection: apsw.Connection,
    namespace: Namespace,
    *,
    source: SourceFilter | None,
    waiting_only: bool,
    after_id: int,
    limit: int,
) -> list[int]:
    """The next memories, in the order of their ids, that wait; without `waiting_only` also those without facts."""
    visible, values = visible_condition(namespace.sources)
    conditions, parameters = [visible, _WAITS if waiting_only else f"({_WAITS} OR {_HAS_NONE})"], [*values]
    if source is not None:
        condition, values = source_condition(source)
        conditions.append(condition)
        parameters += values
    rows: Any = connection.execute(
        f"SELECT id FROM memories WHERE namespace_id = ? AND id > ? AND {' AND '.join(conditions)} ORDER BY id LIMIT ?",
        (namespace.id, after_id, *parameters, limit),
    )
    return [memory_id for (memory_id,) in rows]


def is_waiting(connection: apsw.Connection, memory_id: int) -> bool:
    return connection.execute("SELECT 1 FROM unsplit WHERE memory_id = ?", (memory_id,)).fetchone() is not None


def namespaces(connection: apsw.Connection) -> list[str]:
    """Those with memories that wait."""
    rows: Any = connection.execute(
        "SELECT name FROM namespaces n WHERE EXISTS (SELECT 1 FROM unsplit u WHERE u.namespace_id = n.id) ORDER BY id"
    )
    return [name for (name,) in rows]
