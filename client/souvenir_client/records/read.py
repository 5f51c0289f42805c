"""What the service answers in its section `read`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from souvenir_client.records.common import MemoryRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class GetBatchResponse:
    memories: list[MemoryRecord]
    missing_ids: list[int]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryResponse:
    memory_id: int
    deleted: bool
    supersedes: list[int]
    superseded_by: int | None
    changes: list[MemoryChange]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    """One change of a memory."""

    action: str
    actor: str
    at: str
    job_id: str | None
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPage:
    memories: list[MemoryRecord]
    total: int
    offset: int
    limit: int
