"""Operations of the section `backup`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.backup import (
    BackupResponse,
    BackupsResponse,
    RestoreResponse,
    SnapshotResponse,
    SnapshotRestoreResponse,
    SnapshotsResponse,
)


class AsyncBackupsOfBackup:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> BackupsResponse:
        """List the backups that can be restored. `GET /backups`."""
        return await self._transport.send(Call("GET", "/backups", {200: BackupsResponse}, repeat=Repeat.SAFE))

    async def create(self, *, prefix: str | NotSent | None = NOT_SENT) -> BackupResponse:
        """Copy the whole database while reads and writes go on. `POST /backup`."""
        return await self._transport.send(
            Call("POST", "/backup", {200: BackupResponse}, query={"prefix": prefix}, body={})
        )

    async def restore(self, *, backup_name: str) -> RestoreResponse:
        """Go back to a backup in one step; what is there now is backed up first, and stays if the restore fails.

        `POST /restore`.
        """
        return await self._transport.send(
            Call("POST", "/restore", {200: RestoreResponse}, body={"backup_name": backup_name})
        )


class AsyncSnapshotsOfBackup:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> SnapshotsResponse:
        """List the backups under the other name. `GET /snapshots`."""
        return await self._transport.send(Call("GET", "/snapshots", {200: SnapshotsResponse}, repeat=Repeat.SAFE))

    async def create(self) -> SnapshotResponse:
        """Make a backup, as clients do before they delete much. `POST /snapshots`."""
        return await self._transport.send(Call("POST", "/snapshots", {200: SnapshotResponse}))

    async def restore(self, name: str) -> SnapshotRestoreResponse:
        """Restore a backup by its name in the path. `POST /snapshots/{name}/restore`."""
        return await self._transport.send(
            Call("POST", f"/snapshots/{segment(name)}/restore", {200: SnapshotRestoreResponse})
        )
