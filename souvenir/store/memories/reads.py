"""Reads of memories and passages. Each function takes a connection inside a read transaction.

Reads on behalf of a caller take a `Namespace`, which limits visibility: nothing here reveals a memory outside of it,
not even through its links.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from souvenir.core.errors import InvalidRequest, MemoryNotFound, MemoryUnreadable
from souvenir.core.labels import fold
from souvenir.core.passages import searched_text
from souvenir.core.stored_json import same_json, to_json
from souvenir.core.timestamps import to_us
from souvenir.core.types import (
    Fact,
    Filters,
    JsonObject,
    Link,
    LinkType,
    Listing,
    Memory,
    PassageKind,
)
from souvenir.store import namespaces
from souvenir.store.namespaces import Namespace, source_condition, visible_condition
from souvenir.store.rows import MEMORY_COLUMNS, first, ids_parameter, only, readable, select
from souvenir.store.sql import NO_LIMIT, Connection, SqlValue

ALL = Listing()
SUPERSEDES = LinkType.SUPERSEDES.value
CONFLICTS_WITH = "conflicts_with"
"""The type of a link from a memory to one that it contradicts; only the service creates such links."""

MERGED_FROM = "source_memory_ids"
"""The metadata key of a merged memory with the ids of the memories that it was merged from."""


def tag_condition(namespace_id: int, tags: Iterable[str], *, all_tags: bool) -> tuple[str, list[SqlValue]]:
    """Return an SQL condition on the `id` of memories that have any, or all, of the tags, and its parameters."""
    folded = sorted({fold(tag) for tag in tags})
    having = "GROUP BY memory_id HAVING count(*) = ?" if all_tags else ""
    return (
        "id IN (SELECT memory_id FROM memory_tags WHERE namespace_id = ? AND folded IN "
        f"(SELECT atom FROM json_each(?)) {having})",
        [namespace_id, to_json(folded), *([len(folded)] if all_tags else [])],
    )


def _where(namespace: Namespace, listing: Listing = ALL) -> tuple[str, list[SqlValue]]:
    visible, values = visible_condition(namespace.sources)
    conditions, parameters = ["namespace_id = ?", visible], [namespace.id, *values]
    if listing.source is not None:
        condition, values = source_condition(listing.source)
        conditions.append(condition)
        parameters += values
    for column, value in (("pinned", listing.pinned), ("archived", listing.archived)):
        if value is not None:
            conditions.append(f"{column} = ?")
            parameters.append(value)
    if listing.max_id is not None:
        conditions.append("id <= ?")
        parameters.append(listing.max_id)
    if listing.tags:
        condition, values = tag_condition(namespace.id, listing.tags, all_tags=listing.all_tags)
        conditions.append(condition)
        parameters += values
    return " AND ".join(conditions), parameters


def memories(connection: Connection, namespace: Namespace, ids: Iterable[int]) -> dict[int, Memory]:
    """Return the visible memories of this namespace among `ids`, with their links, by id."""
    return _shown(connection, namespace, as_stored(connection, namespace, ids))


_HAS_NO_PARTS = " AND ".join(
    f"NOT EXISTS (SELECT 1 FROM {table} p WHERE p.{column} = memories.id)"
    for table, column in (
        ("memory_tags", "memory_id"),
        ("facts", "memory_id"),
        ("links", "from_id"),
        ("links", "to_id"),
    )
)


def without_parts(connection: Connection, namespace: Namespace, ids: Sequence[int]) -> dict[int, Memory] | None:
    """Return what `memories` returns, by a single statement.

    None if that takes several, because one of them has tags, facts or links, was merged, or is not there.
    """
    found = _rows(connection, namespace, ids, _HAS_NO_PARTS)
    is_whole = len(found) == len(ids) and not any(MERGED_FROM in memory.metadata for memory in found.values())
    return found if is_whole else None


def required(connection: Connection, namespace: Namespace, found: Mapping[int, Memory], memory_id: int) -> Memory:
    """Return one of the memories that were read.

    :raises MemoryNotFound: If there is no such memory, or it is not visible.
    :raises MemoryUnreadable: If it was left out because it is damaged.
    """
    if memory_id in found:
        return found[memory_id]
    if visible_ids(connection, namespace, [memory_id]):
        raise MemoryUnreadable(memory_id)
    raise MemoryNotFound(memory_id)


def as_stored(connection: Connection, namespace: Namespace, ids: Iterable[int]) -> dict[int, Memory]:
    """Return them without links and with unfiltered metadata: for writing them back, not for display."""
    return whole(connection, _rows(connection, namespace, ids))


def _rows(
    connection: Connection, namespace: Namespace, ids: Iterable[int], condition: str = "TRUE"
) -> dict[int, Memory]:
    """Return the memories without tags, facts and links."""
    where, parameters = _where(namespace)
    rows = readable(
        connection,
        Memory,
        f"SELECT {MEMORY_COLUMNS} FROM memories "
        f"WHERE id IN (SELECT value FROM json_each(?)) AND {where} AND {condition}",
        (ids_parameter(ids), *parameters),
        table="memories",
    )
    return {memory.id: memory for memory in rows}


def whole(connection: Connection, found: dict[int, Memory]) -> dict[int, Memory]:
    """Add tags and facts to the memories."""
    return with_facts(connection, with_tags(connection, found)) if found else found


def with_tags(connection: Connection, found: dict[int, Memory]) -> dict[int, Memory]:
    """Add tags to the memories, in alphabetical order."""
    rows = list(
        readable(
            connection,
            tuple[int, str],
            "SELECT memory_id, tag FROM memory_tags WHERE memory_id IN (SELECT value FROM json_each(?)) "
            "ORDER BY memory_id, folded",
            (ids_parameter(found),),
            table="memory_tags",
        )
    )
    of_each: dict[int, list[str]] = {}
    for memory_id, tag in rows:
        of_each.setdefault(memory_id, []).append(tag)
    return {id_: replace(one, tags=tuple(of_each[id_])) if id_ in of_each else one for id_, one in found.items()}


def with_facts(connection: Connection, found: dict[int, Memory]) -> dict[int, Memory]:
    """Add facts to the memories, in order."""
    rows = list(
        readable(
            connection,
            tuple[int, int, Fact],
            "SELECT id, memory_id, id, text, made_by, created_at FROM facts "
            "WHERE memory_id IN (SELECT value FROM json_each(?)) ORDER BY memory_id, ordinal",
            (ids_parameter(found),),
            table="facts",
        )
    )
    of_each: dict[int, list[Fact]] = {}
    for _, memory_id, fact in rows:
        of_each.setdefault(memory_id, []).append(fact)
    return {id_: replace(one, facts=tuple(of_each[id_])) if id_ in of_each else one for id_, one in found.items()}


def _shown(connection: Connection, namespace: Namespace, found: dict[int, Memory]) -> dict[int, Memory]:
    """Add links to the memories, and remove the ids of invisible merge sources."""
    found = _with_links(connection, namespace, found)
    if namespace.sources is None:
        return found
    merged = {id_: _merged_from(memory) for id_, memory in found.items() if MERGED_FROM in memory.metadata}
    visible = visible_ids(connection, namespace, {one for ids in merged.values() for one in ids})
    for id_, ids in merged.items():
        metadata = {**found[id_].metadata, MERGED_FROM: [one for one in ids if one in visible]}
        found[id_] = replace(found[id_], metadata=metadata)
    return found


def _merged_from(memory: Memory) -> list[int]:
    ids = memory.metadata[MERGED_FROM]
    return [one for one in ids if isinstance(one, int)] if isinstance(ids, list) else []


def sources(connection: Connection, ids: Iterable[int]) -> set[str]:
    """Return the sources of memories."""
    query = "SELECT DISTINCT source FROM memories WHERE id IN (SELECT value FROM json_each(?))"
    return set(select(connection, str, query, (ids_parameter(ids),)))


def visible_ids(connection: Connection, namespace: Namespace, ids: Iterable[int]) -> set[int]:
    """Return those of the ids that are visible memories of this namespace."""
    where, parameters = _where(namespace)
    return set(
        select(
            connection,
            int,
            f"SELECT id FROM memories WHERE id IN (SELECT value FROM json_each(?)) AND {where}",
            (ids_parameter(ids), *parameters),
        )
    )


def pinned_ids(connection: Connection, ids: Iterable[int]) -> set[int]:
    """Return those of the memories that are pinned."""
    query = "SELECT id FROM memories WHERE id IN (SELECT value FROM json_each(?)) AND pinned = 1"
    return set(select(connection, int, query, (ids_parameter(ids),)))


def _with_links(connection: Connection, namespace: Namespace, found: dict[int, Memory]) -> dict[int, Memory]:
    """Add links to the memories: which they supersede, its text, and which superseded or contradicted them.

    A merged memory supersedes several and has no single previous text. Links with invisible memories are skipped.
    """
    ids = ids_parameter(found)
    visible, parameters = visible_condition(namespace.sources, "m.source")
    outgoing = list(
        readable(
            connection,
            tuple[int, Link, str],
            "SELECT m.id, l.from_id, l.to_id, l.type, l.created_at, m.text FROM links l JOIN memories m "
            f"ON m.id = l.to_id WHERE l.from_id IN (SELECT value FROM json_each(?)) AND {visible} "
            "ORDER BY l.from_id, l.to_id, l.type",
            (ids, *parameters),
            table="memories",
        )
    )
    for _, link, text in outgoing:
        memory = found[link.from_id]
        found[link.from_id] = memory = replace(memory, links=(*memory.links, link))
        if link.type == SUPERSEDES:
            only = [one.type for one in memory.links].count(SUPERSEDES) == 1
            found[link.from_id] = replace(memory, previous_text=text if only else None)
        elif link.type == CONFLICTS_WITH:
            found[link.from_id] = replace(memory, conflicts_with=link.to_id)
    incoming = list(
        select(
            connection,
            tuple[int, int],
            "SELECT l.to_id, l.from_id FROM links l JOIN memories m ON m.id = l.from_id "
            f"WHERE l.to_id IN (SELECT value FROM json_each(?)) AND l.type = ? AND {visible} ORDER BY l.from_id",
            (ids, SUPERSEDES, *parameters),
        )
    )
    for to_id, from_id in incoming:
        found[to_id] = replace(found[to_id], superseded_by=from_id)
    return found


def list_memories(
    connection: Connection,
    namespace: Namespace,
    listing: Listing = ALL,
    *,
    offset: int,
    limit: int,
) -> list[Memory]:
    where, parameters = _where(namespace, listing)
    order = "DESC" if listing.newest_first else "ASC"
    rows = readable(
        connection,
        Memory,
        f"SELECT {MEMORY_COLUMNS} FROM memories WHERE {where} ORDER BY id {order} LIMIT ? OFFSET ?",
        (*parameters, limit, offset),
        table="memories",
    )
    found = whole(connection, {memory.id: memory for memory in rows})
    return list(_shown(connection, namespace, found).values())


def count_memories(connection: Connection, namespace: Namespace, listing: Listing = ALL) -> int:
    where, parameters = _where(namespace, listing)
    return int(connection.execute(f"SELECT count(*) FROM memories WHERE {where}", parameters).get)


def count_passages(connection: Connection, namespace: Namespace) -> int:
    """Count the passages of visible memories."""
    where, parameters = _where(namespace)
    where += f" AND kind = '{PassageKind.MEMORY}'"
    return int(connection.execute(f"SELECT count(*) FROM passages WHERE {where}", parameters).get)


def memory_ids(connection: Connection, namespace: Namespace, listing: Listing = ALL) -> list[int]:
    """Return ids in ascending order."""
    where, parameters = _where(namespace, listing)
    # Fetched as one array: one row per id is several times slower if many match, and a search waits for it.
    found = connection.execute(f"SELECT json_group_array(id) FROM memories WHERE {where}", parameters).get
    return sorted(json.loads(found))


def newest_memories(
    connection: Connection, namespace: Namespace, *, since: datetime | None, until: datetime | None, limit: int
) -> list[Memory]:
    """Return active memories by the time of what they describe, latest first."""
    where, parameters = _where(namespace, Listing(archived=False))
    for operator, moment in ((">=", since), ("<=", until)):
        if moment is not None:
            where += f" AND coalesce(document_at, created_at) {operator} ?"
            parameters.append(to_us(moment))
    rows = select(
        connection,
        int,
        f"SELECT id FROM memories WHERE {where} ORDER BY coalesce(document_at, created_at) DESC, id DESC LIMIT ?",
        (*parameters, limit),
    )
    ids = list(rows)
    found = memories(connection, namespace, ids)
    return [found[id_] for id_ in ids if id_ in found]


def keyed_memory_id(connection: Connection, namespace_id: int, source: str, key: str) -> int | None:
    """Return the active memory with (source, key), for a caller who may write to the source."""
    return first(
        connection,
        int,
        "SELECT id FROM memories WHERE namespace_id = ? AND source = ? AND key = ? AND archived = 0",
        (namespace_id, source, key),
    )


def require_filter(namespace: Namespace, wanted: JsonObject) -> None:
    """:raises InvalidRequest: If a caller with limited visibility filters by ids that may be invisible to it."""
    if namespace.sources is not None and MERGED_FROM in wanted:
        raise InvalidRequest(f"This key cannot filter by {MERGED_FROM}; filter by other metadata")


def owners_matching(connection: Connection, namespace: Namespace, filters: Filters) -> list[int] | None:
    """Return the ids of memories that match the filters by ids, tags and metadata; None if there are none of these.

    :raises InvalidRequest: If a caller with limited visibility filters by ids that may be invisible to it.
    """
    found: list[Iterable[int]] = [] if filters.within is None else [filters.within]
    if filters.metadata:
        found.append(owners_with_metadata(connection, namespace, filters.metadata))
    if filters.tags:
        found.append(memory_ids(connection, namespace, Listing(tags=filters.tags, all_tags=filters.all_tags)))
    return sorted(set.intersection(*map(set, found))) if found else None


class Searched(NamedTuple):
    """A namespace that is searched.

    :param is_judged: Whether it has feedback.
    :param tags: Those of the given folded tags that a visible memory has: tags of others must not be disclosed, even by
        a zero.
    """

    is_judged: bool
    tags: tuple[str, ...]
    namespace: Namespace


def searched(
    connection: Connection, name: str, sources: tuple[str, ...] | None, folded: Iterable[str]
) -> Searched | None:
    """Return the namespace, limited to these sources, by one statement; None if it was never written to."""
    visible, parameters = visible_condition(sources, "m.source")
    found = first(
        connection,
        Searched,
        "SELECT EXISTS (SELECT 1 FROM feedback f WHERE f.namespace_id = n.id), "
        "CASE WHEN EXISTS (SELECT 1 FROM memory_tags WHERE namespace_id = n.id) THEN "
        "(SELECT json_group_array(atom) FROM json_each(?) WHERE EXISTS (SELECT 1 FROM memory_tags t JOIN memories m "
        f"ON m.id = t.memory_id WHERE t.namespace_id = n.id AND t.folded = atom AND {visible})) ELSE '[]' END, "
        f"{namespaces.COLUMNS} FROM namespaces n WHERE n.name = ?",
        (to_json(list(folded)), *parameters, name),
    )
    return None if found is None else found._replace(namespace=replace(found.namespace, sources=sources))


def having_tags(connection: Connection, folded: Iterable[str], memory_ids: Iterable[int]) -> set[int]:
    """Return those of the memories that have any of the folded tags."""
    return set(
        select(
            connection,
            int,
            "SELECT DISTINCT memory_id FROM memory_tags WHERE memory_id IN (SELECT value FROM json_each(?)) "
            "AND folded IN (SELECT atom FROM json_each(?))",
            (ids_parameter(memory_ids), to_json(list(folded))),
        )
    )


# --- counts ----------------------------------------------------------------------------------------------------------


def owners_with_metadata(connection: Connection, namespace: Namespace, wanted: JsonObject) -> list[int]:
    """Return the ids of memories whose metadata has every wanted key with an equal JSON value.

    :raises InvalidRequest: If a caller with limited visibility filters by ids that may be invisible to it.
    """
    require_filter(namespace, wanted)
    where, parameters = _where(namespace)
    conditions = [where]
    nested = {key: value for key, value in wanted.items() if isinstance(value, Mapping | list)}
    for key, value in wanted.items():
        # SQL compares nested values as text, which depends on key order, so for them it only finds candidates.
        equal = "" if key in nested else "AND e.atom IS NOT DISTINCT FROM w.atom"
        conditions.append(
            "EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(metadata) THEN metadata ELSE '{}' END) e, "
            f"json_each(?) w WHERE e.key = ? AND e.type = w.type {equal})"
        )
        parameters += [json.dumps([value]), key]
    rows = readable(
        connection,
        tuple[int, JsonObject],
        f"SELECT id, metadata FROM memories WHERE {' AND '.join(conditions)}",
        parameters,
        table="memories",
    )
    return [
        id_
        for id_, metadata in rows
        if not nested or all(same_json(metadata[key], value) for key, value in nested.items())
    ]


def passage_texts(connection: Connection, namespace_id: int, passage_ids: Iterable[int]) -> dict[int, str]:
    """Return the searched texts of those passages that still exist, by id."""
    rows = readable(
        connection,
        tuple[int, str, str | None],
        "SELECT id, text, speaker FROM passages WHERE namespace_id = ? AND id IN (SELECT value FROM json_each(?))",
        (namespace_id, ids_parameter(passage_ids)),
        table="passages",
    )
    return {id_: searched_text(text, speaker) for id_, text, speaker in rows}


@dataclass(frozen=True, slots=True)
class Counts:
    memories: int
    passages: int
    namespaces: int


def counts(connection: Connection) -> Counts:
    return only(
        connection,
        Counts,
        "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM passages), (SELECT count(*) FROM namespaces)",
    )


# --- memories with a key ---------------------------------------------------------------------------------------------


_LIVING = "namespace_id = ? AND source = ? AND key IS NOT NULL AND archived = 0"


def keyed_memory(connection: Connection, namespace: Namespace, source: str, key: str) -> Memory | None:
    """Return the active memory with (source, key), if it exists and is visible."""
    held = keyed_memory_id(connection, namespace.id, source, key)
    return None if held is None else memories(connection, namespace, [held]).get(held)


def keyed_page(
    connection: Connection, namespace: Namespace, source: str, *, offset: int = 0, limit: int | None = None
) -> tuple[list[Memory], int]:
    """Return the active memories of one source that have a key, by key, and the total.

    :param limit: Maximum number to list; None for all.
    """
    parameters = (namespace.id, source)
    rows = select(
        connection,
        int,
        f"SELECT id FROM memories WHERE {_LIVING} ORDER BY key LIMIT ? OFFSET ?",
        (*parameters, NO_LIMIT if limit is None else limit, offset),
    )
    ids = list(rows)
    found = memories(connection, namespace, ids)
    total = connection.execute(f"SELECT count(*) FROM memories WHERE {_LIVING}", parameters).get
    return [found[id_] for id_ in ids if id_ in found], int(total)


def keyed_ids(connection: Connection, namespace_id: int, source: str, key: str) -> list[int]:
    """Return the ids of the memory with (source, key) and of those that it replaced."""
    return list(
        select(
            connection,
            int,
            "SELECT id FROM memories WHERE namespace_id = ? AND source = ? AND key = ?",
            (namespace_id, source, key),
        )
    )
