"""What the service answers in its section `concepts`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from souvenir_client.records.common import MemoryRecord, MessageRecord, SessionRecord
from souvenir_client.records.enums import ClaimedBy, ClaimKind, JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ConceptDetailsRecord:
    """A concept with where it is mentioned."""

    id: int
    key: str
    name: str
    kind: str
    mentions: int
    aliases: list[str]
    description: str | None
    first_at: str | None
    last_at: str | None
    described_by: str | None
    rarity: float
    messages: list[MessageRecord]
    memories: list[MemoryRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConceptPage:
    concepts: list[ConceptRecord]
    total: int
    offset: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConceptRecord:
    """Something that messages and memories of an agent mention."""

    id: int
    key: str
    name: str
    kind: str
    mentions: int
    aliases: list[str]
    description: str | None
    first_at: str | None
    last_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConceptRelation:
    concept_id: int
    concept: str
    type: str
    other_id: int
    other: str
    made_by: ClaimedBy
    confidence: float
    message_id: str | None
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConceptRelations:
    relations: list[ConceptRelation]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeJob:
    job_id: str
    status: JobStatus
    waits_for: str | None
    error: str | None
    result: DescribeResponse | None
    claims: list[ModelClaim]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeResponse:
    job_id: str
    messages: int
    claims: Mapping[str, int]
    dropped: list[DroppedClaims]
    failed: int
    stopped: str | None
    has_more: bool
    questions: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    model: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedClaims:
    kind: str | None
    reason: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelClaim:
    id: int
    kind: ClaimKind
    concept_id: int
    concept: str
    text: str
    other_id: int | None
    other: str | None
    confidence: float
    message_id: str | None
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedConcept:
    """A concept at the end of the strongest path that leads to it."""

    concept: ConceptRecord
    strength: float
    depth: int
    relationship_type: str
    outgoing: bool
    together: int
    path: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedConcepts:
    concept: ConceptRecord
    related: list[RelatedConcept]
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryResponse:
    statistics: SummaryStatistics
    recent_messages: list[MessageRecord]
    recent_sessions: list[SessionRecord]
    top_concepts: list[ConceptRecord]
    memory_insights: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryStatistics:
    messages: int
    sessions: int
    users: int
    memories: int
    concepts: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoDescribeResponse:
    job_id: str
    claims: int
    messages: int
