"""What the service answers in its section `agents`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from souvenir_client.records.common import FoundMessage, RemovedCounts, SearchHit
from souvenir_client.records.enums import EvidenceLevel, RecordKind, SearchStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRecord:
    quick_memory: bool
    full_memory: bool
    logs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPage:
    agents: list[AgentRecord]
    total: int
    offset: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRecord:
    id: str
    name: str
    created_at: str
    metadata: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSearchItem:
    """A message or a memory: the field that its kind names holds it, and the other one is null."""

    rank: int
    kind: RecordKind
    score: float
    concepts: list[str]
    message: FoundMessage | None
    memory: SearchHit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSearchResponse:
    query: str
    results: list[AgentSearchItem]
    count: int
    strategy: SearchStrategy
    searched_by: list[SearchStrategy]
    concepts: list[str]
    relevance: float
    evidence: EvidenceLevel
    degraded: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStatsResponse:
    messages: int
    sessions: int
    users: int
    blocks: int
    memories: int
    first_message_at: str | None
    last_message_at: str | None
    index_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedNeighbours:
    """What is mentioned with a concept before a month and from then on, by the share of what mentions the concept."""

    from_month: str | None
    gained: list[NeighbourShift]
    lost: list[NeighbourShift]
    stronger: list[NeighbourShift]
    weaker: list[NeighbourShift]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConceptHistory:
    """How what is mentioned with a concept changes."""

    concept: NamedConcept
    months: list[ConceptMonth]
    changed: ChangedNeighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class ConceptMonth:
    month: str
    owners: int
    neighbours: list[NeighbourRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConceptPair:
    one: NamedConcept
    other: NamedConcept
    strength: float
    together: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedConcept:
    concept_id: int
    name: str
    connections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphDocument:
    """The graph of an agent."""

    format: str
    version: str
    agent: str
    exported_at: str
    nodes: list[GraphNode]
    relations: list[GraphRelation]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """Something in a graph."""

    id: str
    label: str
    properties: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRelation:
    """What one node is to another."""

    type: str
    from_id: str
    to_id: str
    properties: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class InsightsRecord:
    """How an agent is used and what it knows, in figures."""

    usage: UsageRecord
    sessions: SessionLengths
    network: NetworkRecord
    memory_insights: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedConcept:
    concept_id: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourRecord:
    concept_id: int
    name: str
    together: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourShift:
    concept_id: int
    name: str
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRecord:
    """The concepts that tell most of the agent, 64 at most, and which of them are mentioned together."""

    nodes: int
    edges: int
    density: float
    strongest: list[ConceptPair]
    most_connected: list[ConnectedConcept]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedResponse:
    success: bool
    removed: RemovedCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidInTime:
    """How many messages of each role were said in a day, a week or a month."""

    first_day: str
    user: int
    assistant: int
    system: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLengths:
    count: int
    messages: SpreadRecord | None
    minutes: SpreadRecord | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadRecord:
    median: float
    p90: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StateConceptsResponse:
    stated: int
    unchanged: int
    unknown: list[str]
    unread: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDetailsRecord:
    """A topic with its sessions and with the messages that discuss it most."""

    id: int
    name: str
    named_by: str | None
    summary: str | None
    terms: list[TopicTerm]
    sessions: int
    messages: int
    first_at: str
    last_at: str
    in_sessions: list[TopicSession]
    in_messages: list[TopicMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMessage:
    message_id: str
    session_id: str
    content: str
    created_at: str
    relevance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPage:
    topics: list[TopicRecord]
    total: int
    offset: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """What several sessions are about, or one."""

    id: int
    name: str
    named_by: str | None
    summary: str | None
    terms: list[TopicTerm]
    sessions: int
    messages: int
    first_at: str
    last_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSession:
    session_id: str
    title: str | None
    relevance: float
    primary_topic: bool
    messages: int
    started_at: str
    last_message_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTerm:
    concept_id: int
    name: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRecord:
    days: list[SaidInTime]
    weeks: list[SaidInTime]
    months: list[SaidInTime]
    hours: list[int]
    weekdays: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPage:
    users: list[UserRecord]
    total: int
    offset: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRecord:
    """Somebody whom an agent talks with."""

    name: str
    created_at: str
    messages: int
