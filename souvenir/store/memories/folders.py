"""Folders of memories: the first segments of their sources. Each function takes a connection inside a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from souvenir.core.types import SourceFilter, SourceMatch
from souvenir.store.namespaces import Namespace, source_condition, visible_condition
from souvenir.store.rows import select


@dataclass(frozen=True, slots=True)
class Folder:
    """:param name: Empty for sources that begin with a slash. :param count: The number of visible memories in it."""

    name: str
    count: int


def count_each(connection: apsw.Connection, namespace: Namespace, *, include_archived: bool) -> list[Folder]:
    """Return the folders of the visible memories, in the order of their names."""
    visible, parameters = visible_condition(namespace.sources)
    shown = "" if include_archived else "AND archived = 0"
    return list(
        select(
            connection,
            Folder,
            "SELECT substr(source, 1, instr(source || '/', '/') - 1) AS folder, count(*) FROM memories "
            f"WHERE namespace_id = ? {shown} AND {visible} GROUP BY folder ORDER BY folder",
            (namespace.id, *parameters),
        )
    )


def next_in(
    connection: apsw.Connection, namespace: Namespace, folder: str, *, after: int, limit: int
) -> Sequence[tuple[int, str]]:
    """Return id and source of the next visible memories in a folder, archived ones too, in the order of their ids."""
    visible, parameters = visible_condition(namespace.sources)
    lies_in, patterns = source_condition(SourceFilter(folder, SourceMatch.PATH))
    return list(
        select(
            connection,
            tuple[int, str],
            f"SELECT id, source FROM memories WHERE namespace_id = ? AND id > ? AND {visible} AND {lies_in} "
            "ORDER BY id LIMIT ?",
            (namespace.id, after, *parameters, *patterns, limit),
        )
    )
