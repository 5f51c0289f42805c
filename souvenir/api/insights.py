"""Insights: what an agent talks about over time, and the history of one concept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Self

from fastapi import Path, Query
from pydantic import BaseModel, Field

from souvenir.api.fields import MAX_ID, EndMoment, Moment
from souvenir.api.parameters import AgentReader
from souvenir.core.types import MessageRole
from souvenir.knowledge.insights import (
    EARLIEST,
    LATEST,
    AgentInsights,
    LengthSpread,
    Network,
    SessionInsights,
    UsageInsights,
)
from souvenir.knowledge.neighbourhoods import History, Shift
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import REMEMBERED, RunningService
from souvenir.server.routing import Routes
from souvenir.store.graph.concepts import Concept

routes = Routes("agents")


class NamedConcept(BaseModel):
    concept_id: int
    name: str = Field(examples=["Lisbon"])

    @classmethod
    def fields_of(cls, concept: Concept) -> dict[str, Any]:
        return {"concept_id": concept.id, "name": concept.name}


class SaidInTime(BaseModel):
    """The number of messages by role in a day, week or month."""

    first_day: str = Field(examples=["2025-04-02"])
    user: int
    assistant: int
    system: int

    @classmethod
    def all_of(cls, times: Mapping[datetime, Counter[MessageRole]]) -> list[SaidInTime]:
        return [
            cls(first_day=f"{begin:%Y-%m-%d}", **{role.value: said[role] for role in MessageRole})
            for begin, said in times.items()
        ]


class UsageRecord(BaseModel):
    days: list[SaidInTime] = Field(description="Days with messages, oldest first.")
    weeks: list[SaidInTime] = Field(description="Weeks, starting on Monday.")
    months: list[SaidInTime]
    hours: list[int] = Field(description="Messages by hour of the day in UTC (24 values).")
    weekdays: list[int] = Field(description="Messages by weekday in UTC, from Monday on.")

    @classmethod
    def of(cls, usage: UsageInsights) -> Self:
        days, weeks, months = (SaidInTime.all_of(one) for one in (usage.days, usage.weeks, usage.months))
        return cls(days=days, weeks=weeks, months=months, hours=list(usage.hours), weekdays=list(usage.weekdays))


class SpreadRecord(BaseModel):
    median: float
    p90: float = Field(description="The 90th percentile.")

    @classmethod
    def of(cls, spread: LengthSpread | None) -> Self | None:
        return None if spread is None else cls(median=round(spread.median, 2), p90=round(spread.p90, 2))


class SessionLengths(BaseModel):
    count: int = Field(description="The number of sessions that started in the period and have messages.")
    messages: SpreadRecord | None = Field(description="Per session; null without sessions.")
    minutes: SpreadRecord | None = Field(description="From the first to the last message.")

    @classmethod
    def of(cls, sessions: SessionInsights) -> Self:
        messages, minutes = SpreadRecord.of(sessions.messages), SpreadRecord.of(sessions.minutes)
        return cls(count=sessions.count, messages=messages, minutes=minutes)


class ConceptPair(BaseModel):
    one: NamedConcept
    other: NamedConcept
    strength: float = Field(description="The strength of the co-occurrence, 0 to 1; 0 means chance.")
    together: int = Field(description="The number of messages and memories that mention both.")


class ConnectedConcept(NamedConcept):
    connections: int = Field(description="The number of other concepts in the network that it co-occurs with.")


class NetworkRecord(BaseModel):
    """The network of the most characteristic concepts (at most 64) and their co-occurrences."""

    nodes: int
    edges: int = Field(description="The number of co-occurring pairs.")
    density: float = Field(description="The share of all pairs that co-occur.")
    strongest: list[ConceptPair] = Field(description="At most 10.")
    most_connected: list[ConnectedConcept] = Field(description="At most 10.")

    @classmethod
    def of(cls, network: Network) -> Self:
        pairs = [
            ConceptPair(
                one=NamedConcept(**NamedConcept.fields_of(pair.one)),
                other=NamedConcept(**NamedConcept.fields_of(pair.other)),
                strength=round(pair.strength, 4),
                together=pair.together,
            )
            for pair in network.strongest
        ]
        connected = [
            ConnectedConcept(**NamedConcept.fields_of(one), connections=count) for one, count in network.most_connected
        ]
        return cls(
            nodes=network.nodes,
            edges=network.edges,
            density=round(network.density, 4),
            strongest=pairs,
            most_connected=connected,
        )


class InsightsRecord(BaseModel):
    """Statistics of an agent's activity and knowledge."""

    usage: UsageRecord
    sessions: SessionLengths
    network: NetworkRecord
    memory_insights: list[str] = Field(
        description="Notable findings, as sentences.", examples=[["Most said about: Lisbon (3), Alice (3)."]]
    )

    @classmethod
    def of(cls, insights: AgentInsights) -> Self:
        return cls(
            usage=UsageRecord.of(insights.usage),
            sessions=SessionLengths.of(insights.sessions),
            network=NetworkRecord.of(insights.network),
            memory_insights=list(insights.sentences),
        )


