"""Writes of the knowledge graph, planned from the current state of the entities that they name.

Writers of one namespace are serialised, and a write checks that nothing has changed since it was planned. If a route
changed a memory in the meantime, nothing is written and the operation is retried. Texts are screened as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TypeVar

from souvenir.core.concurrency import time_left
from souvenir.core.errors import EntityNotFound, InvalidRequest, Overloaded
from souvenir.core.labels import notes_of
from souvenir.core.types import JsonObject, Link, Memory, MemoryDraft, Scope
from souvenir.knowledge.entities import (
    Entity,
    Observations,
    draft_of,
    entity_of,
    is_entity,
    mention_of,
    patch_of,
    source_of,
)
from souvenir.memories.engine import MemoryEngine
from souvenir.store import namespaces
from souvenir.store.admin import audit, transfers
from souvenir.store.admin.audit import AuditEvent
from souvenir.store.graph import relations as rows
from souvenir.store.graph.relations import ENTITY_TYPE, RELATION, EntityGraph, EntityRelation
from souvenir.store.memories import reads
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction, require_writable

TRIES = 10
"""Attempts of a write whose entities change concurrently, before it fails."""

TURN_TIMEOUT_S = 30.0
"""How long a write waits for earlier writes."""

_TURNS = 64

T = TypeVar("T")


class _Changed(Exception):
    """The state that a write was based on has changed; nothing was written."""


@dataclass(slots=True)
class Sketch:
    """The plan of a write: the entities that it changes.

    :param known: The current memories of their names, as stored.
    :param clean: Screens an entity; returns it with notes on personal data.
    :param wanted: The entities to write, with these notes.
    :param mentioned: Names that need a memory and have none.
    """

    known: Mapping[str, Memory]
    clean: Callable[[Entity], tuple[Entity, JsonObject]]
    wanted: dict[str, tuple[Entity, JsonObject]] = field(default_factory=dict)
    mentioned: list[str] = field(default_factory=list)

    def entity(self, name: str) -> Entity | None:
        """The entity after the write."""
        if name in self.wanted:
            return self.wanted[name][0]
        memory = self.known.get(name)
        return entity_of(memory) if memory is not None and is_entity(memory) else None

    def create(self, entity: Entity) -> Entity:
        """Add an entity that does not exist."""
        made, notes = self.clean(entity)
        self.wanted[made.name] = (made, notes)
        return made

    def add(self, said: Observations) -> Observations:
        """Add observations; returns the new ones.

        :raises EntityNotFound: If there is no such entity.
        """
        entity = self.entity(said.entity_name)
        if entity is None:
            raise EntityNotFound(said.entity_name)
        clean, notes = self.clean(replace(entity, observations=said.contents))
        new = tuple(one for one in clean.observations if one not in entity.observations)
        if new:
            before = self.wanted.get(entity.name, (entity, {}))[1]
            noted = {key: sorted({*before.get(key, ()), *notes.get(key, ())}) for key in {*before, *notes}}
            self.wanted[entity.name] = (replace(entity, observations=(*entity.observations, *new)), noted)
        return Observations(said.entity_name, new)

    def take(self, said: Observations) -> None:
        """Delete observations, given as they were sent or as they are stored."""
        entity = self.entity(said.entity_name)
        if entity is None:
            return
        gone = {*said.contents, *self.clean(replace(entity, observations=said.contents))[0].observations}
        kept = tuple(one for one in entity.observations if one not in gone)
        if kept != entity.observations:
            self.wanted[entity.name] = (replace(entity, observations=kept), {})

    def mention(self, relations: Iterable[EntityRelation]) -> None:
        """Create a memory for every end of a relation that has none."""
        for name in ends(relations):
            if name not in self.known and name not in self.wanted and name not in self.mentioned:
                self.mentioned.append(self.clean(Entity(name, ""))[0].name)


class GraphWriter:
    """Thread-safe."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._turns = [Lock() for _ in range(_TURNS)]

    def change(
        self, scope: Scope, names: Iterable[str], plan: Callable[[Sketch], T], relations: Sequence[EntityRelation] = ()
    ) -> tuple[T, Sequence[EntityRelation]]:
        """Read the entities of these names, plan their changes, and write them with the relations.

        :return: The result of `plan`, and the new relations.
        :raises SourceForbidden: If the scope may not write to its graph.
        """
        source, named = writable_source(scope), list(dict.fromkeys([*names, *ends(relations)]))
        self._require_storable(scope, relations)
        with self._turn(scope):
            for _ in range(TRIES):
                with self._engine.namespace(scope) as (connection, namespace):
                    known = {} if namespace is None else _known(connection, namespace, source, named)
                sketch = Sketch(known, lambda entity: self._clean(scope, source, entity))
                planned = plan(sketch)
                sketch.mention(relations)
                if not (sketch.wanted or sketch.mentioned or relations):
                    return planned, []
                write = self._prepared(scope, source, sketch)

                def work(
                    tx: Transaction, known: Mapping[str, Memory] = known, write: Callable[[Transaction], None] = write
                ) -> list[EntityRelation]:
                    if _known(tx.connection, tx.namespace, source, named) != known:
                        raise _Changed
                    write(tx)
                    return _relate(tx, source, relations)

                try:
                    return planned, self._engine.write(scope, work)
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

    def _prepared(self, scope: Scope, source: str, sketch: Sketch) -> Callable[[Transaction], None]:
        """Screen and embed the memories of a plan; returns the function that writes them."""
        screening, known = self._engine.screening, sketch.known
        drafts = [draft_of(one, source, notes) for one, notes in sketch.wanted.values() if one.name not in known]
        drafts += [mention_of(name, source) for name in sketch.mentioned]
        drafts = [screening.draft(scope, draft) for draft in drafts]
        changes = [(known[one.name], one, notes) for one, notes in sketch.wanted.values() if one.name in known]
        patches = [screening.patch(scope, patch_of(one, memory, notes)) for memory, one, notes in changes]
        present = [memory for memory, _, _ in changes]
        of_drafts, of_patches = self._engine.prepare_drafts(drafts), self._engine.prepare_patches(patches, present)

        def write(tx: Transaction) -> None:
            for draft, passages in zip(drafts, of_drafts, strict=True):
                tx.insert(draft, passages)
            for memory, patch, passages in zip(present, patches, of_patches, strict=True):
                tx.update(memory.id, patch, passages)

        return write

    def _clean(self, scope: Scope, source: str, entity: Entity) -> tuple[Entity, JsonObject]:
        """:raises InvalidRequest: If its name is blank, or is redacted by the policy."""
        if not entity.name.strip():
            raise InvalidRequest("An entity needs a name; give one that is not blank")
        if self._engine.screening.text(scope, entity.name) != entity.name:
            raise InvalidRequest("This name holds what the policy redacts; choose one that only says who or what it is")
        said = MemoryDraft(entity.name, source, {ENTITY_TYPE: entity.entity_type}, facts=entity.observations)
        clean = self._engine.screening.draft(scope, said)
        observations = tuple(dict.fromkeys(clean.facts))
        stored = replace(entity, entity_type=str(clean.metadata[ENTITY_TYPE]), observations=observations)
        return stored, notes_of(clean.metadata)

    def _require_storable(self, scope: Scope, relations: Iterable[EntityRelation]) -> None:
        for relation_type in {one.relation_type for one in relations}:
            if self._engine.screening.text(scope, relation_type) != relation_type:
                raise InvalidRequest("This relation type holds what the policy redacts; choose one that only says what")


def writable_source(scope: Scope) -> str:
    """:raises SourceForbidden: If the scope may not write to its graph."""
    source = source_of(scope)
    require_writable(scope, source)
    return source


def ends(relations: Iterable[EntityRelation]) -> list[str]:
    """Return the names at both ends, without duplicates."""
    return list(dict.fromkeys(name for one in relations for name in (one.from_entity, one.to_entity)))


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


def _known(
    connection: Connection, namespace: namespaces.Namespace, source: str, names: Iterable[str]
) -> dict[str, Memory]:
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
