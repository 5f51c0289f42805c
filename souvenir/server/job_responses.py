"""Responses of routes that start a job: its result if it finishes soon, otherwise 202 with the path of the result."""

from __future__ import annotations

from threading import Semaphore
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from souvenir.core.concurrency import time_left
from souvenir.core.errors import Conflict, JobFailed, JobRefused, QuotaExceeded
from souvenir.core.errors.requests import FREED_AFTER_S
from souvenir.core.types import JsonObject, Scope
from souvenir.jobs.worker import Jobs
from souvenir.store.admin.jobs import Job, JobStatus

MAX_WAITING = 4
"""Maximum number of requests that wait for jobs; each holds a thread of the shared pool."""

ANSWER_S = 1.0
"""Reserved from the request's deadline for sending the 202 response."""

JOB_ABOVE_MEMORIES = 2_000
"""In a larger namespace, comparing all memories is a job."""

WaitS = Annotated[
    float,
    Query(
        ge=0,
        le=50,
        description="Seconds to wait for the job to finish; after that the response is 202 with the URL of its result.",
    ),
]
DEFAULT_WAIT_S = 20.0


class JobAccepted(BaseModel):
    """The work continues as a job."""

    job_id: str
    status: JobStatus = Field(description="`queued` or `running`.")
    result_url: str = Field(
        description="The URL of the progress and the result.", examples=["/jobs/0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d"]
    )


ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {"description": "The work continues as a job.", "model": JobAccepted},
}
"""For the `responses` of a route that may answer 202."""


class LongWork:
    """Submits jobs for routes. A route waits on its thread, so only a few may wait; the others answer 202."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._waiting = Semaphore(MAX_WAITING)

    def run(
        self,
        kind: str,
        scope: Scope,
        parameters: JsonObject,
        *,
        wait_s: float,
        job_id: str | None = None,
        serial_key: str | None = None,
        is_local: bool = False,
    ) -> JsonObject | JSONResponse:
        """Return the result of a new job, or the 202 response if it does not finish within `wait_s`.

        :param serial_key: Jobs of one kind and serial key run one after another.
        :param is_local: Whether only this replica can run it, as it has a file of it.
        :raises JobFailed: If it failed within that time. :raises Conflict: If it was cancelled.
        """
        job = self._jobs.submit(kind, scope, parameters, job_id=job_id, serial_key=serial_key, is_local=is_local)
        return result_of(self.waited(job, wait_s))

    def waited(self, job: Job, wait_s: float) -> Job:
        """Return the job when it has finished, or its state after this time, or at once if too many requests wait."""
        if not self._waiting.acquire(blocking=False):
            return job
        try:
            return self._jobs.wait(job.id, time_left(wait_s + ANSWER_S) - ANSWER_S)
        finally:
            self._waiting.release()


def result_of(job: Job, *, shown_at: str = "/jobs") -> JsonObject | JSONResponse:
    """Return the result of a job, or the 202 response if it has not finished.

    :param shown_at: The path below which its result is available.
    :raises JobRefused: If its request cannot be carried out. :raises QuotaExceeded: If a quota is used up.
    :raises JobFailed: If it failed for another reason. :raises Conflict: If it was cancelled.
    """
    match job.status:
        case JobStatus.COMPLETED:
            return job.result or {}
        case JobStatus.FAILED if job.refused:
            if str((job.result or {}).get("code")).startswith("quota_"):
                raise QuotaExceeded(f"Job {job.id!r} failed: {job.error}", retry_after_s=FREED_AFTER_S)
            raise JobRefused(job.id, str(job.error))
        case JobStatus.FAILED:
            raise JobFailed(job.id, str(job.error))
        case JobStatus.CANCELLED:
            raise Conflict(f"Job {job.id!r} was cancelled; ask again if it shall be done after all")
        case _:
            accepted = JobAccepted(job_id=job.id, status=job.status, result_url=f"{shown_at}/{job.id}")
            return JSONResponse(accepted.model_dump(mode="json"), status_code=202)
