"""A graph of entities with observations and relations over the memories, like that of the reference MCP memory server.

Every method is one transaction. Names, types and observations are compared verbatim. A key that is limited to some
sources has a graph of its own, under the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from threading import Lock
from typing import TypeVar

from souvenir.core.concurrency import time_left
from souvenir.core.errors import InvalidRequest, Overloaded
from souvenir.core.labels import is_visible, notes_of
from souvenir.core.telemetry import MemoryOperation, Tracing, traced
from souvenir.core.types import (
    EvidenceLevel,
    Filters,
    JsonObject,
    Link,
    Memory,
    MemoryDraft,
    Scope,
    SearchQuery,
    SourceFilter,
    SourceMatch,
)
from souvenir.knowledge.claim_types import require_visible
from souvenir.knowledge.entities import (
    Entity,
    Graph,
    Observations,
    Page,
    Sketch,
    Stored,
    draft_of,
    ends,
    entity_of,
    is_entity,
    mention_of,
    patch_of,
    source_of,
)
from souvenir.knowledge.past_concepts import entities_at
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import audit, transfers
from souvenir.store.admin.audit import AuditEvent
from souvenir.store.graph import relations as rows
from souvenir.store.graph.relations import ENTITY_TYPE, RELATION, EntityGraph, EntityRelation
from souvenir.store.memories import reads
from souvenir.store.namespaces import Namespace
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction, require_writable

MAX_RELATIONS = 10_000
"""Limit for one answer."""

NEAR_SHARE = 0.5
"""Results below this share of the best score are dropped."""

FOUND_BY_MEANING = 5
"""Maximum number of entities that are found by meaning, if none contains the text."""

FIRST_PAGE = Page()

TRIES = 10
"""Attempts of a write whose entities change concurrently, before it fails."""

TURN_TIMEOUT_S = 30.0
"""How long a write waits for earlier writes."""

_TURNS = 64

T = TypeVar("T")


class _Changed(Exception):
    """The state that a write was based on has changed; nothing was written."""


class KnowledgeGraph:
    """Thread-safe."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._turns = [Lock() for _ in range(_TURNS)]

    @property
    def tracing(self) -> Tracing:
        return self._engine.tracing

    # --- writing -----------------------------------------------------------------------------------------------

    @traced(MemoryOperation.CREATE, records=len)
    def create_entities(self, scope: Scope, entities: Sequence[Entity]) -> Sequence[Entity]:
        """Insert the entities with new names, without duplicate observations; returns them as stored."""
        return self._change(
            scope,
            [one.name for one in entities],
            lambda sketch: [sketch.create(one) for one in entities if sketch.entity(one.name) is None],
        )[0]

    @traced(MemoryOperation.CREATE, records=len)
    def create_relations(self, scope: Scope, relations: Sequence[EntityRelation]) -> Sequence[EntityRelation]:
        """Insert the new relations. An end may be a name without an entity, which may be created later, or never."""
        return self._change(scope, (), lambda _: None, relations)[1]

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

        counted, related = self._change(scope, [one.name for one in entities], plan, relations)
        return Stored(*counted, len(related))

    @traced(MemoryOperation.UPDATE, records=len)
    def add_observations(self, scope: Scope, observations: Sequence[Observations]) -> Sequence[Observations]:
        """Add new observations to entities; returns the added ones as stored, for each entity.

        :raises EntityNotFound: If there is no such entity; nothing is changed.
        """
        names = [one.entity_name for one in observations]
        return self._change(scope, names, lambda sketch: [sketch.add(one) for one in observations])[0]

    @traced(MemoryOperation.UPDATE)
    def delete_observations(self, scope: Scope, observations: Sequence[Observations]) -> None:
        """Delete observations of entities; missing ones are ignored."""

        def plan(sketch: Sketch) -> None:
            for one in observations:
                sketch.take(one)

        self._change(scope, [one.entity_name for one in observations], plan)

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

    def _change(
        self, scope: Scope, names: Iterable[str], plan: Callable[[Sketch], T], relations: Sequence[EntityRelation] = ()
    ) -> tuple[T, Sequence[EntityRelation]]:
        """Read the entities of these names, plan their changes, and write them with the relations.

        Writes of one namespace take turns. If a route changed an entity since it was read, nothing is written and the
        change is planned again.

        :return: The result of `plan`, and the new relations.
        :raises SourceForbidden: If the scope may not write to its graph.
        """
        source, named = writable_source(scope), list(dict.fromkeys([*names, *ends(relations)]))
        for relation_type in {one.relation_type for one in relations}:
            if self._engine.screening.text(scope, relation_type) != relation_type:
                raise InvalidRequest("This relation type holds what the policy redacts; choose one that only says what")
        with self._turn(scope):
            for _ in range(TRIES):
                with self._engine.namespace(scope) as (connection, namespace):
                    known = {} if namespace is None else _known(connection, namespace, source, named)
                sketch = Sketch(known, lambda entity: self._clean(scope, source, entity))
                planned = plan(sketch)
                sketch.mention(relations)
                if not (sketch.wanted or sketch.mentioned or relations):
                    return planned, []
                try:
                    return planned, self._engine.write(scope, self._work(scope, source, sketch, named, relations))
                except _Changed:
                    continue
        raise Overloaded("The same entities are being changed concurrently; retry in a second")

    @contextmanager
    def _turn(self, scope: Scope) -> Iterator[None]:
        turn = self._turns[hash(scope.namespace) % _TURNS]
        if not turn.acquire(timeout=time_left(TURN_TIMEOUT_S)):
            raise Overloaded("Too many writes to this knowledge graph are waiting; send this again in a second")
        try:
            yield
        finally:
            turn.release()

    def _work(
        self, scope: Scope, source: str, sketch: Sketch, named: Sequence[str], relations: Sequence[EntityRelation]
    ) -> Callable[[Transaction], list[EntityRelation]]:
        """Screen and embed the memories of a plan; returns the function that writes them and the relations."""
        screening, known = self._engine.screening, sketch.known
        drafts = [draft_of(one, source, notes) for one, notes in sketch.wanted.values() if one.name not in known]
        drafts += [mention_of(name, source) for name in sketch.mentioned]
        drafts = [screening.draft(scope, draft) for draft in drafts]
        changes = [(known[one.name], one, notes) for one, notes in sketch.wanted.values() if one.name in known]
        patches = [screening.patch(scope, patch_of(one, memory, notes)) for memory, one, notes in changes]
        present = [memory for memory, _, _ in changes]
        of_drafts, of_patches = self._engine.prepare_drafts(drafts), self._engine.prepare_patches(patches, present)

        def work(tx: Transaction) -> list[EntityRelation]:
            if _known(tx.connection, tx.namespace, source, named) != known:
                raise _Changed
            for draft, passages in zip(drafts, of_drafts, strict=True):
                tx.insert(draft, passages)
            for memory, patch, passages in zip(present, patches, of_patches, strict=True):
                tx.update(memory.id, patch, passages)
            return _relate(tx, source, relations)

        return work

    def _clean(self, scope: Scope, source: str, entity: Entity) -> tuple[Entity, JsonObject]:
        """:raises InvalidRequest: If its name is blank, or is redacted by the policy."""
        require_visible(entity.name, "name of an entity")
        if self._engine.screening.text(scope, entity.name) != entity.name:
            raise InvalidRequest("This name holds what the policy redacts; choose one that only says who or what it is")
        said = MemoryDraft(entity.name, source, {ENTITY_TYPE: entity.entity_type}, facts=entity.observations)
        clean = self._engine.screening.draft(scope, said)
        observations = tuple(dict.fromkeys(clean.facts))
        stored = replace(entity, entity_type=str(clean.metadata[ENTITY_TYPE]), observations=observations)
        return stored, notes_of(clean.metadata)

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


