"""What the tools of the tier `graph` take and answer: the names and shapes of the reference MCP memory server."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.graph_models import (
    MAX_NAMED,
    EntityName,
    EntityType,
    RelationType,
    SomeObservations,
    note_on,
)
from souvenir.graph.entities import Entity, Graph, Observations
from souvenir.graph.knowledge_graph import MAX_ENTITIES
from souvenir.mcp.memory_models import MAX_OFFSET, MAX_QUERY_CHARS
from souvenir.mcp.tools import Arguments, Result, spelled
from souvenir.store.relations import Relation

_Names = Annotated[list[EntityName], Field(max_length=MAX_NAMED)]


class GivenEntity(BaseModel):
    name: EntityName
    entity_type: EntityType = Field(validation_alias=spelled("entityType", "entity_type"))
    observations: SomeObservations = Field(description="What is known of it, one fact each.")

    def entity(self) -> Entity:
        return Entity(self.name, self.entity_type, tuple(self.observations))


class GivenRelation(BaseModel):
    from_entity: EntityName = Field(validation_alias="from", description="The name of the entity it starts at.")
    to_entity: EntityName = Field(validation_alias="to", description="The name of the entity it ends at.")
    relation_type: RelationType = Field(validation_alias=spelled("relationType", "relation_type"))

    def relation(self) -> Relation:
        return Relation(self.from_entity, self.to_entity, self.relation_type)


class NewObservations(BaseModel):
    entity_name: EntityName = Field(validation_alias=spelled("entityName", "entity_name"))
    contents: SomeObservations = Field(description="What is new about it, one fact each.")

    def observations(self) -> Observations:
        return Observations(self.entity_name, tuple(self.contents))


class OldObservations(BaseModel):
    entity_name: EntityName = Field(validation_alias=spelled("entityName", "entity_name"))
    gone: SomeObservations = Field(
        validation_alias="observations", description="What is not to be known any more, word for word as it stands."
    )

    def observations(self) -> Observations:
        return Observations(self.entity_name, tuple(self.gone))


class CreateEntitiesArguments(Arguments):
    entities: Annotated[list[GivenEntity], Field(max_length=MAX_NAMED)]


class RelationsArguments(Arguments):
    relations: Annotated[list[GivenRelation], Field(max_length=MAX_NAMED)]


class AddObservationsArguments(Arguments):
    observations: Annotated[list[NewObservations], Field(max_length=MAX_NAMED)]


class DeleteEntitiesArguments(Arguments):
    entity_names: _Names = Field(validation_alias=spelled("entityNames", "entity_names"))


class DeleteObservationsArguments(Arguments):
    deletions: Annotated[list[OldObservations], Field(max_length=MAX_NAMED)]


class _PartArguments(Arguments):
    offset: int = Field(default=0, ge=0, le=MAX_OFFSET, description="Where to begin; an earlier answer's note says.")

    @property
    def part(self) -> dict[str, int]:
        return {"offset": self.offset, "limit": MAX_ENTITIES}


class ReadGraphArguments(_PartArguments):
    """The whole."""


class SearchNodesArguments(_PartArguments):
    query: str = Field(
        max_length=MAX_QUERY_CHARS,
        description="A word or phrase of a name, a type or an observation; what none holds is searched by meaning.",
    )


class OpenNodesArguments(_PartArguments):
    names: _Names = Field(description="Of the entities wanted.")


class _Shaped(Result):
    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True, validate_by_alias=True)


class ShownEntity(_Shaped):
    name: str
    entity_type: str = Field(validation_alias="entityType", serialization_alias="entityType")
    observations: list[str]

    @classmethod
    def of(cls, one: Entity) -> Self:
        return cls(name=one.name, entity_type=one.entity_type, observations=list(one.observations))


class ShownRelation(_Shaped):
    from_entity: str = Field(validation_alias="from", serialization_alias="from")
    to_entity: str = Field(validation_alias="to", serialization_alias="to")
    relation_type: str = Field(validation_alias="relationType", serialization_alias="relationType")

    @classmethod
    def of(cls, one: Relation) -> Self:
        return cls(from_entity=one.from_entity, to_entity=one.to_entity, relation_type=one.relation_type)


class CreatedEntities(_Shaped):
    entities: list[ShownEntity] = Field(description="Those that are new.")


class CreatedRelations(_Shaped):
    relations: list[ShownRelation] = Field(description="Those that are new.")


class AddedToEntity(_Shaped):
    entity_name: str = Field(validation_alias="entityName", serialization_alias="entityName")
    added_observations: list[str] = Field(validation_alias="addedObservations", serialization_alias="addedObservations")


class AddedObservations(_Shaped):
    results: list[AddedToEntity] = Field(description="What was new, for each entity.")


class Deleted(_Shaped):
    success: bool
    message: str


class GraphShown(_Shaped):
    entities: list[ShownEntity]
    relations: list[ShownRelation]
    note: str | None = Field(default=None, description="What is left out, and how to get it.")

    @classmethod
    def of(cls, graph: Graph) -> Self:
        return cls(
            entities=[ShownEntity.of(one) for one in graph.entities],
            relations=[ShownRelation.of(one) for one in graph.relations],
            note=note_on(graph),
        )
