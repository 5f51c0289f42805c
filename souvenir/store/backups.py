"""Copies of the database: made while writes go on, named uniquely, verified before they are trusted.

A backup is a folder `<reason>_<date>_<time>` with `souvenir.db` and `manifest.json`. It is built under a hidden name
and renamed when it is whole, so a folder without the leading dot is a finished backup.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from threading import Lock

import apsw

from souvenir.errors import BackupDamaged, BackupNotFound, InvalidRequest
from souvenir.files import sha256_of, sync
from souvenir.store import reads
from souvenir.store.schema import schema_version

DATABASE_FILE = "souvenir.db"
MANIFEST_FILE = "manifest.json"
MAX_REASON_LENGTH = 50
SCHEDULED = "scheduled"

AUTOMATIC = frozenset(
    {"pre_build", "pre_deduplicate", "pre_delete", "pre_import", "pre_restore", "snapshot", SCHEDULED}
)
"""Reasons of backups that nobody named: the service's own, and the snapshots that clients make before bulk deletes."""


OF_WRITERS = frozenset({"pre_delete", "pre_import", "snapshot"})
"""Reasons of backups that whoever may write can cause. They are counted by themselves, so that no writer pushes out
what an operator or the schedule made."""


@dataclass(frozen=True, slots=True)
class Backup:
    """What `manifest.json` says. `created_at` is ISO-8601 in UTC, `bytes` the size of the database file."""

    name: str
    reason: str
    created_at: str
    sha256: str
    bytes: int
    memories: int
    passages: int
    namespaces: int
    schema_version: int


class Backups:
    """The backup folder."""

    def __init__(self, directory: Path, *, keep: int) -> None:
        self._directory = directory
        self._keep = keep
        self._evicting = Lock()

    def create(self, connection: apsw.Connection, *, reason: str, now: datetime) -> Backup:
        """Copy what `connection` reads now. It must be outside of a transaction; writers are not held up.

        :raises InvalidRequest: If the reason cannot be part of a folder's name.
        """
        if not reason or len(reason) > MAX_REASON_LENGTH or not all(c.isalnum() or c in "-_" for c in reason):
            raise InvalidRequest("A backup's prefix is 1 to 50 letters, digits, - or _")
        self._directory.mkdir(parents=True, exist_ok=True)
        partial, name = self._reserve(f"{reason}_{now:%Y%m%d_%H%M%S}")
        try:
            database = partial / DATABASE_FILE
            connection.execute("VACUUM INTO ?", (str(database),))
            sync(database)
            backup = self._describe(database, name, reason, now)
            manifest = partial / MANIFEST_FILE
            manifest.write_text(json.dumps(asdict(backup), indent=2) + "\n", encoding="utf-8")
            sync(manifest)
            sync(partial)
            partial.rename(self._directory / name)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        sync(self._directory)
        return backup

    def all(self) -> list[Backup]:
        """Finished backups, newest first. A folder whose manifest cannot be read is no backup."""
        found = [backup for path in self._folders() if (backup := _manifest(path)) is not None]
        return sorted(found, key=lambda backup: (backup.created_at, backup.name), reverse=True)

    def verify(self, name: str) -> Path:
        """The database file of a backup whose bytes are those that were written.

        :raises BackupNotFound: If there is none of that name.
        :raises BackupDamaged: If the file is not what its manifest says.
        """
        folder = self._directory / name
        if folder not in self._folders():
            raise BackupNotFound(name)
        backup = _manifest(folder)
        if backup is None:
            raise BackupDamaged(name, "its manifest cannot be read")
        database = folder / DATABASE_FILE
        if not database.is_file() or sha256_of(database) != backup.sha256:
            raise BackupDamaged(name, "its database is not the file that was written")
        return database

    def evict(self, *, but: Collection[str] = ()) -> list[str]:
        """Remove backups beyond the number kept: the oldest of those that the service made, then the oldest of all.

        The number is kept of those that writers cause, and of all others. Never the newest of either, nor those named.

        A folder is hidden before it is emptied, so that none is ever half a backup.
        """
        with self._evicting:
            backups = self.all()
            by_writers = [backup for backup in backups if backup.reason in OF_WRITERS]
            others = [backup for backup in backups if backup.reason not in OF_WRITERS]
            evicted = [name for kind in (by_writers, others) for name in self._beyond(kind, but)]
            for name in evicted:
                shutil.rmtree((self._directory / name).rename(self._partial(f"{name}.evicted")))
        return evicted

    def _beyond(self, backups: Sequence[Backup], but: Collection[str]) -> list[str]:
        """:param backups: Of one kind, newest first."""
        going = [backup for backup in backups[:0:-1] if backup.name not in but]
        going.sort(key=lambda backup: backup.reason not in AUTOMATIC)
        return [backup.name for backup in going[: max(0, len(backups) - self._keep)]]

    def clear_partial(self) -> None:
        """Remove what a crash left half written."""
        if self._directory.is_dir():
            for path in self._directory.glob(".*.partial"):
                shutil.rmtree(path)

    def _folders(self) -> list[Path]:
        if not self._directory.is_dir():
            return []
        return [path for path in self._directory.iterdir() if path.is_dir() and not path.name.startswith(".")]

    def _reserve(self, base: str) -> tuple[Path, str]:
        """A hidden folder of our own, and a name that no finished backup has."""
        number = 1
        while True:
            name = base if number == 1 else f"{base}_{number}"
            partial = self._partial(name)
            with suppress(FileExistsError):
                partial.mkdir()
                # Looked at under the hidden name: whoever had it before may have finished meanwhile.
                if not (self._directory / name).exists():
                    return partial, name
                partial.rmdir()
            number += 1

    def _partial(self, name: str) -> Path:
        return self._directory / f".{name}.partial"

    def _describe(self, database: Path, name: str, reason: str, now: datetime) -> Backup:
        copy = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            counts = reads.counts(copy)
            version = schema_version(copy)
        finally:
            copy.close()
        return Backup(
            name=name,
            reason=reason,
            created_at=now.isoformat(),
            sha256=sha256_of(database),
            bytes=database.stat().st_size,
            memories=counts.memories,
            passages=counts.passages,
            namespaces=counts.namespaces,
            schema_version=version,
        )


def _manifest(folder: Path) -> Backup | None:
    """What the folder says of itself, under the name that it has now; None if it says nothing that makes sense."""
    try:
        stated = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
        datetime.fromisoformat(stated["created_at"])
        return Backup(**{**stated, "name": folder.name})
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
