"""What the service answers in its section `maintenance`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass

from souvenir_client.records.enums import NotMerged, PolicyRule


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRecord:
    source: str
    count: int
    similarity: float
    memories: list[NearMemory]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactResponse:
    threshold: float
    cluster_count: int
    memory_count: int
    clusters: list[ClusterRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidateResponse:
    dry_run: bool
    merged: list[MergedRecord]
    merged_count: int
    archived_count: int
    skipped: list[SkippedRecord]
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRecord:
    id: int | None
    source: str
    ids: list[int]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMemory:
    id: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyAction:
    memory_id: int
    rule: PolicyRule
    source_prefix: str
    measured: float
    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCounts:
    ttl: int
    confidence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResponse:
    dry_run: bool
    actions: list[PolicyAction]
    summary: PolicySummary


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySummary:
    candidates_scanned: int
    would_archive: int | None = None
    archived: int | None = None
    by_rule: PolicyCounts
    excluded_pinned: int
    excluded_young: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneResponse:
    candidates: int
    pruned: int
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedResponse:
    model: str
    embedded: int
    already_serving: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadResponse:
    success: bool
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRecord:
    ids: list[int]
    reason: NotMerged