def writable_source(scope: Scope) -> str:
    """:raises SourceForbidden: If the scope may not write to its graph."""
    source = source_of(scope)
    require_writable(scope, source)
    return source


def _note_relations(tx: Transaction, action: str, count: int) -> None:
    """Record it in the audit log, since relations have no history."""
    if count:
        detail = f"{count} relation{'' if count == 1 else 's'}"
        audit.record(tx.connection, [AuditEvent(tx.now, action, tx.scope.actor, tx.namespace.name, detail=detail)])


def remove_relations(tx: Transaction, source: str, relations: Sequence[EntityRelation]) -> None:
    """Delete relations, and the names that only they used; missing ones are ignored."""
    place, removed = EntityGraph(tx.namespace_id, source), 0
    for one in relations:
        from_ids = rows.ids_of(tx.connection, place, [one.from_entity])
        to_ids = rows.ids_of(tx.connection, place, [one.to_entity])
        removed += rows.remove(tx.connection, from_ids, to_ids, one.relation_type)
        rows.index_again(tx.connection, tx.namespace_id, from_ids)
    tx.delete(rows.unmentioned(tx.connection, rows.ids_of(tx.connection, place, ends(relations))))
    _note_relations(tx, "relation.remove", removed)


def _known(connection: Connection, namespace: Namespace, source: str, names: Iterable[str]) -> dict[str, Memory]:
    """Return the current memories of these names, as stored."""
    ids = rows.living(connection, EntityGraph(namespace.id, source), names)
    memories = reads.as_stored(connection, namespace, ids.values())
    return {name: memories[id_] for name, id_ in ids.items()}


def _relate(tx: Transaction, source: str, relations: Sequence[EntityRelation]) -> list[EntityRelation]:
    """Insert the new relations and return them. Every end has a memory."""
    if not relations:
        return []
    place = EntityGraph(tx.namespace_id, source)
    from_ids = rows.ids_of(tx.connection, place, {one.from_entity for one in relations})
    present = {*rows.relations(tx.connection, place, from_ids)}
    new = [one for one in dict.fromkeys(relations) if one not in present]
    living = rows.living(tx.connection, place, ends(new))
    rows.index_again(tx.connection, tx.namespace_id, {living[one.from_entity] for one in new})
    for one in new:
        link = Link(living[one.from_entity], living[one.to_entity], RELATION + one.relation_type, tx.now)
        transfers.insert_link(tx.connection, link)
    _note_relations(tx, "relation.add", len(new))
    return new
