"""Mem0's feedback on memories."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Request
from pydantic import BaseModel, StringConstraints

from souvenir.api.fields import Clean
from souvenir.compat.mem0.agents import located
from souvenir.compat.mem0.models import Strict
from souvenir.compat.mem0.routes import Mem0Routes
from souvenir.core.types import Role
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import RunningService, Writer
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
