"""The tier `graph`: the nine tools of the reference MCP memory server, over the knowledge graph."""

from __future__ import annotations

from souvenir.api.admission import CostClass
from souvenir.api.levels import REMEMBERED
from souvenir.errors import InvalidRequest, MemoryPinned
from souvenir.mcp.graph_models import (
    AddedObservations,
    AddedToEntity,
    AddObservationsArguments,
    CreatedEntities,
    CreatedRelations,
    CreateEntitiesArguments,
    Deleted,
    DeleteEntitiesArguments,
    DeleteObservationsArguments,
    GraphShown,
    OpenNodesArguments,
    ReadGraphArguments,
    RelationsArguments,
    SearchNodesArguments,
    ShownEntity,
    ShownRelation,
)
from souvenir.mcp.tools import Call, Tool
from souvenir.types import Role


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
    return GraphShown.of(call.service.graph.knowledge.read(call.scope, **asked.part))


def _search_nodes(call: Call, asked: SearchNodesArguments) -> GraphShown:
    return GraphShown.of(call.service.graph.knowledge.search(call.scope, asked.query, **asked.part))


def _open_nodes(call: Call, asked: OpenNodesArguments) -> GraphShown:
    return GraphShown.of(call.service.graph.knowledge.open(call.scope, asked.names, **asked.part))


TOOLS = (
    Tool(
        "create_entities",
        "Create entities",
        "Add people, projects, things or events to the knowledge graph, each with a type and what is known of it. An "
        "entity whose name is there already is left as it is; add_observations adds to it.",
        CreateEntitiesArguments,
        CreatedEntities,
        _create_entities,
        CostClass.WRITE,
        role=Role.READ_WRITE,
        idempotent=True,
    ),
    Tool(
        "create_relations",
        "Create relations",
        "Say how entities of the knowledge graph relate, in the active voice: Ann works_at Acme. Those that are there "
        "already are left out.",
        RelationsArguments,
        CreatedRelations,
        _create_relations,
        CostClass.WRITE,
        role=Role.READ_WRITE,
        idempotent=True,
    ),
    Tool(
        "add_observations",
        "Add observations",
        "Add what is newly known about entities that are in the knowledge graph, one fact each.",
        AddObservationsArguments,
        AddedObservations,
        _add_observations,
        CostClass.WRITE,
        role=Role.READ_WRITE,
        idempotent=True,
    ),
    Tool(
        "delete_entities",
        "Delete entities",
        "Forget entities of the knowledge graph for good, with all that is known of them and their relations.",
        DeleteEntitiesArguments,
        Deleted,
        _delete_entities,
        CostClass.WRITE,
        role=Role.READ_WRITE,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "delete_observations",
        "Delete observations",
        "Take single observations away from entities of the knowledge graph, such as what is not true any more.",
        DeleteObservationsArguments,
        Deleted,
        _delete_observations,
        CostClass.WRITE,
        role=Role.READ_WRITE,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "delete_relations",
        "Delete relations",
        "Take relations away from the knowledge graph; the entities stay.",
        RelationsArguments,
        Deleted,
        _delete_relations,
        CostClass.WRITE,
        role=Role.READ_WRITE,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "read_graph",
        "Read the graph",
        "Read the whole knowledge graph: every entity with its observations, and every relation. To find something, "
        "search_nodes is better.",
        ReadGraphArguments,
        GraphShown,
        _read_graph,
        CostClass.SEARCH,
        needs=REMEMBERED,
    ),
    Tool(
        "search_nodes",
        "Search nodes",
        "Find entities of the knowledge graph by a word or phrase, or else by meaning, with their relations.",
        SearchNodesArguments,
        GraphShown,
        _search_nodes,
        CostClass.SEARCH,
        needs=REMEMBERED,
    ),
    Tool(
        "open_nodes",
        "Open nodes",
        "Get entities of the knowledge graph by their names, with their relations. Use it when you know the names.",
        OpenNodesArguments,
        GraphShown,
        _open_nodes,
        CostClass.LIGHT,
        needs=REMEMBERED,
    ),
)
