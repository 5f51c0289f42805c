"""File operations of a restore: a verified copy, and the offline replacement of the database.

An offline restore prepares the copy completely, and then writes an intent file, which is the point of no return: a kill
before it leaves everything as it was, and after it the next process that locks the store finishes the restore.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from pathlib import Path

import apsw
import structlog

from souvenir.core.errors import BackupDamaged, BackupNotFound, StoreUnusable
from souvenir.core.files import sync, write_private
from souvenir.core.passages import CommitId
from souvenir.core.service_warnings import ServiceWarnings
from souvenir.core.settings import Settings
from souvenir.core.timestamps import utc_now
from souvenir.store import meta, tombstones, vectors
from souvenir.store.admin import events, jobs
from souvenir.store.cascade import RemovedRows
from souvenir.store.memories import reads
from souvenir.store.rows import select
from souvenir.store.sqlite import checksums, generations, losses, renumbering
from souvenir.store.sqlite.backups import Backup, Backups
from souvenir.store.sqlite.connections import open_reader, open_writer, require_sound
from souvenir.store.sqlite.disk_space import disk_error, disk_errors
from souvenir.store.sqlite.locks import StoreLock
from souvenir.store.sqlite.permissions import REPLACED
from souvenir.store.sqlite.schema import has_table, migrate, register_functions, require_known
from souvenir.store.tombstones import Tombstone

CARRIED_OVER = ("api_keys", "key_days", "audit_events", "usage_days", "renumbered_memories")
"""Tables that a restore keeps as they are now."""


COMPACT = ".compact"
"""The suffix of a copy while it is compacted."""


STAGED = ".restoring"
"""The suffix of the copy of a backup that is to become the database."""

INTENT = ".restore"
"""The suffix of the file that says that an offline restore is to be finished."""

MOVED_ASIDE = ("-wal", "-shm", "")
"""The suffixes of the files that an offline restore keeps under other names."""

log = structlog.get_logger(__name__)


MEMORIES = "memories"
"""The table whose ids an import can keep."""

ID_GAP = 1_000_000
"""Added to every id counter if ids may have been issued that the database does not know."""


def stage_backup(source: Path, path: Path, name: str, *, over: Iterable[CommitId], id_gap: int = 0) -> Path:
    """Copy and check a backup's database next to `path`, migrated to the current schema, with a new history.

    Unfinished jobs in it are cancelled, and vectors of models other than its current one are removed.

    :param over: The last commits of the database that it replaces, as far as they are known.
    :param id_gap: Added to every AUTOINCREMENT counter, so that no id is issued twice.
    :raises BackupDamaged: If it cannot be used. Errors of the disk are not wrapped.
    """
    clear_leftovers(path)
    staged = sibling(path, STAGED)
    try:
        shutil.copyfile(source, staged)
        connection = open_copy(staged)
        try:
            require_known(connection, source)
            require_sound(connection, source)
            migrate(connection)
            generations.begin_history(connection, over)
            with connection:
                vectors.remove_all_others(connection)
                jobs.cancel_unfinished(connection, utc_now(), reason="a backup was restored")
            raise_sequences(connection, {table: seq + id_gap for table, seq in sequences(connection).items()})
        finally:
            connection.close()
        sync(staged)
    except BaseException as error:
        staged.unlink(missing_ok=True)
        if isinstance(error, StoreUnusable | apsw.Error) and disk_error(error) is None:
            raise BackupDamaged(name, str(error)) from error
        raise
    return staged


def sequences(connection: apsw.Connection) -> dict[str, int]:
    """Return the AUTOINCREMENT counter of every table that has one; 0 for a table that was never used.

    A counter of memories that was moved too far is returned as if it had not been.
    """
    found = dict(
        select(
            connection,
            tuple[str, int],
            "SELECT t.name, coalesce(s.seq, 0) FROM sqlite_schema t LEFT JOIN sqlite_sequence s ON s.name = t.name "
            "WHERE t.type = 'table' AND t.sql LIKE '%AUTOINCREMENT%'",
        )
    )
    return {**found, MEMORIES: renumbering.last_counted_id(connection)}


def raise_sequences(connection: apsw.Connection, least: Mapping[str, int]) -> None:
    """Raise id counters that are below `least`."""
    with connection:
        for table, seq in least.items():
            connection.execute("DELETE FROM sqlite_sequence WHERE name = ? AND seq < ?", (table, seq))
            connection.execute(
                "INSERT INTO sqlite_sequence (name, seq) SELECT ?, ? "
                "WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?)",
                (table, seq, table),
            )


def carry_over(present: apsw.Connection, restored: apsw.Connection) -> None:
    """Replace the restored keys, audit events and usage by the current ones, if there are any; add the tombstones.

    A restore brings memories back; it neither reactivates a revoked key nor drops a new one, and the audit log stays
    complete. A database that never had a key is new and gets those of the backup. Erased data stays erased
    (`forget_again`).
    """
    with restored:
        tombstones.add(restored, tombstones.read(present))
        for table in CARRIED_OVER:
            if not has_table(present, table) or not present.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").get:
                continue
            # The current database may be of an older schema, with fewer columns.
            known = "SELECT name FROM pragma_table_info(?)"
            present_columns = set(present.execute(known, (table,)))
            columns = [row[0] for row in restored.execute(known, (table,)) if row in present_columns]
            rows = present.execute(f"SELECT {', '.join(columns)} FROM {table}")
            restored.execute(f"DELETE FROM {table}")
            places = ", ".join("?" * len(columns))
            restored.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)


def forget_again(path: Path) -> None:
    """Delete everything that has a tombstone from a copy of a database and compact it into a new file."""
    with closing(open_copy(path)) as copy:
        removed = tombstones.replay(copy, utc_now())
    if removed == RemovedRows():
        return
    compact = sibling(path, COMPACT)
    compact.unlink(missing_ok=True)
    with closing(open_reader(path)) as copy:
        copy.execute("VACUUM INTO ?", (str(compact),))
    os.replace(compact, path)


def repair_copy(path: Path, *, above: int) -> None:
    """Renumber the memories of a copy if its id counter was moved too far; its tombstones are of the old ids.

    The feed of changes begins again.

    :param above: The new ids are greater.
    """
    with closing(open_copy(path)) as copy, copy:
        renumbering.renumber(copy, above=above)
        events.begin_again(copy)


def migrate_and_record_loss(connection: apsw.Connection, settings: Settings, newest: Backup | None) -> None:
    """Migrate a database that was just opened for writing, and record a loss of commits, so that it is not repeated.

    The loss is found before anything is written, since that overwrites what follows the last readable frame of the log.
    Lost ids are not issued again.

    :param newest: The newest backup.
    """
    loss = losses.find_loss(connection, settings)
    migrate(connection)
    if loss is not None:
        losses.record(connection, loss, newest)
        present = sequences(connection)
        raise_sequences(connection, {**{table: seq + ID_GAP for table, seq in present.items()}, **loss.issued})
        with connection:
            events.begin_again(connection)
        path = generations.marker_path(settings.database_path)
        generations.CommitLog(connection, path, ServiceWarnings()).close()


def require_model(path: Path, name: str, model_id: str) -> None:
    """:raises BackupDamaged: If the staged copy of the backup of this name has vectors of another model."""
    with closing(open_reader(path)) as connection:
        stored = meta.get(connection, vectors.MODEL)
        if stored != model_id and reads.counts(connection).passages:
            raise BackupDamaged(
                name,
                f"its vectors were made by {stored}, not by {model_id}; to go back to that model too, stop the service "
                f"and run `python app.py restore {name}`",
            )


def update_copy(path: Path, present: apsw.Connection) -> None:
    """Give a staged copy the keys, tombstones and id counters of the database that it replaces."""
    with closing(open_copy(path)) as restored:
        least = sequences(present)
        raise_sequences(restored, least)
        carry_over(present, restored)
    forget_again(path)
    repair_copy(path, above=least[MEMORIES])
    sync(path)


def rewrite_backup(backups: Backups, name: str, rows: Sequence[Tombstone]) -> None:
    """Remove everything that has a tombstone from a backup, which is migrated to the current schema.

    :param rows: The tombstones of the current database.
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
    """Open a copy of a database for changes by this caller alone; deleted rows leave no bytes."""
    connection = apsw.Connection(str(path))
    try:
        connection.pragma("foreign_keys", True)
        connection.pragma("secure_delete", True)
        register_functions(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _carry_over_from(path: Path, restored: apsw.Connection) -> bool:
    """Carry over from a database that is not open elsewhere; return whether it could be read."""
    try:
        with closing(open_reader(path)) as present:
            carry_over(present, restored)
    except apsw.Error:
        return False
    return True


def _last_commits(path: Path) -> Iterator[CommitId]:
    """Yield the last commits of a database by its marker and, if it can be read, by itself."""
    marked = generations.read_marker(generations.marker_path(path))
    if marked is not None:
        yield marked.commit
    with suppress(apsw.Error), closing(open_reader(path)) as present:
        if has_table(present, "generations"):
            yield generations.last_commit(present)


def _tombstones_of(backups: Backups, restored: apsw.Connection) -> None:
    """Add the tombstones in the other backups: for an unreadable database, they are all that is known."""
    for backup in backups.all():
        with (
            suppress(apsw.Error, BackupDamaged, BackupNotFound),
            closing(open_reader(backups.verify(backup.name))) as one,
            restored,
        ):
            tombstones.add(restored, tombstones.read(one))


@dataclass(frozen=True, slots=True)
class OfflineRestore:
    """Result of an offline restore.

    :param kept: The replaced files, under the names by which they are kept.
    :param keys_carried_over: Whether the keys of the replaced database could be read; otherwise the keys are the
        backup's, and its tombstones are known only as far as backups contain them.
    """

    kept: list[Path]
    keys_carried_over: bool


def restore_offline(settings: Settings, name: str) -> OfflineRestore:
    """Replace a database that does not open by a verified backup, while no service uses the folder.

    :raises BackupNotFound: If there is no such backup.
    :raises BackupDamaged: If it cannot be used; nothing was changed.
    """
    path = settings.database_path
    with lock_store(settings) as lock:
        backups = Backups(settings.backup_dir, keep=settings.max_backups)
        try:
            with _offline_disk_errors("The restore", path.parent, backups.bytes_of(name)):
                backups.clear_partial()
                keys_carried_over = _stage_offline(path, backups, name)
                write_private(sibling(path, INTENT), json.dumps({"backup": name, "mark": _new_mark()}))
        except BaseException:
            if not sibling(path, INTENT).exists():
                clear_leftovers(path)
            raise
        kept = _finish_restore(path, lock)
    return OfflineRestore(kept, keys_carried_over)


def _offline_disk_errors(doing: str, folder: Path, needed: int) -> AbstractContextManager[None]:
    return disk_errors(doing, folder, needed, full=StoreUnusable, other=StoreUnusable)


def _stage_offline(path: Path, backups: Backups, name: str) -> bool:
    """Prepare the copy that is to become the database; return whether the keys of the present one were readable."""
    staged = stage_backup(backups.verify(name), path, name, over=_last_commits(path), id_gap=ID_GAP)
    with closing(open_copy(staged)) as restored:
        keys_carried_over = _carry_over_from(path, restored)
        if not keys_carried_over:
            _tombstones_of(backups, restored)
        last = sequences(restored)[MEMORIES]
    forget_again(staged)
    repair_copy(staged, above=last + ID_GAP)
    sync(staged)
    return keys_carried_over


def lock_store(settings: Settings) -> StoreLock:
    """Lock the store, and finish an offline restore that was interrupted.

    :raises StoreUnusable: If another process uses it, this user cannot, or the restore cannot be finished.
    """
    lock = StoreLock(settings)
    try:
        if sibling(settings.database_path, INTENT).exists():
            kept = _finish_restore(settings.database_path, lock)
            log.warning("restore_finished", reason="it had been interrupted", kept=[str(path) for path in kept])
    except BaseException:
        lock.close()
        raise
    return lock


def _finish_restore(path: Path, lock: StoreLock) -> list[Path]:
    """Do what the intent file says, from any state that a kill leaves, and delete it; return the files that were kept.

    The staged copy is in its place only after the replaced files are out of theirs: so if it is there, all is done.
    """
    intent, staged = sibling(path, INTENT), sibling(path, STAGED)
    try:
        mark = _mark_of(intent)
        if staged.exists():
            with lock.replacing(staged):
                for suffix in MOVED_ASIDE:
                    old = sibling(path, suffix)
                    if old.exists():
                        old.rename(sibling(path, suffix + mark))
                sync(path.parent)
                os.replace(staged, path)
                sync(path.parent)
        intent.unlink()
        sync(path.parent)
    except OSError as error:
        raise StoreUnusable(
            f"The restore that {intent} describes cannot be finished ({error}); check the disk and start again"
        ) from error
    return [sibling(path, suffix + mark) for suffix in MOVED_ASIDE if sibling(path, suffix + mark).exists()]


def _mark_of(intent: Path) -> str:
    """Return the suffix under which the replaced files are kept; a new one if the file is damaged."""
    try:
        mark = str(json.loads(intent.read_text(encoding="utf-8"))["mark"])
        if not re.fullmatch(rf"{re.escape(REPLACED)}-[0-9a-f]+", mark):
            raise ValueError("its mark is no suffix of a file")
        return mark
    except (ValueError, LookupError, TypeError) as error:
        mark = _new_mark()
        log.warning("restore_intent_damaged", reason=str(error), action=f"replaced files are kept as *{mark}")
        return mark


def _new_mark() -> str:
    return f"{REPLACED}-{uuid.uuid4().hex[:8]}"


def clear_leftovers(path: Path) -> None:
    """Delete the leftovers of an interrupted restore; locking the store has finished an offline one before."""
    for name in (STAGED, REPLACED):
        for suffix in ("", "-wal", "-shm", "-journal", COMPACT, f"{COMPACT}-journal"):
            sibling(path, name + suffix).unlink(missing_ok=True)
    sibling(path, f"{INTENT}.partial").unlink(missing_ok=True)


def sibling(path: Path, suffix: str) -> Path:
    """Return the path of a file of the database that has this suffix."""
    return path.with_name(path.name + suffix)


def require_store(settings: Settings) -> None:
    """:raises StoreUnusable: If there is no database in the folder, not even one that is being restored."""
    path = settings.database_path
    if not path.exists() and not sibling(path, INTENT).exists():
        newest = Backups(settings.backup_dir, keep=settings.max_backups).newest
        restore = "" if newest is None else f"run `python app.py restore {newest.name}`, or "
        raise StoreUnusable(f"{path} does not exist; {restore}set DATA_DIR or DB_PATH to the folder of your store")


@dataclass(frozen=True, slots=True)
class IdRepair:
    """Result of a repair of ids.

    :param new_of_old: The new id of each memory by its old one; empty if no repair was needed.
    :param backup: The name of the backup that was made before, if a repair was needed.
    """

    new_of_old: Mapping[int, int]
    backup: str | None


def repair_ids(settings: Settings) -> IdRepair:
    """Renumber the memories of a store whose id counter was moved too far, while no service uses the folder.

    :raises StoreUnusable: If there is no database, or it must not be opened; nothing was changed.
    """
    require_store(settings)
    path = settings.database_path
    with (
        lock_store(settings),
        _offline_disk_errors("The repair", path.parent, 2 * path.stat().st_size),
        closing(open_writer(path)) as connection,
    ):
        require_sound(connection, path)
        backups = Backups(settings.backup_dir, keep=settings.max_backups)
        migrate_and_record_loss(connection, settings, backups.newest)
        if not renumbering.is_affected(connection):
            return IdRepair({}, None)
        backup = backups.create(connection, reason="pre_repair", now=utc_now())
        with connection:
            new_of_old = renumbering.renumber(connection)
            generations.begin_history(connection, ())
    return IdRepair(new_of_old, backup.name)


def accept_losses(settings: Settings) -> list[str]:
    """Forget the losses that were found, and keep changed rows as they are; return what was accepted.

    No service may use the folder.

    :raises StoreUnusable: If there is no database, or it must not be opened.
    """
    require_store(settings)
    path = settings.database_path
    with lock_store(settings), closing(open_writer(path)) as connection:
        require_sound(connection, path)
        newest = Backups(settings.backup_dir, keep=settings.max_backups).newest
        migrate_and_record_loss(connection, settings, newest)
        with connection:
            messages = losses.recorded(connection)
            losses.accept(connection)
            messages += [difference.sentence for difference in checksums.accept(connection)]
    return messages
