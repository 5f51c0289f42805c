"""Extraction jobs: list them, read progress and result, cancel a job, and get the status of extractions."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Self

from fastapi import Query
from pydantic import BaseModel, Field

from souvenir.access.authenticator import ANONYMOUS
from souvenir.api.extraction import ExtractResult
from souvenir.api.fields import optional_wire_time, wire_time
from souvenir.api.jobs import AllActors, JobId
from souvenir.core.settings import Settings
from souvenir.jobs.queue_rows import JobFigures
from souvenir.learning.extraction import Extraction
from souvenir.learning.results import DRY_RUN, MODE
from souvenir.learning.undo import UNDONE_AT
from souvenir.models.llm.provider import LLMProvider
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import NOTHING, Reader, RunningService, Writer
from souvenir.server.routing import Routes
from souvenir.store.admin.jobs import EXTRACT, Job, JobStatus
from souvenir.store.admin.keys import KEY_ACTOR
from souvenir.store.learning.extractions import RERUN_OF, ExtractionSummary
from souvenir.store.learning.extractions import ExtractionRecord as ExtractionRow

routes = Routes("extraction")

_COUNTS = (
    "extracted_count",
    "stored_count",
    "updated_count",
    "deleted_count",
    "noop_count",
    "conflict_count",
    "skipped_count",
    "error_count",
)


class ListedExtraction(BaseModel):
    """An extraction without its actions."""

    job_id: str
    status: JobStatus
    source: str
    context: str = Field(examples=["stop"])
    message_length: int = Field(description="Number of characters of the transcript as sent.")
    created_at: str
    started_at: str | None = Field(default=None, description="Set when it has started.")
    completed_at: str | None = Field(default=None, description="Set when it has ended.")
    mode: str = Field(description="`llm`, or `fallback_add` without a model.", examples=["llm"])
    error: str | None = Field(default=None, description="The reason for the failure, in one sentence.")
    waits_for: str | None = Field(default=None, description="The reason for the retry, while it is not finished.")
    done: int = Field(default=0, description="The progress, in steps.")
    total: int | None = Field(default=None, description="The value of `done` at the end; null while unknown.")
    model: str | None = Field(default=None, description="The model that was called, if one was.", examples=["llama3.1"])
    dry_run: bool = Field(default=False, description="True if it decides, but changes nothing.")
    rerun_of: str | None = Field(default=None, description="The first extraction of the transcript, if it is a rerun.")
    approval: str | None = Field(default=None, description="`required`: it waits for an approval.")
    undone: bool = Field(default=False, description="True if it was undone.")
    model_failed: bool = Field(
        default=False, description="True if it is completed, but the model failed, and nothing was changed."
    )
    counts: dict[str, int] = Field(
        default_factory=dict,
        description="The counts of the result, once it is completed.",
        examples=[{"extracted_count": 2, "stored_count": 1, "updated_count": 1, "deleted_count": 0}],
    )

    @staticmethod
    def fields_of(job: Job, row: ExtractionRow | ExtractionSummary) -> dict[str, Any]:
        """Return the fields that a job has; others keep their defaults."""
        outcome = job.outcome or {}
        options = row.options
        fields = {
            "job_id": job.id,
            "status": job.status,
            "source": row.source,
            "context": row.context,
            "message_length": row.message_length,
            "created_at": wire_time(job.created_at),
            "started_at": optional_wire_time(job.started_at),
            "completed_at": optional_wire_time(job.finished_at),
            "mode": options[MODE],
            "error": job.failure,
            "waits_for": job.waits_for,
            "done": job.done,
            "total": job.total,
            "model": row.model,
            "dry_run": bool(options.get(DRY_RUN)),
            "rerun_of": options.get(RERUN_OF),
            "approval": outcome.get("approval"),
            "undone": UNDONE_AT in options,
            "model_failed": "error" in outcome,
            "counts": {name: outcome[name] for name in _COUNTS if name in outcome},
        }
        return {name: value for name, value in fields.items() if value is not None}


class ExtractJob(ListedExtraction):
    """An extraction."""

    queue_depth: int = Field(description="The number of queued extractions of all namespaces.")
    auth_key_id: str | None = Field(description="The id of the key of the request; null for API_KEY and without a key.")
    trusted_authorship: bool = Field(description="True if the request had a key.")
    result: ExtractResult | None = Field(default=None, description="Set when it is completed.")

    @classmethod
    def of(cls, job: Job, row: ExtractionRow, extraction: Extraction) -> ExtractJob:
        result = extraction.result_of(job)
        more: dict[str, Any] = {} if result is None else {"result": result}
        key_id = job.actor.removeprefix(KEY_ACTOR)
        return cls(
            **cls.fields_of(job, row),
            queue_depth=extraction.jobs.waiting,
            auth_key_id=None if key_id == job.actor else key_id,
            trusted_authorship=job.actor != ANONYMOUS,
            **more,
        )


class ExtractionPage(BaseModel):
    extractions: list[ListedExtraction] = Field(description="Newest first.")
    count: int
    total: int = Field(description="The total number on all pages.")
    offset: int
    limit: int


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


@routes.get(
    "/memory/extract",
    summary="List extractions",
    cost=CostClass.LIGHT,
    access=NOTHING,
    sdk="extraction.list",
)
def list_extractions(
    scope: Reader,
    service: RunningService,
    all_actors: AllActors,
    status: Annotated[JobStatus | None, Query(description="Only extractions with this status.")] = None,
    waiting: Annotated[bool, Query(description="Only extractions that wait for an approval.")] = False,
    limit: Annotated[int, Query(ge=1, le=500, description="Maximum number of items.")] = 50,
    offset: Annotated[int, Query(ge=0, le=2**31, description="Number of items to skip.")] = 0,
) -> ExtractionPage:
    """List the extractions of this namespace, newest first; non-admin keys see only their own."""
    found, total = service.extraction.page(
        scope, status=status, waiting=waiting, all_actors=all_actors, limit=limit, offset=offset
    )
    listed = [ListedExtraction(**ListedExtraction.fields_of(job, row)) for job, row in found]
    return ExtractionPage(extractions=listed, count=len(listed), total=total, offset=offset, limit=limit)


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
