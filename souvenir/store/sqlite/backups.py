"""Copies of the database: made during writes, with unique names, verified before use.

A backup is a folder `<reason>_<date>_<time>_<microseconds>` with `souvenir.db` and `manifest.json`; the microseconds
keep the name of an evicted backup from being used again, and names of earlier versions have none. It is built under a
hidden name and renamed when it is complete, so a folder without the leading dot is a finished backup. Symbolic links
are neither listed nor followed: what they lead to was not written here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from threading import Lock

import apsw

from souvenir.core.concurrency import ReadersWriterLock
from souvenir.core.errors import BackupDamaged, BackupNotFound, InvalidRequest, StoreUnusable, Unavailable
from souvenir.core.files import make_folder, sha256_of, sync
from souvenir.store import namespaces
from souvenir.store.memories import reads
from souvenir.store.sqlite.disk_space import disk_error
from souvenir.store.sqlite.schema import schema_version

DATABASE_FILE = "souvenir.db"
MANIFEST_FILE = "manifest.json"
REWRITTEN = ".rewritten"
"""Part of the names of temporary files during the rewrite of a backup."""
_REASON = re.compile(r"[A-Za-z0-9_-]{1,50}")
SCHEDULED = "scheduled"
SYNCED = "sync"
"""The reason of backups that are made for an upload."""

AUTOMATIC = frozenset(
    {
        "pre_build",
        "pre_consolidate",
        "pre_deduplicate",
        "pre_delete",
        "pre_import",
        "pre_prune",
        "pre_repair",
        "pre_restore",
        "snapshot",
        SCHEDULED,
        SYNCED,
    }
)
"""Reasons of unnamed backups: the service's own, and the snapshots that clients make before bulk deletes."""


WRITER_REASONS = frozenset({"pre_delete", "pre_import", "snapshot"})
"""Reasons of backups that any writer can trigger. They are counted separately, so that a writer cannot evict the
backups of an operator or of the schedule."""


@dataclass(frozen=True, slots=True)
class Backup:
    """The content of `manifest.json`. `created_at` is ISO-8601 in UTC, `bytes` the size of the database file.

    :param sequence: The order of the backups, independent of the clock; 0 in those of earlier versions.
    :param state: `namespaces.write_state` of the content; None in those of earlier versions.
    """

    name: str
    reason: str
    created_at: str
    sha256: str
    bytes: int
    memories: int
    passages: int
    namespaces: int
    schema_version: int
    sequence: int = 0
    state: int | None = None

    @property
    def order(self) -> tuple[int, str, str]:
        """A sort key: by age, oldest first."""
        return self.sequence, self.created_at, self.name


