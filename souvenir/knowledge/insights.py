"""Statistics of an agent's memory: its usage, its related concepts, and their changes.

Everything is computed on request, in UTC, and depends only on the stored data. The network consists of the most
significant concepts, so that its cost does not grow with the graph.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np

from souvenir.core.types import MessageRole, Scope
from souvenir.knowledge.concept_ranking import strength, top
from souvenir.knowledge.topics import named_topics
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph import activity as usage
from souvenir.store.graph import concepts, topics
from souvenir.store.graph.activity import Hour, Length
from souvenir.store.graph.concepts import Concept
from souvenir.store.graph.mentions import month_of
from souvenir.store.messages import agents
from souvenir.store.messages.agents import AgentCounts
from souvenir.store.sql import Connection

NODES = 64
"""Concepts of the network: the most significant ones of the period."""

STRONGEST = 10
"""Number of pairs, and of most connected concepts, that are listed."""

RECENT = timedelta(days=30)
"""Period before the latest message; a concept first mentioned in it is new."""

NAMED = 3
"""Number of items that a sentence lists."""

EARLIEST, LATEST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class LengthSpread(NamedTuple):
    """The median and the 90th percentile of some values."""

    median: float
    p90: float


@dataclass(frozen=True, slots=True)
class UsageInsights:
    """Messages by role: per day by its date, per week by its Monday, per month by its first day.

    :param hours: Messages by hour of the day, in UTC, 24 values. :param weekdays: Messages by weekday, from Monday.
    """

    days: Mapping[datetime, Counter[MessageRole]]
    weeks: Mapping[datetime, Counter[MessageRole]]
    months: Mapping[datetime, Counter[MessageRole]]
    hours: Sequence[int]
    weekdays: Sequence[int]


@dataclass(frozen=True, slots=True)
class SessionInsights:
    """Statistics of the sessions that began in the period; None if there is none."""

    count: int
    messages: LengthSpread | None
    minutes: LengthSpread | None


class RelatedPair(NamedTuple):
    """Two concepts, the strength of their relation, and the number of messages and memories that mention both."""

    one: Concept
    other: Concept
    strength: float
    together: int


@dataclass(frozen=True, slots=True)
class Network:
    """:param edges: Pairs that co-occur at all. :param density: Their share of all pairs.

    :param most_connected: Concepts with the number of concepts that they co-occur with.
    """

    nodes: int
    edges: int
    density: float
    strongest: Sequence[RelatedPair]
    most_connected: Sequence[tuple[Concept, int]]


@dataclass(frozen=True, slots=True)
class AgentInsights:
    usage: UsageInsights
    sessions: SessionInsights
    network: Network
    sentences: Sequence[str]


class Insights:
    """Thread-safe.

    :raises AgentNotFound: By every method, if the namespace is no agent.
    """

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def of_agent(self, scope: Scope, since: datetime | None = None, until: datetime | None = None) -> AgentInsights:
        """Return the statistics of a period; the sentences cover all of the history."""
        begin, end = since or EARLIEST, until or LATEST
        with self._engine.namespace(scope) as (connection, _):
            id_ = agents.require_agent(connection, scope).namespace_id
            return AgentInsights(
                usage_of(usage.hours(connection, id_, begin, end)),
                _sessions(usage.lengths(connection, id_, begin, end)),
                _network(connection, id_, since, until),
                memory_insights(connection, id_),
            )

    def sentences(self, scope: Scope) -> Sequence[str]:
        """Return notable facts about the whole history."""
        with self._engine.namespace(scope) as (connection, _):
            return memory_insights(connection, agents.require_agent(connection, scope).namespace_id)


def usage_of(hours: Sequence[Hour]) -> UsageInsights:
    days, weeks, months = (defaultdict[datetime, Counter[MessageRole]](Counter) for _ in range(3))
    of_day, of_week = [0] * 24, [0] * 7
    for begin, role, messages in hours:
        days[begin.replace(hour=0)][role] += messages
        of_day[begin.hour] += messages
    for day, by_role in days.items():
        weeks[day - timedelta(days=day.weekday())].update(by_role)
        months[day.replace(day=1)].update(by_role)
        of_week[day.weekday()] += by_role.total()
    return UsageInsights(days, weeks, months, of_day, of_week)


def _sessions(lengths: Sequence[Length]) -> SessionInsights:
    return SessionInsights(
        len(lengths), _spread([one.messages for one in lengths]), _spread([one.minutes for one in lengths])
    )


def _spread(values: Sequence[float]) -> LengthSpread | None:
    return LengthSpread(*(float(value) for value in np.percentile(values, [50, 90]))) if values else None


def _network(connection: Connection, namespace_id: int, since: datetime | None, until: datetime | None) -> Network:
    shown = {one.id: one for one in top(connection, namespace_id, limit=NODES, since=since, until=until)}
    root_of = concepts.spellings(connection, shown)
    first, last = month_of(since or EARLIEST), month_of(until or LATEST)
    pairs: dict[tuple[int, int], Counter[int]] = {}
    for (one, other), months in usage.co_occurrence_counts(connection, root_of, first, last).items():
        a, b = sorted((root_of[one], root_of[other]))
        if a != b:
            pairs.setdefault((a, b), Counter()).update(months)
    total = concepts.owners_read(connection, namespace_id)
    # Ages are relative to the latest co-occurrence, so that the result does not change as time passes.
    now = max((month for months in pairs.values() for month in months), default=0)
    weighed = [
        RelatedPair(shown[a], shown[b], strength(months, shown[a].owners, shown[b].owners, total, now), months.total())
        for (a, b), months in pairs.items()
    ]
    degrees = Counter(id_ for pair in pairs for id_ in pair)
    connected = sorted(degrees, key=lambda id_: (-degrees[id_], shown[id_].key))[:STRONGEST]
    possible = len(shown) * (len(shown) - 1) / 2
    return Network(
        nodes=len(shown),
        edges=len(pairs),
        density=len(pairs) / possible if possible else 0.0,
        strongest=sorted(weighed, key=_by_strength)[:STRONGEST],
        most_connected=[(shown[id_], degrees[id_]) for id_ in connected],
    )


def _by_strength(pair: RelatedPair) -> tuple[float, int, str, str]:
    return -pair.strength, -pair.together, pair.one.key, pair.other.key


# --- in sentences --------------------------------------------------------------------------------------------------


def memory_insights(connection: Connection, namespace_id: int) -> list[str]:
    """Return notable facts in plain sentences; deterministic for the same memory."""
    counts = agents.counts(connection, namespace_id)
    if counts.first_message_at is None or counts.last_message_at is None:
        return []
    recent = counts.last_message_at - RECENT
    said = [_said(counts, counts.first_message_at, counts.last_message_at)]
    best = top(connection, namespace_id, limit=NAMED)
    said += [f"Most said about: {_listed(best)}."] if best else []
    lately = top(connection, namespace_id, limit=NODES, since=recent, until=counts.last_message_at)
    new = [one for one in lately if one.first_at is not None and one.first_at >= recent]
    # In a short history everything would be new.
    if new and counts.first_message_at < recent:
        said.append(f"New since {recent:%Y-%m-%d}: {_listed(new[:NAMED])}.")
    known, total = topics.page(connection, namespace_id, offset=0, limit=NAMED)
    if known:
        called = named_topics(connection, namespace_id, known)
        named = [f"{one.name} ({_counted(one.topic.sessions, 'session')})" for one in called]
        said.append(f"{_counted(total, 'topic')}; the largest: {'; '.join(named)}.")
    return said + _lately(connection, namespace_id, recent, counts.last_message_at)


def _said(counts: AgentCounts, first: datetime, last: datetime) -> str:
    who = f" with {_counted(counts.users, 'user')}" if counts.users else ""
    when = f"on {first:%Y-%m-%d}" if first.date() == last.date() else f"from {first:%Y-%m-%d} to {last:%Y-%m-%d}"
    of_all = f"{_counted(counts.messages, 'message')} in {_counted(counts.sessions, 'session')}"
    return f"{of_all}{who}, {when}, and {_counted(counts.memories, 'memory', 'memories')}."


def _lately(connection: Connection, namespace_id: int, since: datetime, until: datetime) -> list[str]:
    """Return sentences about the times and lengths of recent sessions."""
    hours = usage_of(usage.hours(connection, namespace_id, since, until))
    lengths = _sessions(usage.lengths(connection, namespace_id, since, until))
    day, hour = int(np.argmax(hours.weekdays)), int(np.argmax(hours.hours))
    said = [f"In the last 30 days most is said on {WEEKDAYS[day]}s and from {hour} to {hour + 1} o'clock (UTC)."]
    if lengths.messages is not None and lengths.minutes is not None:
        said.append(
            f"Sessions of these days have {lengths.messages.median:g} messages in the middle and "
            f"{lengths.messages.p90:g} at the upper tenth, in {lengths.minutes.median:.0f} and "
            f"{lengths.minutes.p90:.0f} minutes."
        )
    return said


def _listed(found: Sequence[Concept]) -> str:
    return ", ".join(f"{one.name} ({one.owners})" for one in found)


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
