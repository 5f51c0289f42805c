"""The summary of an agent: statistics, recent sessions and messages, top concepts, and insights."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from typing import Annotated, Literal

from fastapi import Query
from pydantic import BaseModel, BeforeValidator, Field

from souvenir.api.concepts import ConceptRecord
from souvenir.api.fields import Moment, Record, WireTime
from souvenir.api.messages import MessageRecord
from souvenir.api.parameters import PresentAgentReader
from souvenir.api.sessions import SessionRecord
from souvenir.knowledge.insights import InsightKind
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import EVERYTHING, OF_BOTH, RunningService
from souvenir.server.routing import Routes
from souvenir.store.messages.sessions import SessionFilter

routes = Routes("concepts")

RECENT = 10
TOP_CONCEPTS = 20


def _day(due: date | None) -> str | None:
    return None if due is None else due.isoformat()


class NamedConcept(Record):
    concept_id: int = Field(validation_alias="id")
    name: str = Field(examples=["Lisbon"])


class InsightSource(Record):
    kind: Literal["message", "memory"]
    id: str = Field(description="The id of the message or memory.", examples=["0d7f6a3c-5b2e-4f1a-9c8d-7e6f5a4b3c2d"])
    session_id: str | None = Field(description="The session of the message; null for a memory.", examples=["monday"])


class InsightRecord(Record):
    """A sentence that is worth acting on, with the texts from which it follows."""

    text: Annotated[str, OF_BOTH] = Field(
        examples=["Due on Friday, 6 March: “I'll send Priya the draft by Friday.” (3 March)."]
    )
    kind: InsightKind
    sources: list[InsightSource] = Field(description="Oldest first.")
    concepts: list[NamedConcept] = Field(description="The concepts that the sentence names.")
    due: Annotated[str | None, BeforeValidator(_day)] = Field(
        description="The day of a promise, an appointment or a change.", examples=["2026-03-06"]
    )
    at: WireTime = Field(description="The time of the latest source.", examples=["2026-03-03T09:30:00.000000+00:00"])


class InsightsResponse(BaseModel):
    insights: list[InsightRecord] = Field(description="At most 7, the most pressing kinds first.")


class SummaryStatistics(BaseModel):
    messages: int
    sessions: int
    users: int
    memories: int = Field(description="Including archived ones.")
    concepts: int
    waiting: int = Field(description="The number of messages and memories that still wait for concept recognition.")


class SummaryResponse(BaseModel):
    statistics: SummaryStatistics
    recent_messages: list[MessageRecord] = Field(description=f"The latest {RECENT}, newest first.")
    recent_sessions: list[SessionRecord] = Field(description=f"The latest {RECENT}, newest first.")
    top_concepts: list[ConceptRecord] = Field(
        description=f"Up to {TOP_CONCEPTS} concepts that tell something: those with a description or a role, and names "
        "that recur."
    )
    insights: list[InsightRecord] = Field(description="At most 7, the most pressing kinds first.")


@routes.get(
    "/agents/{agent_name}/summary",
    summary="Get an agent's summary",
    cost=CostClass.SEARCH,
    sdk="concepts.summary",
    errors=[404],
)
def agent_summary(scope: PresentAgentReader, service: RunningService) -> SummaryResponse:
    """Get an agent's statistics, its recent messages and sessions, and its most characteristic concepts."""
    counts, graph = service.agents.stats(scope).counts, service.graph
    sessions, _ = service.sessions.page(scope, SessionFilter(), limit=RECENT)
    return SummaryResponse(
        statistics=SummaryStatistics.model_validate({**asdict(counts), **asdict(graph.concepts.counts(scope))}),
        recent_messages=[MessageRecord.of(one) for one in service.conversations.newest(scope, limit=RECENT)],
        recent_sessions=[SessionRecord.of(one) for one in sessions],
        top_concepts=[ConceptRecord.of(one) for one in graph.concepts.leading(scope, limit=TOP_CONCEPTS)],
        insights=[InsightRecord.of(one) for one in graph.insights.of_agent(scope)],
    )


@routes.get(
    "/agents/{agent_name}/insights",
    summary="Get an agent's insights",
    cost=CostClass.SEARCH,
    access=EVERYTHING,
    tag="agents",
    sdk="agents.insights",
    errors=[404],
)
def agent_insights(
    scope: PresentAgentReader,
    service: RunningService,
    at: Annotated[
        Moment | None, Query(description="The time to which due, new and quiet refer; by default now.")
    ] = None,
) -> InsightsResponse:
    """Get at most seven sentences that are worth acting on: promises, changes, contradictions, people and subjects."""
    return InsightsResponse(insights=[InsightRecord.of(one) for one in service.graph.insights.of_agent(scope, at)])
