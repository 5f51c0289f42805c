"""What a language model says of an agent's concepts: asked for as a job, looked at, undone."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.agents import AgentName
from souvenir.api.caller import Reader, RunningService, Writer, agent_scope
from souvenir.api.conversation_fields import SessionId
from souvenir.api.errors import error_responses
from souvenir.api.fields import wire_time
from souvenir.api.jobs import AllActors, JobId
from souvenir.api.json_route import router
from souvenir.api.long_work import ACCEPTED, DEFAULT_WAIT_S, WaitS, result_of
from souvenir.graph.model_claims import Claimed, Undone
from souvenir.store.jobs import Job, JobStatus
from souvenir.types import ClaimKind

routes = router("concepts")

_PATH = "/agents/{agent_name}/graph/describe"
_JOB = f"{_PATH}/{{job_id}}"

_JOB_ID = "0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d"
_CLAIM: dict[str, Any] = {
    "id": 7,
    "kind": "relation",
    "concept_id": 3,
    "concept": "alice",
    "text": "works_for",
    "other_id": 5,
    "other": "heron",
    "confidence": 0.9,
    "message_id": "2f6c9e0a-7a55-4f0a-8f0e-6f1d2c3b4a59",
    "created_at": "2025-04-02T09:30:00.000000+00:00",
}
_RESULT: dict[str, Any] = {
    "job_id": _JOB_ID,
    "messages": 12,
    "claims": {"relation": 1},
    "dropped": [{"kind": "relation", "reason": "quote_not_found", "count": 1}],
    "failed": 0,
    "stopped": None,
    "has_more": False,
    "questions": 1,
    "input_tokens": 900,
    "output_tokens": 120,
    "cost_usd": 0.0008,
    "model": "gpt-5-mini",
}


class DescribeRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"limit": 10}]})

    session_id: SessionId | None = Field(
        default=None,
        description="Only this session, as it is; without it, those that have ended or are quiet for "
        "SESSION_IDLE_MINUTES.",
    )
    limit: int = Field(default=10, ge=1, le=50, description="Questions that the model is asked at most.")


class DroppedClaims(BaseModel):
    kind: str | None = Field(description="Of claim; null for what is none.")
    reason: str = Field(description="Why they were dropped, such as `quote_not_found` or `unknown_concept`.")
    count: int


class DescribeResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_RESULT]})

    job_id: str = Field(description="By which it can be looked at and undone.")
    messages: int = Field(description="That were read, and are not read again until they are edited.")
    claims: dict[str, int] = Field(description="How many of which kind were stored.")
    dropped: list[DroppedClaims] = Field(description="What the model said that is not stored.")
    failed: int = Field(description="Messages about which the answer could not be used; they are read the next time.")
    stopped: str | None = Field(description="Why no further question was asked, though there was one.")
    has_more: bool = Field(description="Whether messages wait to be read.")
    questions: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None = Field(description="In dollars; null if a price is not known.")
    model: str | None = Field(description="That answered last.")


class ModelClaim(BaseModel):
    id: int
    kind: ClaimKind
    concept_id: int
    concept: str = Field(description="The normal form of its name.")
    text: str = Field(description="The type of a relation, a description, another name, or a kind.")
    other_id: int | None = Field(description="To which concept a relation leads, or whose other name the concept is.")
    other: str | None
    confidence: float = Field(description="From 0 to 1, as the model says.")
    message_id: str | None = Field(description="The message that it rests on.")
    created_at: str = Field(description="ISO-8601 in UTC with microseconds.")

    @classmethod
    def of(cls, claimed: Claimed) -> ModelClaim:
        claim = claimed.claim
        return cls(
            id=claim.id,
            kind=claim.kind,
            concept_id=claim.concept_id,
            concept=claimed.concept,
            text=claim.text,
            other_id=claim.other_id,
            other=claimed.other,
            confidence=claim.confidence,
            message_id=claim.message,
            created_at=wire_time(claim.created_at),
        )


class DescribeJob(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "job_id": _JOB_ID,
                    "status": "completed",
                    "waits_for": None,
                    "error": None,
                    "result": _RESULT,
                    "claims": [_CLAIM],
                }
            ]
        }
    )

    job_id: str
    status: JobStatus
    waits_for: str | None = Field(description="Why one that is not finished does not get on.")
    error: str | None = Field(description="Why it failed.")
    result: DescribeResponse | None = Field(description="Null until it is completed.")
    claims: list[ModelClaim] = Field(description="What it claimed, as far as it still stands.")

    @classmethod
    def of(cls, job: Job, claims: list[Claimed]) -> DescribeJob:
        return cls(
            job_id=job.id,
            status=job.status,
            waits_for=job.waits_for,
            error=job.failure,
            result=None if job.result is None else DescribeResponse.model_validate(job.result),
            claims=[ModelClaim.of(one) for one in claims],
        )


class UndoDescribeResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"job_id": _JOB_ID, "claims": 1, "messages": 12}]})

    job_id: str
    claims: int = Field(description="How many were removed.")
    messages: int = Field(description="How many can be read again.")

    @classmethod
    def of(cls, undone: Undone) -> UndoDescribeResponse:
        return cls(job_id=undone.job_id, claims=undone.claims, messages=undone.messages)


@routes.post(
    _PATH,
    summary="Ask a model about concepts",
    response_model=DescribeResponse,
    responses={**error_responses(404, 409, 501), **ACCEPTED},
)
def describe_concepts(
    agent_name: AgentName,
    _: Writer,
    service: RunningService,
    request: Request,
    body: DescribeRequest | None = None,
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> DescribeResponse | JSONResponse:
    """Let the language model claim relations, descriptions, other names and kinds from what it has not read yet."""
    asked = body or DescribeRequest()
    job = service.describing.submit(agent_scope(request, agent_name), session=asked.session_id, limit=asked.limit)
    shown_at = _PATH.format(agent_name=quote(agent_name, safe=""))
    result = result_of(service.describing_work.waited(job, wait_s), shown_at=shown_at)
    return result if isinstance(result, JSONResponse) else DescribeResponse.model_validate(result)


@routes.get(_JOB, summary="Look at what a model claimed", responses=error_responses(404))
def get_description(
    agent_name: AgentName, job_id: JobId, _: Reader, service: RunningService, request: Request, all_actors: AllActors
) -> DescribeJob:
    """Say how far such a job is, and what it claimed with the message that each claim rests on."""
    scope = agent_scope(request, agent_name)
    return DescribeJob.of(*service.describing.get(scope, job_id, all_actors=all_actors))


@routes.post(f"{_JOB}/undo", summary="Undo what a model claimed", responses=error_responses(404, 409))
def undo_description(
    agent_name: AgentName, job_id: JobId, _: Writer, service: RunningService, request: Request, all_actors: AllActors
) -> UndoDescribeResponse:
    """Remove all that such a job claimed; what it read can be read again."""
    scope = agent_scope(request, agent_name)
    return UndoDescribeResponse.of(service.describing.undo(scope, job_id, all_actors=all_actors))
