"""Feedback on search results, and reports of memories that searches missed."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.fields import MAX_ID, Clean, MemoryId, Source, StoredText, wire_time
from souvenir.core.types import MemoryDraft
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import OF_MEMORY, REMEMBERED, Admin, Reader, RunningService, Writer
from souvenir.server.routing import Routes
from souvenir.store.memories.feedback import FeedbackEntry, NewFeedback

routes = Routes("search")


class Signal(StrEnum):
    USEFUL = "useful"
    NOT_USEFUL = "not_useful"


class FeedbackRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"memory_id": 1, "query": "which database does billing use", "signal": "useful"}]
        }
    )

    memory_id: MemoryId
    query: Annotated[str, StringConstraints(max_length=10_000), Clean] = Field(
        default="", description="The query that found the memory; redacted as the privacy policy demands."
    )
    signal: Signal = Field(description="`useful` or `not_useful`.")
    search_id: Annotated[str, StringConstraints(max_length=200), Clean] = Field(
        default="", description="The caller's own id of the search.", examples=["s-17"]
    )


class FeedbackResponse(BaseModel):
    status: Literal["recorded"] = Field(examples=["recorded"])


class FeedbackRecord(BaseModel):
    id: int
    ts: str = Field(description="The time of the judgement.", examples=["2025-04-02T09:30:00.000000+00:00"])
    memory_id: int
    query: Annotated[str, OF_MEMORY]
    signal: Signal
    search_id: str = Field(examples=["s-17"])

    @classmethod
    def of(cls, entry: FeedbackEntry) -> FeedbackRecord:
        return cls(
            id=entry.id,
            ts=wire_time(entry.created_at),
            memory_id=entry.memory_id,
            query=entry.query,
            signal=Signal.USEFUL if entry.useful else Signal.NOT_USEFUL,
            search_id=entry.search_id,
        )


class FeedbackHistoryResponse(BaseModel):
    entries: list[FeedbackRecord] = Field(description="Newest first.")
    count: int


class RetractedFeedbackResponse(BaseModel):
    status: Literal["retracted"] = Field(examples=["retracted"])
    id: int


@routes.post(
    "/search/feedback",
    summary="Judge a search result",
    cost=CostClass.LIGHT,
    sdk="memories.give_feedback",
    errors=[404],
)
def give_feedback(body: FeedbackRequest, scope: Writer, service: RunningService) -> FeedbackResponse:
    """Record that a memory was useful for a query, or was not; a search with `feedback_weight` ranks by that."""
    new = NewFeedback(body.memory_id, body.signal is Signal.USEFUL, body.query, body.search_id)
    service.feedback.record(scope, new)
    return FeedbackResponse(status="recorded")


@routes.get(
    "/search/feedback/history",
    summary="List feedback",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="memories.feedback_history",
    errors=[404],
)
def feedback_history(
    scope: Reader,
    service: RunningService,
    memory_id: Annotated[int, Query(ge=0, le=MAX_ID, description="The id of a memory.", examples=[1])],
    limit: Annotated[int, Query(ge=1, le=200, description="Maximum number of entries.")] = 50,
) -> FeedbackHistoryResponse:
    """List the judgements of a memory by all callers."""
    entries = [FeedbackRecord.of(entry) for entry in service.feedback.history(scope, memory_id, limit=limit)]
    return FeedbackHistoryResponse(entries=entries, count=len(entries))


@routes.delete(
    "/search/feedback/{feedback_id}",
    summary="Retract feedback",
    cost=CostClass.LIGHT,
    sdk="memories.retract_feedback",
    errors=[404],
)
def retract_feedback(
    feedback_id: Annotated[int, Path(ge=0, le=MAX_ID, description="The id of a judgement.", examples=[1])],
    scope: Admin,
    service: RunningService,
) -> RetractedFeedbackResponse:
    """Delete a judgement; searches rank without it from then on."""
    service.feedback.retract(scope, feedback_id)
    return RetractedFeedbackResponse(status="retracted", id=feedback_id)


class MissedMemoryRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Billing runs on PostgreSQL", "source": "claude-code/billing"}]}
    )

    text: StoredText = Field(description="The memory that a search should have found.")
    source: Source = Field(description="The source to store it in.", examples=["claude-code/billing"])
    context: Annotated[str, StringConstraints(max_length=10_000), Clean] | None = Field(
        default=None, description="The search that did not find it; redacted as the privacy policy demands."
    )


class MissedMemoryResponse(BaseModel):
    id: int = Field(description="The id of the stored memory, or of the one that has the same text.")
    source: str = Field(examples=["claude-code/billing"])
    missed_count: int = Field(description="The number of reports of this memory.")


@routes.post(
    "/memory/missed",
    summary="Report a missed memory",
    cost=CostClass.WRITE,
    sdk="memories.report_missed",
)
def report_missed(body: MissedMemoryRequest, scope: Writer, service: RunningService) -> MissedMemoryResponse:
    """Report that searches did not find a memory; it is stored unless its source has an active one of the same text."""
    memory_id, count = service.feedback.report_missed(scope, MemoryDraft(body.text, body.source), body.context)
    return MissedMemoryResponse(id=memory_id, source=body.source, missed_count=count)
