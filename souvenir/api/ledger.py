"""Going on with a finished extraction: commit what a dry run found, approve, undo, run again, compare."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from fastapi.responses import JSONResponse

from souvenir.api.caller import Reader, RunningService, Writer
from souvenir.api.errors import error_responses
from souvenir.api.extraction_models import ExtractAccepted, ExtractJob, ExtractResult, queue_errors
from souvenir.api.jobs import AllActors, JobId
from souvenir.api.json_route import router
from souvenir.api.ledger_models import NOTHING_DONE, CommitRequest, DiffResponse, RerunRequest, UndoResponse
from souvenir.api.long_work import ACCEPTED, DEFAULT_WAIT_S, WaitS, result_of

routes = router("extraction")

_PATH = "/memory/extract"
_JOB = f"{_PATH}/{{job_id}}"
_OtherJob = Annotated[str, Query(min_length=1, max_length=100, description="The extraction to compare with.")]


@routes.post(
    f"{_PATH}/commit",
    summary="Do what a dry run decided",
    response_model=ExtractResult,
    responses={**queue_errors(400, 404, 409), **ACCEPTED},
)
def commit(
    body: CommitRequest,
    scope: Writer,
    service: RunningService,
    all_actors: AllActors,
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> ExtractResult | JSONResponse:
    """Apply the approved ones of these actions, all or none, as an extraction of its own that can be undone."""
    chosen = body.chosen()
    if not chosen:
        return NOTHING_DONE
    job = service.extraction.ledger.commit(scope, chosen, body.source, all_actors=all_actors)
    done = service.extraction_work.waited(job, wait_s)
    result = result_of(done, shown_at=_PATH)
    return result if isinstance(result, JSONResponse) else ExtractResult.of(done, service.extraction)


@routes.post(f"{_JOB}/approve", summary="Approve an extraction", responses=queue_errors(404, 409))
def approve(
    job_id: JobId, scope: Writer, service: RunningService, all_actors: AllActors, wait_s: WaitS = DEFAULT_WAIT_S
) -> ExtractJob:
    """Let an extraction delete what it decided to, though that is more than EXTRACT_MAX_DELETES; it goes on at once."""
    job = service.extraction.ledger.approve(scope, job_id, all_actors=all_actors)
    service.extraction_work.waited(job, wait_s)
    return ExtractJob.of(*service.extraction.get(scope, job_id, all_actors=all_actors), service.extraction)


@routes.post(f"{_JOB}/undo", summary="Undo an extraction", responses=error_responses(404, 409))
def undo(job_id: JobId, scope: Writer, service: RunningService, all_actors: AllActors) -> UndoResponse:
    """Take back all that an extraction changed, to the byte; 409 names what was changed since."""
    return UndoResponse.of(service.extraction.ledger.undo(scope, job_id, all_actors=all_actors))


@routes.post(f"{_JOB}/rerun", summary="Run an extraction again", status_code=202, responses=queue_errors(404, 409))
def rerun(
    job_id: JobId,
    scope: Writer,
    service: RunningService,
    all_actors: AllActors,
    body: RerunRequest | None = None,
) -> ExtractAccepted:
    """Read the transcript of a finished extraction again as a dry run, with another model if one is named."""
    model = (body or RerunRequest()).model
    job = service.extraction.ledger.rerun(scope, job_id, model=model, all_actors=all_actors)
    return ExtractAccepted.of(job, None, service.extraction)


@routes.get(f"{_JOB}/diff", summary="Compare two extractions", responses=error_responses(404, 409))
def diff(
    job_id: JobId, other: _OtherJob, scope: Reader, service: RunningService, all_actors: AllActors
) -> DiffResponse:
    """Say which facts two extractions of one transcript share, and which only one of them found."""
    return DiffResponse.of(job_id, other, service.extraction.ledger.diff(scope, job_id, other, all_actors=all_actors))
