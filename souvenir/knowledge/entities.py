"""The elements of the knowledge graph, the representation of an entity as a memory, and the plan of a write.

The memory's key is the entity's name, its metadata holds the type, its facts are the observations, verbatim, and its
text is a readable profile of them. If a caller replaced the profile by another text, the lines of that text are the
observations until the graph writes the entity again: facts that a model or sentence splitting derived from the text
are not observations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from souvenir.core.errors import EntityNotFound
from souvenir.core.labels import SEPARATOR, is_visible, notes_of
from souvenir.core.types import FactsBy, JsonObject, Memory, MemoryDraft, MemoryPatch, OriginClass, Scope
from souvenir.store.graph.relations import ENTITY_SOURCE, ENTITY_TYPE, MENTIONED_ONLY, EntityRelation, type_in

MAX_ENTITIES = 1_000
"""Limit for one answer."""

MAX_PROFILE_CHARS = 2_000
"""Maximum length of the profile text. Further observations are found as facts, so that adding one costs only itself."""

CUT = "…"


@dataclass(frozen=True, slots=True)
class Entity:
    """:param memory_id: The entity's memory; None before it is created."""

    name: str
    entity_type: str
    observations: tuple[str, ...] = ()
    memory_id: int | None = None


@dataclass(frozen=True, slots=True)
class Observations:
    """Observations of one entity: to add, just added, or to remove."""

    entity_name: str
    contents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the entities of a graph. :param as_of: The graph as it was then; None for now."""

    as_of: datetime | None = None
    offset: int = 0
    limit: int = MAX_ENTITIES


@dataclass(frozen=True, slots=True)
class Graph:
    """A part of the graph.

    :param next_offset: The offset of the next part; None after the last one.
    :param relations_cut: True if its entities have more relations than these.
    """

    entities: Sequence[Entity] = ()
    relations: Sequence[EntityRelation] = ()
    next_offset: int | None = None
    relations_cut: bool = False


@dataclass(frozen=True, slots=True)
class Stored:
    """:param entities_updated: The number of existing entities that got new observations."""

    entities_created: int
    entities_updated: int
    observations_added: int
    relations_created: int


def source_of(scope: Scope) -> str:
    """Return the source that holds the graph of a scope."""
    if not scope.sources or is_visible(ENTITY_SOURCE, scope.sources):
        return ENTITY_SOURCE
    return scope.sources[0].rstrip(SEPARATOR) + SEPARATOR + ENTITY_SOURCE


def shown_name(name: str) -> str:
    """Return the name as words: names are often written as identifiers, in which search finds no word."""
    return " ".join(name.replace("_", " ").split()) or name


def is_entity(memory: Memory) -> bool:
    """Return True if the memory is an entity; otherwise it only exists as the end of a relation."""
    return memory.metadata.get(MENTIONED_ONLY) is not True


def entity_of(memory: Memory) -> Entity:
    said = [fact.text for fact in memory.facts]
    if not any(fact.made_by is FactsBy.CALLER for fact in memory.facts):
        of_profile = {heading(memory.key or "", type_in(memory.metadata)), CUT, ""}
        said = [line for line in map(str.strip, memory.text.splitlines()) if line not in of_profile]
    return Entity(memory.key or "", type_in(memory.metadata), tuple(dict.fromkeys(said)), memory.id)


def draft_of(entity: Entity, source: str, notes: JsonObject) -> MemoryDraft:
    """Return a memory for a new entity.

    :param notes: Notes on personal data in its observations.
    """
    return MemoryDraft(
        profile(entity),
        source,
        {ENTITY_TYPE: entity.entity_type, **notes},
        entity.name,
        origin_class=OriginClass.ASSISTANT,
        facts=entity.observations,
    )


def mention_of(name: str, source: str) -> MemoryDraft:
    """Return a memory for a name that only relations use."""
    return MemoryDraft(shown_name(name), source, {MENTIONED_ONLY: True}, name, origin_class=OriginClass.ASSISTANT)


def patch_of(entity: Entity, memory: Memory, notes: JsonObject) -> MemoryPatch:
    """Return the changes that turn a memory into that of the entity. Earlier notes on personal data are kept.

    :param notes: Notes on personal data in its new observations.
    """
    text, noted = profile(entity), _both_notes(notes_of(memory.metadata), notes)
    metadata = {ENTITY_TYPE: entity.entity_type, MENTIONED_ONLY: None, **noted}
    return MemoryPatch(text=None if text == memory.text else text, metadata=metadata, facts=entity.observations)


def profile(entity: Entity) -> str:
    """Return the name with the type, and a line for each observation."""
    lines = [heading(entity.name, entity.entity_type), *(" ".join(one.split()) for one in entity.observations)]
    text = "\n".join(lines)
    return text if len(text) <= MAX_PROFILE_CHARS else f"{text[:MAX_PROFILE_CHARS].rstrip()}\n{CUT}"


def heading(name: str, entity_type: str) -> str:
    """Return the first line of a profile."""
    kind = " ".join(entity_type.split())
    return f"{shown_name(name)} ({kind})" if kind else shown_name(name)


def ends(relations: Iterable[EntityRelation]) -> list[str]:
    """Return the names at both ends, without duplicates."""
    return list(dict.fromkeys(name for one in relations for name in (one.from_entity, one.to_entity)))


def _both_notes(before: JsonObject, notes: JsonObject) -> JsonObject:
    return {key: sorted({*before.get(key, ()), *notes.get(key, ())}) for key in {*before, *notes}}


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
            noted = _both_notes(self.wanted.get(entity.name, (entity, {}))[1], notes)
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
