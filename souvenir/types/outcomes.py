"""What came of a verb of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from souvenir.types.records import Memory


class AddAction(StrEnum):
    ADDED = "added"
    SKIPPED = "skipped"
    SUPERSEDED = "superseded"


class SkipReason(StrEnum):
    """Why an add stored nothing: the text is there already, nearly there, or what it would replace is pinned."""

    IDENTICAL = "identical"
    DUPLICATE = "duplicate"
    PINNED_BLOCKER = "pinned_blocker"


@dataclass(frozen=True, slots=True)
class AddOutcome:
    """`blocker` is the stored memory that the text collided with, `similarity` the cosine between them."""

    action: AddAction
    id: int | None
    blocker: Memory | None = None
    similarity: float | None = None
    reason: SkipReason | None = None


@dataclass(frozen=True, slots=True)
class UpsertOutcome:
    id: int
    created: bool


@dataclass(frozen=True, slots=True)
class DeleteOutcome:
    deleted_ids: tuple[int, ...]
    missing_ids: tuple[int, ...] = ()
    skipped_pinned: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SupersedeOutcome:
    old: Memory
    new_id: int


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    id: int
    archived: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Page:
    memories: tuple[Memory, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Stats:
    """`index_bytes` is what the loaded index of the namespace takes in memory."""

    memories: int
    passages: int
    dim: int
    model_id: str
    created_at: datetime | None
    changed_at: datetime | None
    index_bytes: int
    backups: int


@dataclass(frozen=True, slots=True)
class Readiness:
    """`index_count` counts memories that search can find, `record_count` those stored; unequal means trouble."""

    ready: bool
    status: str
    index_count: int
    record_count: int
