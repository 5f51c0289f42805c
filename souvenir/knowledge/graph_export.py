"""The graph of an agent as nodes and relations for an export: a consistent snapshot in one read transaction.

Memory use is bounded by one number per concept and the properties of a single node. Relevance, strength and rarity are
computed as for every other reader (`souvenir.knowledge.concept_ranking`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Protocol

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
from souvenir.store.graph.export_rows import Said
from souvenir.store.graph.mentions import month_of
from souvenir.store.messages import agents, messages, sessions
from souvenir.store.namespaces import Namespace
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


_TABLES = {
    Label.USER: "users",
    Label.SESSION: "sessions",
    Label.MESSAGE: "messages",
    Label.CONCEPT: "concepts",
    Label.TOPIC: "topics",
    Label.MEMORY: "memories",
}


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


@dataclass(frozen=True, slots=True)
class NodeId:
    """Identifies a node within one graph; stable while the node exists."""

    label: Label
    row: int

    def __str__(self) -> str:
        """Return an XML name, as GraphML requires."""
        return f"{self.label.lower()}-{self.row}"


@dataclass(frozen=True, slots=True)
class Node:
    id: NodeId
    properties: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation from one node to another."""

    type: RelationType
    from_id: NodeId
    to_id: NodeId
    properties: Mapping[str, Value]


class GraphFormat(Protocol):
    """A file format: bytes that are written in this order."""

    def begin(self, agent: str) -> bytes: ...

    def node(self, node: Node) -> bytes: ...

    def relations(self) -> bytes:
        """The bytes between the last node and the first relation."""

    def relation(self, edge: Edge) -> bytes: ...

    def end(self) -> bytes: ...


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
        if namespace is None or agents.find(connection, scope.namespace) is None:
            raise AgentNotFound(scope.namespace)
        graph = _Graph(connection, namespace, embeddings=embeddings)
        yield written_as.begin(scope.namespace)
        yield from map(written_as.node, graph.nodes())
        yield written_as.relations()
        yield from map(written_as.relation, graph.relations())
        yield written_as.end()


@dataclass(frozen=True, slots=True)
class _Rarities:
    """The number of messages and memories that mention each concept, and that mention anything."""

    owners: Mapping[int, int]
    total: int

    def of(self, concept: int) -> float:
        return rarity(self.owners.get(concept, 0), self.total)


