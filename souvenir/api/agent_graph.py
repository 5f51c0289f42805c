"""The concept graph of an agent as a file, and callers' statements about its concepts."""

from __future__ import annotations

from typing import Annotated, Any, Self

from fastapi import Query
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.fields import Clean, printable
from souvenir.api.parameters import AgentReader, AgentWriter
from souvenir.knowledge.claim_types import ConceptStatement, RelationStatement, StatementResult
from souvenir.knowledge.graph_export import graph_pieces
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import REMEMBERED, RunningService
from souvenir.server.routing import Routes

routes = Routes("agents")

MAX_STATED = 1_000
MAX_ALIASES = 50
MAX_DESCRIPTION_CHARS = 10_000

_Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), Clean, AfterValidator(printable)
]
ConceptKey = Annotated[_Name, Field(description="The `key` of a concept, or one of its names.")]
Description = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_DESCRIPTION_CHARS), Clean
]


class GraphNode(BaseModel):
    """A node of a graph."""

    id: str = Field(description="The id of the node, unique in this graph.", examples=["message-7"])
    label: str = Field(
        description="`User`, `Session`, `Message`, `Concept`, `Topic` or `Memory`.", examples=["Message"]
    )
    properties: dict[str, Any] = Field(
        examples=[
            {
                "message_id": "0f8f5b0a-64a3-4c88-9d3b-0a6a5a0b8c11",
                "content": "My favourite colour is blue.",
                "role": "user",
                "timestamp": "2025-04-02T09:30:00.000000+00:00",
            }
        ]
    )


class GraphRelation(BaseModel):
    """An edge of a graph."""

    type: str = Field(
        description="`SENT`, `RECEIVED`, `CONTAINS`, `MENTIONS`, `RELATES_TO`, `DISCUSSES`, `BELONGS_TO`, "
        "`TRIGGERS` or `REFERENCES`.",
        examples=["CONTAINS"],
    )
    from_id: str = Field(description="The id of a node.", examples=["session-3"])
    to_id: str = Field(description="The id of a node.", examples=["message-7"])
    properties: dict[str, Any] = Field(examples=[{"sequence_number": 1}])


class GraphDocument(BaseModel):
    """The graph of an agent."""

    format: str = Field(examples=["souvenir-graph"])
    version: str = Field(examples=["1.0"])
    agent: str = Field(examples=["my_agent"])
    exported_at: str
    nodes: list[GraphNode]
    relations: list[GraphRelation]


_CONCEPT: dict[str, Any] = {"key": "redis", "description": "Where sessions are cached.", "aliases": ["the cache"]}
_RELATION: dict[str, Any] = {
    "from_key": "redis",
    "to_key": "billing",
    "relationship_type": "caches_for",
    "strength": 0.9,
}


class ConceptToState(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_CONCEPT]})

    key: ConceptKey
    name: Annotated[_Name | None, Field(description="Replaces the most frequent name.")] = None
    description: Annotated[Description | None, Field(description="The description.")] = None
    kind: Annotated[_Name | None, Field(description="Replaces the most frequent kind; stored in snake_case.")] = None
    aliases: Annotated[list[_Name], Field(max_length=MAX_ALIASES, description="Other names.")] = Field(
        default_factory=list
    )

    def statement(self) -> ConceptStatement:
        return ConceptStatement(self.key, self.name, self.description, self.kind, self.aliases)


class RelationToState(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_RELATION]})

    from_key: ConceptKey
    to_key: ConceptKey
    relationship_type: Annotated[
        _Name, Field(description="The type of the relation, such as `works_at`; stored in snake_case.")
    ]
    strength: Annotated[float, Field(ge=0, le=1, description="The confidence.")] = 1.0

    def statement(self) -> RelationStatement:
        return RelationStatement(self.from_key, self.to_key, self.relationship_type, self.strength)


class StateConceptsRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"concepts": [_CONCEPT], "relations": [_RELATION]}]})

    concepts: Annotated[list[ConceptToState], Field(max_length=MAX_STATED)] = Field(
        default_factory=list, description="Statements about concepts that texts mention."
    )
    relations: Annotated[list[RelationToState], Field(max_length=MAX_STATED)] = Field(
        default_factory=list, description="Relations between concepts."
    )


class StateConceptsResponse(BaseModel):
    stated: int = Field(description="The number of stored names, descriptions, kinds, other names and relations.")
    unchanged: int = Field(description="The number of statements that already existed.")
    unknown: list[str] = Field(
        description="Keys of concepts that no text mentions, as far as texts have been read.", examples=[[]]
    )
    unread: int = Field(description="The number of messages and memories that are not read yet.")

    @classmethod
    def of(cls, stated: StatementResult) -> Self:
        return cls(stated=stated.stated, unchanged=stated.unchanged, unknown=list(stated.unknown), unread=stated.unread)


@routes.get(
    "/agents/{agent_name}/graph",
    summary="Export an agent's graph",
    cost=CostClass.LONG,
    sdk="agents.graph",
    response_class=StreamingResponse,
    errors=[404],
    responses={200: {"description": "The graph.", "model": GraphDocument}},
    openapi_extra={"x-streamed": True},
)
def export_graph(
    scope: AgentReader,
    service: RunningService,
    embeddings: Annotated[bool, Query(description="Include the vectors of messages.")] = False,
) -> StreamingResponse:
    """Stream a consistent snapshot of an agent's graph of users, sessions, messages, concepts, topics and memories."""
    service.audit.act(scope, "export")
    pieces = graph_pieces(service.engine, scope, embeddings=embeddings)
    return StreamingResponse(service.transfer.exports.stream_lines(pieces), media_type="application/json")


@routes.post(
    "/agents/{agent_name}/graph",
    summary="Upsert concepts",
    cost=CostClass.WRITE,
    large_body=True,
    access=REMEMBERED,
    sdk="agents.state_concepts",
    idempotent=True,
    errors=[404, 409],
)
def state_concepts(body: StateConceptsRequest, scope: AgentWriter, service: RunningService) -> StateConceptsResponse:
    """Upsert concept names, descriptions and relations (atomic, idempotent)."""
    concepts, relations = [one.statement() for one in body.concepts], [one.statement() for one in body.relations]
    return StateConceptsResponse.of(service.graph.claims.state(scope, concepts, relations))
