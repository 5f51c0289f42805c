"""The concept graph of an agent as a file, in JSON or GraphML, and callers' statements about its concepts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.fields import Clean, Record, printable, wire_time
from souvenir.api.parameters import AgentWriter, PresentAgentReader
from souvenir.core.errors import InvalidRequest
from souvenir.core.timestamps import utc_now
from souvenir.knowledge.claim_types import ConceptStatement, RelationStatement
from souvenir.knowledge.graph_export import Edge, Node, Value, graph_pieces
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import REMEMBERED, RunningService
from souvenir.server.routing import Routes

routes = Routes("agents")

FORMAT = "souvenir-graph"
FORMAT_VERSION = "1.0"

_NODE_TEXTS = (
    "label user_id session_id message_id concept_id topic_id memory_id name created_at started_at ended_at title "
    "content role timestamp description key kind aliases stated stated_aliases summary source document_at"
)
NODE_TYPES: Mapping[str, str] = {
    **dict.fromkeys(_NODE_TEXTS.split(), "string"),
    **dict.fromkeys(("confidence", "importance"), "double"),
}
"""The properties of nodes and the types that GraphML gives them."""

RELATION_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("label", "relationship_type", "timestamp", "response_to", "reference_type"), "string"),
    **dict.fromkeys(("relevance", "strength", "trigger_strength"), "double"),
    "sequence_number": "int",
    "primary_topic": "boolean",
}

GRAPH_TYPES: Mapping[str, str] = dict.fromkeys(("agent", "format", "version", "exported_at"), "string")

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;"})
_SCHEMA = "http://graphml.graphdrawing.org/xmlns"


def json_graph(agent: str, nodes: Iterable[Node], relations: Iterable[Edge]) -> Iterator[bytes]:
    """Write one object: `format`, `version`, `agent`, `exported_at`, then `nodes` and `relations`, each on a line."""
    yield f'{json.dumps(_head(agent), ensure_ascii=False)[:-1]}, "nodes": ['.encode()
    yield from _items(
        {"id": str(one.id), "label": one.id.label.value, "properties": _plain(one.properties)} for one in nodes
    )
    yield b'\n], "relations": ['
    yield from _items(
        {
            "type": one.type.value,
            "from_id": str(one.from_id),
            "to_id": str(one.to_id),
            "properties": _plain(one.properties),
        }
        for one in relations
    )
    yield b"\n]}\n"


def _items(said: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    before = b"\n"
    for one in said:
        yield before + json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode()
        before = b",\n"


def graphml(agent: str, nodes: Iterable[Node], relations: Iterable[Edge]) -> Iterator[bytes]:
    """Write GraphML 1.0 (graphml.graphdrawing.org): a directed graph whose values have declared types."""
    head = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<graphml xmlns="{_SCHEMA}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{_SCHEMA} {_SCHEMA}/1.0/graphml.xsd">',
        *_keys("graph", GRAPH_TYPES),
        *_keys("node", NODE_TYPES),
        *_keys("edge", RELATION_TYPES),
        f'<graph id="G" edgedefault="directed">{_data("graph", _head(agent))}',
    ]
    yield ("\n".join(head) + "\n").encode()
    for node in nodes:
        data = _data("node", {"label": node.id.label.value, **_plain(node.properties)})
        yield f'<node id="{node.id}">{data}</node>\n'.encode()
    for one in relations:
        data = _data("edge", {"label": one.type.value, **_plain(one.properties)})
        yield f'<edge source="{one.from_id}" target="{one.to_id}">{data}</edge>\n'.encode()
    yield b"</graph>\n</graphml>\n"


def _head(agent: str) -> dict[str, str]:
    return {"format": FORMAT, "version": FORMAT_VERSION, "agent": agent, "exported_at": wire_time(utc_now())}


def _plain(properties: Mapping[str, Value]) -> dict[str, Any]:
    """Convert to JSON without absent values."""
    return {
        name: wire_time(value) if isinstance(value, datetime) else value
        for name, value in properties.items()
        if value is not None
    }


def _keys(of: str, types: Mapping[str, str]) -> Iterator[str]:
    for name, kind in types.items():
        yield f'<key id="{of}_{name}" for="{of}" attr.name="{name}" attr.type="{kind}"/>'


def _data(of: str, values: Mapping[str, Any]) -> str:
    return "".join(f'<data key="{of}_{name}">{_xml(value)}</data>' for name, value in values.items())


def _xml(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return _NO_XML.sub("\ufffd", value).translate(_ESCAPES)
        case _:
            return _xml("\n".join(value))


MAX_STATED = 1_000
MAX_ALIASES = 50
MAX_DESCRIPTION_CHARS = 10_000

_StatedName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), Clean]
_Name = Annotated[_StatedName, AfterValidator(printable)]
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
    name: Annotated[_StatedName | None, Field(description="Replaces the most frequent name.")] = None
    description: Annotated[Description | None, Field(description="The description.")] = None
    kind: Annotated[_Name | None, Field(description="Replaces the most frequent kind; stored in snake_case.")] = None
    aliases: Annotated[
        list[_StatedName], Field(max_length=MAX_ALIASES, description="Other names, in addition to the stated ones.")
    ] = Field(default_factory=list)

    def statement(self) -> ConceptStatement:
        return ConceptStatement(self.name, self.description, self.kind, tuple(self.aliases), key=self.key)


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


class StateConceptsResponse(Record):
    stated: int = Field(description="The number of stored names, descriptions, kinds, other names and relations.")
    unchanged: int = Field(description="The number of statements that already existed.")
    unknown: list[str] = Field(
        description="Keys of concepts that no text mentions, as far as texts have been read.", examples=[[]]
    )
    unread: int = Field(description="The number of messages and memories that are not read yet.")


GRAPHML = "application/graphml+xml"


class GraphFileFormat(StrEnum):
    """The format of a graph."""

    JSON = "json"
    GRAPHML = "graphml"


@routes.get(
    "/agents/{agent_name}/graph",
    summary="Export an agent's graph",
    cost=CostClass.LONG,
    sdk="agents.graph",
    response_class=StreamingResponse,
    errors=[400, 404],
    responses={
        200: {
            "description": "The graph in the requested format.",
            "model": GraphDocument,
            "content": {GRAPHML: {"schema": {"type": "string"}}},
        },
    },
)
def export_graph(
    scope: PresentAgentReader,
    service: RunningService,
    format: Annotated[GraphFileFormat, Query(description="JSON or GraphML.")] = GraphFileFormat.JSON,
    embeddings: Annotated[bool, Query(description="Include the vectors of messages; JSON only.")] = False,
) -> StreamingResponse:
    """Stream a consistent snapshot of an agent's graph of users, sessions, messages, concepts, topics and memories."""
    is_json = format is GraphFileFormat.JSON
    if embeddings and not is_json:
        raise InvalidRequest("GraphML holds no vectors; leave embeddings out, or ask for format=json")
    service.audit.act(scope, "export")
    pieces = graph_pieces(service.engine, scope, json_graph if is_json else graphml, embeddings=embeddings)
    media_type = "application/json" if is_json else GRAPHML
    return StreamingResponse(service.transfer.exports.stream_lines(pieces), media_type=media_type)


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
