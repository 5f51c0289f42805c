"""The tier `graph`: the nine tools of the reference MCP memory server, over the knowledge graph."""

from __future__ import annotations

import json
from functools import partial
from operator import itemgetter
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.knowledge_graph import (
    MAX_NAMED,
    EntityName,
    EntityType,
    RelationType,
    SomeObservations,
    note_on,
)
from souvenir.core.errors import InvalidRequest, MemoryPinned
from souvenir.core.types import Role
from souvenir.knowledge.entities import Entity, Graph, Observations, Page
from souvenir.mcp.memory_models import MAX_OFFSET, MAX_QUERY_CHARS
from souvenir.mcp.tools import Arguments, Call, Result, Tool, spelled
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import NOTHING, OF_MEMORY, REMEMBERED
from souvenir.store.graph.relations import EntityRelation

_Names = Annotated[list[EntityName], Field(max_length=MAX_NAMED)]


class GivenEntity(BaseModel):
    name: EntityName
    entity_type: EntityType = Field(validation_alias=spelled("entityType", "entity_type"))
    observations: SomeObservations = Field(description="Observations about it, one fact each.")

    def entity(self) -> Entity:
        return Entity(self.name, self.entity_type, tuple(self.observations))


class GivenRelation(BaseModel):
    from_entity: EntityName = Field(validation_alias="from", description="The name of the entity it starts at.")
    to_entity: EntityName = Field(validation_alias="to", description="The name of the entity it ends at.")
    relation_type: RelationType = Field(validation_alias=spelled("relationType", "relation_type"))

    def relation(self) -> EntityRelation:
        return EntityRelation(self.from_entity, self.to_entity, self.relation_type)


class NewObservations(BaseModel):
    entity_name: EntityName = Field(validation_alias=spelled("entityName", "entity_name"))
    contents: SomeObservations = Field(description="New observations about it, one fact each.")

    def observations(self) -> Observations:
        return Observations(self.entity_name, tuple(self.contents))


