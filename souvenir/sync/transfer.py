"""Transfers of backups between the backup folder and the bucket, encrypted if there is a passphrase.

A download is written under a hidden name, and becomes a backup only after its size and SHA-256 were checked, twice: as
it was stored in the bucket and as it was before the upload. Memory is bounded by the size of a part.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from souvenir.core.errors import (
    BackupDamaged,
    BackupNotFound,
    DiskFull,
    RemoteBackupNotFound,
    RemoteBackupUnusable,
    Unavailable,
)
from souvenir.core.settings import Settings
from souvenir.store.sqlite.backups import Backup, Backups
from souvenir.store.sqlite.disk_space import disk_errors, space_in
from souvenir.sync.bucket import Bucket, Manifest, context_of
from souvenir.sync.encryption import NotAuthentic, Readable, WrongPassphrase, decrypted, encrypted

READ_BYTES = 2**20

Advance = Callable[[int, int], None]
"""Gets the bytes of the database that were transferred and all of them; may raise to end the transfer."""


def _ignored(done: int, total: int) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Received:
    """A backup from the bucket in the backup folder. `transferred` is False if it was there already."""

    backup: Backup
    transferred: bool


class BackupTransfer:
    """:param backups: The backup folder."""

    def __init__(self, settings: Settings, bucket: Bucket, backups: Backups) -> None:
        self._folder = settings.backup_dir
        self._passphrase = None if settings.sync_passphrase is None else settings.sync_passphrase.get_secret_value()
        self._bucket = bucket
        self._backups = backups

    @property
    def encrypts(self) -> bool:
        return self._passphrase is not None

    def upload(self, name: str, advance: Advance = _ignored) -> Manifest:
        """Verify a local backup and store it in the bucket.

        :raises BackupNotFound: If there is none of that name. :raises BackupDamaged: If it is not what was written.
        """
        path = self._backups.verify(name)
        backup = next(one for one in self._backups.all() if one.name == name)
        with path.open("rb") as file:
            plain = _Counted(file, backup.bytes, advance)
            source: Readable = plain
            if self._passphrase is not None:
                source = _Parts(encrypted(plain, self._passphrase, context_of(backup)))
            return self._bucket.upload(backup, source, size=backup.bytes, encrypted=self.encrypts)

    def resolve(self, name: str | None) -> Manifest:
        """Return the manifest of a backup in the bucket; of the newest upload if the name is None.

        :raises RemoteBackupNotFound: If there is none.
        """
        if name is None:
            newest = next(iter(self._bucket.backups()), None)
            if newest is None:
                raise RemoteBackupNotFound(None)
            name = newest.name
        return self._bucket.manifest(name)

    def local_copy(self, manifest: Manifest) -> Backup | None:
        """Return a local backup with the same database, if there is one and it is undamaged."""
        for backup in self._backups.all():
            if backup.sha256 == manifest.backup.sha256:
                try:
                    self._backups.verify(backup.name)
                except BackupDamaged:
                    continue
                return backup
        return None

    def download(self, manifest: Manifest, *, allow_unencrypted: bool, advance: Advance = _ignored) -> Received:
        """Copy a backup from the bucket to the backup folder, under a name that no other backup has.

        :raises RemoteBackupUnusable: If it is not what was uploaded, or cannot be decrypted; nothing is kept.
        :raises DiskFull: If there is too little space.
        """
        backup = manifest.backup
        self.require_usable(manifest, allow_unencrypted=allow_unencrypted)
        if (local := self.local_copy(manifest)) is not None:
            return Received(local, transferred=False)
        with disk_errors("The download", self._existing_folder(), backup.bytes, full=DiskFull, other=Unavailable):
            if shutil.disk_usage(self._existing_folder()).free < backup.bytes:
                needed = space_in(self._existing_folder(), backup.bytes)
                raise DiskFull(f"The backup {backup.name!r} is too large for the disk: {needed}; free some space")
            try:
                received = self._backups.receive(backup, lambda path: self._write(manifest, path, advance))
            except BackupDamaged as error:
                raise RemoteBackupUnusable(
                    backup.name, "its database is not the one that was uploaded; restore another one"
                ) from error
        return Received(received, transferred=True)

    def _existing_folder(self) -> Path:
        return next(path for path in (self._folder, *self._folder.absolute().parents) if path.is_dir())

    def require_local(self, name: str | None) -> None:
        """:raises BackupNotFound: If there is no local backup of this name."""
        if name is not None and name not in [backup.name for backup in self._backups.all()]:
            raise BackupNotFound(name)

    def require_usable(self, manifest: Manifest, *, allow_unencrypted: bool) -> None:
        """:raises RemoteBackupUnusable: If the passphrase and the encryption of the backup do not fit."""
        if manifest.encrypted and self._passphrase is None:
            raise RemoteBackupUnusable(
                manifest.backup.name, "it is encrypted; set SYNC_PASSPHRASE to the passphrase it was uploaded with"
            )
        if not manifest.encrypted and self._passphrase is not None and not allow_unencrypted:
            raise RemoteBackupUnusable(
                manifest.backup.name,
                "it is not encrypted although SYNC_PASSPHRASE is set, so anyone who can write to the bucket could have "
                "made it; send allow_unencrypted=true if you uploaded it yourself",
            )

    def _write(self, manifest: Manifest, path: Path, advance: Advance) -> None:
        name, total, done = manifest.backup.name, manifest.backup.bytes, 0
        with self._bucket.database(manifest) as stored, path.open("xb") as file:
            try:
                for part in self._plain(manifest, stored):
                    done += len(part)
                    if done > total:
                        raise RemoteBackupUnusable(name, "it is larger than its manifest says; restore another one")
                    file.write(part)
                    advance(done, total)
            except WrongPassphrase as error:
                raise RemoteBackupUnusable(
                    name, "SYNC_PASSPHRASE is not the passphrase it was uploaded with; set that one"
                ) from error
            except NotAuthentic as error:
                raise RemoteBackupUnusable(name, f"{error}; restore another one") from error

    def _plain(self, manifest: Manifest, stored: Readable) -> Iterator[bytes]:
        if manifest.encrypted and self._passphrase is not None:
            yield from decrypted(stored, self._passphrase, manifest.context)
        # To the end, where the checksum is compared.
        while part := stored.read(READ_BYTES):
            if manifest.encrypted:
                raise NotAuthentic("something follows its last part")
            yield part


class _Counted:
    """A file whose reads advance a transfer."""

    def __init__(self, file: Readable, total: int, advance: Advance) -> None:
        self._file = file
        self._total = total
        self._advance = advance
        self._done = 0

    def read(self, size: int, /) -> bytes:
        part = self._file.read(size)
        self._done += len(part)
        self._advance(self._done, self._total)
        return part


class _Parts:
    """A file of the parts of an iterator."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._rest = b""

    def read(self, size: int, /) -> bytes:
        found: list[bytes] = []
        wanted = size
        while wanted > 0:
            if not self._rest:
                self._rest = next(self._parts, b"")
                if not self._rest:
                    break
            found.append(self._rest[:wanted])
            self._rest = self._rest[wanted:]
            wanted -= len(found[-1])
        return b"".join(found)
