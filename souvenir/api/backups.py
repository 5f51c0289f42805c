"""Backups of the whole database: create, list and restore them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import structlog
from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.fields import Clean, wire_time
from souvenir.core.errors import SouvenirError
from souvenir.core.types import Scope
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import Admin, Engine, RunningService
from souvenir.server.routing import Routes
from souvenir.server.service import Service
from souvenir.store.sqlite.backups import Backup

log = structlog.get_logger(__name__)

routes = Routes("backup")

BACKED_UP, RESTORED = "backup.create", "backup.restore"
"""Actions in the audit."""

BACKUP_EXAMPLE = "manual_20250402_093000"
BackupName = Annotated[str, StringConstraints(min_length=1, max_length=200), Clean]
_Prefix = Annotated[str, StringConstraints(max_length=50), Clean]


class BackupRecord(BaseModel):
    name: str = Field(examples=["manual_20250402_093000"])
    created: float = Field(description="Seconds since 1970.")
    created_at: str
    reason: str = Field(description="The prefix of its name.", examples=["manual"])
    memories: int
    bytes: int

    @classmethod
    def of(cls, backup: Backup) -> BackupRecord:
        created_at = datetime.fromisoformat(backup.created_at)
        return cls(
            name=backup.name,
            created=created_at.timestamp(),
            created_at=wire_time(created_at),
            reason=backup.reason,
            memories=backup.memories,
            bytes=backup.bytes,
        )


class BackupsResponse(BaseModel):
    backups: list[BackupRecord] = Field(description="Newest first.")
    count: int


class BackupRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"prefix": "before-upgrade"}]})

    prefix: _Prefix | None = Field(
        default=None, description="The prefix of the name: ASCII letters, digits, `-` and `_`."
    )


class BackupResponse(BaseModel):
    success: bool
    backup_path: str = Field(
        description="Path relative to DATA_DIR; its last part is the name.", examples=["backups/manual_20250402_093000"]
    )
    message: str = Field(examples=["Backup manual_20250402_093000 created"])


class RestoreRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"backup_name": BACKUP_EXAMPLE}]})

    backup_name: BackupName = Field(description="The name of a backup from `GET /backups`.")


class RestoreResponse(BaseModel):
    success: bool
    restored_from: str = Field(examples=["manual_20250402_093000"])
    total_memories: int = Field(description="In all namespaces.")
    message: str = Field(
        examples=["Restored manual_20250402_093000; what was there before is pre_restore_20250402_101500"]
    )


@routes.get(
    "/backups",
    summary="List backups",
    cost=CostClass.LIGHT,
    sdk="backups.list",
)
def list_backups(scope: Admin, engine: Engine) -> BackupsResponse:
    """List the backups that can be restored."""
    backups = [BackupRecord.of(backup) for backup in engine.backups()]
    return BackupsResponse(backups=backups, count=len(backups))


@routes.post(
    "/backup",
    summary="Create a backup",
    cost=CostClass.LONG,
    sdk="backups.create",
    errors=[501],
)
def back_up(
    scope: Admin,
    service: RunningService,
    body: BackupRequest | None = None,
    prefix: Annotated[_Prefix | None, Query(description="Same as in the body; `manual` if neither is set.")] = None,
) -> BackupResponse:
    """Back up the whole database without blocking reads or writes."""
    backup = service.engine.back_up(reason=prefix or (body.prefix if body else None) or "manual")
    service.audit.act(scope, BACKED_UP, backup.name)
    return BackupResponse(success=True, backup_path=f"backups/{backup.name}", message=f"Backup {backup.name} created")


@routes.post("/restore", summary="Restore a backup", cost=CostClass.LONG, sdk="backups.restore", errors=[404, 501])
def restore(body: RestoreRequest, scope: Admin, service: RunningService) -> RestoreResponse:
    """Restore a backup atomically; the current state is backed up first, and kept if the restore fails."""
    replaced = restore_backup(service, scope, body.backup_name)
    return RestoreResponse(
        success=True,
        restored_from=body.backup_name,
        total_memories=service.engine.vitals().memories,
        message=f"Restored {body.backup_name}; what was there before is {replaced.name}",
    )


def restore_backup(service: Service, scope: Scope, name: str) -> Backup:
    """Restore and write that down, in the database that is there then."""
    replaced = service.engine.restore(name)
    service.audit.act(scope, RESTORED, name, f"what was there before is {replaced.name}")
    try:
        service.complete_vectors()
    except SouvenirError as error:  # the restore is done; the next start tries again
        log.warning("token_vectors_not_made", reason=error.message)
    return replaced