class OldObservations(BaseModel):
    entity_name: EntityName = Field(validation_alias=spelled("entityName", "entity_name"))
    gone: SomeObservations = Field(
        validation_alias="observations", description="Observations to delete, word for word as they are stored."
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
    offset: int = Field(
        default=0, ge=0, le=MAX_OFFSET, description="The start; the note of an earlier answer names it."
    )


class ReadGraphArguments(_PartArguments):
    """The whole."""


class SearchNodesArguments(_PartArguments):
    query: str = Field(
        max_length=MAX_QUERY_CHARS,
        description="A word or phrase of a name, a type or an observation; searched by meaning if none contains it.",
    )


class OpenNodesArguments(_PartArguments):
    names: _Names = Field(description="Names of the entities.")


class _Shaped(Result):
    model_config = ConfigDict(
        serialize_by_alias=True, validate_by_name=True, validate_by_alias=True, from_attributes=True
    )

    @classmethod
    def of(cls, value: object) -> Self:
        return cls.model_validate(value)


class ShownEntity(_Shaped):
    name: str
    entity_type: str = Field(validation_alias="entityType", serialization_alias="entityType")
    observations: list[str]


class ShownRelation(_Shaped):
    from_entity: str = Field(validation_alias="from", serialization_alias="from")
    to_entity: str = Field(validation_alias="to", serialization_alias="to")
    relation_type: str = Field(validation_alias="relationType", serialization_alias="relationType")


class CreatedEntities(_Shaped):
    entities: Annotated[list[ShownEntity], OF_MEMORY] = Field(description="The new ones.")


class CreatedRelations(_Shaped):
    relations: Annotated[list[ShownRelation], OF_MEMORY] = Field(description="The new ones.")


class AddedToEntity(_Shaped):
    entity_name: str = Field(validation_alias="entityName", serialization_alias="entityName")
    added_observations: Annotated[list[str], OF_MEMORY] = Field(
        validation_alias="addedObservations", serialization_alias="addedObservations"
    )


class AddedObservations(_Shaped):
    results: list[AddedToEntity] = Field(description="The new observations of each entity.")


class Deleted(_Shaped):
    success: bool
    message: str


class GraphShown(_Shaped):
    entities: list[ShownEntity]
    relations: list[ShownRelation]
    note: str | None = Field(default=None, description="The part that is left out, and how to get it.")

    @classmethod
    def of_graph(cls, graph: Graph) -> Self:
        return cls.of(graph).model_copy(update={"note": note_on(graph)})


def _create_entities(call: Call, asked: CreateEntitiesArguments) -> CreatedEntities:
    made = call.service.graph.knowledge.create_entities(call.scope, [one.entity() for one in asked.entities])
    return CreatedEntities(entities=[ShownEntity.of(one) for one in made])


def _create_relations(call: Call, asked: RelationsArguments) -> CreatedRelations:
    made = call.service.graph.knowledge.create_relations(call.scope, [one.relation() for one in asked.relations])
    return CreatedRelations(relations=[ShownRelation.of(one) for one in made])


def _add_observations(call: Call, asked: AddObservationsArguments) -> AddedObservations:
    added = call.service.graph.knowledge.add_observations(
        call.scope, [one.observations() for one in asked.observations]
    )
    results = [AddedToEntity(entity_name=one.entity_name, added_observations=list(one.contents)) for one in added]
    return AddedObservations(results=results)


def _delete_entities(call: Call, asked: DeleteEntitiesArguments) -> Deleted:
    try:
        call.service.graph.knowledge.delete_entities(call.scope, asked.entity_names)
    except MemoryPinned as error:
        raise InvalidRequest(
            "One of these entities is pinned, so nothing was deleted; the user can unpin it over HTTP"
        ) from error
    return Deleted(success=True, message="Entities deleted successfully")


def _delete_observations(call: Call, asked: DeleteObservationsArguments) -> Deleted:
    call.service.graph.knowledge.delete_observations(call.scope, [one.observations() for one in asked.deletions])
    return Deleted(success=True, message="Observations deleted successfully")


def _delete_relations(call: Call, asked: RelationsArguments) -> Deleted:
    call.service.graph.knowledge.delete_relations(call.scope, [one.relation() for one in asked.relations])
    return Deleted(success=True, message="Relations deleted successfully")


def _read_graph(call: Call, asked: ReadGraphArguments) -> GraphShown:
    return GraphShown.of_graph(call.service.graph.knowledge.read(call.scope, Page(offset=asked.offset)))


def _search_nodes(call: Call, asked: SearchNodesArguments) -> GraphShown:
    return GraphShown.of_graph(call.service.graph.knowledge.search(call.scope, asked.query, Page(offset=asked.offset)))


def _open_nodes(call: Call, asked: OpenNodesArguments) -> GraphShown:
    return GraphShown.of_graph(call.service.graph.knowledge.open(call.scope, asked.names, Page(offset=asked.offset)))


def _indented(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _only_value(answer: dict[str, Any]) -> str:
    """Render the only field of an answer, a list, as the reference server does."""
    [value] = answer.values()
    return _indented(value)


_writer = partial(Tool, cost=CostClass.WRITE, role=Role.READ_WRITE, of_agent=False, needs=NOTHING, idempotent=True)
_reader = partial(Tool, role=Role.READ_ONLY, of_agent=False, needs=REMEMBERED, text=_indented)

TOOLS = (
    _writer(
        "create_entities",
        "Create entities",
        "Add people, projects, things or events to the knowledge graph, each with a type and observations. An existing "
        "entity of that name is not changed; add_observations adds to it.",
        CreateEntitiesArguments,
        CreatedEntities,
        _create_entities,
        text=_only_value,
    ),
    _writer(
        "create_relations",
        "Create relations",
        "State relations between entities of the knowledge graph, in the active voice: Ann works_at Acme. Existing "
        "ones are skipped.",
        RelationsArguments,
        CreatedRelations,
        _create_relations,
        text=_only_value,
    ),
    _writer(
        "add_observations",
        "Add observations",
        "Add observations to entities of the knowledge graph, one fact each.",
        AddObservationsArguments,
        AddedObservations,
        _add_observations,
        text=_only_value,
    ),
    _writer(
        "delete_entities",
        "Delete entities",
        "Delete entities of the knowledge graph permanently, with their observations and relations.",
        DeleteEntitiesArguments,
        Deleted,
        _delete_entities,
        destructive=True,
        text=itemgetter("message"),
    ),
    _writer(
        "delete_observations",
        "Delete observations",
        "Delete single observations of entities of the knowledge graph, such as those that are no longer true.",
        DeleteObservationsArguments,
        Deleted,
        _delete_observations,
        destructive=True,
        text=itemgetter("message"),
    ),
    _writer(
        "delete_relations",
        "Delete relations",
        "Delete relations of the knowledge graph; the entities stay.",
        RelationsArguments,
        Deleted,
        _delete_relations,
        destructive=True,
        text=itemgetter("message"),
    ),
    _reader(
        "read_graph",
        "Read the graph",
        "Read the whole knowledge graph: every entity with its observations, and every relation. To find something, "
        "search_nodes is better.",
        ReadGraphArguments,
        GraphShown,
        _read_graph,
        CostClass.SEARCH,
    ),
    _reader(
        "search_nodes",
        "Search nodes",
        "Find entities of the knowledge graph by a word or phrase, or else by meaning, with their relations.",
        SearchNodesArguments,
        GraphShown,
        _search_nodes,
        CostClass.SEARCH,
    ),
    _reader(
        "open_nodes",
        "Open nodes",
        "Get entities of the knowledge graph by their names, with their relations. Use it when you know the names.",
        OpenNodesArguments,
        GraphShown,
        _open_nodes,
        CostClass.LIGHT,
    ),
)
