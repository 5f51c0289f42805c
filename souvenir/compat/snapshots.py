"""Snapshots: backups in the format of another service."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, Field

from souvenir.api.backups import BACKED_UP, BackupName, restore_backup
from souvenir.api.fields import wire_time
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import Admin, Engine, RunningService, Writer
from souvenir.server.routing import Routes
from souvenir.store.sqlite.backups import Backup

routes = Routes("backup")


class SnapshotRecord(BaseModel):
    name: str = Field(examples=["snapshot_20250402_093000"])
    reason: str = Field(examples=["snapshot"])
    timestamp: str = Field(examples=["2025-04-02T09:30:00.000000+00:00"])
    point_count: int = Field(description="The number of memories.")

    @classmethod
    def of(cls, backup: Backup) -> SnapshotRecord:
        made_at = wire_time(datetime.fromisoformat(backup.created_at))
        return cls(name=backup.name, reason=backup.reason, timestamp=made_at, point_count=backup.memories)


class SnapshotsResponse(BaseModel):
    snapshots: list[SnapshotRecord] = Field(description="Newest first.")
    count: int


class SnapshotResponse(BaseModel):
    snapshot: str = Field(description="The name of the backup.", examples=["snapshot_20250402_093000"])


class SnapshotRestoreResponse(BaseModel):
    success: bool
    restored: str = Field(examples=["manual_20250402_093000"])


@routes.get(
    "/snapshots",
    summary="List snapshots",
    cost=CostClass.LIGHT,
    sdk="snapshots.list",
)
def list_snapshots(scope: Admin, engine: Engine) -> SnapshotsResponse:
    """List the backups in the snapshot format."""
    snapshots = [SnapshotRecord.of(backup) for backup in engine.backups()]
    return SnapshotsResponse(snapshots=snapshots, count=len(snapshots))


@routes.post(
    "/snapshots",
    summary="Create a snapshot",
    cost=CostClass.LONG,
    sdk="snapshots.create",
    errors=[501],
)
def make_snapshot(scope: Writer, service: RunningService) -> SnapshotResponse:
    """Create a backup in the snapshot format."""
    backup = service.engine.back_up(reason="snapshot")
    service.audit.act(scope, BACKED_UP, backup.name)
    return SnapshotResponse(snapshot=backup.name)


@routes.post(
    "/snapshots/{name}/restore",
    summary="Restore a snapshot",
    cost=CostClass.LONG,
    sdk="snapshots.restore",
    errors=[404, 501],
)
def restore_snapshot(
    name: Annotated[
        BackupName, Path(description="The name of a snapshot or backup.", examples=["manual_20250402_093000"])
    ],
    scope: Admin,
    service: RunningService,
) -> SnapshotRestoreResponse:
    """Restore a backup by its name."""
    restore_backup(service, scope, name)
    return SnapshotRestoreResponse(success=True, restored=name)
