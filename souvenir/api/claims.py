"""Claims about concepts: their typed relations, and jobs in which a language model claims more."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Self
from urllib.parse import quote

from fastapi import Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.concepts import ConceptId
from souvenir.api.fields import MAX_ID, Clean, Record, SessionId, WireTime
from souvenir.api.jobs import AllActors, JobId
from souvenir.api.parameters import AgentWriter, PresentAgentReader
from souvenir.core.types import ClaimedBy, ClaimKind, TopicClaimKind
from souvenir.knowledge.claim_types import TypedRelation
from souvenir.server.job_responses import ACCEPTED, DEFAULT_WAIT_S, WaitS, result_of
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import OF_CONVERSATION, OF_MEMORY, REMEMBERED, RunningService
from souvenir.server.routing import Routes
from souvenir.store.admin.jobs import Job, JobStatus
from souvenir.store.graph.claims import Claim, TopicClaim

routes = Routes("concepts")

_RELATIONS_PATH = "/agents/{agent_name}/concepts/{concept_id}/relations"

_Type = Annotated[str, StringConstraints(min_length=1, max_length=100), Clean]
_TYPE = "The type of the relation, such as `works_for`; stored in snake_case."


class ConceptRelation(Record):
    concept_id: int = Field(description="The id of the concept that it starts from.")
    concept: Annotated[str, OF_MEMORY] = Field(examples=["Alice"])
    type: Annotated[str, OF_MEMORY] = Field(examples=["works_for"])
    other_id: int = Field(description="The id of the concept that it leads to.")
    other: Annotated[str, OF_MEMORY] = Field(examples=["Heron"])
    made_by: ClaimedBy
    confidence: float = Field(description="1 for a caller's statement, else the confidence of the model.")
    message_id: str | None = Field(validation_alias="message", description="The source message of a model's claim.")
    memory_id: int | None = Field(description="The memory of the entity that states it in the knowledge graph.")
    created_at: WireTime = Field(description="ISO-8601 in UTC with microseconds.")

    @classmethod
    def of_relation(cls, one: TypedRelation) -> Self:
        ends = {"concept_id": one.concept.id, "concept": one.concept.name, "other_id": one.other.id}
        return cls.model_validate({**asdict(one.claim), **ends, "other": one.other.name, "type": one.claim.text})


class ConceptRelations(BaseModel):
    relations: list[ConceptRelation] = Field(
        description="Relations of callers, then of entities, then of models, newest first."
    )


@routes.get(
    _RELATIONS_PATH,
    summary="List a concept's relations",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="concepts.relations",
    errors=[404],
)
def list_relations(concept_id: ConceptId, scope: PresentAgentReader, service: RunningService) -> ConceptRelations:
    """List the stated relations from and to a concept."""
    found = service.graph.claims.relations(scope, concept_id)
    return ConceptRelations(relations=[ConceptRelation.of_relation(one) for one in found])


@routes.delete(
    _RELATIONS_PATH, summary="Remove a relation", cost=CostClass.WRITE, sdk="concepts.unrelate", errors=[404]
)
def unrelate_concepts(
    concept_id: ConceptId,
    scope: AgentWriter,
    service: RunningService,
    to: Annotated[int, Query(ge=1, le=MAX_ID, description="The id of the target concept.", examples=[2])],
    type: Annotated[_Type, Query(description=_TYPE, examples=["works_for"])],
) -> ConceptRelations:
    """Remove a relation, regardless of who stated it, also of entities, and return what was removed."""
    found = service.graph.claims.unrelate(scope, concept_id, to, type)
    return ConceptRelations(relations=[ConceptRelation.of_relation(one) for one in found])


_JOBS_PATH = "/agents/{agent_name}/graph/describe"
_JOB_PATH = f"{_JOBS_PATH}/{{job_id}}"


class DescribeRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"limit": 10}]})

    session_id: SessionId | None = Field(
        default=None,
        description="Read only this session, even if it is active; without it, sessions that have ended or are "
        "idle for SESSION_IDLE_MINUTES.",
    )
    limit: int = Field(default=10, ge=1, le=50, description="Maximum number of model calls.")


class DroppedClaims(BaseModel):
    kind: str | None = Field(description="The kind of the claim; null if it is no valid claim.")
    reason: str = Field(
        description="Why they were rejected, such as `quote_not_found` or `unknown_concept`.",
        examples=["quote_not_found"],
    )
    count: int


class DescribeResponse(BaseModel):
    job_id: str = Field(description="The id with which the job can be read and undone.")
    messages: int = Field(description="Messages that were read; they are not read again until they are edited.")
    claims: dict[str, int] = Field(description="The number of stored claims by kind.", examples=[{"relation": 1}])
    dropped: list[DroppedClaims] = Field(description="The claims of the model that were rejected.")
    failed: int = Field(description="Messages whose answer was unusable; they are read again next time.")
    stopped: str | None = Field(description="Why the job stopped although messages were left.")
    has_more: bool = Field(description="True if unread messages are left.")
    questions: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None = Field(description="In US dollars; null if the price is unknown.")
    model: str | None = Field(description="The model that answered last.")


class ModelClaim(Record):
    id: int
    kind: ClaimKind
    concept_id: int
    concept: str = Field(validation_alias="key", description="The normal form of its name.", examples=["alice"])
    text: str = Field(description="The type of a relation, or the text of a description, other name or kind.")
    other_id: int | None = Field(
        description="The concept that a relation leads to, or that the concept is another name of."
    )
    other: str | None = Field(validation_alias="other_key")
    confidence: float = Field(description="The confidence of the model, from 0 to 1.")
    message_id: str | None = Field(validation_alias="message", description="The id of the source message.")
    created_at: WireTime = Field(description="ISO-8601 in UTC with microseconds.")


class ModelTopicClaim(Record):
    id: int
    kind: TopicClaimKind
    topic_id: int
    text: Annotated[str, OF_CONVERSATION]
    message_id: str = Field(validation_alias="message", description="The id of the source message.")
    created_at: WireTime = Field(description="ISO-8601 in UTC with microseconds.")


class DescribeJob(BaseModel):
    job_id: str
    status: JobStatus
    waits_for: str | None = Field(description="Why the unfinished job makes no progress.")
    error: str | None = Field(description="The reason for the failure.")
    result: DescribeResponse | None = Field(description="Null until the job is completed.")
    claims: list[ModelClaim] = Field(description="The claims of the job about concepts that still exist.")
    topics: list[ModelTopicClaim] = Field(description="The names and summaries of topics that still exist.")

    @classmethod
    def of(cls, job: Job, claims: list[Claim], topics: list[TopicClaim]) -> DescribeJob:
        return cls(
            job_id=job.id,
            status=job.status,
            waits_for=job.waits_for,
            error=job.failure,
            result=None if job.outcome is None else DescribeResponse.model_validate(job.outcome),
            claims=[ModelClaim.of(one) for one in claims],
            topics=[ModelTopicClaim.of(one) for one in topics],
        )


class UndoDescribeResponse(Record):
    job_id: str
    claims: int = Field(description="The number of removed claims.")
    messages: int = Field(description="The number of messages that can be read again.")


@routes.post(
    _JOBS_PATH,
    summary="Describe concepts and topics with a language model",
    cost=CostClass.LONG,
    sdk="concepts.describe",
    response_model=DescribeResponse,
    errors=[404, 409, 501],
    responses=ACCEPTED,
)
def describe_concepts(
    scope: AgentWriter, service: RunningService, body: DescribeRequest | None = None, wait_s: WaitS = DEFAULT_WAIT_S
) -> DescribeResponse | JSONResponse:
    """Let the language model describe concepts and name topics, from messages that it has not read."""
    asked = body or DescribeRequest()
    job = service.model_claims.submit(scope, session=asked.session_id, limit=asked.limit)
    shown_at = _JOBS_PATH.format(agent_name=quote(scope.namespace, safe=""))
    result = result_of(service.model_claims_work.waited(job, wait_s), shown_at=shown_at)
    return result if isinstance(result, JSONResponse) else DescribeResponse.model_validate(result)


@routes.get(
    _JOB_PATH,
    summary="Get a description job",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="concepts.claims",
    errors=[404],
)
def get_description(
    job_id: JobId, scope: PresentAgentReader, service: RunningService, all_actors: AllActors
) -> DescribeJob:
    """Get the progress of a description job and its claims, each with its source message."""
    return DescribeJob.of(*service.model_claims.get(scope, job_id, all_actors=all_actors))


@routes.post(
    f"{_JOB_PATH}/undo",
    summary="Undo a description job",
    cost=CostClass.WRITE,
    sdk="concepts.undo_claims",
    errors=[404, 409],
)
def undo_description(
    job_id: JobId, scope: AgentWriter, service: RunningService, all_actors: AllActors
) -> UndoDescribeResponse:
    """Remove all claims of a description job; the messages that it read can be read again."""
    return UndoDescribeResponse.of(service.model_claims.undo(scope, job_id, all_actors=all_actors))
