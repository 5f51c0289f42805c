"""A graph of entities with observations and relations over the memories, like that of the reference MCP memory server.

Every method is one transaction. Names, types and observations are compared verbatim. A key that is limited to some
sources has a graph of its own, under the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import datetime

from souvenir.core.labels import is_visible
from souvenir.core.telemetry import MemoryOperation, Tracing, traced
from souvenir.core.types import EvidenceLevel, Filters, Scope, SearchQuery, SourceFilter, SourceMatch
from souvenir.knowledge.entities import (
    Entity,
    Graph,
    Observations,
    Page,
    Stored,
    entity_of,
    is_entity,
    source_of,
)
from souvenir.knowledge.entity_writes import GraphWriter, Sketch, ends, remove_relations, writable_source
from souvenir.knowledge.past_concepts import entities_at
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph import relations as rows
from souvenir.store.graph.relations import EntityGraph, EntityRelation
from souvenir.store.memories import reads
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction

MAX_RELATIONS = 10_000
"""Limit for one answer."""

NEAR_SHARE = 0.5
"""Results below this share of the best score are dropped."""

FOUND_BY_MEANING = 5
"""Maximum number of entities that are found by meaning, if none contains the text."""

FIRST_PAGE = Page()


class KnowledgeGraph:
    """Thread-safe."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._writer = GraphWriter(engine)

    @property
    def tracing(self) -> Tracing:
        return self._engine.tracing

    # --- writing -----------------------------------------------------------------------------------------------

    @traced(MemoryOperation.CREATE, records=len)
    def create_entities(self, scope: Scope, entities: Sequence[Entity]) -> Sequence[Entity]:
        """Insert the entities with new names, without duplicate observations; returns them as stored."""

        def plan(sketch: Sketch) -> list[Entity]:
            return [sketch.create(one) for one in entities if sketch.entity(one.name) is None]

        return self._writer.change(scope, [one.name for one in entities], plan)[0]

    @traced(MemoryOperation.CREATE, records=len)
    def create_relations(self, scope: Scope, relations: Sequence[EntityRelation]) -> Sequence[EntityRelation]:
        """Insert the new relations. An end may be a name without an entity, which may be created later, or never."""
        return self._writer.change(scope, (), lambda _: None, relations)[1]

    @traced(
        MemoryOperation.CREATE,
        records=lambda stored: stored.entities_created + stored.observations_added + stored.relations_created,
    )
    def store(self, scope: Scope, entities: Sequence[Entity], relations: Sequence[EntityRelation]) -> Stored:
        """Upsert a graph: existing entities get their missing observations."""

        def plan(sketch: Sketch) -> tuple[int, int, int]:
            created, updated, added = set(), set(), 0
            for one in entities:
                if sketch.entity(one.name) is None:
                    created.add(one.name)
                    added += len(sketch.create(one).observations)
                elif new := sketch.add(Observations(one.name, one.observations)).contents:
                    updated.add(one.name)
                    added += len(new)
            return len(created), len(updated - created), added

        counted, related = self._writer.change(scope, [one.name for one in entities], plan, relations)
        return Stored(*counted, len(related))

    @traced(MemoryOperation.UPDATE, records=len)
    def add_observations(self, scope: Scope, observations: Sequence[Observations]) -> Sequence[Observations]:
        """Add new observations to entities; returns the added ones as stored, for each entity.

        :raises EntityNotFound: If there is no such entity; nothing is changed.
        """

        def plan(sketch: Sketch) -> list[Observations]:
            return [sketch.add(one) for one in observations]

        return self._writer.change(scope, [one.entity_name for one in observations], plan)[0]

    @traced(MemoryOperation.UPDATE)
    def delete_observations(self, scope: Scope, observations: Sequence[Observations]) -> None:
        """Delete observations of entities; missing ones are ignored."""

        def plan(sketch: Sketch) -> None:
            for one in observations:
                sketch.take(one)

        self._writer.change(scope, [one.entity_name for one in observations], plan)

    @traced(MemoryOperation.DELETE)
    def delete_entities(self, scope: Scope, names: Sequence[str]) -> None:
        """Delete entities permanently, with their relations; missing ones are ignored.

        :raises MemoryPinned: If one is pinned; nothing is changed.
        """
        source = writable_source(scope)

        def work(tx: Transaction) -> None:
            ids = rows.ids_of(tx.connection, EntityGraph(tx.namespace_id, source), names)
            for memory_id in ids:
                tx.unpinned_memory(memory_id, hint="unpin it before deleting the entity")
            others = rows.related_to(tx.connection, ids) - {*ids}
            tx.delete([*ids, *rows.unmentioned(tx.connection, others, without=ids)])

        self._write_if_known(scope, source, names, work)

    @traced(MemoryOperation.DELETE)
    def delete_relations(self, scope: Scope, relations: Sequence[EntityRelation]) -> None:
        """Delete relations; missing ones are ignored."""
        source = writable_source(scope)

        self._write_if_known(scope, source, ends(relations), lambda tx: remove_relations(tx, source, relations))

    def _write_if_known(
        self, scope: Scope, source: str, names: Sequence[str], work: Callable[[Transaction], None]
    ) -> None:
        with self._engine.namespace(scope) as (connection, namespace):
            known = namespace is not None and rows.ids_of(connection, EntityGraph(namespace.id, source), names)
        if known:
            self._engine.write(scope, work)

    # --- reading -----------------------------------------------------------------------------------------------

    def read(self, scope: Scope, page: Page = FIRST_PAGE) -> Graph:
        """Return a page of the whole graph: names in order of creation, with their outgoing relations."""
        return self._part(scope, rows.named_ids, page, whole=True)

    def search(self, scope: Scope, query: str, page: Page = FIRST_PAGE) -> Graph:
        """Return the entities that contain a text, ignoring case, with all of their relations.

        If there is none, the semantically similar entities are returned, if any.

        :raises SearchUnavailable: If that search is needed and not available.
        """
        found = self._part(scope, lambda graph, place: rows.ids_saying(graph, place, query), page)
        if found.entities or found.next_offset is not None or page.offset or not query.strip():
            return found
        near = self._near(scope, query, page.as_of)
        return self._part(scope, lambda *_: near, page) if near else found

    def open(self, scope: Scope, names: Sequence[str], page: Page = FIRST_PAGE) -> Graph:
        """Return the entities of these names, with all of their relations; missing ones are ignored."""
        return self._part(scope, lambda graph, place: sorted(rows.living(graph, place, names).values()), page)

    def _near(self, scope: Scope, query: str, as_of: datetime | None) -> list[int]:
        source = source_of(scope)
        filters = Filters(sources=(SourceFilter(source, SourceMatch.PATH),))
        result = self._engine.search(scope, SearchQuery(query, FOUND_BY_MEANING, filters=filters), as_of)
        if result.evidence is EvidenceLevel.NONE:
            return []
        least = NEAR_SHARE * max((hit.parts.raw_score for hit in result.hits), default=0.0)
        near = [hit.memory for hit in result.hits if hit.parts.raw_score >= least]
        return [memory.id for memory in near if memory.source == source and memory.key is not None]

    def _part(
        self,
        scope: Scope,
        choose: Callable[[Connection, EntityGraph], Sequence[int]],
        page: Page,
        *,
        whole: bool = False,
    ) -> Graph:
        """:param whole: True for a page of the whole graph, which contains each relation once."""
        source = source_of(scope)
        with self._engine.namespace(scope) as (store, namespace):
            if namespace is None or not is_visible(source, scope.sources):
                return Graph()
            place = EntityGraph(namespace.id, source)
            with (
                nullcontext(store) if page.as_of is None else entities_at(store, namespace, source, page.as_of) as graph
            ):
                ids = choose(graph, place)
                here = ids[page.offset : page.offset + page.limit]
                memories = reads.as_stored(graph, namespace, here)
                entities = [entity_of(memories[id_]) for id_ in here if id_ in memories and is_entity(memories[id_])]
                names = [one.key for one in memories.values() if one.key] if whole else [one.name for one in entities]
                of_names = rows.ids_of(graph, place, names)
                relations = rows.relations(graph, place, of_names, incoming=not whole, limit=MAX_RELATIONS + 1)
        return Graph(
            entities,
            relations[:MAX_RELATIONS],
            next_offset=page.offset + page.limit if page.offset + page.limit < len(ids) else None,
            relations_cut=len(relations) > MAX_RELATIONS,
        )
