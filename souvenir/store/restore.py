"""What a restore needs of the file system: the folder's lock, a verified copy, and the switch while no service runs."""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import apsw

from souvenir.core.errors import BackupDamaged, BackupNotFound, StoreUnusable
from souvenir.core.files import sync
from souvenir.core.settings import Settings
from souvenir.core.timestamps import utc_now
from souvenir.store import tombstones, vectors
from souvenir.store.admin import jobs
from souvenir.store.backups import Backups
from souvenir.store.cascade import RemovedRows
from souvenir.store.connections import open_reader, require_sound
from souvenir.store.rows import select
from souvenir.store.schema import migrate, require_known
from souvenir.store.tombstones import Tombstone

LINEAGE = "lineage"
"""A random id of the database; a restored one gets a new one, so that index snapshots of the old are not taken."""


CARRIED_OVER = ("api_keys", "audit_events")
"""Tables that a restore leaves as they are now."""


REPLACED = ".replaced"
"""In the names of the files that a restore put aside; those of an offline one stay."""

COMPACT = ".compact"
"""The suffix of a copy while it is compacted."""


def lock_folder(data_dir: Path) -> IO[str]:
    """Hold the folder until the returned file is closed or the process ends.

    :raises StoreUnusable: If the folder cannot be written, or another process has it.
    """
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        lock_file = (data_dir / "souvenir.lock").open("w")
    except OSError as error:
        raise StoreUnusable(f"DATA_DIR {data_dir} cannot be written ({error}); give this user the folder") from error
    try:
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock_file.close()
        raise StoreUnusable(f"Another process uses DATA_DIR {data_dir}; stop it, or set another folder") from error
    return lock_file


def lock_folders(settings: Settings) -> ExitStack:
    """Hold DATA_DIR, and the folder of the database where that is another, until the returned stack is closed.

    :raises StoreUnusable: As `lock_folder`.
    """
    folders = {folder.resolve(): folder for folder in (settings.database_path.parent, settings.data_dir)}
    with ExitStack() as held:
        for folder in folders.values():
            held.enter_context(lock_folder(folder))
        return held.pop_all()


OFFLINE_ID_GAP = 1_000_000
"""Added to every id counter when the replaced database could not be asked where its own stood."""


def stage_backup(source: Path, path: Path, name: str, *, id_gap: int = 0) -> Path:
    """A checked copy of a backup's database next to `path`, at the current schema, with a lineage of its own.

    Jobs that were unfinished in it are cancelled, and vectors of a model that was to take over are removed.

    :param id_gap: How far to move every AUTOINCREMENT counter, so that no id is given out twice.
    :raises BackupDamaged: If it cannot be used.
    """
    staged = path.with_name(path.name + ".restoring")
    try:
        shutil.copyfile(source, staged)
        connection = open_copy(staged)
        try:
            require_known(connection, source)
            require_sound(connection, source)
            migrate(connection)
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (LINEAGE, uuid.uuid4().hex))
            with connection:
                vectors.remove_all_others(connection)
                jobs.cancel_unfinished(connection, utc_now(), reason="a backup was restored")
            raise_sequences(connection, {table: seq + id_gap for table, seq in sequences(connection).items()})
        finally:
            connection.close()
        sync(staged)
    except (StoreUnusable, apsw.Error, OSError) as error:
        staged.unlink(missing_ok=True)
        raise BackupDamaged(name, str(error)) from error
    return staged


def sequences(connection: apsw.Connection) -> dict[str, int]:
    """Where the id counter of every table that has one stands; SQLite keeps none for a table that was never used."""
    return dict(
        select(
            connection,
            tuple[str, int],
            "SELECT t.name, coalesce(s.seq, 0) FROM sqlite_schema t LEFT JOIN sqlite_sequence s ON s.name = t.name "
            "WHERE t.type = 'table' AND t.sql LIKE '%AUTOINCREMENT%'",
        )
    )


def raise_sequences(connection: apsw.Connection, least: Mapping[str, int]) -> None:
    """Let id counters that stand below `least` go on from there."""
    with connection:
        for table, seq in least.items():
            connection.execute("DELETE FROM sqlite_sequence WHERE name = ? AND seq < ?", (table, seq))
            connection.execute(
                "INSERT INTO sqlite_sequence (name, seq) SELECT ?, ? "
                "WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?)",
                (table, seq, table),
            )


