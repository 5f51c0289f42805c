"""Cloud sync of a running service: jobs that upload and download backups, scheduled uploads, and remote retention.

Uploads and downloads are jobs of a separate queue, one at a time: an interrupted one begins again at the next start.
A scheduled upload is due by elapsed time, like a scheduled backup, and a failed one is tried again after a while.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from souvenir.core.background import Maintenance
from souvenir.core.errors import (
    RemoteBackupNotFound,
    RemoteBackupUnusable,
    SouvenirError,
    SyncNotConfigured,
    SyncUnavailable,
)
from souvenir.core.settings import Settings
from souvenir.core.timestamps import utc_now
from souvenir.core.types import JsonObject, Scope
from souvenir.jobs.handler import RunningJob
from souvenir.jobs.worker import Jobs
from souvenir.memories.backup_schedule import BackupSchedule
from souvenir.memories.engine import MemoryEngine
from souvenir.store import namespaces
from souvenir.store.admin.jobs import SYNC
from souvenir.store.sqlite.backups import SYNCED, Backup
from souvenir.sync.bucket import Bucket, RemoteBackup
from souvenir.sync.transfer import Advance, BackupTransfer

UPLOAD, DOWNLOAD = "upload", "download"
"""Actions of a job."""

ACTOR = "sync"
"""The actor of scheduled uploads."""

CHECK_INTERVAL_S = 60.0
RETRY_AFTER_S = 1800.0
"""The pause after a scheduled upload that failed."""

CHECKPOINT_INTERVAL_S = 1.0
"""A checkpoint is a durable write, and the place where a cancelled or interrupted transfer ends."""

CLOSE_TIMEOUT_S = 5.0

UPLOAD_FAILED = "sync_upload_failed"
"""A warning."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SyncStatus:
    """The newest backup in the bucket and in the backup folder, and their numbers."""

    enabled: bool
    encrypts: bool
    latest_remote: RemoteBackup | None
    latest_local: Backup | None
    remote_count: int
    local_count: int


