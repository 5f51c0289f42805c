"""Read and describe the topics of an agent, which is the scope's namespace.

A topic has the name and the summary that a caller set, else those of a language model (`model_claims`), else phrases
and sentences of its messages. These are composed when they are read, so that they contain nothing deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

from souvenir.core.errors import Conflict, TopicNotFound
from souvenir.core.telemetry import MemoryOperation, Tracing, traced
from souvenir.core.text import clean_name
from souvenir.core.types import ClaimedBy, Scope, TopicClaimKind
from souvenir.knowledge.claim_types import require_visible
from souvenir.knowledge.recognition.spelling import key_of, singular
from souvenir.knowledge.topic_names import shown_name
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph import claims, concepts, mentions
from souvenir.store.graph import topics as rows
from souvenir.store.graph.topics import AssignedSession, Texts, Topic
from souvenir.store.messages import agents, messages
from souvenir.store.messages.messages import Message
from souvenir.store.privacy import NOTHING_HIDDEN, HiddenTexts
from souvenir.store.sql import NO_LIMIT, Connection
from souvenir.store.transaction import Transaction

SESSIONS = 100
"""Number of sessions that are returned with a topic."""

MESSAGES = 10
"""Number of messages that are returned with a topic: those that discuss it most."""

MESSAGES_LOOKED_AT = 500
"""Number of latest messages of each term that are considered."""

_CACHED_PARTS = 16_384


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """A characteristic concept of a topic, by its current name. The best one has the `weight` 1."""

    concept_id: int
    name: str
    weight: float


@dataclass(frozen=True, slots=True)
class ShownTexts:
    """:param stated_name: The name of a caller, else of a model. :param own_name: That of its messages, or empty.

    The others are as in `NamedTopic`.
    """

    stated_name: str | None
    own_name: str
    summary: str | None
    named_by: ClaimedBy | None

    @property
    def name(self) -> str:
        return self.stated_name or self.own_name


@dataclass(frozen=True, slots=True)
class NamedTopic:
    """:param name: That of a caller, else of a model, else phrases of its messages; empty if none says its subject.

    :param terms: Best first.
    :param summary: That of a caller, else of a model, else sentences of its messages, if any.
    :param named_by: None if neither a caller nor a model gave it a name or summary; a caller precedes.
    """

    topic: Topic
    name: str
    summary: str | None
    named_by: ClaimedBy | None
    terms: Sequence[WeightedTerm]


@dataclass(frozen=True, slots=True)
class TopicDetails:
    """:param sessions: Those whose primary topic it is, then others.

    :param messages: Its messages that discuss it most, with their relevance, 0 to 1.
    """

    named: NamedTopic
    sessions: Sequence[AssignedSession]
    messages: Sequence[tuple[Message, float]]


class Topics:
    """Thread-safe. Messages of the last half minute may not be assigned yet.

    :raises AgentNotFound: By every method, if the namespace is no agent.
    """

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    @property
    def tracing(self) -> Tracing:
        return self._engine.tracing

    def page(self, scope: Scope, *, offset: int = 0, limit: int = 100) -> tuple[Sequence[NamedTopic], int]:
        """Return the topics that have a name, those with the most sessions first, and their total number."""
        with self._engine.namespace(scope) as (connection, _):
            agent = agents.require_agent(connection, scope)
            namespace_id, hidden = agent.namespace_id, self._engine.screening.hidden_texts(connection, agent)
            found, total = rows.page(connection, namespace_id, hidden=hidden.messages, offset=offset, limit=limit)
            return named_topics(connection, namespace_id, found, hidden), total

    def details(self, scope: Scope, topic_id: int) -> TopicDetails:
        """:raises TopicNotFound: If there is no such topic."""
        with self._engine.namespace(scope) as (connection, _):
            agent = agents.require_agent(connection, scope)
            namespace_id, hidden = agent.namespace_id, self._engine.screening.hidden_texts(connection, agent)
            topic = _require_topic(connection, namespace_id, topic_id, hidden)
            [named] = named_topics(connection, namespace_id, [topic], hidden)
            said = rows.discussing(connection, topic_id, hidden.messages, looked_at=MESSAGES_LOOKED_AT, limit=MESSAGES)
            found = messages.by_id(connection, namespace_id, [one.message_id for one in said])
            return TopicDetails(
                named,
                rows.sessions(connection, topic_id, limit=SESSIONS),
                [(found[one.message_id], one.relevance) for one in said if one.message_id in found],
            )

    @traced(MemoryOperation.UPDATE)
    def describe(self, scope: Scope, topic_id: int, changes: Mapping[str, str | None]) -> NamedTopic:
        """Set the `name` or the `summary` of a topic; None removes it.

        :raises TopicNotFound: If there is no such topic. :raises InvalidRequest: If a text is blank.
        :raises Conflict: If another topic has the name.
        """
        given = dict(changes)
        for key, text in changes.items():
            if text is not None:
                require_visible(text, key)
                given[key] = clean_name(text) if key == "name" else text
        safe = {key: None if text is None else self._engine.screening.text(scope, text) for key, text in given.items()}

        def work(tx: Transaction) -> NamedTopic:
            hidden = self._engine.screening.hidden_texts(tx.connection, agents.require_agent(tx.connection, scope))
            before = _require_topic(tx.connection, tx.namespace_id, topic_id, hidden)
            name, summary = safe.get("name", before.name), safe.get("summary", before.summary)
            if name is not None and "name" in safe:
                _require_free_name(tx, topic_id, name, hidden)
            rows.describe(tx.connection, topic_id, name, summary)
            changed = _require_topic(tx.connection, tx.namespace_id, topic_id, NOTHING_HIDDEN)
            [named] = named_topics(tx.connection, tx.namespace_id, [changed], hidden)
            return named

        # Checked before the write, which creates the namespace of its scope.
        with self._engine.namespace(scope) as (connection, _):
            agent = agents.require_agent(connection, scope)
            hidden = self._engine.screening.hidden_texts(connection, agent)
            _require_topic(connection, agent.namespace_id, topic_id, hidden)
        return self._engine.write(scope, work)


def _require_topic(connection: Connection, namespace_id: int, topic_id: int, hidden: HiddenTexts) -> Topic:
    """:raises TopicNotFound: If there is no such topic, or only one of hidden messages that no caller described."""
    found = rows.find(connection, namespace_id, topic_id)
    if found is None or (found.named_by is None and rows.is_hidden(connection, topic_id, hidden.messages)):
        raise TopicNotFound(topic_id)
    return found


def _require_free_name(tx: Transaction, topic_id: int, name: str, hidden: HiddenTexts) -> None:
    """:raises Conflict: If another topic is shown with this name, in any case."""
    for other, texts in all_texts(tx.connection, tx.namespace_id, hidden.messages).items():
        if other != topic_id and texts.name.casefold() == name.casefold():
            raise Conflict(f"Topic {other} has the name {name!r}; give another one, or rename that topic first")


def named_topics(
    connection: Connection, namespace_id: int, found: Iterable[Topic], hidden: HiddenTexts
) -> list[NamedTopic]:
    """Add names and terms to topics, in a read transaction.

    :param hidden: Texts that are not quoted; concepts that only these mention are no terms.
    """
    topics = list(found)
    terms = rows.terms(connection, [topic.id for topic in topics])
    shown_texts = texts_of(connection, namespace_id, topics, hidden.messages)
    wanted = {one for of_topic in terms.values() for one, _ in of_topic}
    wanted -= concepts.only_in_hidden(connection, wanted, hidden)
    shown = concepts.by_ids(connection, namespace_id, wanted, hidden)
    named = []
    for topic in topics:
        # Two spellings of one thing are one term.
        best: dict[int, WeightedTerm] = {}
        for id_, weight in terms.get(topic.id, ()):
            if id_ in shown:
                best.setdefault(shown[id_].id, WeightedTerm(shown[id_].id, shown[id_].name, weight))
        of_topic = list(best.values())
        texts = shown_texts[topic.id]
        named.append(NamedTopic(topic, texts.name, texts.summary, texts.named_by, of_topic))
    return named


def texts_of(
    connection: Connection, namespace_id: int, topics: Sequence[Topic], hidden: Set[int]
) -> dict[int, ShownTexts]:
    """Return the name and the summary of each topic, in a read transaction.

    :param hidden: Messages that are not quoted.
    """
    by_model = claims.current_of_topics(connection, [topic.id for topic in topics], hidden)
    texts = rows.texts(connection, [topic.id for topic in topics], hidden)
    unsaid = mentions.hidden_keys(
        connection, namespace_id, {key for one in texts.values() for part in one.name for key in _keys(part)}
    )
    found = {}
    for topic in topics:
        claimed, said = by_model.get(topic.id, {}), texts.get(topic.id, Texts())
        parts = [part for part in said.name if unsaid.isdisjoint(_keys(part))]
        summary = claimed.get(TopicClaimKind.SUMMARY, " ".join(said.summary) or None)
        found[topic.id] = ShownTexts(
            topic.name or claimed.get(TopicClaimKind.NAME),
            shown_name(parts),
            summary if topic.summary is None else topic.summary,
            ClaimedBy.CALLER if topic.named_by else ClaimedBy.MODEL if claimed else None,
        )
    return found


def all_texts(connection: Connection, namespace_id: int, hidden: Set[int]) -> dict[int, ShownTexts]:
    """Return the name and the summary of all topics, as `texts_of`."""
    found, _ = rows.page(connection, namespace_id, hidden=None, offset=0, limit=NO_LIMIT)
    return texts_of(connection, namespace_id, found, hidden)


@lru_cache(_CACHED_PARTS)
def _keys(part: str) -> frozenset[str]:
    """Return the keys of the concepts that a part of a name may stand for, or contain as a word."""
    return frozenset(key_of(form) for word in (part, *part.split()) for form in (word, singular(word.lower())))
