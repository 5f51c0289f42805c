"""The database: opened with all checks, read, written, backed up, and replaced by a backup in one step.

Invariants: one process holds the folder at a time; a database that is unreadable or another program's is never opened
and never replaced by an empty one; a failed restore leaves the database unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from datetime import datetime
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import TypeVar

import apsw
import structlog

from souvenir.core.concurrency import ReadersWriterLock
from souvenir.core.errors import DiskFull, ServiceClosing, StoreUnusable, Unavailable
from souvenir.core.files import sync
from souvenir.core.passages import CommitId, Embeddable, Embedding
from souvenir.core.quotas import UNLIMITED_QUOTAS, Quotas
from souvenir.core.service_warnings import ServiceWarnings
from souvenir.core.settings import Settings
from souvenir.core.telemetry import Instruments
from souvenir.core.types import Scope
from souvenir.store import check, meta
from souvenir.store.index_changes import IndexUpdate
from souvenir.store.memories import reads
from souvenir.store.passages import VectorModels
from souvenir.store.sql import Connection
from souvenir.store.sqlite import generations, losses
from souvenir.store.sqlite.backups import Backup, Backups
from souvenir.store.sqlite.connections import BUSY_TIMEOUT_MS, open_reader, open_writer, require_sound
from souvenir.store.sqlite.copies import Copies
from souvenir.store.sqlite.disk_space import Reserve, disk_errors
from souvenir.store.sqlite.generations import CommitLog
from souvenir.store.sqlite.locks import StoreLock
from souvenir.store.sqlite.permissions import REPLACED, make_private
from souvenir.store.sqlite.reading import ReaderPool, Reading
from souvenir.store.sqlite.repair import repair
from souvenir.store.sqlite.restore import (
    clear_leftovers,
    lock_store,
    migrate_and_record_loss,
    require_model,
    sibling,
    stage_backup,
    update_copy,
)
from souvenir.store.sqlite.scrubbing import empty_log, scrub
from souvenir.store.sqlite.writer import Writer
from souvenir.store.transaction import Transaction, run_write
from souvenir.store.unreadable import UnreadableRows
from souvenir.store.vectors import MODEL, MODEL_SPEC, NextModel, replace_model

T = TypeVar("T")
READERS = 4
LOG_WAIT_S = 5.0
"""Time that an erasure waits for readers to release the write-ahead log before it is retried later."""
CHECKED_AT_START_BYTES = 1 << 28
"""A larger file is checked for damage after the start, since that takes some two seconds a gigabyte, and more from a
slow disk."""
DATABASE_DAMAGED = "database_damaged"
SWITCH_WAIT_S = 0.5
"""Time that a change of the model waits for running reads; all later requests wait with it."""

log = structlog.get_logger(__name__)


def _unlimited(_: str) -> Quotas:
    return UNLIMITED_QUOTAS


class SqliteDatabase:
    """Open with `SqliteDatabase.open`; every method is safe to call from any thread."""

    is_shared = False
    reachable = True
    replica = ""

    def __init__(
        self,
        settings: Settings,
        model_id: str,
        lock: StoreLock,
        instruments: Instruments,
        model_spec: str | None,
    ) -> None:
        self._settings = settings
        self._instruments = instruments
        self._path = settings.database_path
        self._lock = lock
        self._closed = False
        self._checking: apsw.Connection | None = None
        self._gate = ReadersWriterLock()
        self.warnings = ServiceWarnings()
        self.unreadable = UnreadableRows(self.warnings)
        self._reserve = Reserve(self._path, self.warnings)
        self.model_id = model_id
        self.next_model: NextModel | None = None
        self.quotas_of: Callable[[str], Quotas] = _unlimited
        self._model_spec = model_spec
        self.on_commit: list[Callable[[], None]] = []
        """Called on the writer's thread after every commit of changes; must be quick."""
        self.on_news: list[Callable[[], None]] = []
        self.on_replaced: list[Callable[[], None]] = []
        self.on_model_replaced: list[Callable[[], None]] = []
        self.backups = Backups(settings.backup_dir, keep=settings.max_backups)
        self.copies = Copies(self.backups, self._path)
        self.backups.clear_partial()
        clear_leftovers(self._path)
        self._refuse_lost_database()
        self._connect()
        self.refill_reserve()

    @classmethod
    def open(
        cls,
        settings: Settings,
        model_id: str,
        instruments: Instruments | None = None,
        *,
        model_spec: str | None = None,
    ) -> SqliteDatabase:
        """:param model_spec: The configuration from which the model is created again; stored next to its id.

        :raises StoreUnusable: With a sentence that says what to do, if the database must not be opened.
        """
        lock = lock_store(settings)
        try:
            database = cls(settings, model_id, lock, instruments or Instruments(), model_spec)
        except BaseException as error:
            lock.close()
            if isinstance(error, OSError):
                raise StoreUnusable(
                    f"The files in {settings.data_dir} cannot be read or written ({error}); look at the disk"
                ) from error
            raise
        make_private(settings)
        return database

    def _connect(self) -> None:
        self._lock.lock_database()
        try:
            connection = open_writer(self._path, self.unreadable)
            try:
                self._prepare(connection)
                self._readers = ReaderPool(self._path, READERS, self.unreadable)
                self._commits = CommitLog(connection, generations.marker_path(self._path), self.warnings)
            except BaseException:
                connection.close()
                raise
        except (apsw.Error, OSError) as error:
            raise StoreUnusable(f"{self._path} cannot be opened ({error}); {self._advice()}") from error
        self._writer = Writer(
            connection,
            commits=self._commits,
            reserve=self._reserve,
            queue_max=self._settings.write_queue_max,
            timeout_s=self._settings.write_timeout_s,
            instruments=self._instruments,
            on_commit=self.on_commit,
        )

    def _prepare(self, connection: apsw.Connection) -> None:
        self._is_checked = self._path.stat().st_size <= CHECKED_AT_START_BYTES
        if self._is_checked:
            self._require_sound(connection)
        migrate_and_record_loss(connection, self._settings, self.backups.newest)
        meta.require_no_migration(connection)
        with connection:
            connection.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO NOTHING", (MODEL, self.model_id))
        stored = meta.get(connection, MODEL)
        if stored != self.model_id:
            if reads.counts(connection).passages:
                raise StoreUnusable(
                    f"The vectors in {self._path} were made by {stored} and EMBED_MODEL is {self.model_id}; "
                    "set EMBED_MODEL back, or DATA_DIR to a new folder"
                )
            meta.put(connection, MODEL, self.model_id)
        if self._model_spec is not None:
            meta.put(connection, MODEL_SPEC, self._model_spec)
        self.history_id = generations.history_id(connection)
        losses.show(connection, self.warnings)

    def _require_sound(self, connection: apsw.Connection) -> None:
        try:
            require_sound(connection, self._path)
        except StoreUnusable as error:
            raise StoreUnusable(f"{error.message}; {self._advice()}") from error

    def check_for_damage(self) -> None:
        """Check a large file once after the start; if it is damaged, operators are warned and writes are refused."""
        if self._is_checked:
            return
        self._is_checked = True
        try:
            with self.read_once() as self._checking:
                try:
                    self._require_sound(self._checking)
                except apsw.InterruptError:
                    log.info("check_interrupted")
        except StoreUnusable as error:
            self.warnings.put(DATABASE_DAMAGED, f"{error.message}. Writes are refused until then")
            self._writer.refuse(error.message)
        finally:
            self._checking = None

    def stop_checking(self) -> None:
        """Let `check_for_damage` end, before a close."""
        self._is_checked = True
        checking = self._checking
        if checking is not None:
            checking.interrupt()

    def _refuse_lost_database(self) -> None:
        if self._path.exists() and self._path.stat().st_size:
            return
        marker = generations.marker_path(self._path)
        if marker.exists() or self.backups.all() or losses.index_snapshots(self._settings.index_dir):
            raise StoreUnusable(
                f"{self._path} is missing although there are backups or index snapshots of it, or {marker}; "
                f"{self._advice()}"
            )

    def _advice(self) -> str:
        newest = self.backups.newest
        if newest is None:
            return f"there is no backup in {self._settings.backup_dir}: put a sound copy there, or set another DATA_DIR"
        return (
            f"restore the newest backup with `python app.py restore {newest.name}` "
            "(the damaged file is kept next to it), or set another DATA_DIR"
        )

    def owns(self, key: str) -> bool:
        """Return True: no other process uses the file."""
        return True

    def runs(self, replica: str) -> bool:
        """Return whether it is this process."""
        return replica == self.replica

    def connections(self) -> Mapping[str, int]:
        """Return nothing: there is no server."""
        return {}

    @property
    def committed(self) -> CommitId:
        """The last durable commit."""
        return self._commits.last

    def read(self) -> AbstractContextManager[apsw.Connection]:
        """Return a connection with one consistent snapshot of the database."""
        return Reading(self._current_readers, self._gate)

    def read_once(self) -> AbstractContextManager[apsw.Connection]:
        """Return a connection for a single statement, or several that may see different states, without a transaction.

        Each statement sees one state anyway, and a transaction takes as long as a short statement.
        """
        return Reading(self._current_readers, self._gate, in_transaction=False)

    def reader(self) -> AbstractContextManager[apsw.Connection]:
        """Return a connection for work that already runs inside `between_writes`."""
        return Reading(self._current_readers)

    def _current_readers(self) -> ReaderPool:
        return self._readers

    def write(
        self,
        scope: Scope,
        now: datetime,
        work: Callable[[Transaction], T],
        apply: Callable[[IndexUpdate], None],
        again: Mapping[tuple[str, Embeddable], Embedding] = MappingProxyType({}),
    ) -> T:
        """Run `work` in one durable transaction, pass its index changes to `apply`, and return its result.

        :param again: Vectors, by model and text, of passages that were prepared with another model.
        :raises ModelChanged: If vectors of the current model are still missing; nothing was written.
        """

        def in_transaction(connection: apsw.Connection) -> tuple[T, IndexUpdate]:
            models = VectorModels(self.model_id, None if self.next_model is None else self.next_model.id, again)
            return run_write(connection, scope, models, now, self.quotas_of(scope.actor), work)

        with self._gate.read():
            result = self._writer.write(in_transaction, lambda done: apply(done[1]))[0]
            self._forget_deleted()
        return result

    def write_rows(
        self, work: Callable[[apsw.Connection], T], apply: Callable[[T], None] = lambda _: None, *, alone: bool = True
    ) -> T:
        """Run `work`, which changes no memory, in one durable transaction; `apply` updates the indexes.

        :param alone: Has no effect: no other write ever runs meanwhile.
        """
        with self._gate.read():
            result = self._writer.write(work, apply)
            self._forget_deleted()
        return result

    def _forget_deleted(self) -> None:
        if self.unreadable.rows:
            with self.reader() as connection:
                self.unreadable.forget_deleted(connection)

    def switch_model(
        self, model_id: str, spec: str, ready: Callable[[apsw.Connection], bool], switched: Callable[[], None]
    ) -> bool:
        """Switch searches to another model's vectors, in one step, while nothing is read or written.

        :param ready: Returns whether all vectors exist; may write, and raise to change nothing.
        :param switched: Called before any later read or write.
        :raises TimeoutError: If a long read, such as a backup, does not end soon; nothing is blocked for longer.
        """

        def work(connection: apsw.Connection) -> bool:
            is_ready = ready(connection)
            if is_ready:
                replace_model(connection, model_id, spec)
            return is_ready

        with self._gate.write(timeout_s=SWITCH_WAIT_S):
            done = self._writer.write(work)
            if done:
                self.model_id, self._model_spec = model_id, spec
                switched()
        return done

    def adopt_model(self, model_id: str, adopted: Callable[[], None]) -> bool:
        """Do nothing, as below: no other process changes the model."""
        return False

    def require_model(self, connection: Connection, model_id: str) -> None:
        pass

    def await_model(self, former: str) -> None:
        pass

    def problems(self, connection: Connection) -> list[str]:
        """Return one sentence for each inconsistency within the database."""
        return check.problems(connection)

    def repair(self) -> list[str]:
        """Repair damaged rows as far as they are stored twice; return one sentence for each repair."""
        with self._gate.read():
            return self._writer.write(lambda connection: repair(connection, self.backups))

    def between_writes(self, work: Callable[[], T]) -> T:
        """Run `work` on the writer thread, between two writes."""
        with self._gate.read():
            return self._writer.run_alone(lambda _: work())

    def sync_marker(self) -> None:
        """Make the record of the last commit durable, by which a loss of commits is seen."""
        self.between_writes(self._commits.sync)

    def refill_reserve(self) -> None:
        """Take up the space in reserve for deletions, if it was used and there is space again."""
        with self._gate.read():
            self._writer.run_alone(lambda _: self._writer.refill_reserve())

    def clear_unused(self) -> bool:
        """Truncate the log and overwrite unused bytes in the file, in batches between which other writes run.

        :return: False if long reads, such as a backup, kept the log in use; try again when they are over.
        """
        page: int | None = 1
        give_up_at = monotonic() + LOG_WAIT_S
        while page is not None:
            emptied, following = self._clear_part(page)
            if emptied:
                page, give_up_at = following, monotonic() + LOG_WAIT_S
            elif monotonic() >= give_up_at:
                return False
        return True

    def _clear_part(self, page: int) -> tuple[bool, int | None]:
        """Return whether the log could be truncated, and if so the next page."""

        def work(connection: apsw.Connection) -> tuple[bool, int | None]:
            emptied = empty_log(connection, BUSY_TIMEOUT_MS)
            return emptied, scrub(connection, self._path, page) if emptied else None

        with self._gate.read():
            return self._writer.run_alone(work)

    @property
    def bytes_on_disk(self) -> tuple[int, int]:
        """Sizes of the database file and of its write-ahead log."""
        main, log = (path.stat().st_size if path.exists() else 0 for path in (self._path, sibling(self._path, "-wal")))
        return main, log

    def back_up(self, *, reason: str, now: datetime) -> Backup:
        """Copy the database during reads and writes, then evict the oldest copies beyond the limit."""
        with self._gate.read():
            backup = self._copy(reason, now)
        self.backups.evict(but={backup.name})
        return backup

    def _copy(self, reason: str, now: datetime) -> Backup:
        if self._closed:
            raise ServiceClosing
        needed = sum(self.bytes_on_disk)
        try:
            with (
                disk_errors("The backup", self._settings.data_dir, needed, full=DiskFull, other=Unavailable),
                closing(open_reader(self._path)) as connection,
            ):
                return self.backups.create(connection, reason=reason, now=now)
        except apsw.Error as error:
            raise Unavailable("The backup could not be written; look at the disk and the service's log") from error

    def restore(self, name: str, *, now: datetime, switched: Callable[[], None]) -> Backup:
        """Replace the database by a backup, in one step; the current state is backed up first.

        Ids issued since the backup are not issued again, and keys stay as they are now.

        :param switched: Called before any read or write of the restored database.
        :return: The backup of the state that was replaced.
        :raises BackupNotFound: If there is no such backup.
        :raises BackupDamaged: If it cannot be used; nothing was changed.
        :raises DiskFull: If the disk is full; nothing was changed.
        """
        needed = self.backups.bytes_of(name) + sum(self.bytes_on_disk)
        with (
            self._gate.write(),
            disk_errors("The restore", self._path.parent, needed, full=DiskFull, other=Unavailable),
        ):
            try:
                restoring = stage_backup(self.backups.verify(name), self._path, name, over=[self.committed])
                require_model(restoring, name, self.model_id)
                before = self._copy("pre_restore", now)
                with self.reader() as present:
                    update_copy(restoring, present)
                self._switch(restoring)
                switched()
            finally:
                self._clear_leftovers()
        self.backups.evict(but={name, before.name})
        return before

    def _switch(self, restoring: Path) -> None:
        """Replace the file while connections are closed; put the old one back if the new one does not open.

        A kill leaves the old database with an empty log or the new one: the file is replaced in one step.
        """
        replaced, wal = sibling(self._path, REPLACED), sibling(self._path, "-wal")
        try:
            self._close_connections()
            if wal.exists() and wal.stat().st_size:
                raise StoreUnusable("The write-ahead log could not be emptied, so nothing was restored; try again")
            # The log must be gone for good: after a power cut it would be taken for that of the new database.
            sync(self._path.parent)
            with self._lock.replacing(restoring):
                os.link(self._path, replaced)
                try:
                    os.replace(restoring, self._path)
                    sync(self._path.parent)
                    self._connect()
                    self.unreadable.clear()
                except BaseException:
                    wal.unlink(missing_ok=True)
                    sibling(self._path, "-shm").unlink(missing_ok=True)
                    os.replace(replaced, self._path)
                    sync(self._path.parent)
                    raise
        except BaseException:
            self._connect()
            raise

    def _clear_leftovers(self) -> None:
        """Delete temporary files of the restore that just ended, which an error here does not make a failure."""
        try:
            clear_leftovers(self._path)
        except OSError as error:
            log.warning("restore_leftovers", reason=str(error), action="none: the next start deletes them")

    def _close_connections(self) -> None:
        self._readers.close()
        self._writer.close()
        self._commits.close()

    def close(self) -> None:
        """Finish queued writes and running reads, then close."""
        with self._gate.write():
            try:
                self._close_connections()
            finally:
                self._lock.close()
                self._closed = True
