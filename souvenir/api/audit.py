"""The audit: changes of memories, acts of admins and denied requests."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field, StringConstraints

from souvenir.api.fields import Clean, EndMoment, Moment, wire_time
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import Admin, RunningService
from souvenir.server.routing import Routes
from souvenir.store.admin.audit import AuditEntry, AuditFilter

routes = Routes("audit")


_Word = Annotated[str, StringConstraints(min_length=1, max_length=200), Clean]


class AuditRecord(BaseModel):
    id: str = Field(examples=["change-1204"])
    at: str = Field(examples=["2025-04-02T09:30:00.000000+00:00"])
    action: str = Field(
        description="`memory.*` for changes, `denied` for denied requests, else the act of an admin.",
        examples=["memory.supersede"],
    )
    actor: str = Field(
        description="`key:` and a key's id, `api-key`, `anonymous`, or `unknown` if authentication failed.",
        examples=["key:6f1c7c1e-2f0b-4c57-9d6a-0a4bb6f6a1d2"],
    )
    namespace: str | None = Field(examples=["default"])
    resource_id: str | None = Field(
        description="The resource: the id of a memory, key or job, or a name.", examples=["812"]
    )
    method: str | None = Field(description="Set for denied requests, like the four fields after it.")
    route: str | None = Field(description="The route's template.")
    status: int | None
    address: str | None
    count: int = Field(description="The number of equal requests that this row aggregates.")
    detail: str | None = Field(description="The error code, the job that made the change, or other details.")
    imported: bool = Field(
        description="True for a change that an import brought in the history of a memory: `actor` and `at` are claims "
        "of its file, and nothing was done here. The import itself is a change of its own, `memory.import`."
    )

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
            imported=event.imported,
        )


class AuditResponse(BaseModel):
    entries: list[AuditRecord] = Field(description="Events of all namespaces, newest first.")
    count: int
    limit: int
    offset: int
    has_more: bool


class PurgeResponse(BaseModel):
    deleted: int = Field(description="The number of deleted events; the history of memories is kept.")
    retention_days: int


@routes.get(
    "/audit",
    summary="List audit events",
    cost=CostClass.LIGHT,
    sdk="audit.list",
)
def read_audit(
    scope: Admin,
    service: RunningService,
    action: Annotated[
        _Word | None, Query(description="Only events with this action, such as `denied` or `memory.delete`.")
    ] = None,
    key_id: Annotated[
        _Word | None, Query(description="Only acts of this key, or of another actor by name; never imported changes.")
    ] = None,
    resource_id: Annotated[_Word | None, Query(description="Only events about this resource.")] = None,
    since: Annotated[Moment | None, Query(description="The earliest time.")] = None,
    until: Annotated[EndMoment | None, Query(description="The latest time; a date alone includes that day.")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Maximum number of items.")] = 50,
    offset: Annotated[int, Query(ge=0, le=2**31, description="Number of items to skip.")] = 0,
) -> AuditResponse:
    """List changes of memories, acts of admins and denied requests, newest first."""
    chosen = AuditFilter(action, key_id, resource_id, since, until)
    found = service.audit.page(chosen, limit=limit + 1, offset=offset)
    records = [AuditRecord.of(entry) for entry in found[:limit]]
    return AuditResponse(
        entries=records, count=len(records), limit=limit, offset=offset, has_more=len(found) > len(records)
    )


@routes.post(
    "/audit/purge",
    summary="Purge audit events",
    cost=CostClass.LONG,
    sdk="audit.purge",
)
def purge_audit(
    scope: Admin,
    service: RunningService,
    retention_days: Annotated[int, Query(ge=1, le=365, description="Retention period in days.")] = 90,
) -> PurgeResponse:
    """Delete acts and denials older than the retention period; changes are kept as the history of their memories."""
    deleted = service.audit.purge(scope, retention_days=retention_days)
    return PurgeResponse(deleted=deleted, retention_days=retention_days)
