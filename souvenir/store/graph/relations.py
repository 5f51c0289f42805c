"""Every statement about the knowledge graph: the memories that are its entities, and the relations between these.

An entity is a memory of the graph's source that has a key, which is its name. A relation is a link of a type that
begins with `RELATION`; no other link has such a type. It belongs to the names of its ends, not to the rows: if the
memory of a name was superseded or archived, another one can have the name. Each function takes a connection inside a
transaction; callers check before whether the source is visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from souvenir.core.labels import SEPARATOR
from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us
from souvenir.core.types import JsonObject, RecordKind
from souvenir.store.graph import mention_queue
from souvenir.store.rows import CHOSEN, ids_parameter, readable, select
from souvenir.store.sql import NO_LIMIT, Connection, SqlValue

ENTITY_SOURCE = "entities"
"""The source of a graph, and the last part of that of a key which sees only some sources."""

ENTITY_TYPE = "entity_type"
"""The metadata key of an entity's type."""

RELATION = "relation/"
"""Prefix of the link types that are relations; the relation's own type follows it."""

MENTIONED_ONLY = "mentioned_only"
"""The metadata key of a placeholder: a memory for an entity that only relations have named so far."""

_NAMED = "namespace_id = ? AND source = ? AND key IS NOT NULL"
_TYPED = f"substr(l.type, 1, {len(RELATION)}) = '{RELATION}'"


@dataclass(frozen=True, slots=True)
class EntityRelation:
    """A relation between two entities by name: `from_entity` `relation_type` `to_entity`."""

    from_entity: str
    to_entity: str
    relation_type: str


@dataclass(frozen=True, slots=True)
class EntityGraph:
    """The namespace and source of a graph."""

    namespace_id: int
    source: str


class NamedMemory(NamedTuple):
    """An active memory of a graph: an entity, or a name that only relations use."""

    id: int
    source: str
    name: str
    metadata: JsonObject

    @property
    def entity_type(self) -> str:
        return type_in(self.metadata)


def type_in(metadata: JsonObject) -> str:
    """Return the type of an entity with these metadata."""
    held = metadata.get(ENTITY_TYPE)
    return held if isinstance(held, str) else ""


def named_memories(
    connection: Connection, namespace_id: int, ids: Iterable[int] | None = None
) -> Mapping[int, NamedMemory]:
    """Return the active memories of all graphs of a namespace, whatever their sources are; none that is unreadable.

    :param ids: Only those of these memories; None for all.
    """
    query = "SELECT id, source, key, metadata FROM memories WHERE namespace_id = ? AND archived = 0 AND key IS NOT NULL"
    parameters: list[SqlValue] = [namespace_id]
    if ids is not None:
        query += f" AND id {CHOSEN}"
        parameters.append(ids_parameter(ids))
    rows = readable(connection, NamedMemory, query, parameters, table="memories")
    return {one.id: one for one in rows if is_named(one.source, one.name)}


def is_named(source: str, key: str | None) -> bool:
    """Return whether a memory of this source and key belongs to a graph."""
    return key is not None and source.rpartition(SEPARATOR)[2] == ENTITY_SOURCE


def entity_ids(connection: Connection, namespace_id: int) -> set[int]:
    """Return the memories of all graphs of a namespace, including archived and replaced ones."""
    query = "SELECT id, source, key FROM memories WHERE namespace_id = ? AND key IS NOT NULL"
    rows = readable(connection, tuple[int, str, str], query, (namespace_id,), table="memories")
    return {id_ for id_, source, key in rows if is_named(source, key)}


def living(connection: Connection, place: EntityGraph, names: Iterable[str]) -> dict[str, int]:
    """Return the ids of the active memories of these names."""
    query = f"SELECT key, id FROM memories WHERE {_NAMED} AND archived = 0 AND key IN (SELECT atom FROM json_each(?))"
    return dict(select(connection, tuple[str, int], query, (place.namespace_id, place.source, to_json(list(names)))))


def ids_of(connection: Connection, place: EntityGraph, names: Iterable[str]) -> list[int]:
    """Return the ids of the memories of these names, including replaced ones."""
    query = f"SELECT id FROM memories WHERE {_NAMED} AND key IN (SELECT atom FROM json_each(?)) ORDER BY id"
    return list(select(connection, int, query, (place.namespace_id, place.source, to_json(list(names)))))


def named_ids(connection: Connection, place: EntityGraph) -> list[int]:
    """Return the ids of all active entities in insertion order."""
    query = f"SELECT id FROM memories WHERE {_NAMED} AND archived = 0 ORDER BY id"
    return list(select(connection, int, query, (place.namespace_id, place.source)))


def ids_saying(connection: Connection, place: EntityGraph, words: str) -> list[int]:
    """Return active memories whose name, type or facts (without facts: text) contain the words, ignoring case."""
    wanted = words.lower()
    query = (
        "SELECT m.id, m.key, json_extract(m.metadata, '$.' || ?), coalesce(f.text, m.text) FROM memories m "
        "LEFT JOIN facts f ON f.memory_id = m.id "
        "WHERE m.namespace_id = ? AND m.source = ? AND m.key IS NOT NULL AND m.archived = 0 ORDER BY m.id"
    )
    rows = select(connection, tuple[int, str, str | None, str], query, (ENTITY_TYPE, place.namespace_id, place.source))
    return list(dict.fromkeys(id_ for id_, *said in rows if any(wanted in str(one or "").lower() for one in said)))


