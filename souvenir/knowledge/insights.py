"""Insights: at most seven sentences about an agent that a person would act on, each with its sources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from souvenir.core.timestamps import utc_now
from souvenir.core.types import RecordKind, Scope
from souvenir.knowledge.insight_drafts import MAX_INSIGHTS, Draft, Drafts, InsightKind
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph import concepts, statements
from souvenir.store.graph.concepts import Concept
from souvenir.store.graph.statements import MessageMention
from souvenir.store.messages import agents, messages
from souvenir.store.privacy import Hidden
from souvenir.store.sql import Connection

__all__ = ["MAX_INSIGHTS", "Insight", "InsightKind", "Insights", "Source"]


class Source(NamedTuple):
    """A message by its public id and its session, or a memory."""

    kind: RecordKind
    id: str
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class Insight:
    """A sentence, and the messages and memories from which it follows, oldest first.

    :param due: The day of a promise, an appointment or a change. :param at: The time of its latest message.
    """

    text: str
    kind: InsightKind
    sources: Sequence[Source]
    concepts: Sequence[Concept]
    due: date | None
    at: datetime


class Insights:
    """Thread-safe.

    :raises AgentNotFound: By every method, if the namespace is no agent.
    """

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def of_agent(self, scope: Scope, at: datetime | None = None) -> Sequence[Insight]:
        """Return the insights as of a time, by default now, the most pressing kinds first.

        Texts with a topic that the agent's policy hides are not quoted.
        """
        with self._engine.namespace(scope) as (connection, _):
            agent = agents.require_agent(connection, scope)
            namespace_id, hidden = agent.namespace_id, self._engine.screening.hidden_texts(connection, agent)
            topics = self._engine.screening.hidden_topics(agent)
            drafts = Drafts(connection, namespace_id, at or utc_now(), hidden.messages, topics).all()
            chosen = _chosen(one for one in drafts if not any(hidden.holds(*source) for source in one.sources))
            return _completed(connection, namespace_id, chosen, topics)


def _chosen(drafts: Iterable[Draft]) -> list[Draft]:
    """Return at most seven: two of each kind, by kind, before further ones."""
    by_kind: defaultdict[InsightKind, list[Draft]] = defaultdict(list)
    for one in drafts:
        by_kind[one.kind].append(one)
    order = list(InsightKind)
    ranked = [
        (place // 2, order.index(kind), place, one) for kind, of in by_kind.items() for place, one in enumerate(of)
    ]
    kept: list[tuple[int, int, Draft]] = []
    for _, kind, place, one in sorted(ranked, key=lambda row: row[:3]):
        is_quoted = one.quote is not None and any(one.quote in other.text for _, _, other in kept)
        if len(kept) < MAX_INSIGHTS and not is_quoted:
            kept.append((kind, place, one))
    return [one for *_, one in sorted(kept, key=lambda row: row[:2])]


def _completed(connection: Connection, namespace_id: int, drafts: Sequence[Draft], hidden: Hidden) -> list[Insight]:
    message_ids = {id_ for one in drafts for id_ in _message_ids(one)}
    said = messages.by_id(connection, namespace_id, message_ids)
    mentioned = statements.mentions_of(connection, message_ids)
    ids_of = [one.concept_ids or _named_ids(one, mentioned) for one in drafts]
    shown = concepts.by_ids(connection, namespace_id, {id_ for ids in ids_of for id_ in ids}, hidden)
    found = []
    for one, ids in zip(drafts, ids_of, strict=True):
        sources = [
            Source(kind, said[id_].uid, said[id_].session_id) if kind is RecordKind.MESSAGE else Source(kind, str(id_))
            for kind, id_ in one.sources
            if kind is not RecordKind.MESSAGE or id_ in said
        ]
        named = {shown[id_].id: shown[id_] for id_ in ids if id_ in shown}
        found.append(Insight(one.text, one.kind, sources, list(named.values()), one.due, one.at))
    return found


def _named_ids(one: Draft, mentioned: Mapping[int, Sequence[MessageMention]]) -> tuple[int, ...]:
    """Return the concepts of its messages that a sentence names, in order of appearance."""
    text = one.text.casefold()
    of_messages = [mention for id_ in _message_ids(one) for mention in mentioned[id_]]
    places = {mention.concept_id: text.find(mention.form.casefold()) for mention in of_messages}
    return tuple(sorted((id_ for id_, place in places.items() if place >= 0), key=lambda id_: (places[id_], id_)))


def _message_ids(one: Draft) -> list[int]:
    return [id_ for kind, id_ in one.sources if kind is RecordKind.MESSAGE]
