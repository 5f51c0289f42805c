"""What the routes of insights answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from souvenir.graph.insights import AgentInsights, Network, Sessions, Spread, Usage
from souvenir.graph.neighbourhoods import History, Shift
from souvenir.store.concepts import Concept
from souvenir.types import MessageRole

_NAMED: dict[str, Any] = {"concept_id": 12, "name": "Lisbon"}
_SPREAD: dict[str, Any] = {"median": 12.0, "p90": 30.0}
_SAID: dict[str, Any] = {"first_day": "2025-04-02", "user": 7, "assistant": 7, "system": 0}
_USAGE: dict[str, Any] = {
    "days": [_SAID],
    "weeks": [{**_SAID, "first_day": "2025-03-31"}],
    "months": [{**_SAID, "first_day": "2025-04-01"}],
    "hours": [*([0] * 9), 14, *([0] * 14)],
    "weekdays": [0, 0, 14, 0, 0, 0, 0],
}
_INSIGHTS: dict[str, Any] = {
    "usage": _USAGE,
    "sessions": {"count": 1, "messages": _SPREAD, "minutes": _SPREAD},
    "network": {
        "nodes": 2,
        "edges": 1,
        "density": 1.0,
        "strongest": [{"one": _NAMED, "other": {"concept_id": 13, "name": "Alice"}, "strength": 0.4, "together": 3}],
        "most_connected": [{**_NAMED, "connections": 1}],
    },
    "memory_insights": ["Most said about: Lisbon (3), Alice (3)."],
}
_SHIFT: dict[str, Any] = {**_NAMED, "before": 0, "after": 2}
_HISTORY: dict[str, Any] = {
    "concept": _NAMED,
    "months": [{"month": "2025-04", "owners": 3, "neighbours": [{**_NAMED, "together": 2}]}],
    "changed": {"from_month": "2025-04", "gained": [_SHIFT], "lost": [], "stronger": [], "weaker": []},
}


class NamedConcept(BaseModel):
    concept_id: int
    name: str

    @classmethod
    def fields_of(cls, concept: Concept) -> dict[str, Any]:
        return {"concept_id": concept.id, "name": concept.name}


class SaidInTime(BaseModel):
    """How many messages of each role were said in a day, a week or a month."""

    first_day: str
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
    days: list[SaidInTime] = Field(description="Those on which something was said, oldest first.")
    weeks: list[SaidInTime] = Field(description="From Monday on.")
    months: list[SaidInTime]
    hours: list[int] = Field(description="Messages by the hour of the day in UTC, 24 of them.")
    weekdays: list[int] = Field(description="Messages by weekday in UTC, from Monday on.")

    @classmethod
    def of(cls, usage: Usage) -> Self:
        days, weeks, months = (SaidInTime.all_of(one) for one in (usage.days, usage.weeks, usage.months))
        return cls(days=days, weeks=weeks, months=months, hours=list(usage.hours), weekdays=list(usage.weekdays))


class SpreadRecord(BaseModel):
    median: float
    p90: float = Field(description="Nine of ten are not above it.")

    @classmethod
    def of(cls, spread: Spread | None) -> Self | None:
        return None if spread is None else cls(median=round(spread.median, 2), p90=round(spread.p90, 2))


class SessionLengths(BaseModel):
    count: int = Field(description="Sessions that began in the time and have messages.")
    messages: SpreadRecord | None = Field(description="Of one session; null if there is none.")
    minutes: SpreadRecord | None = Field(description="From its first message to its last.")

    @classmethod
    def of(cls, sessions: Sessions) -> Self:
        messages, minutes = SpreadRecord.of(sessions.messages), SpreadRecord.of(sessions.minutes)
        return cls(count=sessions.count, messages=messages, minutes=minutes)


class ConceptPair(BaseModel):
    one: NamedConcept
    other: NamedConcept
    strength: float = Field(description="How strongly they belong together, 0 to 1; 0 is chance.")
    together: int = Field(description="Messages and memories that mention both.")


class ConnectedConcept(NamedConcept):
    connections: int = Field(description="Other concepts of the network that it is mentioned with.")


class NetworkRecord(BaseModel):
    """The concepts that tell most of the agent, 64 at most, and which of them are mentioned together."""

    nodes: int
    edges: int = Field(description="Pairs that are mentioned together.")
    density: float = Field(description="The share of all pairs that are.")
    strongest: list[ConceptPair] = Field(description="10 at most.")
    most_connected: list[ConnectedConcept] = Field(description="10 at most.")

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
    """How an agent is used and what it knows, in figures."""

    model_config = ConfigDict(json_schema_extra={"examples": [_INSIGHTS]})

    usage: UsageRecord
    sessions: SessionLengths
    network: NetworkRecord
    memory_insights: list[str] = Field(description="What stands out of all that is known, in sentences.")

    @classmethod
    def of(cls, insights: AgentInsights) -> Self:
        return cls(
            usage=UsageRecord.of(insights.usage),
            sessions=SessionLengths.of(insights.sessions),
            network=NetworkRecord.of(insights.network),
            memory_insights=list(insights.sentences),
        )


class NeighbourRecord(NamedConcept):
    together: int = Field(description="Messages and memories of the month that mention both.")


class ConceptMonth(BaseModel):
    month: str = Field(description="Year and month in UTC.")
    owners: int = Field(description="Messages and memories that mention the concept.")
    neighbours: list[NeighbourRecord] = Field(description="What they mention most beside it; 10 at most.")


class NeighbourShift(NamedConcept):
    before: int = Field(description="Messages and memories before that mention both.")
    after: int = Field(description="The same from then on.")

    @classmethod
    def all_of(cls, shifts: Sequence[Shift]) -> list[Self]:
        return [cls(**cls.fields_of(one.neighbour), before=one.before, after=one.after) for one in shifts]


class ChangedNeighbours(BaseModel):
    """What is mentioned with a concept before a month and from then on, by the share of what mentions the concept."""

    from_month: str | None = Field(description="Null if the concept is mentioned in fewer than two months.")
    gained: list[NeighbourShift] = Field(description="Not before, and twice or more from then on.")
    lost: list[NeighbourShift] = Field(description="Twice or more before, and not from then on.")
    stronger: list[NeighbourShift] = Field(description="Its share is at least 1.5 times as large.")
    weaker: list[NeighbourShift] = Field(description="Its share was at least 1.5 times as large.")


class ConceptHistory(BaseModel):
    """How what is mentioned with a concept changes."""

    model_config = ConfigDict(json_schema_extra={"examples": [_HISTORY]})

    concept: NamedConcept
    months: list[ConceptMonth] = Field(description="Those in which it is mentioned, oldest first.")
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