class Backups:
    """The backup folder."""

    def __init__(self, directory: Path, *, keep: int) -> None:
        self._directory = directory
        self._keep = keep
        self._evicting = Lock()
        self._changing = Lock()
        self._numbering = Lock()
        self._last_sequence = 0
        self._making = ReadersWriterLock()

    def create(self, connection: apsw.Connection, *, reason: str, now: datetime) -> Backup:
        """Copy the state that `connection` reads. It must be outside of a transaction; writers are not blocked.

        :raises InvalidRequest: If the reason cannot be part of a folder name.
        """
        if not _REASON.fullmatch(reason):
            raise InvalidRequest("A backup's prefix is 1 to 50 ASCII letters, digits, - or _")
        make_folder(self._directory)
        with self._making.read():
            return self._create(connection, reason, now)

    def _create(self, connection: apsw.Connection, reason: str, now: datetime) -> Backup:
        partial, name = self._reserve(f"{reason}_{now:%Y%m%d_%H%M%S_%f}")
        try:
            database = partial / DATABASE_FILE
            connection.execute("VACUUM INTO ?", (str(database),))
            sync(database)
            backup = replace(self._describe(database, name, reason, now), sequence=self._next_sequence())
            _write_manifest(partial / MANIFEST_FILE, backup)
            sync(partial)
            partial.rename(self._directory / name)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        sync(self._directory)
        return backup

    def receive(self, backup: Backup, write: Callable[[Path], None]) -> Backup:
        """Add a backup from elsewhere under a name that no other has; it counts as the newest, so it is evicted last.

        :param write: Writes the database to a path. Whatever it raises, nothing is left behind.
        :raises BackupDamaged: If what was written is not the database that `backup` describes.
        """
        make_folder(self._directory)
        with self._making.read():
            partial, name = self._reserve(backup.name)
            try:
                database = partial / DATABASE_FILE
                write(database)
                if database.stat().st_size != backup.bytes or sha256_of(database) != backup.sha256:
                    raise BackupDamaged(backup.name, "its database is not the file that was written")
                received = replace(backup, name=name, sequence=self._next_sequence())
                _write_manifest(partial / MANIFEST_FILE, received)
                sync(database)
                sync(partial)
                partial.rename(self._directory / name)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise
        sync(self._directory)
        return received

    def _next_sequence(self) -> int:
        with self._numbering:
            self._last_sequence = 1 + max([self._last_sequence, *(backup.sequence for backup in self.all())])
            return self._last_sequence

    def settle(self, timeout_s: float) -> None:
        """Wait for the backups that are being created.

        :raises TimeoutError: If it takes longer.
        """
        with self._making.write(timeout_s):
            return

    def all(self) -> list[Backup]:
        """Return finished backups, newest first. A folder without a readable manifest is skipped."""
        found = [backup for path in self._folders() if (backup := _manifest(path)) is not None]
        return sorted(found, key=lambda backup: backup.order, reverse=True)

    @property
    def newest(self) -> Backup | None:
        return next(iter(self.all()), None)

    def verify(self, name: str) -> Path:
        """Return the database file of a backup after checking its hash.

        :raises BackupNotFound: If there is none of that name.
        :raises BackupDamaged: If the file does not match its manifest.
        """
        folder = self._directory / name
        if folder not in self._folders():
            raise BackupNotFound(name)
        database = folder / DATABASE_FILE
        with self._changing:
            backup = _manifest(folder)
            if backup is None:
                raise BackupDamaged(name, "its manifest cannot be read")
            if not _is_own_file(database) or sha256_of(database) != backup.sha256:
                raise BackupDamaged(name, "its database is not the file that was written")
        return database

    def bytes_of(self, name: str) -> int:
        """Return the size of a backup's database; 0 if there is none of that name."""
        return sum(path.stat().st_size for one, path in self.databases() if one == name)

    def databases(self) -> list[tuple[str, Path]]:
        """Return the database of every folder that has one, even without a manifest; by name."""
        found = [(folder.name, folder / DATABASE_FILE) for folder in self._folders()]
        return sorted((name, database) for name, database in found if _is_own_file(database))

    def rewrite(self, name: str, change: Callable[[Path], None]) -> None:
        """Replace a backup's database by a changed copy, atomically: a crash leaves the old or the new one.

        :param change: Changes the copy, which nothing else has open.
        :raises BackupNotFound: If there is none of that name, or it was deleted meanwhile.
        :raises BackupDamaged: If it cannot be used; it is left unchanged. :raises Unavailable: If the disk is full.
        """
        database = self.verify(name)
        folder = database.parent
        manifest = folder / MANIFEST_FILE
        copy, stating = (path.with_name(path.name + REWRITTEN) for path in (database, manifest))
        switching = False
        try:
            was = _manifest(folder)
            if was is None:
                raise BackupDamaged(name, "its manifest cannot be read")
            for path in (copy, stating):
                path.unlink(missing_ok=True)
            shutil.copyfile(database, copy)
            change(copy)
            sync(copy)
            described = self._describe(copy, name, was.reason, datetime.fromisoformat(was.created_at))
            backup = replace(described, sequence=was.sequence)
            _write_manifest(stating, backup)
            with self._evicting, self._changing:
                # The copy must be on disk under its name before the manifest describes it: from then on a start after a
                # crash renames it to the final name.
                sync(folder)
                switching = True
                os.replace(stating, manifest)
                sync(folder)
                os.replace(copy, database)
                sync(folder)
        except (OSError, apsw.Error, StoreUnusable) as error:
            if not database.exists():
                raise BackupNotFound(name) from error
            if disk_error(error) is not None:
                raise Unavailable("A backup could not be rewritten; check the free space in DATA_DIR") from error
            raise BackupDamaged(name, str(error)) from error
        finally:
            if not switching:
                for path in folder.glob(f"*{REWRITTEN}*"):
                    path.unlink()

    def drop(self, name: str) -> None:
        """Delete a backup if it exists."""
        with self._evicting, suppress(FileNotFoundError):
            self._drop(name)

    def _drop(self, name: str) -> None:
        """Rename the folder to a hidden name before deleting it, so that no partial backup is ever visible."""
        evicted = (self._directory / name).rename(self._partial(f"{name}.evicted"))
        sync(self._directory)
        shutil.rmtree(evicted)

    def evict(self, *, but: Collection[str] = ()) -> list[str]:
        """Remove backups beyond the limit: first the oldest automatic ones, then the oldest of all.

        The limit applies separately to backups triggered by writers and to all others. The newest of each group and the
        backups in `but` are kept.
        """
        with self._evicting:
            backups = self.all()
            by_writers = [backup for backup in backups if backup.reason in WRITER_REASONS]
            others = [backup for backup in backups if backup.reason not in WRITER_REASONS]
            evicted = [name for kind in (by_writers, others) for name in self._beyond(kind, but)]
            for name in evicted:
                self._drop(name)
        return evicted

    def _beyond(self, backups: Sequence[Backup], but: Collection[str]) -> list[str]:
        """:param backups: Of one group, newest first."""
        going = [backup for backup in backups[:0:-1] if backup.name not in but]
        going.sort(key=lambda backup: backup.reason not in AUTOMATIC)
        return [backup.name for backup in going[: max(0, len(backups) - self._keep)]]

    def clear_partial(self) -> None:
        """Delete incomplete backups that a crash left, and finish an interrupted replacement."""
        if self._directory.is_dir():
            for path in self._directory.glob(".*.partial"):
                if not path.is_symlink():
                    shutil.rmtree(path)
            for folder in self._folders():
                copy, backup = folder / f"{DATABASE_FILE}{REWRITTEN}", _manifest(folder)
                if backup is not None and _is_own_file(copy) and sha256_of(copy) == backup.sha256:
                    os.replace(copy, copy.with_name(DATABASE_FILE))
                    sync(folder)
                for path in folder.glob(f"*{REWRITTEN}*"):
                    path.unlink()

    def _folders(self) -> list[Path]:
        if not self._directory.is_dir():
            return []
        return [
            path
            for path in self._directory.iterdir()
            if path.is_dir() and not path.is_symlink() and not path.name.startswith(".")
        ]

    def _reserve(self, base: str) -> tuple[Path, str]:
        """Create a hidden folder for a name that no finished backup has."""
        number = 1
        while True:
            name = base if number == 1 else f"{base}_{number}"
            partial = self._partial(name)
            with suppress(FileExistsError):
                partial.mkdir(mode=0o700)
                # Checked while the hidden name is held: a backup that held it before may have finished meanwhile.
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
            state = namespaces.write_state(copy)
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
            state=state,
        )


def _is_own_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _write_manifest(path: Path, backup: Backup) -> None:
    path.write_text(json.dumps(asdict(backup), indent=2) + "\n", encoding="utf-8")
    sync(path)


def _manifest(folder: Path) -> Backup | None:
    """Return the folder's manifest under the folder's current name; None if it is missing or invalid."""
    path = folder / MANIFEST_FILE
    if not _is_own_file(path):
        return None
    try:
        stated = json.loads(path.read_text(encoding="utf-8"))
        datetime.fromisoformat(stated["created_at"])
        return Backup(**{**stated, "name": folder.name})
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
