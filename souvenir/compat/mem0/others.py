"""Mem0's feedback, and the routes for what this service does not have, which say what to use instead."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import BaseModel, StringConstraints

from souvenir.api.fields import Clean
from souvenir.compat.mem0.agents import located
from souvenir.compat.mem0.models import Strict
from souvenir.compat.mem0.routes import Mem0Routes
from souvenir.core.errors import NotOffered
from souvenir.core.types import Role
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import Reader, RunningService, Writer
from souvenir.store.memories.feedback import NewFeedback

routes = Mem0Routes("mem0")


class Mem0Feedback(Strict):
    memory_id: Annotated[str, StringConstraints(max_length=100)]
    feedback: Literal["POSITIVE", "NEGATIVE", "VERY_NEGATIVE"]
    feedback_reason: Annotated[str, StringConstraints(max_length=10_000), Clean] | None = None


class Mem0FeedbackGiven(BaseModel):
    memory_id: str
    feedback: str


@routes.post("/v1/feedback/", cost=CostClass.LIGHT)
def feedback(body: Mem0Feedback, scope: Writer, service: RunningService, request: Request) -> Mem0FeedbackGiven:
    """Record that a memory was useful, or was not; the reason is stored where searches' queries are."""
    own, number = located(request, scope, body.memory_id, Role.READ_WRITE)
    useful = body.feedback == "POSITIVE"
    service.feedback.record(own, NewFeedback(number, useful, body.feedback_reason or "", ""))
    return Mem0FeedbackGiven(memory_id=body.memory_id, feedback=body.feedback)


PROFILES = "This service has no profiles of users; get_all with a filter by user_id lists what is known of one"
PROJECTS = "This service has no organisations and projects; the settings of docs/configuration.md hold for all keys"
WEBHOOKS = "Webhooks of projects are not offered; POST /webhooks registers one for changes of memories"
EXPORTS = "Exports by a schema are not offered; get_all lists memories, and GET /export returns them as NDJSON"
SUMMARIES = "Summaries of memories are not offered; search or get_all returns the memories themselves"

REFUSED = {
    "/v1/exports/": EXPORTS,
    "/v1/exports/get/": EXPORTS,
    "/v1/summary/": SUMMARIES,
    "/v2/entities/user/{name}/profile/": PROFILES,
    "/v2/profiles/{rest:path}": PROFILES,
    "/api/v1/orgs/{rest:path}": PROJECTS,
    "/api/v1/webhooks/{rest:path}": WEBHOOKS,
}


def _refusal(sentence: str) -> Any:
    def refuse(scope: Reader) -> None:
        """:raises NotOffered: Always; it says what to use instead."""
        raise NotOffered(sentence)

    return refuse


for _path, _sentence in REFUSED.items():
    for _declare in (routes.get, routes.post, routes.put, routes.patch, routes.delete):
        _declare(_path, cost=CostClass.LIGHT)(_refusal(_sentence))
