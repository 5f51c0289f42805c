"""Queries for expired memories: archived ones that are old enough to prune, and active ones that a policy archives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us
from souvenir.store.namespaces import Namespace
from souvenir.store.rows import select
from souvenir.store.sql import Connection

_PRUNABLE = "namespace_id = ? AND archived = 1 AND pinned = 0 AND updated_at < ?"


def count_prunable(connection: Connection, namespace: Namespace, before: datetime) -> int:
    """Count archived, unpinned memories that were last changed, or archived, before a time."""
    where = f"SELECT count(*) FROM memories WHERE {_PRUNABLE}"
    return int(connection.execute(where, (namespace.id, to_us(before))).get)


def prunable(connection: Connection, namespace: Namespace, before: datetime, *, limit: int) -> list[int]:
    """Return the ids of the first prunable memories."""
    return list(
        select(
            connection,
            int,
            f"SELECT id FROM memories WHERE {_PRUNABLE} ORDER BY id LIMIT ?",
            (namespace.id, to_us(before), limit),
        )
    )


@dataclass(frozen=True, slots=True)
class Aged:
    """The age of an active memory."""

    id: int
    created_at: datetime
    updated_at: datetime
    pinned: bool


def next_source_below(
    connection: Connection, namespace: Namespace, prefixes: Sequence[str], *, after: str
) -> str | None:
    """Return the first source after one that is below one of the prefixes, each of which ends with `/`."""
    row = connection.execute(
        "SELECT min(source) FROM memories WHERE namespace_id = ? AND source > ? AND EXISTS "
        "(SELECT 1 FROM json_each(?) WHERE substr(source || '/', 1, length(atom)) = atom)",
        (namespace.id, after, to_json(list(prefixes))),
    ).get
    return None if row is None else str(row)


def aged(connection: Connection, namespace: Namespace, source: str, *, after: int, limit: int) -> list[Aged]:
    """Return the active memories of a source with greater ids, in id order."""
    return list(
        select(
            connection,
            Aged,
            "SELECT id, created_at, updated_at, pinned FROM memories "
            "WHERE namespace_id = ? AND source = ? AND archived = 0 AND id > ? ORDER BY id LIMIT ?",
            (namespace.id, source, after, limit),
        )
    )
