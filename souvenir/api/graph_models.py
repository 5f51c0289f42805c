"""What the routes of the knowledge graph take and answer, and the fields of entities, which MCP's tools take too."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.fields import Clean, Key, Text
from souvenir.graph.entities import Entity, Graph, Stored
from souvenir.graph.knowledge_graph import MAX_RELATIONS
from souvenir.store.relations import Relation

MAX_NAMED = 1_000
"""Entities, relations or names in one request."""

EntityName = Annotated[Key, Field(description="The entity's name; another case is another entity.")]
EntityType = Annotated[
    str, StringConstraints(max_length=200), Clean, Field(description="What kind of thing it is, such as `person`.")
]
RelationType = Annotated[
    str,
    StringConstraints(min_length=1, max_length=180),
    Clean,
    Field(description="What the one is to the other, in the active voice, such as `works_at`."),
]
SomeObservations = Annotated[list[Text], Field(max_length=MAX_NAMED)]

_ENTITY_EXAMPLE: dict[str, Any] = {
    "name": "Ann_Lee",
    "entity_type": "person",
    "observations": ["Speaks Basque", "Prefers morning meetings"],
}
_RELATION_EXAMPLE: dict[str, Any] = {"from_entity": "Ann_Lee", "to_entity": "Acme", "relation_type": "works_at"}
_GRAPH_EXAMPLE: dict[str, Any] = {"entities": [_ENTITY_EXAMPLE], "relations": [_RELATION_EXAMPLE]}


class EntityToStore(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_ENTITY_EXAMPLE]})

    name: EntityName
    entity_type: EntityType = ""
    observations: SomeObservations = Field(
        default_factory=list, description="What is known of it, one fact each; kept word for word."
    )

    def entity(self) -> Entity:
        return Entity(self.name, self.entity_type, tuple(self.observations))


class RelationRecord(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_RELATION_EXAMPLE]})

    from_entity: EntityName
    to_entity: EntityName
    relation_type: RelationType

    @classmethod
    def of(cls, one: Relation) -> Self:
        # What is stored was checked, and may be of a release that took more.
        return cls.model_construct(
            from_entity=one.from_entity, to_entity=one.to_entity, relation_type=one.relation_type
        )

    def relation(self) -> Relation:
        return Relation(self.from_entity, self.to_entity, self.relation_type)


class StoreGraphRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_GRAPH_EXAMPLE]})

    entities: Annotated[list[EntityToStore], Field(max_length=MAX_NAMED)] = Field(
        default_factory=list, description="One that is there gets the observations that it lacks."
    )
    relations: Annotated[list[RelationRecord], Field(max_length=MAX_NAMED)] = Field(
        default_factory=list, description="Between names; one that no entity has yet can be made later."
    )


class StoreGraphResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"entities_created": 1, "entities_updated": 0, "observations_added": 2, "relations_created": 1}
            ]
        }
    )

    entities_created: int
    entities_updated: int = Field(description="That were there and got observations.")
    observations_added: int = Field(description="To new entities and to those that were there.")
    relations_created: int

    @classmethod
    def of(cls, stored: Stored) -> Self:
        return cls(
            entities_created=stored.entities,
            entities_updated=stored.updated,
            observations_added=stored.observations,
            relations_created=stored.relations,
        )


class EntityRecord(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"id": 12, **_ENTITY_EXAMPLE}]})

    id: int = Field(description="Of the memory that it is.")
    name: str
    entity_type: str
    observations: list[str]

    @classmethod
    def of(cls, entity: Entity) -> Self:
        return cls(
            id=entity.memory_id or 0,
            name=entity.name,
            entity_type=entity.entity_type,
            observations=list(entity.observations),
        )


class GraphResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"entities": [{"id": 12, **_ENTITY_EXAMPLE}], "relations": [_RELATION_EXAMPLE], "next_offset": None}
            ]
        }
    )

    entities: list[EntityRecord] = Field(
        description="In the order of their making, or with `q` by meaning the nearest first."
    )
    relations: list[RelationRecord] = Field(
        description="Of the whole graph those that begin at names of this page; with `q` or `names` all that touch "
        "these entities."
    )
    next_offset: int | None = Field(description="Where the next page begins; null if this is the last.")
    note: str | None = Field(default=None, description="What is left out, if anything is.")

    @classmethod
    def of(cls, graph: Graph) -> Self:
        return cls(
            entities=[EntityRecord.of(one) for one in graph.entities],
            relations=[RelationRecord.of(one) for one in graph.relations],
            next_offset=graph.next_offset,
            note=note_on(graph),
        )


def note_on(graph: Graph) -> str | None:
    """A sentence on what an answer leaves out; None if that is nothing."""
    said = []
    if graph.next_offset is not None:
        said.append(f"This is a part of the graph; ask again with offset {graph.next_offset} for the rest.")
    if graph.relations_cut:
        said.append(f"Only the first {MAX_RELATIONS} relations are shown; ask for fewer entities at once for the rest.")
    return " ".join(said) or None
