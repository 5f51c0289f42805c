"""The log of index changes: which passages each write to a namespace added, removed or changed.

Entries are written in the transaction of their write and numbered by the namespace's `change_seq`. An index that has
the writes up to a number, such as one of a snapshot, catches up by reading again the passages of the later entries. The
log holds ids only, so it keeps nothing of a deleted text.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from souvenir.core.passages import IndexChange, OwnerChanged, PassageAdded, kind_of
from souvenir.core.timestamps import to_us
from souvenir.core.types import PassageKind
from souvenir.store.rows import UNREADABLE, ids_parameter, only, select
from souvenir.store.sql import Connection

KEPT_WRITES = 100_000
"""Writes of a namespace, of any kind, in the log. An index that lacks an earlier one of its kind is built again."""

TRIM_EVERY = 1_000

KEPT_FOR = timedelta(days=7)
KEPT_OF_QUIET = 100
"""Writes in the log of a namespace that nobody wrote to for `KEPT_FOR`. Loaded indexes are never so far behind."""

TRIMMED_AT_ONCE = 10_000
TRIMMED_NAMESPACES = 500

log = structlog.get_logger(__name__)


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
        ids = tuple(map(ids_parameter, _touched(change for change in changes if kind_of(change) is kind)))
        connection.execute(
            "INSERT INTO index_changes (namespace_id, change_seq, kind, passage_ids, owner_ids, checksum) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (namespace_id, change_seq, kind.value, *ids, _checksum(*ids)),
        )
    if change_seq % TRIM_EVERY == 0:
        _trim(connection, namespace_id, change_seq - KEPT_WRITES)
    return change_seq


def since(connection: Connection, namespace_id: int, kind: PassageKind, change_seq: int) -> Touched | None:
    """Return the passages and owners of a kind that the writes after a number touched.

    :return: None if the log does not reach back to that number, or is damaged.
    """
    is_kept = (
        "SELECT EXISTS (SELECT 1 FROM namespaces WHERE id = ? AND change_seq >= ?) AND NOT EXISTS "
        "(SELECT 1 FROM trimmed_index_changes WHERE namespace_id = ? AND kind = ? AND complete_after > ?)"
    )
    parameters = (namespace_id, change_seq, namespace_id, kind.value, change_seq)
    if not connection.execute(is_kept, parameters).get:
        return None
    rows = select(
        connection,
        tuple[str, str, int],
        "SELECT passage_ids, owner_ids, checksum FROM index_changes WHERE namespace_id = ? AND change_seq > ? "
        "AND kind = ?",
        (namespace_id, change_seq, kind.value),
    )
    passages: set[int] = set()
    owners: set[int] = set()
    try:
        for passage_ids, owner_ids, checksum in rows:
            if checksum != _checksum(passage_ids, owner_ids):
                raise ValueError("its checksum differs")
            passages.update(json.loads(passage_ids))
            owners.update(json.loads(owner_ids))
    except UNREADABLE as error:
        log.warning("index_changes_damaged", namespace_id=namespace_id, kind=kind, reason=str(error))
        return None
    return Touched(frozenset(passages), frozenset(owners))


def _checksum(passage_ids: str, owner_ids: str) -> int:
    return zlib.crc32(f"{passage_ids} {owner_ids}".encode())


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
    connection.execute(
        "INSERT INTO trimmed_index_changes (namespace_id, kind, complete_after) SELECT namespace_id, kind, "
        "max(change_seq) FROM index_changes WHERE namespace_id = ? AND change_seq <= ? GROUP BY namespace_id, kind "
        "ON CONFLICT (namespace_id, kind) DO UPDATE SET complete_after = "
        "max(trimmed_index_changes.complete_after, excluded.complete_after)",
        (namespace_id, up_to),
    )
    connection.execute("DELETE FROM index_changes WHERE namespace_id = ? AND change_seq <= ?", (namespace_id, up_to))


def quiet(connection: Connection, now: datetime) -> list[int]:
    """Return some namespaces whose log has entries that nobody needs, because the last write is long ago."""
    return list(
        select(
            connection,
            int,
            "SELECT id FROM namespaces n WHERE changed_at < ? AND change_seq > ? AND "
            "(SELECT min(change_seq) FROM index_changes c WHERE c.namespace_id = n.id) <= n.change_seq - ? LIMIT ?",
            (to_us(now - KEPT_FOR), KEPT_OF_QUIET, KEPT_OF_QUIET, TRIMMED_NAMESPACES),
        )
    )


def trim_quiet(connection: Connection, namespace_id: int) -> bool:
    """Delete entries of a namespace except the last ones; return whether some of these are left."""
    first, last = only(
        connection,
        tuple[int | None, int | None],
        "SELECT (SELECT min(change_seq) FROM index_changes WHERE namespace_id = ?1), "
        "(SELECT change_seq FROM namespaces WHERE id = ?1)",
        (namespace_id,),
    )
    if first is None or last is None:
        return False
    up_to = min(last - KEPT_OF_QUIET, first + TRIMMED_AT_ONCE)
    _trim(connection, namespace_id, up_to)
    return up_to < last - KEPT_OF_QUIET


def clear(connection: Connection) -> None:
    """Delete all entries, in a database with a new history, whose earlier snapshots are not used."""
    connection.execute("DELETE FROM index_changes")


def distrust(connection: Connection) -> None:
    """Make all snapshots outdated, since passages are changed without entries in the log."""
    connection.execute("UPDATE namespaces SET change_seq = change_seq + 1")
    for kind in PassageKind:
        connection.execute(
            "INSERT INTO trimmed_index_changes (namespace_id, kind, complete_after) "
            "SELECT id, ?, change_seq FROM namespaces WHERE TRUE "
            "ON CONFLICT (namespace_id, kind) DO UPDATE SET complete_after = excluded.complete_after",
            (kind.value,),
        )


def delete_of(connection: Connection, namespace_id: int, *, at_once: int) -> bool:
    """Delete the entries of the first writes of a namespace; return False if there were none."""
    connection.execute(
        "DELETE FROM index_changes WHERE namespace_id = ?1 AND change_seq IN "
        "(SELECT change_seq FROM index_changes WHERE namespace_id = ?1 ORDER BY change_seq LIMIT ?2)",
        (namespace_id, at_once),
    )
    return connection.changes() > 0