class CloudSync:
    """Thread-safe. Without SYNC_BUCKET its `bucket` and `transfer` raise `SyncNotConfigured`."""

    kind = SYNC

    def __init__(self, engine: MemoryEngine, settings: Settings) -> None:
        """:raises Unavailable: If the packages of the extra are not installed."""
        self._engine = engine
        self._keep = settings.sync_keep
        self._bucket = None if settings.sync_bucket is None else Bucket(settings)
        backups = engine.copies.backups
        self._transfer = None if self._bucket is None else BackupTransfer(settings, self._bucket, backups)
        queue_max, retention_days = settings.job_queue_max, settings.job_retention_days
        self.jobs = Jobs(engine, [self], queue_max=queue_max, retention_days=retention_days, lane=SYNC)
        self._schedule = BackupSchedule(timedelta(hours=settings.sync_interval_hours))
        self.is_scheduled = self._bucket is not None and settings.sync_interval_hours > 0
        self._timer = Maintenance(self.upload_if_due, interval_s=CHECK_INTERVAL_S)
        self._newest: list[Backup] | None = None
        """The newest upload of the current state; None until the bucket was asked for it."""
        self._running = False
        self._not_before_s = 0.0

    @property
    def is_configured(self) -> bool:
        return self._bucket is not None

    @property
    def bucket(self) -> Bucket:
        """:raises SyncNotConfigured: If there is none."""
        if self._bucket is None:
            raise SyncNotConfigured
        return self._bucket

    @property
    def transfer(self) -> BackupTransfer:
        """:raises SyncNotConfigured: If there is no bucket."""
        if self._transfer is None:
            raise SyncNotConfigured
        return self._transfer

    def start(self) -> None:
        """Start the jobs and the scheduled uploads. Without a bucket there are none."""
        if self.is_configured:
            self.jobs.start()
        if self.is_scheduled:
            self._timer.start()
            self._timer.ask()

    def close(self) -> None:
        self.jobs.close()
        if self.is_scheduled:
            self._timer.close(CLOSE_TIMEOUT_S)

    def status(self) -> SyncStatus:
        remote = [] if self._bucket is None else self._bucket.backups()
        local = self._engine.backups()
        return SyncStatus(
            enabled=self._bucket is not None,
            encrypts=self._transfer is not None and self._transfer.encrypts,
            latest_remote=next(iter(remote), None),
            latest_local=next(iter(local), None),
            remote_count=len(remote),
            local_count=len(local),
        )

    # --- jobs --------------------------------------------------------------------------------------------------

    def run(self, job: RunningJob) -> JsonObject:
        self._running = True
        try:
            if job.parameters["action"] == UPLOAD:
                return self._upload(job)
            return self._download(job)
        finally:
            self._running = False

    def _upload(self, job: RunningJob) -> JsonObject:
        """Upload the named backup or one of the current state, and delete old ones from the bucket."""
        chosen = job.parameters["backup_name"]
        try:
            name = chosen or self._current_backup(job.state.get("backup"))
            manifest = self.transfer.upload(name, _advance(job, {"backup": name}))
        except SouvenirError as error:
            self._engine.warnings.put(UPLOAD_FAILED, f"The last upload of a backup failed: {error.message}")
            raise
        self._engine.warnings.clear(UPLOAD_FAILED)
        if chosen is None:
            self._newest, self._not_before_s = [manifest.backup], 0.0
            self._schedule.made(manifest.backup)
        deleted = self._delete_old(but=name, keep=job.parameters["keep"] or self._keep)
        log.info(
            "backup_uploaded", backup=name, bytes=manifest.stored_bytes, encrypted=manifest.encrypted, deleted=deleted
        )
        return {
            "backup_name": name,
            "bytes": manifest.stored_bytes,
            "encrypted": manifest.encrypted,
            "deleted": deleted,
        }

    def _current_backup(self, begun: str | None) -> str:
        """Return the newest backup of the current state, which is made if there is none.

        :param begun: The backup of an upload that was interrupted; it is preferred if it still exists.
        """
        backups = self._engine.backups()
        if begun is not None and begun in [backup.name for backup in backups]:
            return begun
        _, state = self._state()
        current = next((backup.name for backup in backups if backup.state == state), None)
        return current or self._engine.back_up(reason=SYNCED).name

    def _delete_old(self, *, but: str, keep: int) -> list[str]:
        """Delete the oldest uploads beyond `keep`, and databases that interrupted uploads left."""
        others = [one.name for one in self.bucket.backups() if one.name != but]
        old = others[keep - 1 :]
        for name in old:
            self.bucket.delete(name)
        self.bucket.clear_abandoned(utc_now())
        return old

    def _download(self, job: RunningJob) -> JsonObject:
        manifest = self.transfer.resolve(job.parameters["backup_name"])
        allowed = job.parameters["allow_unencrypted"]
        received = self.transfer.download(manifest, allow_unencrypted=allowed, advance=_advance(job, {}))
        backup = received.backup
        log.info("backup_downloaded", backup=manifest.backup.name, as_name=backup.name, bytes=manifest.stored_bytes)
        return {"backup_name": backup.name, "bytes": backup.bytes, "transferred": received.transferred}

    # --- schedule ----------------------------------------------------------------------------------------------

    def upload_if_due(self) -> None:
        """Submit an upload if one is due."""
        if self._running or self.jobs.waiting or time.monotonic() < self._not_before_s:
            return
        first_write, state = self._state()
        if first_write is None:
            return
        self._not_before_s = time.monotonic() + RETRY_AFTER_S
        try:
            if self._newest is None:
                self._newest = self._newest_upload()
        except SyncUnavailable as error:
            self._engine.warnings.put(UPLOAD_FAILED, f"The bucket of the uploads cannot be used: {error.message}")
            return
        if self._schedule.is_due(self._newest, first_write=first_write, state=state, now=utc_now()):
            self.jobs.submit(SYNC, Scope(actor=ACTOR), upload_parameters())
        else:
            self._not_before_s = 0.0

    def _newest_upload(self) -> list[Backup]:
        try:
            return [self.transfer.resolve(None).backup]
        except (RemoteBackupNotFound, RemoteBackupUnusable) as error:
            log.info("no_earlier_upload", reason=error.message)
            return []

    def _state(self) -> tuple[datetime | None, int]:
        with self._engine.namespace(Scope()) as (connection, _):
            return namespaces.first_write(connection), namespaces.write_state(connection)


def upload_parameters(backup_name: str | None = None, *, keep: int | None = None) -> JsonObject:
    """Return the parameters of an upload job.

    :param backup_name: A local backup; None for one of the current state. :param keep: Instead of SYNC_KEEP.
    """
    return {"action": UPLOAD, "backup_name": backup_name, "keep": keep}


def download_parameters(backup_name: str, *, allow_unencrypted: bool) -> JsonObject:
    return {"action": DOWNLOAD, "backup_name": backup_name, "allow_unencrypted": allow_unencrypted}


def _advance(job: RunningJob, state: JsonObject) -> Advance:
    """Return a function that saves the progress of a job, in bytes, at most once in `CHECKPOINT_INTERVAL_S`."""
    next_s = 0.0

    def advance(done: int, total: int) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            job.checkpoint(done=done, total=total, state=state)
            next_s = time.monotonic() + CHECKPOINT_INTERVAL_S

    return advance
