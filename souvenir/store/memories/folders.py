"""Folders of memories: the first segments of their sources, and the levels below them.

Each function takes a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from souvenir.core.types import SourceFilter, SourceMatch
from souvenir.store.namespaces import Namespace, source_condition, visible_condition
from souvenir.store.rows import select
from souvenir.store.sql import Connection


@dataclass(frozen=True, slots=True)
class Folder:
    """:param name: Empty for sources that begin with a slash. :param count: The number of visible memories in it."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class SourceNode:
    """A node of the tree of sources.

    :param name: The next segment of the sources below the listed one; empty between two slashes.
    :param count: The number of visible memories in it. :param own: Those whose source ends there.
    """

    name: str
    count: int
    own: int


def count_below(
    connection: Connection, namespace: Namespace, prefix: str, *, include_archived: bool, offset: int, limit: int
) -> tuple[list[SourceNode], int]:
    """Return the nodes of the next level in the order of their names, and their number on all pages.

    Sources that share a prefix are neighbours in the index, so only those are read.

    :param prefix: The beginning of the sources, up to and with its last slash; empty for the first level.
    """
    visible, parameters = visible_condition(namespace.sources)
    shown = "" if include_archived else "AND archived = 0"
    # The successor of a slash is the least text that is greater than all that begin with the prefix.
    inside, bounds = ("AND source >= ? AND source < ?", (prefix, prefix[:-1] + "0")) if prefix else ("", ())
    level = (
        "SELECT substr(rest, 1, instr(rest || '/', '/') - 1) AS name, count(*), "
        "count(*) FILTER (WHERE instr(rest, '/') = 0), count(*) OVER () FROM (SELECT substr(source, ?) AS rest "
        f"FROM memories WHERE namespace_id = ? {inside} {shown} AND {visible}) GROUP BY name"
    )
    values = (len(prefix) + 1, namespace.id, *bounds, *parameters)
    rows = select(
        connection,
        tuple[str, int, int, int],
        f"{level} ORDER BY name LIMIT ? OFFSET ?",
        (*values, limit, offset),
    )
    found = list(rows)
    if not found and offset:
        return [], int(connection.execute(f"SELECT count(*) FROM ({level})", values).get)
    return [SourceNode(name, count, own) for name, count, own, _ in found], found[0][3] if found else 0


def count_each(connection: Connection, namespace: Namespace, *, include_archived: bool) -> list[Folder]:
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
    connection: Connection, namespace: Namespace, folder: str, *, after: int, limit: int
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
