"""Cloud sync: copies of backups in an S3-compatible bucket."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from souvenir.api.backups import BACKUP_EXAMPLE, BackupName, restore_backup
from souvenir.api.fields import wire_time
from souvenir.core.errors import ConfirmationMissing
from souvenir.core.types import JsonObject, Scope
from souvenir.server.job_responses import ACCEPTED, DEFAULT_WAIT_S, WaitS
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import Admin, RunningService
from souvenir.server.routing import Routes
from souvenir.server.service import Service
from souvenir.store.admin.jobs import SYNC
from souvenir.sync.bucket import Manifest, RemoteBackup
from souvenir.sync.cloud_sync import download_parameters, upload_parameters

routes = Routes("backup")

UPLOADED, DOWNLOADED = "sync.upload", "sync.download"
"""Actions in the audit."""

NOT_CONFIGURED = "Cloud sync not configured. Set SYNC_BUCKET."

Confirm = Annotated[bool, Query(description="Must be true.")]
AllowUnencrypted = Annotated[
    bool, Query(description="Accept a backup that is not encrypted although SYNC_PASSPHRASE is set.")
]


class SyncStatusResponse(BaseModel):
    enabled: bool = Field(description="True if there is a bucket.")
    message: str | None = Field(default=None, description="The next step, if there is none.", examples=[NOT_CONFIGURED])
    latest_remote: str | None = Field(description="The newest upload.", examples=[BACKUP_EXAMPLE])
    latest_local: str | None = Field(description="The newest backup in DATA_DIR.", examples=[BACKUP_EXAMPLE])
    remote_count: int = Field(description="The number of backups in the bucket.")
    local_count: int = Field(description="The number of backups in DATA_DIR.")
    encrypted: bool = Field(description="True if uploads are encrypted with SYNC_PASSPHRASE.")


class UploadResponse(BaseModel):
    success: bool
    backup_name: str = Field(examples=[BACKUP_EXAMPLE])
    bytes: int = Field(description="The size of the object in the bucket.")
    encrypted: bool
    deleted: list[str] = Field(
        description="Older backups that were deleted from the bucket.", examples=[["manual_20250301_093000"]]
    )


class DownloadResponse(BaseModel):
    success: bool
    backup_name: str = Field(
        description="Its name in DATA_DIR, for `POST /restore`; another one than in the bucket if that was taken.",
        examples=[BACKUP_EXAMPLE],
    )
    bytes: int = Field(description="The size of the database.")
    transferred: bool = Field(description="False if the same backup was in DATA_DIR already.")


class RemoteSnapshotRecord(BaseModel):
    name: str = Field(examples=[BACKUP_EXAMPLE])
    timestamp: str = Field(
        description="The time of the upload, by the clock of the store.", examples=["2025-04-02T09:30:00.000000+00:00"]
    )
    bytes: int = Field(description="The size of the object in the bucket.")
    encrypted: bool

    @classmethod
    def of(cls, backup: RemoteBackup) -> RemoteSnapshotRecord:
        timestamp = wire_time(backup.uploaded_at)
        return cls(name=backup.name, timestamp=timestamp, bytes=backup.stored_bytes, encrypted=backup.encrypted)


class RemoteSnapshotsResponse(BaseModel):
    snapshots: list[RemoteSnapshotRecord] = Field(description="The newest upload first.")
    count: int


class RemoteRestoreResponse(BaseModel):
    success: bool
    restored: str = Field(description="Its name in the bucket.", examples=[BACKUP_EXAMPLE])
    backup_name: str = Field(description="Its name in DATA_DIR.", examples=[BACKUP_EXAMPLE])
    total_memories: int = Field(description="In this namespace.")
    message: str = Field(examples=[f"Restored {BACKUP_EXAMPLE}; what was there before is pre_restore_20250402_101500"])


@routes.get(
    "/sync/status",
    summary="Get the status of cloud sync",
    cost=CostClass.LONG,
    sdk="cloud_sync.status",
)
def sync_status(scope: Admin, service: RunningService) -> SyncStatusResponse:
    """Compare the backups in the bucket with those in DATA_DIR; without a bucket, `enabled` is false."""
    status = service.sync.status()
    return SyncStatusResponse(
        enabled=status.enabled,
        message=None if status.enabled else NOT_CONFIGURED,
        latest_remote=None if status.latest_remote is None else status.latest_remote.name,
        latest_local=None if status.latest_local is None else status.latest_local.name,
        remote_count=status.remote_count,
        local_count=status.local_count,
        encrypted=status.encrypts,
    )


@routes.get(
    "/sync/snapshots",
    summary="List the backups in the bucket",
    cost=CostClass.LONG,
    sdk="cloud_sync.list",
    errors=[400],
)
def list_remote_snapshots(scope: Admin, service: RunningService) -> RemoteSnapshotsResponse:
    """List the backups in the bucket; incomplete uploads are left out."""
    snapshots = [RemoteSnapshotRecord.of(backup) for backup in service.sync.bucket.backups()]
    return RemoteSnapshotsResponse(snapshots=snapshots, count=len(snapshots))


@routes.post(
    "/sync/upload",
    summary="Upload a backup",
    cost=CostClass.LONG,
    sdk="cloud_sync.upload",
    response_model=UploadResponse,
    errors=[400, 404, 409],
    responses=ACCEPTED,
)
def upload_backup(
    scope: Admin,
    service: RunningService,
    backup_name: Annotated[
        BackupName | None, Query(description="A backup in DATA_DIR; unset, one of the current state.")
    ] = None,
    keep: Annotated[int | None, Query(ge=1, description="Backups to keep in the bucket, instead of SYNC_KEEP.")] = None,
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> UploadResponse | JSONResponse:
    """Copy a backup to the bucket, encrypted if SYNC_PASSPHRASE is set, and delete the oldest ones from the bucket."""
    service.sync.transfer.require_local(backup_name)
    service.audit.act(scope, UPLOADED, backup_name or "a backup of the current state")
    done = service.sync_work.run(SYNC, scope, upload_parameters(backup_name, keep=keep), wait_s=wait_s)
    return done if isinstance(done, JSONResponse) else UploadResponse(success=True, **done)


@routes.post(
    "/sync/download",
    summary="Download a backup",
    cost=CostClass.LONG,
    sdk="cloud_sync.download",
    response_model=DownloadResponse,
    errors=[400, 404, 409],
    responses=ACCEPTED,
)
def download_backup(
    scope: Admin,
    service: RunningService,
    backup_name: Annotated[
        BackupName | None, Query(description="A backup in the bucket; unset, the newest upload.")
    ] = None,
    confirm: Confirm = False,
    allow_unencrypted: AllowUnencrypted = False,
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> DownloadResponse | JSONResponse:
    """Copy a backup from the bucket to the backups in DATA_DIR, without restoring it."""
    manifest = _confirmed(service, backup_name, confirm=confirm, consequence="This downloads a backup to DATA_DIR")
    done = _downloaded(service, scope, manifest, allow_unencrypted=allow_unencrypted, wait_s=wait_s)
    return done if isinstance(done, JSONResponse) else DownloadResponse(success=True, **done)


@routes.post(
    "/sync/restore/{backup_name}",
    summary="Restore a backup of the bucket",
    cost=CostClass.LONG,
    sdk="cloud_sync.restore",
    response_model=RemoteRestoreResponse,
    errors=[400, 404, 409],
    responses=ACCEPTED,
)
def restore_remote_backup(
    backup_name: Annotated[BackupName, Path(description="A backup in the bucket.", examples=[BACKUP_EXAMPLE])],
    scope: Admin,
    service: RunningService,
    confirm: Confirm = False,
    allow_unencrypted: AllowUnencrypted = False,
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> RemoteRestoreResponse | JSONResponse:
    """Download a backup and restore it like `POST /restore`; after 202 the download continues, then call it again."""
    manifest = _confirmed(service, backup_name, confirm=confirm, consequence="A restore replaces the whole database")
    done = _downloaded(service, scope, manifest, allow_unencrypted=allow_unencrypted, wait_s=wait_s)
    if isinstance(done, JSONResponse):
        return done
    local: str = done["backup_name"]
    replaced = restore_backup(service, scope, local)
    return RemoteRestoreResponse(
        success=True,
        restored=backup_name,
        backup_name=local,
        total_memories=service.engine.count(scope),
        message=f"Restored {backup_name}; what was there before is {replaced.name}",
    )


def _confirmed(service: Service, name: str | None, *, confirm: bool, consequence: str) -> Manifest:
    """Return the manifest of a backup in the bucket.

    :raises SyncNotConfigured: If there is no bucket. :raises ConfirmationMissing: If the caller did not confirm.
    """
    transfer = service.sync.transfer
    if not confirm:
        raise ConfirmationMissing(consequence)
    return transfer.resolve(name)


def _downloaded(
    service: Service, scope: Scope, manifest: Manifest, *, allow_unencrypted: bool, wait_s: float
) -> JsonObject | JSONResponse:
    """Return the result of a job that downloads a backup, or the 202 response."""
    service.sync.transfer.require_usable(manifest, allow_unencrypted=allow_unencrypted)
    name = manifest.backup.name
    service.audit.act(scope, DOWNLOADED, name)
    parameters = download_parameters(name, allow_unencrypted=allow_unencrypted)
    return service.sync_work.run(SYNC, scope, parameters, wait_s=wait_s)
