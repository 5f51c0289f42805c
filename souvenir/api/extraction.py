"""Extraction: queue a job that extracts memories from a transcript, read its result, cancel it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Self

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from souvenir.access.authenticator import ANONYMOUS
from souvenir.api.extraction_requests import ExtractRequest, take
from souvenir.api.fields import optional_wire_time, wire_time
from souvenir.api.jobs import AllActors, JobId
from souvenir.core.settings import Settings
from souvenir.jobs.worker import JobFigures
from souvenir.learning.extraction import Extraction
from souvenir.learning.results import MODE
from souvenir.models.llm.provider import LLMProvider
from souvenir.server.access_policy import NOTHING, OF_BOTH
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import MakeOnce, Reader, RunningService, Writer, agent_scope
from souvenir.server.routing import Routes
from souvenir.store.admin.jobs import EXTRACT, Job, JobStatus
from souvenir.store.admin.keys import KEY_ACTOR
from souvenir.store.learning.extractions import ExtractionRecord as ExtractionRow
from souvenir.store.messages.messages import Message

routes = Routes("extraction")

MAX_ACTIONS = 1_000
"""In one commit; more than a job decides."""

JOB_ID = "0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d"
OTHER_JOB_ID = "7b1e0c9d4f2a4e3b8c6d5a7f9e8b1c20"


class StoredTurns(BaseModel):
    """The stored turns of the transcript."""

    count: int = Field(description="The number of stored messages.")
    session_id: str | None = Field(description="Their session; null if nothing was stored.")

    @classmethod
    def of(cls, messages: Sequence[Message]) -> StoredTurns:
        return cls(count=len(messages), session_id=messages[0].session_id if messages else None)


class ExtractResult(BaseModel):
    """The result of an extraction: one action per fact, and counts. Texts are those of the ledger as it is now.

    `error` means that the model failed and nothing was changed; `skipped_reason` is why it was not called.
    """

    model_config = ConfigDict(extra="allow")

    actions: Annotated[list[dict[str, Any]], OF_BOTH] = Field(
        default_factory=list,
        description="`action` is `add`, `update`, `delete`, `noop`, `conflict`, `fallback_add`, `skipped` or `error`.",
        examples=[[{"action": "add", "text": "The billing service moves to Postgres 17 in May.", "id": 12}]],
    )
    extracted_count: int = Field(default=0, description="The number of facts that were found.", examples=[1])
    stored_count: int = Field(default=0, description="The number of added memories.", examples=[1])
    updated_count: int = Field(default=0, description="The number of superseded memories.")
    deleted_count: int = Field(default=0, description="The number of archived memories.")
    noop_count: int = Field(default=0, description="The number of facts that a memory already states.")
    dry_run: bool | None = Field(
        default=None, description="True: nothing was changed, and the counts are those of the planned changes."
    )
    approval: str | None = Field(
        default=None,
        description="`required`: nothing was changed, because more memories would be deleted than allowed, or "
        "because approved actions had to be decided again.",
    )
    removing: list[int] | None = Field(
        default=None,
        description="The ordinals of actions that would remove a memory: set while an approval is pending, and for "
        "a dry run with more of them than EXTRACT_MAX_DELETES.",
    )
    undone: bool | None = Field(
        default=None, description="True: the extraction was undone; actions and counts are as before."
    )
    undone_at: str | None = Field(default=None, description="The time of the undo.")
    result_url: str | None = Field(
        default=None,
        description="The URL of the extraction with its full id; append `/undo` to undo it. `job_id` is shortened.",
    )
    error: str | None = Field(
        default=None, description="`provider_runtime_failure`: the model failed, and nothing was changed."
    )
    error_stage: str | None = None
    error_message: str | None = None

    @classmethod
    def of(cls, job: Job, extraction: Extraction) -> Self:
        """The result of a completed job."""
        return cls.model_validate(extraction.result_of(job))


class ExtractAccepted(BaseModel):
    """The transcript was accepted."""

    job_id: str
    status: JobStatus = Field(description="`queued`; without a model, `completed` if it finished immediately.")
    queue_depth: int = Field(description="The number of queued extractions of all namespaces.")
    result_url: str = Field(
        description="The URL of the progress and the result.",
        examples=["/memory/extract/0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d"],
    )
    result: ExtractResult | None = Field(default=None, description="Set when the extraction is completed.")
    messages: StoredTurns | None = Field(default=None, description="Set if `store_messages` was requested.")

    @classmethod
    def of(cls, job: Job, messages: Sequence[Message] | None, extraction: Extraction) -> ExtractAccepted:
        more: dict[str, Any] = {} if messages is None else {"messages": StoredTurns.of(messages)}
        if (result := extraction.result_of(job)) is not None:
            more["result"] = ExtractResult.model_validate(result)
        return cls(
            job_id=job.id,
            status=job.status,
            queue_depth=extraction.jobs.waiting,
            result_url=f"/memory/extract/{job.id}",
            **more,
        )


class ExtractJob(BaseModel):
    """An extraction."""

    job_id: str
    status: JobStatus
    source: str
    context: str = Field(examples=["stop"])
    message_length: int = Field(description="Number of characters of the transcript as sent.")
    created_at: str
    started_at: str | None = Field(default=None, description="Set when it has started.")
    completed_at: str | None = Field(default=None, description="Set when it has ended.")
    queue_depth: int | None = Field(
        default=None, description="The number of queued extractions, while it is queued itself."
    )
    mode: str = Field(description="`llm`, or `fallback_add` without a model.", examples=["llm"])
    auth_key_id: str | None = Field(description="The id of the key of the request; null for API_KEY and without a key.")
    trusted_authorship: bool = Field(description="True if the request had a key.")
    result: ExtractResult | None = Field(default=None, description="Set when it is completed.")
    error: str | None = Field(default=None, description="The reason for the failure, in one sentence.")
    waits_for: str | None = Field(default=None, description="The reason for the retry, while it is not finished.")

    @classmethod
    def of(cls, job: Job, row: ExtractionRow, extraction: Extraction) -> ExtractJob:
        more: dict[str, Any] = {
            "started_at": optional_wire_time(job.started_at),
            "completed_at": optional_wire_time(job.finished_at),
            "queue_depth": extraction.jobs.waiting if job.status is JobStatus.QUEUED else None,
            "result": extraction.result_of(job),
            "error": job.failure,
            "waits_for": job.waits_for,
        }
        key_id = job.actor.removeprefix(KEY_ACTOR)
        return cls(
            job_id=job.id,
            status=job.status,
            source=row.source,
            context=row.context,
            message_length=row.message_length,
            created_at=wire_time(job.created_at),
            mode=row.options[MODE],
            auth_key_id=None if key_id == job.actor else key_id,
            trusted_authorship=job.actor != ANONYMOUS,
            **{name: value for name, value in more.items() if value is not None},
        )


class ExtractFigures(BaseModel):
    """Counts of extractions of all namespaces."""

    queue_depth: int = Field(description="Queued extractions.")
    queue_max: int = Field(description="Maximum number of queued extractions.")
    queue_remaining: int
    workers: int = Field(description="Maximum number of running extractions.")
    jobs_tracked: int = Field(
        description="Extractions that can be read; by the caller, if the status is requested with a key."
    )

    @classmethod
    def of(cls, figures: JobFigures, **more: Any) -> Self:
        return cls(
            queue_depth=figures.waiting,
            queue_max=figures.waiting_max,
            queue_remaining=max(0, figures.waiting_max - figures.waiting),
            workers=figures.workers,
            jobs_tracked=figures.kept,
            **more,
        )


class ExtractStatus(ExtractFigures):
    """The model of extractions and the length of their queue. No model is called."""

    enabled: bool = Field(description="True if a language model is configured.")
    provider: str | None = Field(examples=["ollama"])
    model: str | None
    status: str = Field(
        description="`healthy`, `disabled`, `unhealthy` if it failed recently, or `error: ` and the reason.",
        examples=["healthy"],
    )
    fallback_add_enabled: bool = Field(description="True if sentences are stored if no model is configured.")

    @classmethod
    def now(cls, extraction: Extraction, provider: LLMProvider | None, settings: Settings, tracked: int) -> Self:
        """:param tracked: Extractions that the caller may look at."""
        return cls.of(
            replace(extraction.jobs.figures, kept=tracked),
            enabled=provider is not None,
            provider=None if provider is None else provider.name,
            model=None if provider is None else provider.model,
            status="disabled" if provider is None else provider.status(),
            fallback_add_enabled=settings.extract_fallback_add,
        )


class QueueFull(BaseModel):
    error: str = Field(examples=["extract_queue_full"])
    message: str = Field(examples=["Too many extractions wait; try again in a while"])
    queue_depth: int
    queue_max: int
    retry_after_sec: int


class QueueFullBody(BaseModel):
    """The error body when the extraction queue is full: `detail` is an object."""

    detail: str | QueueFull = Field(
        description="The state of the queue; one sentence if too many requests are queued.",
        examples=[
            {
                "error": "extract_queue_full",
                "message": "Too many extractions wait; try again in a while",
                "queue_depth": 32,
                "queue_max": 32,
                "retry_after_sec": 15,
            }
        ],
    )
    code: str = Field(description="The stable name of the error.", examples=["extract_queue_full"])
    request_id: str = Field(
        description="Also in the header X-Request-ID and in the log.", examples=["4f9c2a7d6b1e4c0f8a3d5e7b9c1f2a4d"]
    )


QUEUE_FULL: dict[int | str, dict[str, Any]] = {429: {"model": QueueFullBody}}
"""The error answer of a route that queues an extraction."""


@routes.post(
    "/memory/extract",
    summary="Extract memories from a transcript",
    cost=CostClass.WRITE,
    sdk="extraction.start",
    status_code=202,
    errors=[400, 409, 501],
    responses=QUEUE_FULL,
)
def extract(
    body: ExtractRequest, scope: Writer, service: RunningService, request: Request, once: MakeOnce
) -> ExtractAccepted:
    """Queue a job that finds facts in a transcript and adds, updates or deletes memories accordingly."""
    if body.store_messages:
        agent_scope(request, scope.namespace)
    taken = take(service, scope, body, once)
    return ExtractAccepted.of(taken.job, taken.messages, service.extraction)


@routes.get(
    "/memory/extract/{job_id}",
    summary="Get an extraction",
    cost=CostClass.LIGHT,
    access=NOTHING,
    sdk="extraction.get",
    errors=[404],
)
def get_extraction(job_id: JobId, scope: Reader, service: RunningService, all_actors: AllActors) -> ExtractJob:
    """Get the progress of an extraction, or its result; non-admin keys see only their own."""
    return ExtractJob.of(*service.extraction.get(scope, job_id, all_actors=all_actors), service.extraction)


@routes.delete(
    "/memory/extract/{job_id}",
    summary="Cancel an extraction",
    cost=CostClass.LIGHT,
    sdk="extraction.cancel",
    errors=[404, 409],
)
def cancel_extraction(job_id: JobId, scope: Writer, service: RunningService, all_actors: AllActors) -> ExtractJob:
    """Cancel a queued extraction immediately, or a running one before its next step; no action is applied."""
    extraction = service.extraction
    extraction.get(scope, job_id, all_actors=all_actors)
    extraction.jobs.cancel(scope, job_id, all_actors=all_actors)
    return ExtractJob.of(*extraction.get(scope, job_id, all_actors=all_actors), extraction)


@routes.get(
    "/extract/status",
    summary="Get extraction status",
    cost=CostClass.LIGHT,
    access=NOTHING,
    sdk="extraction.status",
)
def extract_status(scope: Reader, service: RunningService, all_actors: AllActors) -> ExtractStatus:
    """Get the model, whether it responded recently, and how many extractions are queued; no model is called."""
    _, tracked = service.extraction.jobs.list(scope, all_actors=all_actors, kind=EXTRACT, limit=0)
    return ExtractStatus.now(service.extraction, service.provider, service.settings, tracked)