class _Graph:
    """The graph of one agent, in a read transaction."""

    def __init__(self, connection: Connection, namespace: Namespace, *, embeddings: bool) -> None:
        self._connection = connection
        self._namespace = namespace
        self._embeddings = embeddings
        owners = export_rows.owner_counts(connection, namespace.id)
        self._rarities = _Rarities(owners, concepts.owners_read(connection, namespace.id))
        self._month = month_of(utc_now())

    def nodes(self) -> Iterator[Node]:
        yield from self._users()
        yield from self._sessions()
        yield from self._messages()
        yield from map(_concept, export_rows.concepts(self._connection, self._namespace.id))
        yield from self._topics()
        for memory in self._memories():
            yield _memory(memory)

    def relations(self) -> Iterator[Edge]:
        """Yield the edges between nodes that were yielded before: an unreadable row is no node."""
        no_nodes = left_out(self._connection)
        for edge in self._edges():
            if not any((_TABLES[end.label], end.row) in no_nodes for end in (edge.from_id, edge.to_id)):
                yield edge

    def _edges(self) -> Iterator[Edge]:
        yield from self._talk()
        yield from self._mentions()
        yield from self._related()
        yield from self._discussed()
        yield from self._references()
        yield from self._triggers()

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
            for one in named_topics(self._connection, self._namespace.id, page):
                said = {"topic_id": str(one.topic.id), "name": one.name or None, "summary": one.summary}
                yield Node(NodeId(Label.TOPIC, one.topic.id), said)
            offset += PAGE

    def _memories(self) -> Iterator[Memory]:
        """Yield the memories that are not archived."""
        after_id = 0
        while page := transfers.selected(self._connection, self._namespace, Filters(), after_id=after_id, limit=PAGE):
            yield from (memory for memory in page if not memory.archived)
            after_id = page[-1].id

    # --- relations ---------------------------------------------------------------------------------------------

    def _talk(self) -> Iterator[Edge]:
        """Yield the edges of messages to users and sessions; sequence numbers count from 1 in each session."""
        for session_row, of_session in groupby(
            export_rows.said(self._connection, self._namespace.id), key=lambda one: one.session_row
        ):
            asked: str | None = None
            for number, one in enumerate(of_session, 1):
                session, message = NodeId(Label.SESSION, session_row), NodeId(Label.MESSAGE, one.id)
                yield Edge(RelationType.CONTAINS, session, message, {"sequence_number": number})
                if one.user_row is not None and one.role is not MessageRole.SYSTEM:
                    yield _sent(one, NodeId(Label.USER, one.user_row), message, asked)
                if one.role is MessageRole.USER:
                    asked = one.uid

    def _mentions(self) -> Iterator[Edge]:
        for one in export_rows.mentions_in(self._connection, self._namespace.id, RecordKind.MESSAGE):
            ends = NodeId(Label.MESSAGE, one.owner_id), NodeId(Label.CONCEPT, one.concept)
            yield Edge(RelationType.MENTIONS, *ends, {"relevance": _round(self._rarities.of(one.concept))})

    def _related(self) -> Iterator[Edge]:
        for concept in self._rarities.owners:
            for other, met in groupby(export_rows.co_occurrences(self._connection, concept), key=lambda one: one.other):
                if other > concept:
                    yield from self._co_occurs(concept, other, {one.month: one.owners for one in met})
        for one in export_rows.claimed_relations(self._connection, self._namespace.id):
            ends = NodeId(Label.CONCEPT, one.from_concept), NodeId(Label.CONCEPT, one.to_concept)
            yield Edge(
                RelationType.RELATES_TO, *ends, {"strength": _round(one.confidence), "relationship_type": one.type}
            )

    def _co_occurs(self, concept: int, other: int, months: Mapping[int, int]) -> Iterator[Edge]:
        owners, total = self._rarities.owners, self._rarities.total
        found = strength(months, owners[concept], owners.get(other, 0), total, self._month)
        if _round(found) > 0:
            ends = NodeId(Label.CONCEPT, concept), NodeId(Label.CONCEPT, other)
            yield Edge(RelationType.RELATES_TO, *ends, {"strength": _round(found), "relationship_type": CO_OCCURS})

    def _discussed(self) -> Iterator[Edge]:
        for message_id, topic_id, share in export_rows.discussed(self._connection, self._namespace.id):
            ends = NodeId(Label.MESSAGE, message_id), NodeId(Label.TOPIC, topic_id)
            yield Edge(RelationType.DISCUSSES, *ends, {"relevance": _round(min(share, 1.0))})
        for session_id, topic_id, is_primary in topics.of_sessions(self._connection, self._namespace.id):
            ends = NodeId(Label.SESSION, session_id), NodeId(Label.TOPIC, topic_id)
            yield Edge(RelationType.BELONGS_TO, *ends, {"primary_topic": is_primary})

    def _references(self) -> Iterator[Edge]:
        for one in export_rows.mentions_in(self._connection, self._namespace.id, RecordKind.MEMORY):
            ends = NodeId(Label.MEMORY, one.owner_id), NodeId(Label.CONCEPT, one.concept)
            yield Edge(RelationType.REFERENCES, *ends, {"reference_type": one.kind})

    def _triggers(self) -> Iterator[Edge]:
        """Link a memory to the messages of its source sessions that mention its concepts, weighted by their share."""
        for memory_id, session_rows in export_rows.learned_in_sessions(self._connection, self._namespace.id):
            about = export_rows.concepts_of_memory(self._connection, memory_id)
            whole = sum(map(self._rarities.of, about))
            saying = export_rows.messages_mentioning(self._connection, session_rows, about) if whole else {}
            for message_id, shared in saying.items():
                share = _round(sum(map(self._rarities.of, shared)) / whole)
                ends = NodeId(Label.MESSAGE, message_id), NodeId(Label.MEMORY, memory_id)
                if share > 0:
                    yield Edge(RelationType.TRIGGERS, *ends, {"trigger_strength": share})


def _sent(one: Said, user: NodeId, message: NodeId, asked: str | None) -> Edge:
    if one.role is MessageRole.ASSISTANT:
        return Edge(RelationType.RECEIVED, user, message, {"response_to": asked})
    return Edge(RelationType.SENT, user, message, {"relationship_type": "sent", "timestamp": from_us(one.at_us)})


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