def carry_over(present: apsw.Connection, restored: apsw.Connection) -> None:
    """Replace the restored keys and audit events by the current ones, where there are any; add the tombstones.

    A restore takes memories back; it neither brings a revoked key back to life nor stops a new one, and what was done
    since stays on record. A database that never had a key gets those of the backup: it is new. What was erased stays
    erased (`forget_again`).
    """
    with restored:
        tombstones.add(restored, tombstones.read(present))
        for table in CARRIED_OVER:
            if not present.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").get:
                continue
            columns = [column for (column,) in restored.execute("SELECT name FROM pragma_table_info(?)", (table,))]
            rows = present.execute(f"SELECT {', '.join(columns)} FROM {table}")
            restored.execute(f"DELETE FROM {table}")
            places = ", ".join("?" * len(columns))
            restored.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)


def forget_again(path: Path) -> None:
    """Remove what has a tombstone from a copy of a database, for good: the file is then another one."""
    with closing(open_copy(path)) as copy:
        removed = tombstones.replay(copy, utc_now())
    if removed == RemovedRows():
        return
    compact = path.with_name(path.name + COMPACT)
    compact.unlink(missing_ok=True)
    with closing(open_reader(path)) as copy:
        copy.execute("VACUUM INTO ?", (str(compact),))
    os.replace(compact, path)


def rewrite_backup(backups: Backups, name: str, rows: Sequence[Tombstone]) -> None:
    """Remove what has a tombstone from a backup, which is then at today's schema.

    :param rows: The tombstones that the present database has.
    :raises BackupNotFound: If there is no such backup. :raises BackupDamaged: If it cannot be used.
    """

    def change(path: Path) -> None:
        with closing(open_copy(path)) as copy:
            require_known(copy, path)
            require_sound(copy, path)
            migrate(copy)
            with copy:
                tombstones.add(copy, rows)
        forget_again(path)

    backups.rewrite(name, change)


def open_copy(path: Path) -> apsw.Connection:
    """A copy of a database that nobody else has open, to be changed; what is deleted there leaves no bytes."""
    connection = apsw.Connection(str(path))
    try:
        connection.pragma("foreign_keys", True)
        connection.pragma("secure_delete", True)
    except BaseException:
        connection.close()
        raise
    return connection


def _carry_over_from(path: Path, restored: apsw.Connection) -> bool:
    """Carry over what a database that nobody has open holds; whether it could be read."""
    try:
        with closing(open_reader(path)) as present:
            carry_over(present, restored)
    except apsw.Error:
        return False
    return True


def _tombstones_of(backups: Backups, restored: apsw.Connection) -> None:
    """Add those that the other backups hold: of a database that cannot be read, they are what is known."""
    for backup in backups.all():
        with (
            suppress(apsw.Error, BackupDamaged, BackupNotFound),
            closing(open_reader(backups.verify(backup.name))) as one,
            restored,
        ):
            tombstones.add(restored, tombstones.read(one))


@dataclass(frozen=True, slots=True)
class OfflineRestore:
    """Side effects of an offline restore.

    :param kept: The files that were replaced, under the names that they were kept by.
    :param keys_carried_over: Whether the replaced database could be asked for its keys; else they are the backup's,
        and what it had erased is known as far as a backup says it.
    """

    kept: list[Path]
    keys_carried_over: bool


def restore_offline(settings: Settings, name: str) -> OfflineRestore:
    """Replace a database that does not open by a verified backup, while no service runs on the folder.

    :raises BackupNotFound: If there is no such backup.
    :raises BackupDamaged: If it cannot be used; nothing was changed.
    """
    path = settings.database_path
    kept: list[Path] = []
    with lock_folders(settings):
        backups = Backups(settings.backup_dir, keep=settings.max_backups)
        staged = stage_backup(backups.verify(name), path, name, id_gap=OFFLINE_ID_GAP)
        with closing(open_copy(staged)) as restored:
            keys_carried_over = _carry_over_from(path, restored)
            if not keys_carried_over:
                _tombstones_of(backups, restored)
        forget_again(staged)
        sync(staged)
        mark = f"{REPLACED}-{uuid.uuid4().hex[:8]}"
        for suffix in ("-wal", "-shm", ""):
            old = path.with_name(path.name + suffix)
            if old.exists():
                kept.append(old.rename(old.with_name(old.name + mark)))
        os.replace(staged, path)
        sync(path.parent)
    return OfflineRestore(kept, keys_carried_over)
