"""Tombstones of what was erased for good: they are carried over into a restored backup and replayed there.

Ids are never reused, so a tombstone identifies what was erased and nothing that was created later.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple

import apsw

from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us
from souvenir.store.cascade import RemovedRows
from souvenir.store.pending_removals import Removable, Target, advance, begin, forget_extractions
from souvenir.store.rows import first, select
from souvenir.store.schema import has_table
from souvenir.store.vectors import note

_REPLAY = "replay"
_UNCLEARED = "uncleared"


class Tombstone(NamedTuple):
    """A row: what was erased, by the name of its kind and its id, and when."""

    kind: str
    owner_id: int
    erased_us: int

    @property
    def target(self) -> Target:
        return Target(Removable(self.kind), self.owner_id)


def bury(connection: apsw.Connection, targets: Iterable[Target], now: datetime) -> None:
    """Write tombstones, so that no restored backup brings these back."""
    add(connection, [Tombstone(target.kind.value, target.id, to_us(now)) for target in targets])


def read(connection: apsw.Connection) -> list[Tombstone]:
    """Of everything that was ever erased; the database may be of an older schema."""
    if not has_table(connection, "tombstones"):
        return []
    return list(select(connection, Tombstone, "SELECT kind, owner_id, erased_at FROM tombstones"))


def add(connection: apsw.Connection, rows: Iterable[Tombstone]) -> None:
    """Let a database know what another one of the same store has erased."""
    connection.executemany("INSERT OR IGNORE INTO tombstones (kind, owner_id, erased_at) VALUES (?, ?, ?)", rows)


def replay(connection: apsw.Connection, now: datetime) -> RemovedRows:
    """Remove what has a tombstone from a database that nobody reads yet."""
    with connection:
        targets = [row.target for row in read(connection)]
        forget_extractions(connection, targets)
        removed = begin(connection, targets, _REPLAY).removed
        while (step := advance(connection, _REPLAY, now)) is not None:
            removed += step.removed
    return removed


# --- whose bytes may still lie in the files --------------------------------------------------------------------------


def mark_uncleared(connection: apsw.Connection, work: str, namespaces: Iterable[int]) -> None:
    """Note that an erasure has not cleared the files yet of what it removed from these namespaces."""
    marked = uncleared(connection)
    note(connection, _UNCLEARED, to_json({**marked, work: sorted({*marked.get(work, ()), *namespaces})}))


def uncleared(connection: apsw.Connection) -> dict[str, list[int]]:
    """The namespaces from which erasures removed something that may still lie in the files, by their works."""
    row = first(connection, str, "SELECT value FROM meta WHERE key = ?", (_UNCLEARED,))
    found: dict[str, list[int]] = {} if row is None else json.loads(row)
    return found


def mark_cleared(connection: apsw.Connection, works: Collection[str]) -> None:
    marked = uncleared(connection)
    note(connection, _UNCLEARED, to_json({work: ids for work, ids in marked.items() if work not in works}))
