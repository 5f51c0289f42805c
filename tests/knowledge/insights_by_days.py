"""Insights of agents that were told texts on days: what the tables of cases compare."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import count

from souvenir.core.types import Scope
from tests.knowledge.agent import Agent

MONDAY = datetime(2024, 1, 1, 9, 5, tzinfo=UTC)

_NUMBERS = count()
Case = tuple[dict[int, str | tuple[str, ...]], dict[int, list[str]]]


def by_days(
    ann: Agent,
    said: Mapping[int, str | tuple[str, ...]],
    shown: dict[int, list[str]],
) -> None:
    """Tell texts to an agent of its own on days after Monday, in a session each, and compare its insights.

    :param shown: By day, an hour after the texts: the kind of each insight, and after a colon a part of its text.
    """
    agent = ann.another(Scope(f"agent-{next(_NUMBERS)}"))
    for day, texts in said.items():
        of_day = (texts,) if isinstance(texts, str) else texts
        agent.say(*of_day, session=f"day {day}", at=MONDAY + timedelta(days=day))
    for day, expected in shown.items():
        agent.index()
        found = agent.graph.insights.of_agent(agent.scope, MONDAY + timedelta(days=day, hours=1))
        seen = [f"{one.kind}: {one.text}" for one in found]
        pairs = zip(seen, (one.partition(": ") for one in expected), strict=False)
        parts = [text.startswith(kind) and part in text for text, (kind, _, part) in pairs]
        assert (len(seen), all(parts)) == (len(expected), True), (day, seen)
