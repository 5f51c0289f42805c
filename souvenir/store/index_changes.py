"""The log of index changes: which passages each write to a namespace added, removed or changed.

Entries are written in the transaction of their write and numbered by the namespace's `change_seq`. An index that has
the writes up to a number, such as one of a snapshot, catches up by reading again the passages of the later entries. The
log holds ids only, so it keeps nothing of a deleted text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from souvenir.core.passages import IndexChange, OwnerChanged, PassageAdded, kind_of
from souvenir.core.timestamps import to_us
from souvenir.core.types import PassageKind
from souvenir.store.rows import ids_parameter, only, select
from souvenir.store.sql import Connection

KEPT_WRITES = 100_000
"""Writes of a namespace in the log. An index that is further behind is built again."""

TRIM_EVERY = 1_000


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """The index changes of one committed write to a namespace, and the `change_seq` of the index after them.

    `next_changes` are those for an index of the next model's vectors, without passages that it has not embedded.
    """

    namespace_id: int
    change_seq: int
    changes: tuple[IndexChange, ...]
    next_changes: tuple[IndexChange, ...]


@dataclass(frozen=True, slots=True)
class Touched:
    """Ids of passages that were added, removed or got token vectors, and of owners with other filter attributes."""

    passage_ids: frozenset[int]
    owner_ids: frozenset[int]


def append(
    connection: Connection, namespace_id: int, changes: Sequence[IndexChange], changed_at: datetime | None
) -> int:
    """Count a write to a namespace and log its changes.

    :param changed_at: The time of the write; None: only derived data was written.
    :return: The new `change_seq`.
    """
    change_seq = only(
        connection,
        int,
        "UPDATE namespaces SET change_seq = change_seq + 1, changed_at = coalesce(?, changed_at) WHERE id = ? "
        "RETURNING change_seq",
        (None if changed_at is None else to_us(changed_at), namespace_id),
    )
    for kind in {kind_of(change) for change in changes}:
        of_kind = [change for change in changes if kind_of(change) is kind]
        connection.execute(
            "INSERT INTO index_changes (namespace_id, change_seq, kind, passage_ids, owner_ids) VALUES (?, ?, ?, ?, ?)",
            (namespace_id, change_seq, kind.value, *map(ids_parameter, _touched(of_kind))),
        )
    if change_seq % TRIM_EVERY == 0:
        _trim(connection, namespace_id, change_seq - KEPT_WRITES)
    return change_seq


def since(connection: Connection, namespace_id: int, kind: PassageKind, change_seq: int) -> Touched | None:
    """Return the passages and owners that the writes after a number touched; None if the log does not reach back."""
    kept = "SELECT EXISTS (SELECT 1 FROM namespaces WHERE id = ? AND logged_after <= ?)"
    if not connection.execute(kept, (namespace_id, change_seq)).get:
        return None
    rows = list(
        select(
            connection,
            tuple[str, str],
            "SELECT passage_ids, owner_ids FROM index_changes WHERE namespace_id = ? AND change_seq > ? AND kind = ?",
            (namespace_id, change_seq, kind.value),
        )
    )
    passage_ids, owner_ids = (
        frozenset(chain.from_iterable(json.loads(row[column]) for row in rows)) for column in (0, 1)
    )
    return Touched(passage_ids, owner_ids)


def _touched(changes: Iterable[IndexChange]) -> tuple[set[int], set[int]]:
    """Return the ids of passages, and of owners with other attributes."""
    passages: set[int] = set()
    owners: set[int] = set()
    for change in changes:
        match change:
            case PassageAdded(passage):
                passages.add(passage.id)
            case OwnerChanged():
                owners.add(change.owner_id)
            case _:
                passages.add(change.passage_id)
    return passages, owners


def _trim(connection: Connection, namespace_id: int, up_to: int) -> None:
    """Delete the entries of the first writes."""
    connection.execute("DELETE FROM index_changes WHERE namespace_id = ? AND change_seq <= ?", (namespace_id, up_to))
    connection.execute(
        "UPDATE namespaces SET logged_after = ? WHERE id = ? AND logged_after < ?", (up_to, namespace_id, up_to)
    )


def clear(connection: Connection) -> None:
    """Begin an empty log, in a database whose earlier snapshots are not used."""
    connection.execute("DELETE FROM index_changes")
    connection.execute("UPDATE namespaces SET logged_after = change_seq")
