"""How a route answers from a job: with its result if that is there soon, else with where it can be asked for."""

from __future__ import annotations

from threading import Semaphore
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from souvenir.deadlines import time_left
from souvenir.errors import Conflict, JobFailed
from souvenir.jobs.worker import Jobs
from souvenir.store.jobs import Job, JobStatus
from souvenir.types import JsonObject, Scope

MAX_WAITING = 4
"""Requests that may wait for jobs at once; each holds one of the threads that all requests share."""

ANSWER_S = 1.0
"""Kept back of a request's time for the answer that the job goes on."""

JOB_ABOVE_MEMORIES = 2_000
"""What compares all memories of a namespace of more is a job."""

WaitS = Annotated[
    float,
    Query(
        ge=0,
        le=50,
        description="Seconds to wait for long work; after that the answer is 202 and says where its result will be.",
    ),
]
DEFAULT_WAIT_S = 20.0


class JobAccepted(BaseModel):
    """The work goes on as a job."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "job_id": "0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d",
                    "status": "queued",
                    "result_url": "/jobs/0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d",
                }
            ]
        }
    )

    job_id: str
    status: JobStatus = Field(description="`queued` or `running`.")
    result_url: str = Field(description="Says how far it is, and its result in the end.")


ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {"description": "The work goes on as a job.", "model": JobAccepted},
}
"""For the `responses` of a route that may answer so."""


class LongWork:
    """Submits jobs for routes. A route waits on its thread, so only a few may do so at once; the others answer 202."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._waiting = Semaphore(MAX_WAITING)

    def run(
        self, kind: str, scope: Scope, parameters: JsonObject, *, wait_s: float, job_id: str | None = None
    ) -> JsonObject | JSONResponse:
        """The result of a new job, or the answer 202 if it is not there within `wait_s`.

        :raises JobFailed: If it failed within that time. :raises Conflict: If it was cancelled.
        """
        return result_of(self.waited(self._jobs.submit(kind, scope, parameters, job_id=job_id), wait_s))

    def waited(self, job: Job, wait_s: float) -> Job:
        """A job of these as it is when it is finished, or as it stands after that time, or when too many wait."""
        if not self._waiting.acquire(blocking=False):
            return job
        try:
            return self._jobs.wait(job.id, time_left(wait_s + ANSWER_S) - ANSWER_S)
        finally:
            self._waiting.release()


def result_of(job: Job, *, shown_at: str = "/jobs") -> JsonObject | JSONResponse:
    """What a job keeps, or the answer 202 if it is not finished.

    :param shown_at: The path below which its result will be.
    :raises JobFailed: If it failed. :raises Conflict: If it was cancelled.
    """
    match job.status:
        case JobStatus.COMPLETED:
            return job.result or {}
        case JobStatus.FAILED:
            raise JobFailed(job.id, str(job.error))
        case JobStatus.CANCELLED:
            raise Conflict(f"Job {job.id!r} was cancelled; ask again if it shall be done after all")
        case _:
            accepted = JobAccepted(job_id=job.id, status=job.status, result_url=f"{shown_at}/{job.id}")
            return JSONResponse(accepted.model_dump(mode="json"), status_code=202)
