"""Extraction: a transcript is taken and learned from; what came of it is shown, and can be cancelled."""

from __future__ import annotations

from fastapi import Request

from souvenir.api.caller import Reader, RunningService, Writer, agent_scope
from souvenir.api.errors import error_responses
from souvenir.api.extraction_models import (
    ExtractAccepted,
    ExtractJob,
    ExtractRequest,
    ExtractStatus,
    queue_errors,
)
from souvenir.api.extraction_requests import take
from souvenir.api.jobs import AllActors, JobId
from souvenir.api.json_route import router
from souvenir.api.once import MakeOnce
from souvenir.store.jobs import EXTRACT

routes = router("extraction")


@routes.post(
    "/memory/extract", summary="Learn from a transcript", status_code=202, responses=queue_errors(400, 409, 501)
)
def extract(
    body: ExtractRequest, scope: Writer, service: RunningService, request: Request, once: MakeOnce
) -> ExtractAccepted:
    """Take a transcript to find in it what is worth keeping and what it corrects; the work goes on as a job."""
    if body.store_messages:
        agent_scope(request, scope.namespace)
    taken = take(service, scope, body, once)
    return ExtractAccepted.of(taken.job, taken.messages, service.extraction)


@routes.get("/memory/extract/{job_id}", summary="Look at an extraction", responses=error_responses(404))
def get_extraction(job_id: JobId, scope: Reader, service: RunningService, all_actors: AllActors) -> ExtractJob:
    """Say how far an extraction is, and what came of it; who is no admin sees only their own."""
    return ExtractJob.of(*service.extraction.get(scope, job_id, all_actors=all_actors), service.extraction)


@routes.delete("/memory/extract/{job_id}", summary="Cancel an extraction", responses=error_responses(404, 409))
def cancel_extraction(job_id: JobId, scope: Writer, service: RunningService, all_actors: AllActors) -> ExtractJob:
    """End an extraction that waits at once, and one that runs before its next step; nothing of it is applied."""
    extraction = service.extraction
    extraction.get(scope, job_id, all_actors=all_actors)
    extraction.jobs.cancel(scope, job_id, all_actors=all_actors)
    return ExtractJob.of(*extraction.get(scope, job_id, all_actors=all_actors), extraction)


@routes.get("/extract/status", summary="Ask whether transcripts are learned from", responses=error_responses())
def extract_status(scope: Reader, service: RunningService, all_actors: AllActors) -> ExtractStatus:
    """Say which model learns, whether it answered of late, and how many extractions wait; no model is asked."""
    _, tracked = service.extraction.jobs.list(scope, all_actors=all_actors, kind=EXTRACT, limit=0)
    return ExtractStatus.now(service.extraction, service.provider, service.settings, tracked)
