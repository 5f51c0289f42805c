"""Jobs: list, read and cancel them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel, Field, StringConstraints

from souvenir.api.fields import Clean, wire_time
from souvenir.core.types import Role
from souvenir.jobs.worker import Jobs
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import NOTHING, OF_BOTH, Reader, Writer, service_of
from souvenir.server.routing import Routes
from souvenir.store.admin.jobs import Job, JobStatus

routes = Routes("jobs")


_Kind = Annotated[str, StringConstraints(max_length=100), Clean]
JobId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=100),
    Clean,
    Path(description="The id of a job.", examples=["0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d"]),
]


class JobRecord(BaseModel):
    id: str = Field(examples=["0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d"])
    kind: str = Field(examples=["deduplicate"])
    status: JobStatus
    done: int = Field(description="The progress, in units of the job kind.")
    total: int | None = Field(description="The value of `done` at the end; null while unknown.")
    result: Annotated[dict[str, Any] | None, OF_BOTH] = Field(
        description="The result, once the job is completed.",
        examples=[{"found": 1, "pairs": [[12, 13, 0.951203]], "removed": 1, "remaining": 12039, "dry_run": False}],
    )
    error: str | None = Field(description="The reason for the failure, in one sentence.")
    waits_for: str | None = Field(description="The reason for the retry, while the job is not finished.")
    actor: str = Field(description="The actor that submitted the job.", examples=["api-key"])
    namespace: str = Field(examples=["default"])
    cancel_requested: bool = Field(description="True if cancellation was requested or has taken effect.")
    created_at: str
    started_at: str | None
    finished_at: str | None

    @classmethod
    def of(cls, job: Job) -> JobRecord:
        return cls(
            id=job.id,
            kind=job.kind,
            status=job.status,
            done=job.done,
            total=job.total,
            result=None if job.outcome is None else dict(job.outcome),
            error=job.failure,
            waits_for=job.waits_for,
            actor=job.actor,
            namespace=job.namespace,
            cancel_requested=job.cancel_requested,
            created_at=wire_time(job.created_at),
            started_at=None if job.started_at is None else wire_time(job.started_at),
            finished_at=None if job.finished_at is None else wire_time(job.finished_at),
        )


class JobsResponse(BaseModel):
    jobs: list[JobRecord] = Field(description="Newest first.")
    count: int
    total: int = Field(description="The total number on all pages.")
    offset: int
    limit: int


async def _jobs_of(request: Request) -> Jobs:
    return service_of(request).jobs


async def _sees_all_actors(request: Request, scope: Reader) -> bool:
    return request.state.role is Role.ADMIN and scope.sources is None


_Jobs = Annotated[Jobs, Depends(_jobs_of)]
AllActors = Annotated[bool, Depends(_sees_all_actors)]
"""True if the caller sees the jobs of all actors in the namespace, as an admin of the whole namespace does."""


@routes.get(
    "/jobs",
    summary="List jobs",
    cost=CostClass.LIGHT,
    access=NOTHING,
    sdk="jobs.list",
)
def list_jobs(
    scope: Reader,
    jobs: _Jobs,
    all_actors: AllActors,
    status: Annotated[JobStatus | None, Query(description="Only jobs with this status.")] = None,
    kind: Annotated[_Kind | None, Query(description="Only jobs of this kind, such as `deduplicate`.")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Maximum number of items.")] = 50,
    offset: Annotated[int, Query(ge=0, le=2**31, description="Number of items to skip.")] = 0,
) -> JobsResponse:
    """List the jobs of this namespace, newest first; non-admin keys see only their own."""
    found, total = jobs.list(scope, all_actors=all_actors, status=status, kind=kind, limit=limit, offset=offset)
    records = [JobRecord.of(job) for job in found]
    return JobsResponse(jobs=records, count=len(records), total=total, offset=offset, limit=limit)


@routes.get(
    "/jobs/{job_id}",
    summary="Get a job",
    cost=CostClass.LIGHT,
    access=NOTHING,
    sdk="jobs.get",
    errors=[404],
)
def get_job(job_id: JobId, scope: Reader, jobs: _Jobs, all_actors: AllActors) -> JobRecord:
    """Get the progress of a job, and its result when it has finished."""
    return JobRecord.of(jobs.get(scope, job_id, all_actors=all_actors))


@routes.post(
    "/jobs/{job_id}/cancel",
    summary="Cancel a job",
    cost=CostClass.LIGHT,
    sdk="jobs.cancel",
    errors=[404, 409],
)
def cancel_job(job_id: JobId, scope: Writer, jobs: _Jobs, all_actors: AllActors) -> JobRecord:
    """Cancel a queued job immediately, or a running job at its next checkpoint; work already done is kept."""
    return JobRecord.of(jobs.cancel(scope, job_id, all_actors=all_actors))
