"""Facts page by page. The function takes a connection inside a transaction."""

from __future__ import annotations

from typing import Any

import apsw

from souvenir.moments import from_us
from souvenir.store.reads import Namespace, visible_condition
from souvenir.types import Fact, FactsBy


def page(
    connection: apsw.Connection, namespace: Namespace, *, memory_id: int | None, offset: int, limit: int
) -> tuple[list[tuple[int, Fact]], int]:
    """Facts, each with the id of its memory, in the order of their memories and their own; and how many there are."""
    visible, parameters = visible_condition(namespace.sources, "m.source")
    where = f"f.namespace_id = ? AND {visible}"
    parameters = [namespace.id, *parameters]
    if memory_id is not None:
        where += " AND f.memory_id = ?"
        parameters.append(memory_id)
    chosen = f"FROM facts f JOIN memories m ON m.id = f.memory_id WHERE {where}"
    total = int(connection.execute(f"SELECT count(*) {chosen}", parameters).get)
    rows: Any = connection.execute(
        f"SELECT f.memory_id, f.id, f.text, f.made_by, f.created_at {chosen} "
        "ORDER BY f.memory_id, f.ordinal LIMIT ? OFFSET ?",
        (*parameters, limit, offset),
    )
    return [
        (owner_id, Fact(id_, text, FactsBy(made_by), from_us(created_at)))
        for owner_id, id_, text, made_by, created_at in rows
    ], total
