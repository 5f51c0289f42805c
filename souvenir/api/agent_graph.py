"""The graph of an agent: exported whole, and what somebody says of its concepts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import StreamingResponse

from souvenir.api.agent_graph_models import GraphDocument, StateConceptsRequest, StateConceptsResponse
from souvenir.api.agents import AgentName
from souvenir.api.caller import Reader, RunningService, Writer, agent_scope
from souvenir.api.errors import error_responses
from souvenir.api.graph_files import GraphMl, JsonGraph
from souvenir.api.json_route import router
from souvenir.errors import InvalidRequest
from souvenir.graph.export import graph_pieces

routes = router("agents")

GRAPHML = "application/graphml+xml"


class GraphFileFormat(StrEnum):
    """What a graph is written as."""

    JSON = "json"
    GRAPHML = "graphml"


@routes.get(
    "/agents/{agent_name}/graph",
    summary="Export an agent's graph",
    response_class=StreamingResponse,
    responses={
        **error_responses(400, 404),
        200: {
            "description": "The graph, in the format that was asked for.",
            "model": GraphDocument,
            "content": {GRAPHML: {"schema": {"type": "string"}}},
        },
    },
)
def export_graph(
    agent_name: AgentName,
    _: Reader,
    service: RunningService,
    request: Request,
    format: Annotated[GraphFileFormat, Query(description="JSON, or GraphML.")] = GraphFileFormat.JSON,
    embeddings: Annotated[bool, Query(description="Add the vectors of messages; in JSON only.")] = False,
) -> StreamingResponse:
    """Stream one state of an agent's graph: who said what in which session, and what it is about."""
    scope = agent_scope(request, agent_name)
    written_as = _writer_of(format, embeddings=embeddings)
    service.audit.act(scope, "export")
    pieces = graph_pieces(service.engine, scope, written_as, embeddings=embeddings)
    media_type = "application/json" if format is GraphFileFormat.JSON else GRAPHML
    return StreamingResponse(service.transfer.exports.stream_lines(pieces), media_type=media_type)


def _writer_of(written_as: GraphFileFormat, *, embeddings: bool) -> JsonGraph | GraphMl:
    if written_as is GraphFileFormat.JSON:
        return JsonGraph()
    if embeddings:
        raise InvalidRequest("GraphML holds no vectors; leave embeddings out, or ask for format=json")
    return GraphMl()


@routes.post("/agents/{agent_name}/graph", summary="Say what is known of concepts", responses=error_responses(404))
def state_concepts(
    agent_name: AgentName, body: StateConceptsRequest, _: Writer, service: RunningService, request: Request
) -> StateConceptsResponse:
    """Say what concepts of an agent are called, are, and are to each other, in one transaction; once is enough."""
    concepts, relations = [one.said() for one in body.concepts], [one.said() for one in body.relations]
    return StateConceptsResponse.of(service.graph.stating.state(agent_scope(request, agent_name), concepts, relations))
