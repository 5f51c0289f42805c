"""Long work: what of it waits, runs and has ended."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.config import JsonDict

from souvenir.api.caller import Reader, Writer, service_of
from souvenir.api.errors import error_responses
from souvenir.api.fields import Clean, wire_time
from souvenir.api.json_route import router
from souvenir.jobs.worker import Jobs
from souvenir.store.jobs import Job, JobStatus
from souvenir.types import Role

routes = router("jobs")

_EXAMPLE: JsonDict = {
    "id": "0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d",
    "kind": "deduplicate",
    "status": "completed",
    "done": 12040,
    "total": 12040,
    "result": {"found": 1, "pairs": [[12, 13, 0.951203]], "removed": 1, "remaining": 12039, "dry_run": False},
    "error": None,
    "waits_for": None,
    "actor": "api-key",
    "namespace": "default",
    "cancel_requested": False,
    "created_at": "2025-04-02T09:30:00.000000+00:00",
    "started_at": "2025-04-02T09:30:00.004000+00:00",
    "finished_at": "2025-04-02T09:30:07.120000+00:00",
}

_Kind = Annotated[str, StringConstraints(max_length=100), Clean]
JobId = Annotated[
    str, StringConstraints(min_length=1, max_length=100), Clean, Path(description="The id that the job was given.")
]


class JobRecord(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    id: str
    kind: str
    status: JobStatus
    done: int = Field(description="How far it is, in a unit of its own.")
    total: int | None = Field(description="Where `done` leads to; null while that is not known.")
    result: dict[str, Any] | None = Field(description="What came of it, once it is completed.")
    error: str | None = Field(description="Why it failed, in a sentence.")
    waits_for: str | None = Field(description="Why it does not get on and is tried again, while it is not finished.")
    actor: str = Field(description="Who asked for it.")
    namespace: str
    cancel_requested: bool = Field(description="Whether it will end at its next checkpoint, or has ended so.")
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
            result=None if job.result is None else dict(job.result),
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
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"jobs": [_EXAMPLE], "count": 1, "total": 1, "offset": 0, "limit": 50}]}
    )

    jobs: list[JobRecord] = Field(description="Newest first.")
    count: int
    total: int = Field(description="Of all pages.")
    offset: int
    limit: int


async def _jobs_of(request: Request) -> Jobs:
    return service_of(request).jobs


async def _sees_all_actors(request: Request, scope: Reader) -> bool:
    return request.state.role is Role.ADMIN and scope.sources is None


_Jobs = Annotated[Jobs, Depends(_jobs_of)]
AllActors = Annotated[bool, Depends(_sees_all_actors)]
"""Whether the caller sees the jobs of others in the namespace: an admin of all of it does."""


@routes.get("/jobs", summary="List jobs", responses=error_responses())
def list_jobs(
    scope: Reader,
    jobs: _Jobs,
    all_actors: AllActors,
    status: Annotated[JobStatus | None, Query(description="Only those of this status.")] = None,
    kind: Annotated[_Kind | None, Query(description="Only those of this kind, such as `deduplicate`.")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="At most so many.")] = 50,
    offset: Annotated[int, Query(ge=0, le=2**31, description="Skip so many.")] = 0,
) -> JobsResponse:
    """List the jobs of this namespace, newest first; who is no admin sees only their own."""
    found, total = jobs.list(scope, all_actors=all_actors, status=status, kind=kind, limit=limit, offset=offset)
    records = [JobRecord.of(job) for job in found]
    return JobsResponse(jobs=records, count=len(records), total=total, offset=offset, limit=limit)


@routes.get("/jobs/{job_id}", summary="Look at a job", responses=error_responses(404))
def get_job(job_id: JobId, scope: Reader, jobs: _Jobs, all_actors: AllActors) -> JobRecord:
    """Say how far a job is, and what came of it."""
    return JobRecord.of(jobs.get(scope, job_id, all_actors=all_actors))


@routes.post("/jobs/{job_id}/cancel", summary="Cancel a job", responses=error_responses(404, 409))
def cancel_job(job_id: JobId, scope: Writer, jobs: _Jobs, all_actors: AllActors) -> JobRecord:
    """End a job that waits at once, and one that runs at its next checkpoint; what it did until then stays."""
    return JobRecord.of(jobs.cancel(scope, job_id, all_actors=all_actors))
