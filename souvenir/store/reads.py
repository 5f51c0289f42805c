"""Every read of memories and passages. Each function takes a connection inside a read transaction.

What is read for a caller is read of a `Namespace`, which says what of it the caller may see: no function here tells
anything of a memory outside, not by its links either.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import apsw
import numpy as np

from souvenir.errors import InvalidRequest
from souvenir.moments import from_us, to_us
from souvenir.passages import Passage, PassageRow, searched_text
from souvenir.sources import PARENT, SEPARATOR
from souvenir.store import tags
from souvenir.store.facts import with_facts
from souvenir.store.rows import (
    MEMORY_COLUMNS,
    PASSAGE_COLUMNS,
    ids_parameter,
    link_of,
    memory_of,
    passage_of,
    same_json,
    to_json,
)
from souvenir.types import (
    Filters,
    FloatVector,
    JsonObject,
    LinkType,
    Listing,
    Memory,
    MessageRole,
    PassageKind,
    SourceFilter,
    SourceMatch,
)

ALL = Listing()
SUPERSEDES = LinkType.SUPERSEDES.value
CONFLICTS_WITH = "conflicts_with"
"""From a memory to one that says otherwise; only the service makes such links."""

MERGED_FROM = "source_memory_ids"
"""The metadata key of a merged memory that holds the ids of those that it was merged from."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace as somebody sees it.

    :param sources: The paths that they may see; None: all.
    """

    id: int
    name: str
    created_at: datetime
    changed_at: datetime
    sources: tuple[str, ...] | None = None


def namespace_named(connection: apsw.Connection, name: str, sources: tuple[str, ...] | None = None) -> Namespace | None:
    """The namespace if it was ever written to, as somebody sees it who may see these sources."""
    row: Any = connection.execute(
        "SELECT id, name, created_at, changed_at FROM namespaces WHERE name = ?", (name,)
    ).fetchone()
    return None if row is None else Namespace(row[0], row[1], from_us(row[2]), from_us(row[3]), sources)


def namespace_ids(connection: apsw.Connection) -> set[int]:
    """Of every namespace that there is."""
    return {id_ for (id_,) in connection.execute("SELECT id FROM namespaces")}


def first_and_last_write(connection: apsw.Connection) -> tuple[datetime, datetime] | None:
    """When a namespace was first made and when one was last changed; None of a store that nobody wrote to."""
    row: Any = connection.execute("SELECT min(created_at), max(changed_at) FROM namespaces").fetchone()
    return None if row[0] is None else (from_us(row[0]), from_us(row[1]))


def meta(connection: apsw.Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def source_condition(source: SourceFilter) -> tuple[str, list[Any]]:
    """SQL that is true of a `source` column that the filter selects, and its parameters."""
    match source.match:
        case SourceMatch.PREFIX:
            return "substr(source, 1, length(?)) = ?", [source.pattern, source.pattern]
        case SourceMatch.PATH:
            path = source.pattern + "/"
            return "(source = ? OR substr(source, 1, length(?)) = ?)", [source.pattern, path, path]
        case SourceMatch.SUBSTRING:
            return "instr(source, ?) > 0", [source.pattern]


def visible_condition(sources: tuple[str, ...] | None, column: str = "source") -> tuple[str, list[Any]]:
    """SQL that is true where `souvenir.sources.is_visible` is, and its parameters."""
    if sources is None:
        return "1", []
    of_each = [f"{column} = ? OR substr({column}, 1, length(?)) = ?"] * len(sources)
    parameters = [value for path in sources for value in (path, path + SEPARATOR, path + SEPARATOR)]
    climbs = f"instr('/' || {column} || '/', '/{PARENT}/')"
    return f"({' OR '.join(of_each) or '0'}) AND {climbs} = 0", parameters


def _where(namespace: Namespace, listing: Listing = ALL) -> tuple[str, list[Any]]:
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
    if listing.tags:
        condition, values = tags.condition(namespace.id, listing.tags, all_tags=listing.all_tags)
        conditions.append(condition)
        parameters += values
    return " AND ".join(conditions), parameters


def memories(connection: apsw.Connection, namespace: Namespace, ids: Iterable[int]) -> dict[int, Memory]:
    """The visible memories of this namespace among `ids`, with their links, by id."""
    return _shown(connection, namespace, as_stored(connection, namespace, ids))


def as_stored(connection: apsw.Connection, namespace: Namespace, ids: Iterable[int]) -> dict[int, Memory]:
    """The same, without links and with all that their metadata holds: for writing them again, not for showing them."""
    where, parameters = _where(namespace)
    rows = connection.execute(
        f"SELECT {MEMORY_COLUMNS} FROM memories WHERE id IN (SELECT value FROM json_each(?)) AND {where}",
        (ids_parameter(ids), *parameters),
    )
    return whole(connection, {row[0]: memory_of(row) for row in rows})


def whole(connection: apsw.Connection, found: dict[int, Memory]) -> dict[int, Memory]:
    """The memories with what they own."""
    return with_facts(connection, tags.with_tags(connection, found)) if found else found


def _shown(connection: apsw.Connection, namespace: Namespace, found: dict[int, Memory]) -> dict[int, Memory]:
    """The memories with their links, and without the ids of those outside that they were merged from."""
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


def visible_ids(connection: apsw.Connection, namespace: Namespace, ids: Iterable[int]) -> set[int]:
    """Those of the ids that are visible memories of this namespace."""
    where, parameters = _where(namespace)
    rows = connection.execute(
        f"SELECT id FROM memories WHERE id IN (SELECT value FROM json_each(?)) AND {where}",
        (ids_parameter(ids), *parameters),
    )
    return {row[0] for row in rows}


def _with_links(connection: apsw.Connection, namespace: Namespace, found: dict[int, Memory]) -> dict[int, Memory]:
    """The same memories with what their links say: what they supersede, its text, what superseded or contradicts them.

    A merged memory supersedes several and has no one previous text. Links with memories outside are left out.
    """
    ids = ids_parameter(found)
    visible, parameters = visible_condition(namespace.sources, "m.source")
    outgoing: list[Any] = connection.execute(
        "SELECT l.from_id, l.to_id, l.type, l.created_at, m.text FROM links l JOIN memories m ON m.id = l.to_id "
        f"WHERE l.from_id IN (SELECT value FROM json_each(?)) AND {visible} ORDER BY l.from_id, l.to_id",
        (ids, *parameters),
    ).fetchall()
    for *columns, text in outgoing:
        link = link_of(tuple(columns))
        memory = found[link.from_id]
        found[link.from_id] = memory = replace(memory, links=(*memory.links, link))
        if link.type == SUPERSEDES:
            only = [one.type for one in memory.links].count(SUPERSEDES) == 1
            found[link.from_id] = replace(memory, previous_text=text if only else None)
        elif link.type == CONFLICTS_WITH:
            found[link.from_id] = replace(memory, conflicts_with=link.to_id)
    incoming: list[Any] = connection.execute(
        "SELECT l.to_id, l.from_id FROM links l JOIN memories m ON m.id = l.from_id "
        f"WHERE l.to_id IN (SELECT value FROM json_each(?)) AND l.type = ? AND {visible} ORDER BY l.from_id",
        (ids, SUPERSEDES, *parameters),
    ).fetchall()
    for to_id, from_id in incoming:
        found[to_id] = replace(found[to_id], superseded_by=from_id)
    return found


def list_memories(
    connection: apsw.Connection,
    namespace: Namespace,
    listing: Listing = ALL,
    *,
    offset: int,
    limit: int,
) -> list[Memory]:
    where, parameters = _where(namespace, listing)
    order = "DESC" if listing.newest_first else "ASC"
    rows = connection.execute(
        f"SELECT {MEMORY_COLUMNS} FROM memories WHERE {where} ORDER BY id {order} LIMIT ? OFFSET ?",
        (*parameters, limit, offset),
    )
    found = whole(connection, {row[0]: memory_of(row) for row in rows})
    return list(_shown(connection, namespace, found).values())


def count_memories(connection: apsw.Connection, namespace: Namespace, listing: Listing = ALL) -> int:
    where, parameters = _where(namespace, listing)
    return int(connection.execute(f"SELECT count(*) FROM memories WHERE {where}", parameters).get)


def count_passages(connection: apsw.Connection, namespace: Namespace) -> int:
    """Of memories."""
    where, parameters = _where(namespace)
    where += f" AND kind = '{PassageKind.MEMORY}'"
    return int(connection.execute(f"SELECT count(*) FROM passages WHERE {where}", parameters).get)


def memory_ids(connection: apsw.Connection, namespace: Namespace, listing: Listing = ALL) -> list[int]:
    """In ascending order."""
    where, parameters = _where(namespace, listing)
    # As one array, since a row each takes several times as long where many match, and a search waits for it.
    found = connection.execute(f"SELECT json_group_array(id) FROM memories WHERE {where}", parameters).get
    return sorted(json.loads(found))


def newest_memories(
    connection: apsw.Connection, namespace: Namespace, *, since: datetime | None, until: datetime | None, limit: int
) -> list[Memory]:
    """Those that are not archived, by when what they say occurred, the latest first."""
    where, parameters = _where(namespace, Listing(archived=False))
    for operator, moment in ((">=", since), ("<=", until)):
        if moment is not None:
            where += f" AND coalesce(document_at, created_at) {operator} ?"
            parameters.append(to_us(moment))
    rows: Any = connection.execute(
        f"SELECT id FROM memories WHERE {where} ORDER BY coalesce(document_at, created_at) DESC, id DESC LIMIT ?",
        (*parameters, limit),
    )
    ids = [id_ for (id_,) in rows]
    found = memories(connection, namespace, ids)
    return [found[id_] for id_ in ids]


def keyed_memory_id(connection: apsw.Connection, namespace_id: int, source: str, key: str) -> int | None:
    """The living memory that (source, key) names, for a caller who may write to the source."""
    row = connection.execute(
        "SELECT id FROM memories WHERE namespace_id = ? AND source = ? AND key = ? AND archived = 0",
        (namespace_id, source, key),
    ).fetchone()
    return None if row is None else int(row[0])


def require_filter(namespace: Namespace, wanted: JsonObject) -> None:
    """:raises InvalidRequest: If somebody who sees a part asks for ids that may be outside of it."""
    if namespace.sources is not None and MERGED_FROM in wanted:
        raise InvalidRequest(f"This key cannot filter by {MERGED_FROM}; filter by other metadata")


def owners_matching(connection: apsw.Connection, namespace: Namespace, filters: Filters) -> list[int] | None:
    """Ids of the memories that have the tags and the metadata that are filtered by; None if neither is.

    :raises InvalidRequest: If somebody who sees a part asks for ids that may be outside of it.
    """
    if not filters.tags and not filters.metadata:
        return None
    found = owners_with_metadata(connection, namespace, filters.metadata) if filters.metadata else None
    if not filters.tags:
        return found
    having = memory_ids(connection, namespace, Listing(tags=filters.tags, all_tags=filters.all_tags))
    return having if found is None else sorted({*found} & {*having})


def tags_used(connection: apsw.Connection, namespace: Namespace, folded: Iterable[str]) -> set[str]:
    """Those of the folded tags that some visible memory has: what another one has must not show, not even by a zero."""
    visible, parameters = visible_condition(namespace.sources, "m.source")
    rows: Any = connection.execute(
        "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM memory_tags t JOIN memories m "
        f"ON m.id = t.memory_id WHERE t.namespace_id = ? AND t.folded = value AND {visible})",
        (to_json(list(folded)), namespace.id, *parameters),
    )
    return {tag for (tag,) in rows}


def owners_with_metadata(connection: apsw.Connection, namespace: Namespace, wanted: JsonObject) -> list[int]:
    """Ids of the memories whose metadata holds every wanted key with an equal JSON value.

    :raises InvalidRequest: If somebody who sees a part asks for ids that may be outside of it.
    """
    require_filter(namespace, wanted)
    where, parameters = _where(namespace)
    conditions = [where]
    nested = {key: value for key, value in wanted.items() if isinstance(value, Mapping | list)}
    for key, value in wanted.items():
        # SQL compares nested values as text, which depends on the order of keys: it only finds candidates for them.
        equal = "" if key in nested else "AND e.value IS w.value"
        conditions.append(
            f"EXISTS (SELECT 1 FROM json_each(metadata) e, json_each(?) w WHERE e.key = ? AND e.type = w.type {equal})"
        )
        parameters += [json.dumps([value]), key]
    rows: Any = connection.execute(f"SELECT id, metadata FROM memories WHERE {' AND '.join(conditions)}", parameters)
    return [
        id_
        for id_, metadata in rows
        if not nested or all(same_json(json.loads(metadata)[key], value) for key, value in nested.items())
    ]


def passage_texts(connection: apsw.Connection, namespace_id: int, passage_ids: Iterable[int]) -> dict[int, str]:
    """What is searched of those of the passages that are still there, by id."""
    rows: Any = connection.execute(
        "SELECT id, text, speaker FROM passages WHERE namespace_id = ? AND id IN (SELECT value FROM json_each(?))",
        (namespace_id, ids_parameter(passage_ids)),
    )
    return {id_: searched_text(text, speaker) for id_, text, speaker in rows}


@dataclass(frozen=True, slots=True)
class NamespaceView:
    """One state of a namespace's passages of one kind, for loading their index of one model's vectors."""

    connection: apsw.Connection
    namespace_id: int
    kind: PassageKind
    model_id: str

    @property
    def change_seq(self) -> int:
        row = self.connection.execute("SELECT change_seq FROM namespaces WHERE id = ?", (self.namespace_id,)).get
        return int(row or 0)

    def attributes(self) -> list[PassageRow]:
        """What filters and scores read but for the flags, which are in no column, a row a passage."""
        rows: list[Any] = self.connection.execute(
            "SELECT id, owner_id, profile, source, occurred_at, archived, dated, coalesce(session_id, 0), "
            "coalesce(position, 0), coalesce(user_id, 0), coalesce(speaker, ''), coalesce(fact_id, 0), role "
            "FROM passages WHERE namespace_id = ? AND kind = ?",
            (self.namespace_id, self.kind.value),
        ).fetchall()
        roles: dict[str | None, MessageRole | None] = {None: None, **{role.value: role for role in MessageRole}}
        return [
            PassageRow._make((*columns, roles[role], user, speaker, 0, fact))
            for *columns, user, speaker, fact, role in rows
        ]

    def passages(self, ids: Iterable[int] | None) -> Iterator[tuple[Passage, FloatVector]]:
        """Passages that the model has embedded, with their vectors (dim,), in id order; all, or those among `ids`."""
        chosen = "" if ids is None else "AND id IN (SELECT value FROM json_each(?))"
        parameters = [self.model_id, self.namespace_id, self.kind.value, *([] if ids is None else [ids_parameter(ids)])]
        rows = self.connection.execute(
            f"SELECT {PASSAGE_COLUMNS}, vector FROM passages JOIN vectors ON passage_id = id AND model_id = ? "
            f"WHERE namespace_id = ? AND kind = ? {chosen} ORDER BY id",
            parameters,
        )
        for row in rows:
            yield passage_of(row[:-1]), np.frombuffer(row[-1], dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Counts:
    memories: int
    passages: int
    namespaces: int


def counts(connection: apsw.Connection) -> Counts:
    row: Any = connection.execute(
        "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM passages), (SELECT count(*) FROM namespaces)"
    ).fetchone()
    return Counts(*row)
