"""The summary of an agent: statistics, recent sessions and messages, top concepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Self

from pydantic import BaseModel, Field

from souvenir.api.concepts import ConceptRecord
from souvenir.api.insights import InsightRecord
from souvenir.api.messages import MessageRecord
from souvenir.api.parameters import AgentReader
from souvenir.api.sessions import SessionRecord
from souvenir.conversations.agents import AgentStats
from souvenir.core.types import Scope
from souvenir.knowledge.concepts import ConceptCounts
from souvenir.knowledge.insights import Insight
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import RunningService
from souvenir.server.routing import Routes
from souvenir.server.service import Service
from souvenir.store.graph.concepts import Concept
from souvenir.store.messages.messages import Message
from souvenir.store.messages.sessions import Session, SessionFilter

RECENT = 10
TOP_CONCEPTS = 20


@dataclass(frozen=True, slots=True)
class Summary:
    """The parts of a summary, newest or most characteristic first."""

    stats: AgentStats
    counts: ConceptCounts
    messages: Sequence[Message]
    sessions: Sequence[Session]
    concepts: Sequence[Concept]
    insights: Sequence[Insight]


def summary_of(service: Service, scope: Scope) -> Summary:
    """:raises AgentNotFound: If the namespace is not an agent."""
    return Summary(
        service.agents.stats(scope),
        service.graph.concepts.counts(scope),
        service.conversations.newest(scope, limit=RECENT),
        service.sessions.page(scope, SessionFilter(), limit=RECENT)[0],
        service.graph.concepts.leading(scope, limit=TOP_CONCEPTS),
        service.graph.insights.of_agent(scope),
    )


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

    @classmethod
    def of(cls, summary: Summary) -> Self:
        return cls(
            statistics=SummaryStatistics.model_validate({**asdict(summary.stats.counts), **asdict(summary.counts)}),
            recent_messages=[MessageRecord.of(one) for one in summary.messages],
            recent_sessions=[SessionRecord.of(one) for one in summary.sessions],
            top_concepts=[ConceptRecord.of(one) for one in summary.concepts],
            insights=[InsightRecord.of(one) for one in summary.insights],
        )


routes = Routes("concepts")


@routes.get(
    "/agents/{agent_name}/summary",
    summary="Get an agent's summary",
    cost=CostClass.SEARCH,
    sdk="concepts.summary",
    errors=[404],
)
def agent_summary(scope: AgentReader, service: RunningService) -> SummaryResponse:
    """Get an agent's statistics, its recent messages and sessions, and its most characteristic concepts."""
    return SummaryResponse.of(summary_of(service, scope))
