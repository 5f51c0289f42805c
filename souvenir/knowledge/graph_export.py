"""The graph of an agent as nodes and relations for an export: a consistent snapshot in one read transaction.

Memory use is bounded by one number per concept and the properties of a single node. Relevance, strength and rarity are
computed as for every other reader (`souvenir.knowledge.concept_ranking`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from souvenir.core.errors import AgentNotFound
from souvenir.core.timestamps import from_us, utc_now
from souvenir.core.types import Filters, FloatVector, Memory, MessageRole, RecordKind, Scope
from souvenir.knowledge.claim_types import CO_OCCURS
from souvenir.knowledge.concept_ranking import rarity, strength
from souvenir.knowledge.topics import named_topics
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import transfers
from souvenir.store.graph import concepts, export_rows, topics
from souvenir.store.graph.concepts import Concept
from souvenir.store.graph.mentions import month_of
from souvenir.store.messages import agents, messages, sessions
from souvenir.store.namespaces import Namespace
from souvenir.store.privacy import HiddenTexts
from souvenir.store.sql import Connection
from souvenir.store.unreadable import left_out

Value = str | int | float | bool | datetime | Sequence[str] | Sequence[float] | None
"""The value of a property; None omits the property."""


class Label(StrEnum):
    """The label of a node."""

    USER = "User"
    SESSION = "Session"
    MESSAGE = "Message"
    CONCEPT = "Concept"
    TOPIC = "Topic"
    MEMORY = "Memory"

    @property
    def table(self) -> str:
        return "memories" if self is Label.MEMORY else f"{self.lower()}s"


class RelationType(StrEnum):
    """An edge of a graph."""

    SENT = "SENT"
    RECEIVED = "RECEIVED"
    CONTAINS = "CONTAINS"
    MENTIONS = "MENTIONS"
    RELATES_TO = "RELATES_TO"
    DISCUSSES = "DISCUSSES"
    BELONGS_TO = "BELONGS_TO"
    TRIGGERS = "TRIGGERS"
    REFERENCES = "REFERENCES"


_ENDS = {
    RelationType.SENT: (Label.USER, Label.MESSAGE),
    RelationType.RECEIVED: (Label.USER, Label.MESSAGE),
    RelationType.CONTAINS: (Label.SESSION, Label.MESSAGE),
    RelationType.MENTIONS: (Label.MESSAGE, Label.CONCEPT),
    RelationType.RELATES_TO: (Label.CONCEPT, Label.CONCEPT),
    RelationType.DISCUSSES: (Label.MESSAGE, Label.TOPIC),
    RelationType.BELONGS_TO: (Label.SESSION, Label.TOPIC),
    RelationType.TRIGGERS: (Label.MESSAGE, Label.MEMORY),
    RelationType.REFERENCES: (Label.MEMORY, Label.CONCEPT),
}
"""The labels of the nodes that a relation leads from and to."""


class NodeId(NamedTuple):
    """Identifies a node within one graph; stable while the node exists."""

    label: Label
    row: int

    def __str__(self) -> str:
        """Return an XML name, as GraphML requires."""
        return f"{self.label.lower()}-{self.row}"


class Node(NamedTuple):
    id: NodeId
    properties: Mapping[str, Value]


class Edge(NamedTuple):
    """A relation from one node to another."""

    type: RelationType
    from_id: NodeId
    to_id: NodeId
    properties: Mapping[str, Value]


GraphFormat = Callable[[str, Iterable[Node], Iterable[Edge]], Iterator[bytes]]
"""A file format: yields the bytes of the graph of an agent, with its name, and reads the nodes before the relations."""

USUAL_IMPORTANCE = 0.5
"""Importance of a memory without one."""

DIGITS = 6
"""Decimals of computed values, so that they are equal on every machine."""

PAGE = 200


def graph_pieces(
    engine: MemoryEngine, scope: Scope, written_as: GraphFormat, *, embeddings: bool = False
) -> Generator[bytes]:
    """Yield users, sessions, messages, concepts, topics and memories, then the relations between them.

    :param embeddings: Include the vectors of messages.
    :raises AgentNotFound: If the namespace is no agent.
    """
    with engine.namespace(scope) as (connection, namespace):
        if namespace is None:
            raise AgentNotFound(scope.namespace)
        hidden = engine.screening.hidden_texts(connection, agents.require_agent(connection, scope))
        graph = _Graph(connection, namespace, hidden, embeddings=embeddings)
        yield from written_as(scope.namespace, graph.nodes(), graph.relations())


class _Graph:
    """The graph of one agent, in a read transaction."""

    def __init__(self, connection: Connection, namespace: Namespace, hidden: HiddenTexts, *, embeddings: bool) -> None:
        self._connection = connection
        self._namespace = namespace
        self._hidden = hidden
        self._embeddings = embeddings
        # The number of messages and memories that mention each concept, and that mention anything.
        self._owners = export_rows.owner_counts(connection, namespace.id)
        self._total = concepts.owners_read(connection, namespace.id)

    def nodes(self) -> Iterator[Node]:
        yield from self._users()
        yield from self._sessions()
        yield from self._messages()
        yield from map(_concept, export_rows.concepts(self._connection, self._namespace.id, self._hidden))
        yield from self._topics()
        yield from self._memories()

    def relations(self) -> Iterator[Edge]:
        """Yield the edges between nodes that were yielded before: an unreadable row is no node."""
        no_nodes = left_out(self._connection)
        for edge in self._edges():
            if not any((end.label.table, end.row) in no_nodes for end in (edge.from_id, edge.to_id)):
                yield edge

    def _edges(self) -> Iterator[Edge]:
        yield from self._talk()
        for message, concept, _ in export_rows.mentions_in(self._connection, self._namespace.id, RecordKind.MESSAGE):
            yield _edge(RelationType.MENTIONS, message, concept, relevance=_round(self._rarity(concept)))
        yield from self._related()
        for message, topic, share in export_rows.discussed(self._connection, self._namespace.id):
            yield _edge(RelationType.DISCUSSES, message, topic, relevance=_round(min(share, 1.0)))
        for session, topic, is_primary in topics.of_sessions(self._connection, self._namespace.id):
            yield _edge(RelationType.BELONGS_TO, session, topic, primary_topic=is_primary)
        for memory, concept, kind in export_rows.mentions_in(self._connection, self._namespace.id, RecordKind.MEMORY):
            yield _edge(RelationType.REFERENCES, memory, concept, reference_type=kind)
        yield from self._triggers()

    def _rarity(self, concept: int) -> float:
        return rarity(self._owners.get(concept, 0), self._total)

    # --- nodes -------------------------------------------------------------------------------------------------

    def _users(self) -> Iterator[Node]:
        for one in sessions.users(self._connection, self._namespace.id)[0]:
            said: Mapping[str, Value] = {"user_id": one.name, "name": one.name, "created_at": one.created_at}
            yield Node(NodeId(Label.USER, one.id), said)

    def _sessions(self) -> Iterator[Node]:
        for one in sessions.every(self._connection, self._namespace.id):
            times = {"started_at": one.started_at, "ended_at": one.ended_at}
            yield Node(NodeId(Label.SESSION, one.id), {"session_id": one.name, **times, "title": one.title})

    def _messages(self) -> Iterator[Node]:
        for one in messages.every(self._connection, self._namespace.id):
            said = {"message_id": one.uid, "content": one.content, "role": one.role.value, "timestamp": one.created_at}
            vector = export_rows.message_vector(self._connection, one.id) if self._embeddings else None
            yield Node(NodeId(Label.MESSAGE, one.id), {**said, "name": one.speaker, "embedding": _plain(vector)})

    def _topics(self) -> Iterator[Node]:
        offset, total = 0, 1
        while offset < total:
            page, total = topics.page(self._connection, self._namespace.id, hidden=None, offset=offset, limit=PAGE)
            for one in named_topics(self._connection, self._namespace.id, page, self._hidden):
                said = {"topic_id": str(one.topic.id), "name": one.name or None, "summary": one.summary}
                yield Node(NodeId(Label.TOPIC, one.topic.id), said)
            offset += PAGE

    def _memories(self) -> Iterator[Node]:
        """Yield the memories that are not archived."""
        after_id = 0
        while page := transfers.selected(self._connection, self._namespace, Filters(), after_id=after_id, limit=PAGE):
            yield from (_memory(memory) for memory in page if not memory.archived)
            after_id = page[-1].id

    # --- relations ---------------------------------------------------------------------------------------------

    def _talk(self) -> Iterator[Edge]:
        """Yield the edges of messages to users and sessions; sequence numbers count from 1 in each session."""
        said = export_rows.said(self._connection, self._namespace.id)
        for session, of_session in groupby(said, key=lambda one: one.session_row):
            asked: str | None = None
            for number, one in enumerate(of_session, 1):
                yield _edge(RelationType.CONTAINS, session, one.id, sequence_number=number)
                if one.user_row is not None and one.role is MessageRole.ASSISTANT:
                    yield _edge(RelationType.RECEIVED, one.user_row, one.id, response_to=asked)
                elif one.user_row is not None and one.role is MessageRole.USER:
                    times: Mapping[str, Value] = {"relationship_type": "sent", "timestamp": from_us(one.at_us)}
                    yield _edge(RelationType.SENT, one.user_row, one.id, **times)
                if one.role is MessageRole.USER:
                    asked = one.uid

    def _related(self) -> Iterator[Edge]:
        """Yield the relations of concepts by co-occurrence, then the stated ones."""
        this_month, owners = month_of(utc_now()), self._owners
        for concept in owners:
            rows = export_rows.co_occurrences(self._connection, concept)
            for other, met in groupby(rows, key=itemgetter(0)):
                if other > concept:
                    months = {month: together for _, month, together in met}
                    found = _round(strength(months, owners[concept], owners.get(other, 0), self._total, this_month))
                    if found > 0:
                        yield _edge(
                            RelationType.RELATES_TO, concept, other, strength=found, relationship_type=CO_OCCURS
                        )
        stated = export_rows.claimed_relations(self._connection, self._namespace.id, self._hidden)
        for start, end, text, confidence in stated:
            yield _edge(RelationType.RELATES_TO, start, end, strength=_round(confidence), relationship_type=text)

    def _triggers(self) -> Iterator[Edge]:
        """Link a memory to the messages of its source sessions that mention its concepts, weighted by their share."""
        for memory, session_rows in export_rows.learned_in_sessions(self._connection, self._namespace.id):
            about = export_rows.concepts_of_memory(self._connection, memory)
            whole = sum(map(self._rarity, about))
            saying = export_rows.messages_mentioning(self._connection, session_rows, about) if whole else {}
            for message, shared in saying.items():
                share = _round(sum(map(self._rarity, shared)) / whole)
                if share > 0:
                    yield _edge(RelationType.TRIGGERS, message, memory, trigger_strength=share)


def _edge(type: RelationType, from_row: int, to_row: int, **properties: Value) -> Edge:
    start, end = _ENDS[type]
    return Edge(type, NodeId(start, from_row), NodeId(end, to_row), properties)


def _concept(concept: Concept) -> Node:
    properties: Mapping[str, Value] = {
        "concept_id": str(concept.id),
        "name": concept.name,
        "description": concept.description,
        "confidence": _round(concept.confidence),
        "key": concept.key,
        "kind": concept.kind,
        "aliases": concept.aliases or None,
        "stated": concept.stated or None,
        "stated_aliases": concept.stated_aliases or None,
    }
    return Node(NodeId(Label.CONCEPT, concept.id), properties)


def _memory(one: Memory) -> Node:
    said = one.metadata.get("importance")
    is_share = isinstance(said, int | float) and not isinstance(said, bool) and 0 <= said <= 1
    properties: Mapping[str, Value] = {
        "memory_id": str(one.id),
        "content": one.text,
        "importance": said if is_share else USUAL_IMPORTANCE,
        "created_at": one.created_at,
        "document_at": one.document_at,
        "source": one.source,
        "key": one.key,
    }
    return Node(NodeId(Label.MEMORY, one.id), properties)


def _plain(vector: FloatVector | None) -> list[float] | None:
    return None if vector is None else [_round(float(one)) for one in vector]


def _round(value: float) -> float:
    return round(value, DIGITS)