class NeighbourRecord(NamedConcept):
    together: int = Field(description="The number of messages and memories of the month that mention both.")


class ConceptMonth(BaseModel):
    month: str = Field(description="Year and month in UTC.", examples=["2025-04"])
    owners: int = Field(description="The number of messages and memories that mention the concept.")
    neighbours: list[NeighbourRecord] = Field(
        description="The concepts that they mention most often with it; at most 10."
    )


class NeighbourShift(NamedConcept):
    before: int = Field(description="The number of messages and memories before it that mention both.")
    after: int = Field(description="The number since then.")

    @classmethod
    def all_of(cls, shifts: Sequence[Shift]) -> list[Self]:
        return [cls(**cls.fields_of(one.neighbour), before=one.before, after=one.after) for one in shifts]


class ChangedNeighbours(BaseModel):
    """Co-occurring concepts before and after a month, by their share of the texts that mention the concept."""

    from_month: str | None = Field(description="Null if the concept is mentioned in fewer than two months.")
    gained: list[NeighbourShift] = Field(description="Not mentioned before, and at least twice since.")
    lost: list[NeighbourShift] = Field(description="Mentioned at least twice before, and not since.")
    stronger: list[NeighbourShift] = Field(description="Its share grew at least 1.5 times.")
    weaker: list[NeighbourShift] = Field(description="Its share shrank at least 1.5 times.")


class ConceptHistory(BaseModel):
    """The history of the concepts that are mentioned with a concept."""

    concept: NamedConcept
    months: list[ConceptMonth] = Field(description="The months in which it is mentioned, oldest first.")
    changed: ChangedNeighbours

    @classmethod
    def of(cls, history: History) -> Self:
        months = [
            ConceptMonth(
                month=_month(one.month),
                owners=one.owners,
                neighbours=[
                    NeighbourRecord(**NamedConcept.fields_of(concept), together=together)
                    for concept, together in one.neighbours
                ],
            )
            for one in history.months
        ]
        changed = history.changed
        return cls(
            concept=NamedConcept(**NamedConcept.fields_of(history.concept)),
            months=months,
            changed=ChangedNeighbours(
                from_month=None if changed.month is None else _month(changed.month),
                gained=NeighbourShift.all_of(changed.gained),
                lost=NeighbourShift.all_of(changed.lost),
                stronger=NeighbourShift.all_of(changed.stronger),
                weaker=NeighbourShift.all_of(changed.weaker),
            ),
        )


def _month(since_year_0: int) -> str:
    return f"{since_year_0 // 12:04d}-{since_year_0 % 12 + 1:02d}"


@routes.get(
    "/agents/{agent_name}/insights",
    summary="Get an agent's insights",
    cost=CostClass.LONG,
    access=REMEMBERED,
    sdk="agents.insights",
    errors=[404],
)
def agent_insights(
    scope: AgentReader,
    service: RunningService,
    since: Annotated[Moment | None, Query(description="Only messages from this time on.")] = None,
    until: Annotated[EndMoment | None, Query(description="Only messages until this time.")] = None,
) -> InsightsRecord:
    """Get statistics of an agent's activity and of the structure of its knowledge; times are in UTC."""
    return InsightsRecord.of(service.graph.insights.of_agent(scope, since, until))


@routes.get(
    "/agents/{agent_name}/concepts/{concept_id}/history",
    summary="Get the history of a concept",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="agents.concept_history",
    errors=[404],
)
def concept_history(
    concept_id: Annotated[int, Path(ge=0, le=MAX_ID, description="The id of a concept.", examples=[1])],
    scope: AgentReader,
    service: RunningService,
    since: Annotated[Moment | None, Query(description="First month, given by any time in it.")] = None,
    until: Annotated[EndMoment | None, Query(description="Last month (inclusive), given by any time in it.")] = None,
    split: Annotated[Moment | None, Query(description="Compare the months before this one with the others.")] = None,
) -> ConceptHistory:
    """Get what a concept is mentioned with in each month, and the changes since the middle month, or since `split`."""
    found = service.graph.neighbourhoods.history(scope, concept_id, since or EARLIEST, until or LATEST, split)
    return ConceptHistory.of(found)
