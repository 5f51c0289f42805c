"""What the service answers in its section `jobs`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from souvenir_client.records.enums import JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    id: str
    kind: str
    status: JobStatus
    done: int
    total: int | None
    result: Mapping[str, Any] | None
    error: str | None
    waits_for: str | None
    actor: str
    namespace: str
    cancel_requested: bool
    created_at: str
    started_at: str | None
    finished_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsResponse:
    jobs: list[JobRecord]
    count: int
    total: int
    offset: int
    limit: int
