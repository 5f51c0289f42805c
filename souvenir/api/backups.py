"""Copies of the whole database: made, listed, restored. A snapshot is a backup by the name that some clients use."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.caller import Admin, Engine, RunningService, Writer
from souvenir.api.errors import error_responses
from souvenir.api.fields import Clean, wire_time
from souvenir.api.json_route import router
from souvenir.api.service import Service
from souvenir.store.backups import Backup
from souvenir.types import Scope

routes = router("backup")

BACKED_UP, RESTORED = "backup.create", "backup.restore"
"""What the audit calls it."""

_NAME = "manual_20250402_093000"
_Name = Annotated[str, StringConstraints(min_length=1, max_length=200), Clean]
_Prefix = Annotated[str, StringConstraints(max_length=50), Clean]


class BackupRecord(BaseModel):
    name: str
    created: float = Field(description="Seconds since 1970.")
    created_at: str
    reason: str = Field(description="What its name begins with.")
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
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "backups": [
                        {
                            "name": _NAME,
                            "created": 1743586200.0,
                            "created_at": "2025-04-02T09:30:00.000000+00:00",
                            "reason": "manual",
                            "memories": 1204,
                            "bytes": 5242880,
                        }
                    ],
                    "count": 1,
                }
            ]
        }
    )

    backups: list[BackupRecord] = Field(description="Newest first.")
    count: int


class BackupRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"prefix": "before-upgrade"}]})

    prefix: _Prefix | None = Field(default=None, description="What the name begins with: letters, digits, `-` and `_`.")


class BackupResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"success": True, "backup_path": f"backups/{_NAME}", "message": f"Backup {_NAME} created"}]
        }
    )

    success: bool
    backup_path: str = Field(description="Below DATA_DIR; its last part is the name.")
    message: str


class RestoreRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"backup_name": _NAME}]})

    backup_name: _Name = Field(description="One that `GET /backups` lists.")


class RestoreResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "success": True,
                    "restored_from": _NAME,
                    "total_memories": 1204,
                    "message": f"Restored {_NAME}; what was there before is pre_restore_20250402_101500",
                }
            ]
        }
    )

    success: bool
    restored_from: str
    total_memories: int = Field(description="Of this namespace.")
    message: str


class SnapshotRecord(BaseModel):
    name: str
    reason: str
    timestamp: str
    point_count: int = Field(description="Memories in it.")

    @classmethod
    def of(cls, backup: Backup) -> SnapshotRecord:
        made_at = wire_time(datetime.fromisoformat(backup.created_at))
        return cls(name=backup.name, reason=backup.reason, timestamp=made_at, point_count=backup.memories)


class SnapshotsResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "snapshots": [
                        {
                            "name": "snapshot_20250402_093000",
                            "reason": "snapshot",
                            "timestamp": "2025-04-02T09:30:00.000000+00:00",
                            "point_count": 1204,
                        }
                    ],
                    "count": 1,
                }
            ]
        }
    )

    snapshots: list[SnapshotRecord] = Field(description="Newest first.")
    count: int


class SnapshotResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"snapshot": "snapshot_20250402_093000"}]})

    snapshot: str = Field(description="Its name.")


class SnapshotRestoreResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"success": True, "restored": _NAME}]})

    success: bool
    restored: str


@routes.get("/backups", summary="List backups", responses=error_responses())
def list_backups(scope: Admin, engine: Engine) -> BackupsResponse:
    """List the backups that can be restored."""
    backups = [BackupRecord.of(backup) for backup in engine.backups()]
    return BackupsResponse(backups=backups, count=len(backups))


@routes.post("/backup", summary="Make a backup", responses=error_responses())
def back_up(
    scope: Admin,
    service: RunningService,
    body: BackupRequest | None = None,
    prefix: Annotated[_Prefix | None, Query(description="As in the body; `manual` without both.")] = None,
) -> BackupResponse:
    """Copy the whole database while reads and writes go on."""
    backup = service.engine.back_up(reason=prefix or (body.prefix if body else None) or "manual")
    service.audit.act(scope, BACKED_UP, backup.name)
    return BackupResponse(success=True, backup_path=f"backups/{backup.name}", message=f"Backup {backup.name} created")


@routes.post("/restore", summary="Restore a backup", responses=error_responses(404))
def restore(body: RestoreRequest, scope: Admin, service: RunningService) -> RestoreResponse:
    """Go back to a backup in one step; what is there now is backed up first, and stays if the restore fails."""
    replaced = _restore(service, scope, body.backup_name)
    return RestoreResponse(
        success=True,
        restored_from=body.backup_name,
        total_memories=service.engine.count(scope),
        message=f"Restored {body.backup_name}; what was there before is {replaced.name}",
    )


@routes.get("/snapshots", summary="List snapshots", responses=error_responses())
def list_snapshots(scope: Admin, engine: Engine) -> SnapshotsResponse:
    """List the backups under the other name."""
    snapshots = [SnapshotRecord.of(backup) for backup in engine.backups()]
    return SnapshotsResponse(snapshots=snapshots, count=len(snapshots))


@routes.post("/snapshots", summary="Make a snapshot", responses=error_responses())
def make_snapshot(scope: Writer, service: RunningService) -> SnapshotResponse:
    """Make a backup, as clients do before they delete much."""
    backup = service.engine.back_up(reason="snapshot")
    service.audit.act(scope, BACKED_UP, backup.name)
    return SnapshotResponse(snapshot=backup.name)


@routes.post("/snapshots/{name}/restore", summary="Restore a snapshot", responses=error_responses(404))
def restore_snapshot(
    name: Annotated[_Name, Path(description="The name of a snapshot or backup.")], scope: Admin, service: RunningService
) -> SnapshotRestoreResponse:
    """Restore a backup by its name in the path."""
    _restore(service, scope, name)
    return SnapshotRestoreResponse(success=True, restored=name)


def _restore(service: Service, scope: Scope, name: str) -> Backup:
    """Restore and write that down, in the database that is there then."""
    replaced = service.engine.restore(name)
    service.audit.act(scope, RESTORED, name, f"what was there before is {replaced.name}")
    return replaced
