"""Namespaces as visible to a caller, and SQL conditions for the visible rows."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from souvenir.core.labels import PARENT, SEPARATOR
from souvenir.core.types import SourceFilter, SourceMatch
from souvenir.store.rows import first, ids_parameter, select
from souvenir.store.sql import Connection, SqlValue
from souvenir.store.sqlite.generations import history_id

COLUMNS = "id, name, created_at, changed_at, change_seq"
"""Columns of a `Namespace`, without what a caller may see."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace as visible to a caller.

    :param change_seq: The number of its last write.
    :param sources: The source paths that the caller may see; None for all.
    """

    id: int
    name: str
    created_at: datetime
    changed_at: datetime
    change_seq: int
    sources: tuple[str, ...] | None = None


def named(connection: Connection, name: str, sources: tuple[str, ...] | None = None) -> Namespace | None:
    """Return the namespace, limited to these sources; None if it was never written to."""
    row = first(connection, Namespace, f"SELECT {COLUMNS} FROM namespaces WHERE name = ?", (name,))
    return None if row is None else replace(row, sources=sources)


def ids(connection: Connection) -> set[int]:
    """Return the ids of all namespaces."""
    return set(select(connection, int, "SELECT id FROM namespaces"))


def first_write(connection: Connection) -> datetime | None:
    """Return the time of the creation of the first namespace; None if nothing was ever written."""
    return first(connection, datetime, "SELECT min(created_at) FROM namespaces HAVING count(*) > 0")


def write_state(connection: Connection) -> int:
    """Return a number that differs after every write to a namespace, and after a restore."""
    row = "SELECT group_concat(id || ':' || change_seq) FROM (SELECT id, change_seq FROM namespaces ORDER BY id)"
    return zlib.crc32(f"{history_id(connection)} {connection.execute(row).get}".encode())


def source_condition(source: SourceFilter) -> tuple[str, list[SqlValue]]:
    """Return an SQL condition on a `source` column that the filter selects, and its parameters."""
    match source.match:
        case SourceMatch.PREFIX:
            return "substr(source, 1, length(?)) = ?", [source.pattern, source.pattern]
        case SourceMatch.PATH:
            path = source.pattern + "/"
            return "(source = ? OR substr(source, 1, length(?)) = ?)", [source.pattern, path, path]
        case SourceMatch.SUBSTRING:
            return "instr(source, ?) > 0", [source.pattern]


def visible_condition(sources: tuple[str, ...] | None, column: str = "source") -> tuple[str, list[SqlValue]]:
    """Return the SQL equivalent of `souvenir.core.labels.is_visible`, and its parameters."""
    if sources is None:
        return "TRUE", []
    of_each = [f"{column} = ? OR substr({column}, 1, length(?)) = ?"] * len(sources)
    parameters: list[SqlValue] = []
    for path in sources:
        parameters += [path, path + SEPARATOR, path + SEPARATOR]
    climbs = f"instr('/' || {column} || '/', '/{PARENT}/')"
    return f"({' OR '.join(of_each) or 'FALSE'}) AND {climbs} = 0", parameters


def change_seqs(connection: Connection, namespace_ids: Iterable[int]) -> dict[int, int]:
    """Return the sequence numbers of the last writes to those of the namespaces that exist."""
    query = "SELECT id, change_seq FROM namespaces WHERE id IN (SELECT value FROM json_each(?))"
    return dict(select(connection, tuple[int, int], query, (ids_parameter(namespace_ids),)))


def change_seq(connection: Connection, namespace_id: int) -> int:
    """Return the sequence number of the namespace's last write, for caches; -1 if the namespace was deleted."""
    found = first(connection, int, "SELECT change_seq FROM namespaces WHERE id = ?", (namespace_id,))
    return -1 if found is None else found
