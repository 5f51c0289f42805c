"""Typed relations between an agent's concepts, as somebody stated them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.agents import AgentName
from souvenir.api.caller import Reader, RunningService, Writer, agent_scope, require_access
from souvenir.api.errors import error_responses
from souvenir.api.fields import MAX_ID, Clean, wire_time
from souvenir.api.json_route import router
from souvenir.api.levels import REMEMBERED
from souvenir.graph.typed_relations import StatedRelation
from souvenir.types import ClaimedBy

routes = router("concepts")

_PATH = "/agents/{agent_name}/concepts/{concept_id}/relations"
_EXAMPLE: dict[str, Any] = {
    "concept_id": 3,
    "concept": "Alice",
    "type": "works_for",
    "other_id": 5,
    "other": "Heron",
    "made_by": "caller",
    "confidence": 1.0,
    "message_id": None,
    "created_at": "2025-04-02T09:30:00.000000+00:00",
}

ConceptId = Annotated[int, Path(ge=1, le=MAX_ID, description="A concept's id, or that of another spelling of it.")]
_OtherId = Annotated[int, Field(ge=1, le=MAX_ID)]
_Type = Annotated[str, StringConstraints(min_length=1, max_length=100), Clean]
_TYPE = "How the first stands to the second, such as `works_for`; it is kept in snake_case."


class RelateRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"to": 5, "type": "works_for"}]})

    to: Annotated[_OtherId, Field(description="The id of the concept that the relation leads to.")]
    type: Annotated[_Type, Field(description=_TYPE)]


class ConceptRelation(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    concept_id: int = Field(description="Where it leads from.")
    concept: str
    type: str
    other_id: int = Field(description="Where it leads to.")
    other: str
    made_by: ClaimedBy
    confidence: float = Field(description="1 for what a caller states, else as the model says.")
    message_id: str | None = Field(description="The message that a model's claim rests on.")
    created_at: str = Field(description="ISO-8601 in UTC with microseconds.")

    @classmethod
    def of(cls, one: StatedRelation) -> ConceptRelation:
        return cls(
            concept_id=one.concept.id,
            concept=one.concept.name,
            type=one.claim.text,
            other_id=one.other.id,
            other=one.other.name,
            made_by=one.claim.made_by,
            confidence=one.claim.confidence,
            message_id=one.claim.message,
            created_at=wire_time(one.claim.created_at),
        )


class ConceptRelations(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"relations": [_EXAMPLE]}]})

    relations: list[ConceptRelation] = Field(description="A caller's before a model's, the newest first.")


@routes.get(_PATH, summary="List a concept's relations", responses=error_responses(404))
def list_relations(
    agent_name: AgentName, concept_id: ConceptId, _: Reader, service: RunningService, request: Request
) -> ConceptRelations:
    """List the relations that somebody stated of a concept, from it and to it."""
    found = service.graph.relations.of_concept(agent_scope(request, agent_name), concept_id)
    return ConceptRelations(relations=[ConceptRelation.of(one) for one in found])


@routes.put(_PATH, summary="Relate two concepts", responses=error_responses(404))
def relate_concepts(
    agent_name: AgentName,
    concept_id: ConceptId,
    body: RelateRequest,
    _: Writer,
    service: RunningService,
    request: Request,
) -> ConceptRelation:
    """State how a concept relates to another one; stating it again changes nothing."""
    scope = agent_scope(request, agent_name)
    require_access(request, REMEMBERED)
    return ConceptRelation.of(service.graph.relations.relate(scope, concept_id, body.to, body.type))


@routes.delete(_PATH, summary="Take a relation back", responses=error_responses(404))
def unrelate_concepts(
    agent_name: AgentName,
    concept_id: ConceptId,
    _: Writer,
    service: RunningService,
    request: Request,
    to: Annotated[int, Query(ge=1, le=MAX_ID, description="The id of the concept that the relation leads to.")],
    type: Annotated[_Type, Query(description=_TYPE)],
) -> ConceptRelations:
    """Take a relation back, whoever stated it; the answer says what was removed."""
    found = service.graph.relations.unrelate(agent_scope(request, agent_name), concept_id, to, type)
    return ConceptRelations(relations=[ConceptRelation.of(one) for one in found])
