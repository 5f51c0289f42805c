"""What the service answers in its section `common`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from souvenir_client.records.enums import JobStatus, MessageRole, OriginClass


@dataclass(frozen=True, slots=True, kw_only=True)
class CountResponse:
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Every part of a score: their sum, or `rrf_score` under the fusion `rrf` where no cross-encoder ranked."""

    passage_id: int
    profile: str
    similarity: float
    dense: float
    vector_rank: int | None
    lexical: float
    lexical_rank: int | None
    terms: list[Term]
    parts: Mapping[str, float]
    rrf_score: float
    rerank_score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMessage:
    """A message that a search found."""

    id: str
    agent_id: str
    role: MessageRole
    content: str
    created_at: str
    metadata: Mapping[str, Any] | None
    similarity: float | None
    session_id: str
    user: str | None
    name: str | None
    edited_at: str | None
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAccepted:
    """The work goes on as a job."""

    job_id: str
    status: JobStatus
    result_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRecord:
    """A directed relation to another memory."""

    to_id: int
    type: str
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBlock:
    id: str
    agent_id: str
    label: str
    value: str
    description: str | None
    limit: int
    read_only: bool
    version: int
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """A memory. Its metadata stands beside these fields, which come first where names are the same."""

    id: int
    text: str
    source: str
    created_at: str
    updated_at: str
    timestamp: str
    confidence: float
    pinned: bool
    archived: bool
    origin_class: OriginClass
    valid_to: str | None = None
    document_at: str | None = None
    entity_key: str | None = None
    links: list[LinkRecord] | None = None
    supersedes: int | None = None
    previous_text: str | None = None
    superseded_by: int | None = None
    conflicts_with: int | None = None
    is_latest: bool | None = None
    tags: Any | None = None
    facts: Any | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What stands beside these fields, such as the metadata of a memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecord:
    """A message."""

    id: str
    agent_id: str
    role: MessageRole
    content: str
    created_at: str
    metadata: Mapping[str, Any] | None
    similarity: float | None
    session_id: str
    user: str | None
    name: str | None
    edited_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedCounts:
    """How many rows went, by what they are."""

    agents: int
    users: int
    sessions: int
    messages: int
    memories: int
    facts: int | None = None
    tags: int | None = None
    blocks: int
    block_versions: int
    links: int
    history: int
    passages: int
    vectors: int
    mentions: int | None = None
    concepts: int | None = None
    idempotency_keys: int
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A memory and its scores: `similarity` in vector mode, the others in hybrid mode."""

    id: int
    text: str
    source: str
    created_at: str
    updated_at: str
    timestamp: str
    confidence: float
    pinned: bool
    archived: bool
    origin_class: OriginClass
    valid_to: str | None = None
    document_at: str | None = None
    entity_key: str | None = None
    links: list[LinkRecord] | None = None
    supersedes: int | None = None
    previous_text: str | None = None
    superseded_by: int | None = None
    conflicts_with: int | None = None
    is_latest: bool | None = None
    tags: Any | None = None
    facts: Any | None = None
    similarity: float | None = None
    score: float | None = None
    rrf_score: float | None = None
    base_rrf_score: float | None = None
    match_type: str | None = None
    graph_support: float | None = None
    graph_via: list[int] | None = None
    relative_score: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What stands beside these fields, such as the metadata of a memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A session."""

    session_id: str
    user: str | None
    title: str | None
    metadata: Mapping[str, Any] | None
    implicit: bool
    started_at: str
    last_message_at: str | None
    ended_at: str | None
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """What one word of the query counts for in the passage."""

    term: str
    idf: float
    tf: int
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePeriod:
    """From `since` to `until`, or a month or a day of every year."""

    since: str | None = None
    until: str | None = None
    month: int | None = None
    day: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeReading:
    """What was made of the times that the query names."""

    phrases: list[str]
    boosted: list[TimePeriod]
    near: list[TimePeriod]
    filtered: TimePeriod | None
    recency_weight: float | None
