"""The knowledge graph of one source, as it is and as it was at an earlier time.

The earlier one is read from the history of the entities and the times of the relations. What was deleted since is
deleted at every time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from souvenir.core.types import Listing, Memory, SourceFilter, SourceMatch
from souvenir.store.graph import relations as rows
from souvenir.store.graph.relations import ENTITY_TYPE, EntityGraph, EntityRelation, RelationLink
from souvenir.store.memories import history, reads
from souvenir.store.namespaces import Namespace
from souvenir.store.sql import Connection


class GraphView(Protocol):
    """Ids are those of the memories that are the entities; active ones only."""

    def named(self) -> Sequence[int]:
        """Return all entities in insertion order."""

    def living(self, names: Sequence[str]) -> Sequence[int]:
        """Return the entities of these names in insertion order."""

    def saying(self, words: str) -> Sequence[int]:
        """Return entities whose name, type or facts (without facts: text) contain the words, ignoring case."""

    def memories(self, ids: Sequence[int]) -> Mapping[int, Memory]:
        """Return the readable ones of these memories."""

    def relations(self, names: Sequence[str], *, incoming: bool, limit: int) -> Sequence[EntityRelation]:
        """Return the relations from these names, and with `incoming` to them, in creation order.

        Both ends must have an entity of their name.
        """


@dataclass(frozen=True, slots=True)
class PresentGraph:
    """The graph as it is."""

    connection: Connection
    namespace: Namespace
    source: str

    @property
    def _place(self) -> EntityGraph:
        return EntityGraph(self.namespace.id, self.source)

    def named(self) -> Sequence[int]:
        return rows.named_ids(self.connection, self._place)

    def living(self, names: Sequence[str]) -> Sequence[int]:
        return sorted(rows.living(self.connection, self._place, names).values())

    def saying(self, words: str) -> Sequence[int]:
        return rows.ids_saying(self.connection, self._place, words)

    def memories(self, ids: Sequence[int]) -> Mapping[int, Memory]:
        return reads.as_stored(self.connection, self.namespace, ids)

    def relations(self, names: Sequence[str], *, incoming: bool, limit: int) -> Sequence[EntityRelation]:
        of_names = rows.ids_of(self.connection, self._place, names)
        return rows.relations(self.connection, self._place, of_names, incoming=incoming, limit=limit)


@dataclass(frozen=True, slots=True)
class PastGraph:
    """:param stood: The memories of the graph with a name, by id; an archived one can be the end of a relation.

    :param links: The relations between two of them.
    """

    stood: Mapping[int, Memory]
    links: Sequence[RelationLink]

    @classmethod
    def read(cls, connection: Connection, namespace: Namespace, source: str, at: datetime) -> PastGraph:
        """Read the whole graph at a time."""
        listing = Listing(source=SourceFilter(source, SourceMatch.PATH))
        ids = history.ids_at(connection, namespace, at, listing)
        found = history.memories_at(connection, namespace, at, ids)
        stood = {id_: one for id_, one in sorted(found.items()) if one.source == source and one.key is not None}
        return cls(stood, rows.links_between(connection, stood, at))

    def named(self) -> Sequence[int]:
        return [id_ for id_, one in self.stood.items() if not one.archived]

    def living(self, names: Sequence[str]) -> Sequence[int]:
        wanted = {*names}
        return [id_ for id_ in self.named() if self.stood[id_].key in wanted]

    def saying(self, words: str) -> Sequence[int]:
        wanted = words.lower()
        return [id_ for id_ in self.named() if any(wanted in said.lower() for said in _said(self.stood[id_]))]

    def memories(self, ids: Sequence[int]) -> Mapping[int, Memory]:
        return {id_: self.stood[id_] for id_ in ids}

    def relations(self, names: Sequence[str], *, incoming: bool, limit: int) -> Sequence[EntityRelation]:
        name_of = {id_: one.key or "" for id_, one in self.stood.items()}
        active, wanted = {name_of[id_] for id_ in self.named()}, {*names}
        found: dict[EntityRelation, tuple[int, int, int]] = {}
        for link in self.links:
            ends = from_name, to_name = name_of[link.from_id], name_of[link.to_id]
            if active.issuperset(ends) and (from_name in wanted or (incoming and to_name in wanted)):
                relation = EntityRelation(from_name, to_name, link.relation_type)
                first = found.get(relation, (link.created_us, link.from_id, link.to_id))
                found[relation] = (
                    min(first[0], link.created_us),
                    min(first[1], link.from_id),
                    min(first[2], link.to_id),
                )
        return sorted(found, key=lambda one: (*found[one], one.relation_type))[:limit]


def _said(memory: Memory) -> Iterable[str]:
    entity_type = memory.metadata.get(ENTITY_TYPE)
    texts = [fact.text for fact in memory.facts] or [memory.text]
    return [memory.key or "", "" if entity_type is None else str(entity_type), *texts]
