"""What the routes of an agent's graph take and answer."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.conversation_fields import printable
from souvenir.api.fields import Clean
from souvenir.api.graph_files import FORMAT, FORMAT_VERSION
from souvenir.graph.stating import SaidOfConcept, SaidRelation, Stated

MAX_STATED = 1_000
MAX_ALIASES = 50
MAX_DESCRIPTION_CHARS = 10_000

_Name = Annotated[str, StringConstraints(min_length=1, max_length=200), Clean, AfterValidator(printable)]
ConceptKey = Annotated[_Name, Field(description="The `key` of a concept, or one of its names.")]
Description = Annotated[str, StringConstraints(min_length=1, max_length=MAX_DESCRIPTION_CHARS), Clean]

_NODES: list[dict[str, Any]] = [
    {
        "id": "message-7",
        "label": "Message",
        "properties": {
            "message_id": "0f8f5b0a-64a3-4c88-9d3b-0a6a5a0b8c11",
            "content": "My favourite colour is blue.",
            "role": "user",
            "timestamp": "2025-04-02T09:30:00.000000+00:00",
        },
    },
    {"id": "session-3", "label": "Session", "properties": {"session_id": "2025-04-02"}},
]
_RELATIONS: list[dict[str, Any]] = [
    {"type": "CONTAINS", "from_id": "session-3", "to_id": "message-7", "properties": {"sequence_number": 1}}
]


class GraphNode(BaseModel):
    """Something in a graph."""

    model_config = ConfigDict(json_schema_extra={"examples": [*_NODES]})

    id: str = Field(description="Names it in this graph.")
    label: str = Field(description="User, Session, Message, Concept, Topic or Memory.")
    properties: dict[str, Any]


class GraphRelation(BaseModel):
    """What one node is to another."""

    model_config = ConfigDict(json_schema_extra={"examples": [*_RELATIONS]})

    type: str = Field(
        description="SENT, RECEIVED, CONTAINS, MENTIONS, RELATES_TO, DISCUSSES, BELONGS_TO, TRIGGERS or REFERENCES."
    )
    from_id: str = Field(description="The id of a node.")
    to_id: str = Field(description="The id of a node.")
    properties: dict[str, Any]


class GraphDocument(BaseModel):
    """The graph of an agent."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "format": FORMAT,
                    "version": FORMAT_VERSION,
                    "agent": "my_agent",
                    "exported_at": "2025-04-02T10:00:00.000000+00:00",
                    "nodes": [*_NODES],
                    "relations": [*_RELATIONS],
                }
            ]
        }
    )

    format: str
    version: str
    agent: str
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
    name: Annotated[_Name | None, Field(description="In the place of the one that is used most.")] = None
    description: Annotated[Description | None, Field(description="What it is.")] = None
    kind: Annotated[
        _Name | None, Field(description="In the place of the one that it is mostly taken for; kept in snake_case.")
    ] = None
    aliases: Annotated[list[_Name], Field(max_length=MAX_ALIASES, description="What else it is called.")] = Field(
        default_factory=list
    )

    def said(self) -> SaidOfConcept:
        return SaidOfConcept(self.key, self.name, self.description, self.kind, self.aliases)


class RelationToState(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_RELATION]})

    from_key: ConceptKey
    to_key: ConceptKey
    relationship_type: Annotated[
        _Name, Field(description="What the one is to the other, such as `works_at`; kept in snake_case.")
    ]
    strength: Annotated[float, Field(ge=0, le=1, description="How sure it is.")] = 1.0

    def said(self) -> SaidRelation:
        return SaidRelation(self.from_key, self.to_key, self.relationship_type, self.strength)


class StateConceptsRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"concepts": [_CONCEPT], "relations": [_RELATION]}]})

    concepts: Annotated[list[ConceptToState], Field(max_length=MAX_STATED)] = Field(
        default_factory=list, description="What is said of concepts that something mentions."
    )
    relations: Annotated[list[RelationToState], Field(max_length=MAX_STATED)] = Field(
        default_factory=list, description="What concepts are to each other."
    )


class StateConceptsResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"stated": 3, "unchanged": 0, "unknown": [], "unread": 0}]}
    )

    stated: int = Field(description="Names, descriptions, kinds, other names and relations that were stored.")
    unchanged: int = Field(description="That were said already.")
    unknown: list[str] = Field(description="Keys that nothing mentions, or nothing that was read yet.")
    unread: int = Field(description="Messages and memories that wait to be read.")

    @classmethod
    def of(cls, stated: Stated) -> Self:
        return cls(stated=stated.stated, unchanged=stated.unchanged, unknown=list(stated.unknown), unread=stated.unread)
