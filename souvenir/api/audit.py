"""Who changed what, what admins did, and who was denied."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.config import JsonDict

from souvenir.api.caller import Admin, RunningService
from souvenir.api.errors import error_responses
from souvenir.api.fields import Clean, wire_time
from souvenir.api.json_route import router
from souvenir.store.audit import AuditEntry, AuditFilter

routes = router("audit")

_CHANGE: JsonDict = {
    "id": "change-1204",
    "at": "2025-04-02T09:30:00.000000+00:00",
    "action": "memory.supersede",
    "actor": "key:6f1c7c1e-2f0b-4c57-9d6a-0a4bb6f6a1d2",
    "namespace": "default",
    "resource_id": "812",
    "method": None,
    "route": None,
    "status": None,
    "address": None,
    "count": 1,
    "detail": None,
}
_DENIAL: JsonDict = {
    "id": "event-7",
    "at": "2025-04-02T09:29:00.000000+00:00",
    "action": "denied",
    "actor": "unknown",
    "namespace": None,
    "resource_id": None,
    "method": "POST",
    "route": "/search",
    "status": 401,
    "address": "192.0.2.7",
    "count": 3,
    "detail": "unauthorized",
}

_Word = Annotated[str, StringConstraints(min_length=1, max_length=200), Clean]


class AuditRecord(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_CHANGE, _DENIAL]})

    id: str
    at: str
    action: str = Field(description="`memory.*` for changes, `denied` for refusals, else what an admin did.")
    actor: str = Field(description="`key:` and a key's id, `api-key`, `anonymous`, or `unknown` if nobody was let in.")
    namespace: str | None
    resource_id: str | None = Field(description="What it was done to: the id of a memory, key or job, or a name.")
    method: str | None = Field(description="Of a denied request, as the four after it.")
    route: str | None = Field(description="The route's template.")
    status: int | None
    address: str | None
    count: int = Field(description="Equal requests that the row stands for.")
    detail: str | None = Field(description="The error's code, the job that made a change, or what else there is.")

    @classmethod
    def of(cls, entry: AuditEntry) -> AuditRecord:
        event = entry.event
        return cls(
            id=entry.id,
            at=wire_time(event.at),
            action=event.action,
            actor=event.actor,
            namespace=event.namespace,
            resource_id=event.resource_id,
            method=event.method,
            route=event.route,
            status=event.status,
            address=event.address,
            count=event.count,
            detail=event.detail,
        )


class AuditResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"entries": [_CHANGE, _DENIAL], "count": 2, "limit": 50, "offset": 0, "has_more": False}]
        }
    )

    entries: list[AuditRecord] = Field(description="Of every namespace, newest first.")
    count: int
    limit: int
    offset: int
    has_more: bool


class PurgeResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"deleted": 12, "retention_days": 90}]})

    deleted: int = Field(description="Events; the history of memories stays.")
    retention_days: int


@routes.get("/audit", summary="Read the audit", responses=error_responses())
def read_audit(
    scope: Admin,
    service: RunningService,
    action: Annotated[_Word | None, Query(description="Only this one, such as `denied` or `memory.delete`.")] = None,
    key_id: Annotated[_Word | None, Query(description="Only what this key did, or another actor by its name.")] = None,
    resource_id: Annotated[_Word | None, Query(description="Only what was done to this.")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="At most so many.")] = 50,
    offset: Annotated[int, Query(ge=0, le=2**31, description="Skip so many.")] = 0,
) -> AuditResponse:
    """List every change of a memory, every act of an admin and every denied request, newest first."""
    found = service.audit.page(AuditFilter(action, key_id, resource_id), limit=limit + 1, offset=offset)
    records = [AuditRecord.of(entry) for entry in found[:limit]]
    return AuditResponse(
        entries=records, count=len(records), limit=limit, offset=offset, has_more=len(found) > len(records)
    )


@routes.post("/audit/purge", summary="Shorten the audit", responses=error_responses())
def purge_audit(
    scope: Admin,
    service: RunningService,
    retention_days: Annotated[int, Query(ge=1, le=365, description="Days of events that stay.")] = 90,
) -> PurgeResponse:
    """Delete the acts and denials that are older; changes are part of their memories' history and stay."""
    deleted = service.audit.purge(scope, retention_days=retention_days)
    return PurgeResponse(deleted=deleted, retention_days=retention_days)
