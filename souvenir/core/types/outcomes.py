"""Result types of engine operations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from souvenir.core.service_warnings import ServiceWarning
from souvenir.core.types.records import FactsBy, Memory


class AddAction(StrEnum):
    ADDED = "added"
    SKIPPED = "skipped"
    SUPERSEDED = "superseded"


class SkipReason(StrEnum):
    """Why an add stored nothing: the text exists, a nearly identical one exists, or the memory to replace is pinned."""

    IDENTICAL = "identical"
    DUPLICATE = "duplicate"
    PINNED_BLOCKER = "pinned_blocker"


@dataclass(frozen=True, slots=True)
class AddOutcome:
    """`blocker` is the stored memory that the text collided with, `similarity` the cosine between them.

    `split_failure` is the reason why no model split the text into facts, if one should have.
    """

    action: AddAction
    id: int | None
    blocker: Memory | None = None
    similarity: float | None = None
    reason: SkipReason | None = None
    split_failure: str | None = None


@dataclass(frozen=True, slots=True)
class FactsOutcome:
    """A memory after its facts were set.

    :param pending: Whether it is split again in the background. :param failure: Why no model split it now.
    """

    memory: Memory
    pending: bool
    failure: str | None = None

    @property
    def made_by(self) -> FactsBy | None:
        return self.memory.facts[0].made_by if self.memory.facts else None


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
    """`index_bytes` is the memory of the namespace's loaded index."""

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
    """`index_count` counts searchable memories, `record_count` stored ones; they should be equal."""

    ready: bool
    status: str
    index_count: int
    record_count: int
    warnings: tuple[ServiceWarning, ...] = ()