def relations(
    connection: Connection, place: EntityGraph, ids: Sequence[int], *, incoming: bool = False, limit: int = NO_LIMIT
) -> list[EntityRelation]:
    """Return the relations from these memories, and with `incoming` to them, in creation order.

    Both ends must have an active memory of their name.

    :param ids: Of memories, active or not.
    """
    return [one for one, _ in dated_relations(connection, place, ids, incoming=incoming, limit=limit)]


def dated_relations(
    connection: Connection, place: EntityGraph, ids: Sequence[int], *, incoming: bool = True, limit: int = NO_LIMIT
) -> list[tuple[EntityRelation, int]]:
    """As `relations`, each with the time of its creation in microseconds."""
    chosen = ids_parameter(ids)
    touching = "l.from_id IN (SELECT value FROM json_each(?1))"
    if incoming:
        touching = f"({touching} OR l.to_id IN (SELECT value FROM json_each(?1)))"
    standing = " AND ".join(
        f"{end}.namespace_id = ?2 AND {end}.source = ?3 AND EXISTS (SELECT 1 FROM memories n WHERE n.namespace_id = ?2 "
        f"AND n.source = ?3 AND n.key = {end}.key AND n.archived = 0)"
        for end in ("f", "t")
    )
    query = (
        "SELECT f.key, t.key, substr(l.type, ?4), min(l.created_at) FROM links l "
        "JOIN memories f ON f.id = l.from_id JOIN memories t ON t.id = l.to_id "
        f"WHERE {touching} AND {_TYPED} AND {standing} "
        "GROUP BY f.key, t.key, l.type ORDER BY min(l.created_at), min(l.from_id), min(l.to_id), l.type LIMIT ?5"
    )
    parameters = chosen, place.namespace_id, place.source, len(RELATION) + 1, limit
    return list(select(connection, tuple[EntityRelation, int], query, parameters))


def links_between(connection: Connection, ids: Iterable[int], at: datetime) -> list[tuple[int, int, str, int]]:
    """Return the rows of the relations between two of these memories that existed at a time and still do."""
    query = (
        f"SELECT l.from_id, l.to_id, l.type, l.created_at FROM links l WHERE {_TYPED} AND l.created_at <= ? "
        f"AND l.from_id {CHOSEN} AND l.to_id {CHOSEN}"
    )
    chosen = ids_parameter(ids)
    return list(select(connection, tuple[int, int, str, int], query, (to_us(at), chosen, chosen)))


def remove(connection: Connection, from_ids: Iterable[int], to_ids: Iterable[int], relation_type: str) -> int:
    """Delete relations; return how many links there were."""
    query = f"DELETE FROM links WHERE from_id {CHOSEN} AND to_id {CHOSEN} AND type = ?"
    connection.execute(query, (ids_parameter(from_ids), ids_parameter(to_ids), RELATION + relation_type))
    return connection.changes()


def index_again(connection: Connection, namespace_id: int, ids: Iterable[int]) -> None:
    """Queue the active memories of the names of these memories, whose relations have changed."""
    query = (
        "SELECT DISTINCT n.id FROM memories m JOIN memories n ON n.namespace_id = m.namespace_id "
        "AND n.source = m.source AND n.key = m.key AND n.archived = 0 "
        "WHERE m.id IN (SELECT value FROM json_each(?)) ORDER BY n.id"
    )
    active = select(connection, int, query, (ids_parameter(ids),))
    mention_queue.put(connection, namespace_id, RecordKind.MEMORY, list(active))


def related_to(connection: Connection, ids: Iterable[int]) -> set[int]:
    """Return the memories at the other ends of all relations of these."""
    query = (
        f"SELECT l.from_id, l.to_id FROM links l WHERE {_TYPED} AND (l.from_id IN (SELECT value FROM json_each(?1)) "
        "OR l.to_id IN (SELECT value FROM json_each(?1)))"
    )
    rows = select(connection, tuple[int, int], query, (ids_parameter(ids),))
    return {end for ends in rows for end in ends}


def unmentioned(connection: Connection, ids: Iterable[int], *, without: Iterable[int] = ()) -> list[int]:
    """Return those placeholders among the memories that no relation names any more.

    :param without: Memories whose relations do not count, since they are about to be deleted.
    """
    query = (
        "SELECT m.id FROM memories m WHERE m.id IN (SELECT value FROM json_each(?1)) AND m.pinned = 0 "
        f"AND (m.metadata -> '{MENTIONED_ONLY}') = 'true' AND NOT EXISTS (SELECT 1 FROM links l "
        "WHERE l.from_id = m.id AND l.to_id NOT IN (SELECT value FROM json_each(?2))) AND NOT EXISTS (SELECT 1 "
        "FROM links l WHERE l.to_id = m.id AND l.from_id NOT IN (SELECT value FROM json_each(?2)))"
    )
    return list(select(connection, int, query, (ids_parameter(ids), ids_parameter(without))))
