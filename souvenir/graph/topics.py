"""The topics of an agent, as callers see and name them. The scope's namespace is the agent.

A topic that nobody named is called by what tells most of it; that is read with it, so that what is forgotten stands in
no name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import apsw

from memory_engine import MemoryEngine
from souvenir.errors import TopicNotFound
from souvenir.observation.tracing import MemoryOperation, Tracing, traced
from souvenir.store import agents, concepts, messages
from souvenir.store import topics as rows
from souvenir.store.messages import Message
from souvenir.store.topics import OfSession, Topic
from souvenir.store.transaction import Transaction
from souvenir.types import Scope

TERMS_IN_NAME = 3

SESSIONS = 100
"""That are shown with a topic."""

MESSAGES = 10
"""That are shown with a topic, of those that discuss it most."""

MESSAGES_LOOKED_AT = 500
"""Of each of its terms, the latest that mention it."""


@dataclass(frozen=True, slots=True)
class Term:
    """A concept that tells a topic, by its present name. `weight` is 1 for the one that tells most."""

    concept_id: int
    name: str
    weight: float


@dataclass(frozen=True, slots=True)
class NamedTopic:
    """:param name: What somebody called it, else its best terms. :param terms: Those that tell most first."""

    topic: Topic
    name: str
    terms: Sequence[Term]


@dataclass(frozen=True, slots=True)
class TopicDetails:
    """:param sessions: Those that belong to it, then those that are near it too.

    :param messages: Those of its sessions that discuss it most, and how much they do, 0 to 1.
    """

    named: NamedTopic
    sessions: Sequence[OfSession]
    messages: Sequence[tuple[Message, float]]


class Topics:
    """Safe to call from any thread. What was said in the last half minute may still be unsorted.

    :raises AgentNotFound: Every verb, if the namespace is no agent.
    """

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    @property
    def tracing(self) -> Tracing:
        return self._engine.tracing

    def page(self, scope: Scope, *, offset: int = 0, limit: int = 100) -> tuple[Sequence[NamedTopic], int]:
        """Those with the most sessions first, and how many there are."""
        with self._engine.namespace(scope) as (connection, _):
            namespace_id = agents.known(connection, scope).namespace_id
            found, total = rows.page(connection, namespace_id, offset=offset, limit=limit)
            return named_topics(connection, namespace_id, found), total

    def details(self, scope: Scope, topic_id: int) -> TopicDetails:
        """:raises TopicNotFound: If there is none."""
        with self._engine.namespace(scope) as (connection, _):
            namespace_id = agents.known(connection, scope).namespace_id
            topic = _present(connection, namespace_id, topic_id)
            [named] = named_topics(connection, namespace_id, [topic])
            said = rows.discussing(connection, topic_id, looked_at=MESSAGES_LOOKED_AT, limit=MESSAGES)
            found = messages.by_id(connection, namespace_id, [one.message_id for one in said])
            return TopicDetails(
                named,
                rows.sessions(connection, topic_id, limit=SESSIONS),
                [(found[one.message_id], one.relevance) for one in said if one.message_id in found],
            )

    @traced(MemoryOperation.UPDATE)
    def describe(self, scope: Scope, topic_id: int, changes: Mapping[str, str | None]) -> NamedTopic:
        """Call a topic by the `name` that is given, or say what it is about by the `summary`; None takes it away.

        :raises TopicNotFound: If there is none.
        """
        safe = {key: None if text is None else self._screened(scope, text) for key, text in changes.items()}

        def work(tx: Transaction) -> NamedTopic:
            before = _present(tx.connection, tx.namespace_id, topic_id)
            name, summary = safe.get("name", before.name), safe.get("summary", before.summary)
            rows.describe(tx.connection, topic_id, name, summary, "caller", tx.now)
            [named] = named_topics(tx.connection, tx.namespace_id, [_present(tx.connection, tx.namespace_id, topic_id)])
            return named

        # So that a write that changes nothing makes no namespace.
        with self._engine.namespace(scope) as (connection, _):
            _present(connection, agents.known(connection, scope).namespace_id, topic_id)
        return self._engine.write(scope, work)

    def _screened(self, scope: Scope, text: str) -> str:
        return self._engine.screening.content(scope, text, None)[0]


def _present(connection: apsw.Connection, namespace_id: int, topic_id: int) -> Topic:
    """:raises TopicNotFound: If there is none."""
    found = rows.find(connection, namespace_id, topic_id)
    if found is None:
        raise TopicNotFound(topic_id)
    return found


def named_topics(connection: apsw.Connection, namespace_id: int, found: Iterable[Topic]) -> list[NamedTopic]:
    """These topics with what tells most of them, in a read transaction."""
    topics = list(found)
    terms = rows.terms(connection, [topic.id for topic in topics])
    shown = concepts.by_ids(connection, namespace_id, {one for of_topic in terms.values() for one, _ in of_topic})
    named = []
    for topic in topics:
        # Two spellings of one thing are one term.
        best: dict[int, Term] = {}
        for id_, weight in terms.get(topic.id, ()):
            best.setdefault(shown[id_].id, Term(shown[id_].id, shown[id_].name, weight))
        of_topic = list(best.values())
        name = topic.name or ", ".join(term.name for term in of_topic[:TERMS_IN_NAME])
        named.append(NamedTopic(topic, name, of_topic))
    return named
