"""What the service answers in its section `locrits`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from souvenir_client.records.enums import MessageRole, RecordKind, SearchStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationStored:
    success: bool
    message: str
    session_id: str
    details: StoredDetails


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritAiResult:
    memory_id: str
    content: str
    relevance_score: float
    similarity_score: float | None
    storage_type: RecordKind
    importance: float | None
    created_at: str
    tags: list[str]
    reasoning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritAiSearchResponse:
    query: str
    strategy: SearchStrategy
    results: list[LocritAiResult]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritConcept:
    id: str
    name: str
    type: str
    description: str | None
    mentions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritConceptDetails:
    id: str
    name: str
    type: str
    description: str | None
    mentions: int
    confidence: float
    first_mentioned: str | None
    last_mentioned: str | None
    context_examples: list[LocritContext]
    related_concepts: list[LocritRelated]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritConcepts:
    concepts: list[LocritConcept]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritContext:
    """A message that mentions a concept."""

    content: str
    timestamp: str
    role: MessageRole


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritDone:
    success: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritHistory:
    session_id: str
    messages: list[LocritMessage]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritMemories:
    memories: list[LocritMemory]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritMemory:
    id: str
    content: str
    importance: float
    created_at: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritMemoryAdded:
    success: bool
    message: str
    memory_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritMessage:
    id: str
    role: MessageRole
    content: str
    timestamp: str
    session_id: str
    user_id: str | None
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritMessageAnswer:
    message: LocritMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritRelated:
    id: str
    name: str
    type: str
    description: str | None
    strength: float
    relationship_type: str
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritRelatedConcepts:
    concept: str
    related_concepts: list[LocritRelated]
    total: int
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritResult:
    """A message or a memory that was found; a memory has no role, session and user."""

    id: str
    kind: RecordKind
    role: MessageRole | None
    content: str
    timestamp: str
    session_id: str | None
    user: str | None
    score: float
    similarity_score: float | None
    concepts: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritSearchResponse:
    query: str
    strategy: SearchStrategy
    searched_by: list[SearchStrategy]
    concepts: list[str]
    results: list[LocritResult]
    total: int
    access_level: Literal["full", "quick"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritSession:
    id: str
    name: str
    user_id: str | None
    created_at: str
    started_at: str
    ended_at: str | None
    message_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritSessionAnswer:
    session: LocritSession


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritSessions:
    sessions: list[LocritSession]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritStatistics:
    total_messages: int
    total_sessions: int
    total_concepts: int
    total_users: int
    total_memories: int
    waiting_to_be_read: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritStats:
    locrit_name: str
    statistics: LocritStatistics
    access_level: Literal["full", "quick"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritSummary:
    locrit_name: str
    statistics: LocritStatistics
    recent_messages: list[LocritMessage]
    recent_sessions: list[LocritSession]
    top_concepts: list[LocritConcept]
    memory_insights: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDetails:
    total_processed: int
    memories_stored: int
