"""The knowledge graph over HTTP: entities with observations, and relations between them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import StringConstraints

from souvenir.api.caller import Reader, RunningService, Writer
from souvenir.api.errors import error_responses
from souvenir.api.fields import MAX_ID, MAX_TEXT_CHARS, Clean
from souvenir.api.graph_models import (
    MAX_NAMED,
    EntityName,
    GraphResponse,
    StoreGraphRequest,
    StoreGraphResponse,
)
from souvenir.api.json_route import router
from souvenir.errors import InvalidRequest
from souvenir.graph.knowledge_graph import MAX_ENTITIES

routes = router("graph")

_Query = Annotated[
    Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT_CHARS), Clean] | None,
    Query(description="Only entities that contain this, in any case; if none does, those near to it by meaning."),
]
_Names = Annotated[
    list[EntityName] | None, Query(max_length=MAX_NAMED, description="Only the entities of these names.")
]


@routes.get("/knowledge-graph", summary="Read the knowledge graph", responses=error_responses())
def read_graph(
    scope: Reader,
    service: RunningService,
    q: _Query = None,
    names: _Names = None,
    offset: Annotated[int, Query(ge=0, le=MAX_ID, description="Names to leave out first.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_ENTITIES, description="Names at most.")] = MAX_ENTITIES,
) -> GraphResponse:
    """Read entities with what is observed of them and how they relate: all, or those that contain or are named so."""
    if q is not None and names is not None:
        raise InvalidRequest("Send q or names, not both")
    if q is not None:
        return GraphResponse.of(service.graph.knowledge.search(scope, q, offset=offset, limit=limit))
    if names is not None:
        return GraphResponse.of(service.graph.knowledge.open(scope, names, offset=offset, limit=limit))
    return GraphResponse.of(service.graph.knowledge.read(scope, offset=offset, limit=limit))


@routes.post("/knowledge-graph", summary="Store a knowledge graph", responses=error_responses())
def store_graph(body: StoreGraphRequest, scope: Writer, service: RunningService) -> StoreGraphResponse:
    """Store what is not there yet of a graph, in one transaction; sending it again changes nothing."""
    entities, relations = [one.entity() for one in body.entities], [one.relation() for one in body.relations]
    return StoreGraphResponse.of(service.graph.knowledge.store(scope, entities, relations))
