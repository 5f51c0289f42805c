"""What the service answers in its section `conflicts`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from souvenir_client.records.common import LinkRecord, MemoryRecord
from souvenir_client.records.enums import OriginClass, Review


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictList:
    conflicts: list[ConflictRecord]
    count: int
    total: int
    offset: int
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictRecord:
    """The memory that carries the flag, and the other one."""

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
    conflicts_with: int
    is_latest: bool | None = None
    tags: Any | None = None
    facts: Any | None = None
    conflicting_memory: MemoryRecord
    needs_review: bool | None = None
    review_reason: Review | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What stands beside these fields, such as the metadata of a memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagRecord:
    id: int
    conflicts_with: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveConflictsResponse:
    success: bool
    dry_run: bool
    policy: str
    resolved: list[SettledRecord]
    needs_review: list[ReviewRecord]
    orphaned: list[FlagRecord]
    resolved_count: int
    needs_review_count: int
    orphaned_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRecord:
    id: int
    conflicts_with: int
    reason: Review


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledRecord:
    kept: int
    archived: int
    flagger: int
