"""What the service answers in its section `search`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from souvenir_client.records.common import Explanation, LinkRecord, SearchHit, TimeReading
from souvenir_client.records.enums import EvidenceLevel, OriginClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What one arm alone found."""

    id: int
    text: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainResponse:
    query: str
    results: list[ExplainedHit]
    count: int
    relevance: float
    evidence: EvidenceLevel
    degraded: list[str]
    explain: SearchExplanation


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedHit:
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
    explanation: Explanation
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What stands beside these fields, such as the metadata of a memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphUse:
    """What the graph did, which is nothing: measured, it would find no more (docs/benchmarks.md)."""

    enabled: bool
    graph_weight: float
    seeds: int
    neighbors_found: int
    neighbors_filtered: int
    neighbors_added: int
    ppr_iterations: int
    ppr_alpha: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringWeights:
    """The shares of the ranks in `rrf_score`, from the weights of the request."""

    vector: float
    bm25: float
    recency: float
    feedback: float
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBatchResponse:
    results: list[SearchResponse]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchExplanation:
    fusion: str
    candidates_considered: int
    vector_candidates: list[Candidate]
    bm25_candidates: list[Candidate]
    filtered_by_source: int
    filtered_by_auth: int
    scoring_weights: ScoringWeights
    rrf_k: int
    relevance_signals: Mapping[str, float]
    repairs: Mapping[str, str]
    time: TimeReading | None
    graph: GraphUse


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResponse:
    query: str
    results: list[SearchHit]
    count: int
    relevance: float
    evidence: EvidenceLevel
    degraded: list[str]
