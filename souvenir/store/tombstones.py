"""Tombstones of erased rows: they are carried over into a restored backup and replayed there.

Ids are never reused, so a tombstone never matches anything that was created later.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple

from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us
from souvenir.store import meta
from souvenir.store.cascade import RemovedRows
from souvenir.store.pending_removals import Removable, Target, advance, begin, forget_extractions
from souvenir.store.rows import first, select
from souvenir.store.sql import Connection
from souvenir.store.sqlite.renumbering import former_ids
from souvenir.store.sqlite.schema import has_table

_REPLAY = "replay"
_UNCLEARED = "uncleared"


class Tombstone(NamedTuple):
    """A row: the kind and id of the erased object, and the time of the erasure."""

    kind: str
    owner_id: int
    erased_us: int

    @property
    def target(self) -> Target:
        return Target(Removable(self.kind), self.owner_id)


def create(connection: Connection, targets: Iterable[Target], now: datetime) -> None:
    """Write tombstones, so that a restored backup does not bring these back, also under an id from before a repair."""
    wanted = list(targets)
    former = former_ids(connection, [target.id for target in wanted if target.kind is Removable.MEMORY])
    wanted += [Target(Removable.MEMORY, memory_id) for memory_id in former]
    add(connection, [Tombstone(target.kind.value, target.id, to_us(now)) for target in wanted])


def read(connection: Connection) -> list[Tombstone]:
    """Return all tombstones; the database may have an older schema."""
    if not has_table(connection, "tombstones"):
        return []
    return list(select(connection, Tombstone, "SELECT kind, owner_id, erased_at FROM tombstones"))


def last_erased_at(connection: Connection) -> datetime | None:
    """Return the time of the last erasure; None if there was none."""
    return first(connection, datetime, "SELECT max(erased_at) FROM tombstones HAVING count(*) > 0")


def add(connection: Connection, rows: Iterable[Tombstone]) -> None:
    """Add tombstones of another copy of the same store."""
    query = "INSERT INTO tombstones (kind, owner_id, erased_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    connection.executemany(query, rows)


def replay(connection: Connection, now: datetime) -> RemovedRows:
    """Remove everything that has a tombstone, from a database that is not in use yet."""
    with connection:
        targets = [row.target for row in read(connection)]
        forget_extractions(connection, targets)
        removed = begin(connection, targets, _REPLAY).removed
        while (step := advance(connection, _REPLAY, now)) is not None:
            removed += step.removed
    return removed


# --- namespaces whose erased bytes may still be in the files ---------------------------------------------------------


def mark_uncleared(connection: Connection, work: str, namespaces: Iterable[int]) -> None:
    """Record that the bytes which an erasure removed from these namespaces are not yet cleared from the files."""
    marked = uncleared(connection)
    meta.put(connection, _UNCLEARED, to_json({**marked, work: sorted({*marked.get(work, ()), *namespaces})}))


def uncleared(connection: Connection) -> dict[str, list[int]]:
    """Return the namespaces with erased bytes that may still be in the files, by erasure."""
    row = meta.get(connection, _UNCLEARED)
    found: dict[str, list[int]] = {} if row is None else json.loads(row)
    return found


def mark_cleared(connection: Connection, works: Collection[str]) -> None:
    marked = uncleared(connection)
    meta.put(connection, _UNCLEARED, to_json({work: ids for work, ids in marked.items() if work not in works}))
