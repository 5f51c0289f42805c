"""Reads of memories that are known by source and key."""

from __future__ import annotations

from typing import Any

import apsw

from souvenir.store import reads
from souvenir.store.reads import Namespace
from souvenir.types import Memory

_LIVING = "namespace_id = ? AND source = ? AND key IS NOT NULL AND archived = 0"


def find(connection: apsw.Connection, namespace: Namespace, source: str, key: str) -> Memory | None:
    """The living memory that (source, key) names, if there is one and it can be seen."""
    held = reads.keyed_memory_id(connection, namespace.id, source, key)
    return None if held is None else reads.memories(connection, namespace, [held]).get(held)


def page(
    connection: apsw.Connection, namespace: Namespace, source: str, *, offset: int = 0, limit: int | None = None
) -> tuple[list[Memory], int]:
    """The living memories of one source that have a key, in the order of their keys, and how many there are.

    :param limit: Of what is listed; None: all.
    """
    parameters = (namespace.id, source)
    rows: Any = connection.execute(
        f"SELECT id FROM memories WHERE {_LIVING} ORDER BY key LIMIT ? OFFSET ?",
        (*parameters, -1 if limit is None else limit, offset),
    )
    ids = [id_ for (id_,) in rows]
    found = reads.memories(connection, namespace, ids)
    total = connection.execute(f"SELECT count(*) FROM memories WHERE {_LIVING}", parameters).get
    return [found[id_] for id_ in ids if id_ in found], int(total)


def ids(connection: apsw.Connection, namespace_id: int, source: str, key: str) -> list[int]:
    """Of the memory that (source, key) names, and of those whose place it took."""
    rows: Any = connection.execute(
        "SELECT id FROM memories WHERE namespace_id = ? AND source = ? AND key = ?", (namespace_id, source, key)
    )
    return [id_ for (id_,) in rows]
