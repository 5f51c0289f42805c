"""Operations of the section `backup`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.backup import (
    BackupResponse,
    BackupsResponse,
    RestoreResponse,
    SnapshotResponse,
    SnapshotRestoreResponse,
    SnapshotsResponse,
)
from souvenir_client.sync.transport import Transport


class BackupsOfBackup:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> BackupsResponse:
        """List the backups that can be restored. `GET /backups`."""
        return self._transport.send(Call("GET", "/backups", {200: BackupsResponse}, repeat=Repeat.SAFE))

    def create(self, *, prefix: str | NotSent | None = NOT_SENT) -> BackupResponse:
        """Copy the whole database while reads and writes go on. `POST /backup`."""
        return self._transport.send(Call("POST", "/backup", {200: BackupResponse}, query={"prefix": prefix}, body={}))

    def restore(self, *, backup_name: str) -> RestoreResponse:
        """Go back to a backup in one step; what is there now is backed up first, and stays if the restore fails.

        `POST /restore`.
        """
        return self._transport.send(Call("POST", "/restore", {200: RestoreResponse}, body={"backup_name": backup_name}))


class SnapshotsOfBackup:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> SnapshotsResponse:
        """List the backups under the other name. `GET /snapshots`."""
        return self._transport.send(Call("GET", "/snapshots", {200: SnapshotsResponse}, repeat=Repeat.SAFE))

    def create(self) -> SnapshotResponse:
        """Make a backup, as clients do before they delete much. `POST /snapshots`."""
        return self._transport.send(Call("POST", "/snapshots", {200: SnapshotResponse}))

    def restore(self, name: str) -> SnapshotRestoreResponse:
        """Restore a backup by its name in the path. `POST /snapshots/{name}/restore`."""
        return self._transport.send(Call("POST", f"/snapshots/{segment(name)}/restore", {200: SnapshotRestoreResponse}))
