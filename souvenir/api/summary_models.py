"""What there is of an agent at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.concept_models import CONCEPT_EXAMPLE, ConceptRecord
from souvenir.api.message_models import MESSAGE_EXAMPLE, MessageRecord
from souvenir.api.service import Service
from souvenir.api.session_models import SESSION_EXAMPLE, SessionRecord
from souvenir.conversation.agents import AgentStats
from souvenir.graph.concepts import ConceptCounts
from souvenir.store.concepts import Concept
from souvenir.store.messages import Message, MessageFilter
from souvenir.store.sessions import Session, SessionFilter
from souvenir.types import Scope

RECENT = 10
TOP_CONCEPTS = 20

_STATISTICS: dict[str, Any] = {
    "messages": 2,
    "sessions": 1,
    "users": 1,
    "memories": 0,
    "concepts": 1,
    "waiting": 0,
}


@dataclass(frozen=True, slots=True)
class Summary:
    """What there is of an agent, in the order of what is newest or tells most."""

    stats: AgentStats
    counts: ConceptCounts
    messages: Sequence[Message]
    sessions: Sequence[Session]
    concepts: Sequence[Concept]
    insights: Sequence[str]


def summary_of(service: Service, scope: Scope) -> Summary:
    """:raises AgentNotFound: If the namespace is no agent."""
    return Summary(
        service.agents.stats(scope),
        service.graph.concepts.counts(scope),
        service.conversations.page(scope, MessageFilter(), limit=RECENT)[0],
        service.sessions.page(scope, SessionFilter(), limit=RECENT)[0],
        service.graph.concepts.page(scope, limit=TOP_CONCEPTS)[0],
        service.graph.insights.sentences(scope),
    )


class SummaryStatistics(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_STATISTICS]})

    messages: int
    sessions: int
    users: int
    memories: int = Field(description="Archived ones included.")
    concepts: int
    waiting: int = Field(description="Messages and memories that are still to be read for concepts.")

    @classmethod
    def of(cls, summary: Summary) -> Self:
        counts = summary.stats.counts
        return cls(
            messages=counts.messages,
            sessions=counts.sessions,
            users=counts.users,
            memories=counts.memories,
            concepts=summary.counts.concepts,
            waiting=summary.counts.waiting,
        )


class SummaryResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "statistics": _STATISTICS,
                    "recent_messages": [MESSAGE_EXAMPLE],
                    "recent_sessions": [SESSION_EXAMPLE],
                    "top_concepts": [CONCEPT_EXAMPLE],
                    "memory_insights": ["Most said about: Redis (2)."],
                }
            ]
        }
    )

    statistics: SummaryStatistics
    recent_messages: list[MessageRecord] = Field(description=f"The latest {RECENT}, newest first.")
    recent_sessions: list[SessionRecord] = Field(description=f"The latest {RECENT}, newest first.")
    top_concepts: list[ConceptRecord] = Field(description=f"The {TOP_CONCEPTS} that tell most of the agent.")
    memory_insights: list[str] = Field(description="What stands out of all that is known, in sentences.")

    @classmethod
    def of(cls, summary: Summary) -> Self:
        return cls(
            statistics=SummaryStatistics.of(summary),
            recent_messages=[MessageRecord.of(one) for one in summary.messages],
            recent_sessions=[SessionRecord.of(one) for one in summary.sessions],
            top_concepts=[ConceptRecord.of(one) for one in summary.concepts],
            memory_insights=list(summary.insights),
        )
