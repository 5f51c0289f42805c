"""The knowledge graph: entities with observations, and relations between them."""

from __future__ import annotations

from typing import Annotated, Any, Self

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.fields import MAX_ID, MAX_TEXT_CHARS, AsOf, Clean, Key, Record, Text
from souvenir.core.errors import InvalidRequest
from souvenir.knowledge.entities import MAX_ENTITIES, Entity, Graph, Page
from souvenir.knowledge.knowledge_graph import MAX_RELATIONS
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import REMEMBERED, Reader, RunningService, Writer
from souvenir.server.routing import Routes
from souvenir.store.graph.relations import EntityRelation

routes = Routes("graph")

MAX_NAMED = 1_000
"""Entities, relations or names in one request."""

EntityName = Annotated[Key, Field(description="The entity's name (case-sensitive).")]
EntityType = Annotated[
    str, StringConstraints(max_length=200), Clean, Field(description="The type of the entity, such as `person`.")
]
RelationType = Annotated[
    str,
    StringConstraints(min_length=1, max_length=180),
    Clean,
    Field(description="The type of the relation, in active voice, such as `works_at`."),
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
        default_factory=list, description="Observations, one fact each; stored verbatim."
    )

    def entity(self) -> Entity:
        return Entity(self.name, self.entity_type, tuple(self.observations))


class RelationRecord(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_RELATION_EXAMPLE]})

    from_entity: EntityName
    to_entity: EntityName
    relation_type: RelationType

    @classmethod
    def of(cls, one: EntityRelation) -> Self:
        # Stored data was validated, possibly by an earlier release with wider limits.
        return cls.model_construct(
            from_entity=one.from_entity, to_entity=one.to_entity, relation_type=one.relation_type
        )

    def relation(self) -> EntityRelation:
        return EntityRelation(self.from_entity, self.to_entity, self.relation_type)


class StoreGraphRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_GRAPH_EXAMPLE]})

    entities: Annotated[list[EntityToStore], Field(max_length=MAX_NAMED)] = Field(
        default_factory=list, description="Entities; an existing one gets its missing observations."
    )
    relations: Annotated[list[RelationRecord], Field(max_length=MAX_NAMED)] = Field(
        default_factory=list, description="Relations between names; an entity can be created later."
    )


class StoreGraphResponse(Record):
    entities_created: int
    entities_updated: int = Field(description="The number of existing entities that got observations.")
    observations_added: int = Field(description="The number of observations added to new and existing entities.")
    relations_created: int


class EntityRecord(Record):
    id: int = Field(validation_alias="memory_id", description="The id of the memory that stores the entity.")
    name: str = Field(examples=["Ann_Lee"])
    entity_type: str = Field(examples=["person"])
    observations: list[str] = Field(examples=[["Speaks Basque", "Prefers morning meetings"]])


class GraphResponse(BaseModel):
    entities: list[EntityRecord] = Field(description="In order of creation, or with `q` the most similar first.")
    relations: list[RelationRecord] = Field(
        description="For the whole graph, relations that start at names of this page; with `q` or `names`, all "
        "relations of these entities."
    )
    next_offset: int | None = Field(description="The offset of the next page; null on the last page.")
    note: str | None = Field(default=None, description="A note on omitted entries, if any.")

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


_Query = Annotated[
    Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT_CHARS), Clean] | None,
    Query(
        description="Only entities that contain this text (case-insensitive); if there are none, the entities "
        "most similar in meaning."
    ),
]
_Names = Annotated[list[EntityName] | None, Query(max_length=MAX_NAMED, description="Only entities with these names.")]


@routes.get(
    "/knowledge-graph",
    summary="Get the knowledge graph",
    cost=CostClass.SEARCH,
    access=REMEMBERED,
    sdk="graph.read",
)
def read_graph(
    scope: Reader,
    service: RunningService,
    q: _Query = None,
    names: _Names = None,
    offset: Annotated[int, Query(ge=0, le=MAX_ID, description="Number of names to skip.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_ENTITIES, description="Maximum number of names.")] = MAX_ENTITIES,
    as_of: Annotated[
        AsOf | None,
        Query(
            description="Read the graph as it was at this time: ISO-8601, UTC without an offset; a future time means "
            "now. Entities and relations deleted since then are not included."
        ),
    ] = None,
) -> GraphResponse:
    """Get entities with observations and relations: all, those that match a query, or those with given names."""
    if q is not None and names is not None:
        raise InvalidRequest("Send q or names, not both")
    graph, page = service.graph.knowledge, Page(as_of, offset, limit)
    if q is not None:
        return GraphResponse.of(graph.search(scope, q, page))
    if names is not None:
        return GraphResponse.of(graph.open(scope, names, page))
    return GraphResponse.of(graph.read(scope, page))


@routes.post(
    "/knowledge-graph",
    summary="Upsert a knowledge graph",
    cost=CostClass.WRITE,
    large_body=True,
    sdk="graph.store",
    idempotent=True,
)
def store_graph(body: StoreGraphRequest, scope: Writer, service: RunningService) -> StoreGraphResponse:
    """Store the entities, observations and relations that do not exist yet (atomic, idempotent)."""
    entities, relations = [one.entity() for one in body.entities], [one.relation() for one in body.relations]
    return StoreGraphResponse.of(service.graph.knowledge.store(scope, entities, relations))
