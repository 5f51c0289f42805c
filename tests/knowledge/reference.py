"""Reference implementation of the nine operations of the MCP memory server over plain lists: slow and obvious.

One accident of the original is not copied: it stores an item twice if one call contains it twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from souvenir.knowledge.entities import Entity, Observations
from souvenir.store.graph.relations import EntityRelation


class ReferenceGraph:
    def __init__(self) -> None:
        self.entities: list[Entity] = []
        self.relations: list[EntityRelation] = []

    def named(self, name: str) -> Entity | None:
        return next((one for one in self.entities if one.name == name), None)

    def create_entities(self, entities: Sequence[Entity]) -> list[Entity]:
        made = []
        for one in entities:
            if self.named(one.name) is None:
                made.append(replace(one, observations=tuple(dict.fromkeys(one.observations))))
                self.entities.append(made[-1])
        return made

    def create_relations(self, relations: Sequence[EntityRelation]) -> list[EntityRelation]:
        new = [one for one in dict.fromkeys(relations) if one not in self.relations]
        self.relations += new
        return new

    def add_observations(self, observations: Sequence[Observations]) -> list[Observations]:
        if any(self.named(one.entity_name) is None for one in observations):
            raise LookupError
        added = []
        for one in observations:
            entity = next(held for held in self.entities if held.name == one.entity_name)
            new = tuple(said for said in dict.fromkeys(one.contents) if said not in entity.observations)
            self._put(replace(entity, observations=(*entity.observations, *new)))
            added.append(Observations(one.entity_name, new))
        return added

    def delete_entities(self, names: Sequence[str]) -> None:
        self.entities = [one for one in self.entities if one.name not in names]
        self.relations = [one for one in self.relations if one.from_entity not in names and one.to_entity not in names]

    def delete_observations(self, observations: Sequence[Observations]) -> None:
        for one in observations:
            if (entity := self.named(one.entity_name)) is not None:
                kept = tuple(said for said in entity.observations if said not in one.contents)
                self._put(replace(entity, observations=kept))

    def delete_relations(self, relations: Sequence[EntityRelation]) -> None:
        self.relations = [one for one in self.relations if one not in relations]

    def read(self) -> tuple[list[Entity], set[EntityRelation]]:
        return list(self.entities), set(self.relations)

    def search(self, query: str) -> tuple[list[Entity], set[EntityRelation]]:
        words = query.lower()
        return self._touching(
            [
                one
                for one in self.entities
                if any(words in said.lower() for said in (one.name, one.entity_type, *one.observations))
            ]
        )

    def open(self, names: Sequence[str]) -> tuple[list[Entity], set[EntityRelation]]:
        return self._touching([one for one in self.entities if one.name in names])

    def _touching(self, entities: Sequence[Entity]) -> tuple[list[Entity], set[EntityRelation]]:
        names = {one.name for one in entities}
        touching = [one for one in self.relations if one.from_entity in names or one.to_entity in names]
        return list(entities), set(touching)

    def _put(self, entity: Entity) -> None:
        self.entities = [entity if one.name == entity.name else one for one in self.entities]
