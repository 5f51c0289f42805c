"""What the service answers in its section `audit`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    id: str
    at: str
    action: str
    actor: str
    namespace: str | None
    resource_id: str | None
    method: str | None
    route: str | None
    status: int | None
    address: str | None
    count: int
    detail: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResponse:
    entries: list[AuditRecord]
    count: int
    limit: int
    offset: int
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeResponse:
    deleted: int
    retention_days: int
