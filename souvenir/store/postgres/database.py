"""A store in PostgreSQL: any number of processes read and write it, each with its own indexes.

Writes are as serial as in one process, by advisory locks that last as long as their transaction: a write to a namespace
holds the lock of the namespace, and shares one with those to other namespaces, which `write_rows` takes alone. So the
`change_seq` of a namespace is the order of its commits. Writes of a replica that wait for the same locks are committed
as one (`souvenir.store.postgres.write_groups`). Indexes follow by the log of index changes
(`souvenir.store.index_changes`).
"""

from __future__ import annotations

import random
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from threading import Lock, RLock
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

import psycopg
import structlog
from psycopg_pool import ConnectionPool

from souvenir.core.background import Maintenance
from souvenir.core.concurrency import time_left
from souvenir.core.errors import (
    DatabaseUnavailable,
    ModelReplaced,
    NotOfDatabase,
    Overloaded,
    ServiceClosing,
    SouvenirError,
    StoreUnusable,
)
from souvenir.core.passages import CommitId, Embeddable, Embedding
from souvenir.core.quotas import UNLIMITED_QUOTAS, Quotas
from souvenir.core.service_warnings import ServiceWarnings
from souvenir.core.settings import Settings
from souvenir.core.telemetry import Instruments, Stage
from souvenir.core.types import Scope
from souvenir.store import meta
from souvenir.store.check import broken_rules
from souvenir.store.index_changes import IndexUpdate
from souvenir.store.passages import VectorModels
from souvenir.store.postgres import locks, start
from souvenir.store.postgres.adopted_model import AdoptedModel
from souvenir.store.postgres.connection import PostgresConnection
from souvenir.store.postgres.failures import LOST, RETRIED, UNCERTAIN, UNREACHABLE, raised_plainly
from souvenir.store.postgres.replicas import Replicas
from souvenir.store.postgres.schema import migrate
from souvenir.store.postgres.write_groups import WAITED_TOO_LONG, PendingWrite, RepeatAlone, WriteGroups
from souvenir.store.sqlite.backups import Backup, Backups
from souvenir.store.sqlite.copies import Copies
from souvenir.store.sqlite.locks import lock_folder
from souvenir.store.transaction import Transaction, run_write
from souvenir.store.unreadable import UnreadableRows
from souvenir.store.vectors import MODEL, NextModel, replace_model

T = TypeVar("T")

NEWS_INTERVAL_S = 3_600.0
"""Between two looks without news, which do not happen: news come every few seconds."""

_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

TURNS = 64
"""Transactions of a replica that may wait for locks at once: if it stops, it gets each, for `locks.WRITER_IDLE_S`."""

GROUP_S = 1.0
"""The works of a group take this long together; those that have not begun by then are in the next one."""

WRITE_TRIES = 5
"""How often a write begins that another one made impossible, such as one that waits for locks in another order."""

UNREACHABLE_WAIT_S = 1.0
"""The wait for a connection while the server does not answer."""

log = structlog.get_logger(__name__)


class PostgresDatabase:
    """Implements `souvenir.store.database.Database`."""

    is_shared = True

    def __init__(
        self, settings: Settings, model_id: str, instruments: Instruments, model_spec: str | None = None
    ) -> None:
        """:param model_spec: The configuration from which the model is created again; stored next to its id.

        :raises StoreUnusable: If the database cannot be reached, or must not be used; the message says what to do.
        """
        self._settings = settings
        self._instruments = instruments
        self.warnings = ServiceWarnings()
        self.unreadable = UnreadableRows(self.warnings)
        self._model = AdoptedModel(model_id)
        self.next_model: NextModel | None = None
        self.quotas_of: Callable[[str], Quotas] = lambda _: UNLIMITED_QUOTAS
        self.on_commit: list[Callable[[], None]] = []
        self.on_news: list[Callable[[], None]] = []
        self.on_replaced: list[Callable[[], None]] = []
        self.on_model_replaced = self._model.on_replaced
        self.backups = Backups(settings.backup_dir, keep=settings.max_backups)
        self.copies = Copies(self.backups, settings.database_path)
        self._between = RLock()
        self._turns = tuple(WriteGroups(self._store) for _ in range(TURNS))
        self._forget_queue = instruments.watch_queue("writer", self._waiting_writes, capacity=settings.write_queue_max)
        self._replacing = Lock()
        self._history: str | None = None
        address = start.address_of(settings)
        # Snapshots of indexes and files of imports are of one replica.
        self._folder = lock_folder(settings.data_dir)
        try:
            self._prepare(address, model_spec)
        except BaseException:
            self._folder.close()
            raise
        self._pool: ConnectionPool[start.Raw] = ConnectionPool(
            address,
            min_size=1,
            max_size=settings.database_connections,
            timeout=settings.write_timeout_s,
            configure=self._configure,
            # Without a round trip: the server's restart closes connections, which shows.
            check=lambda connection: connection.pgconn.consume_input(),
            # The server's restart is noticed within seconds, not after a pause that doubles up to minutes.
            reconnect_timeout=5.0,
            open=True,
        )
        # On a thread of its own, since listeners wait for connections, and the row of this replica must not.
        self._news = Maintenance(self._heard_news, interval_s=NEWS_INTERVAL_S)
        self._news.start()
        self._replicas = Replicas(
            lambda: psycopg.connect(address, autocommit=True), self.warnings, on_news=self._news.ask
        )
        self._replicas.start()

    def _prepare(self, address: str, model_spec: str | None) -> None:
        try:
            with psycopg.connect(address, autocommit=True) as connection:
                start.require_usable(connection, self.warnings)
                migrate(connection)
                self._configure(connection)
                with connection.transaction():
                    connection.execute(f"SELECT {locks.ALONE}".encode())
                    start.require_model(PostgresConnection(connection), self.model_id, model_spec)
        except psycopg.Error as error:
            raise StoreUnusable(
                f"The database cannot be used ({error}); look at DATABASE_URL, the server and its log"
            ) from error

    def _configure(self, connection: start.Raw) -> None:
        """Prepare a new connection; if the database lost commits, as in a failover, its indexes are dropped first."""
        start.configure(connection, self._settings)
        history = start.history_of(connection)
        # No other new connection is used before the indexes are dropped.
        with self._replacing:
            if self._history not in (None, history):
                log.warning("database_replaced", action="loading all indexes again")
                for notify in tuple(self.on_replaced):
                    notify()
            self._history = history

    @property
    def replica(self) -> str:
        return self._replicas.id

    def owns(self, key: str) -> bool:
        return self._replicas.owns(key)

    def runs(self, replica: str) -> bool:
        return self._replicas.runs(replica)

    @property
    def reachable(self) -> bool:
        return self._replicas.reachable

    def connections(self) -> Mapping[str, int]:
        figures = self._pool.get_stats()
        open_now, idle = figures.get("pool_size", 0), figures.get("pool_available", 0)
        return {"used": open_now - idle, "idle": idle, "waiting": figures.get("requests_waiting", 0)}

    @property
    def committed(self) -> CommitId:
        return CommitId(self._history or "", 1)

    @property
    def bytes_on_disk(self) -> tuple[int, int]:
        with self.read_once() as connection:
            return int(connection.execute("SELECT pg_database_size(current_database())").get), 0

    # --- reading ---------------------------------------------------------------------------------------------------

    def read(self) -> AbstractContextManager[PostgresConnection]:
        return self._transaction(_READ)

    @contextmanager
    def read_once(self) -> Iterator[PostgresConnection]:
        with self._failing_plainly(), self._pool.connection(self._wait_s()) as connection:
            yield PostgresConnection(connection, self.unreadable)

    def reader(self) -> AbstractContextManager[PostgresConnection]:
        return self.read()

    # --- writing ---------------------------------------------------------------------------------------------------

    def write(
        self,
        scope: Scope,
        now: datetime,
        work: Callable[[Transaction], T],
        apply: Callable[[IndexUpdate], None],
        again: Mapping[tuple[str, Embeddable], Embedding] = MappingProxyType({}),
    ) -> T:
        def in_transaction(connection: PostgresConnection) -> tuple[T, IndexUpdate]:
            models = VectorModels(self.model_id, connection.next_model_id, again)
            return run_write(connection, scope, models, now, self.quotas_of(scope.actor), work)

        number = zlib.crc32(scope.namespace.encode()) - 2**31
        turn = self._turns[1 + number % (TURNS - 1)]
        return self._write(turn, locks.of_namespace(number), in_transaction, lambda done: apply(done[1]))[0]

    def write_rows(
        self, work: Callable[[Any], T], apply: Callable[[T], None] = lambda _: None, *, alone: bool = True
    ) -> T:
        return self._write(self._turns[0] if alone else None, locks.ALONE if alone else locks.SHARED, work, apply)

    def _write(
        self,
        turn: WriteGroups | None,
        its_locks: str,
        work: Callable[[PostgresConnection], T],
        apply: Callable[[T], None],
    ) -> T:
        def store() -> T:
            write = PendingWrite(its_locks, work)
            if turn is None:
                self._store([write])
            elif self._waiting_writes() < self._settings.write_queue_max:
                turn.write(write, self._settings.write_timeout_s)
            else:
                raise Overloaded("Too many writes are waiting for the database; try again in a moment")
            if write.error is not None:
                raise write.error
            self._instruments.took(Stage.WRITE_QUEUE, write.begun_s - write.asked_s)
            self._instruments.took(Stage.WRITE_COMMIT, write.committed_s - write.begun_s)
            result: T = write.result
            with self._instruments.stage(Stage.WRITE_APPLY):
                try:
                    apply(result)
                except Exception:  # the write is durable; the index catches up when it is used
                    log.exception("index_update_failed")
            return result

        stored = self._model.using(store)
        self._replicas.tell()
        for notify in tuple(self.on_commit):
            notify()
        return stored

    def _waiting_writes(self) -> int:
        return sum(turn.waiting for turn in self._turns)

    def _store(self, group: Sequence[PendingWrite]) -> None:
        """Implements `souvenir.store.postgres.write_groups.Store`."""
        if len(group) == 1:
            self._store_one(group[0])
            return
        try:
            self._commit(group)
        except RETRIED as error:
            log.info("writes_repeated", reason=type(error).__name__, writes=len(group))
            raise RepeatAlone from error

    def _store_one(self, write: PendingWrite) -> None:
        tried = 1
        while True:
            try:
                self._commit([write])
                return
            except RETRIED as error:
                log.info("write_repeated", reason=type(error).__name__)
                if tried == WRITE_TRIES or time.perf_counter() > write.until_s:
                    raise Overloaded("Other writes kept this one from being stored; try again in a moment") from error
                time.sleep(random.uniform(0, 0.02 * tried))  # noqa: S311 - spreads the tries
                tried += 1

    def _commit(self, group: Sequence[PendingWrite]) -> None:
        done: list[PendingWrite] = []
        left_s = max(write.until_s for write in group) - time.perf_counter()
        begin = locks.begin(group[0].locks, max(1, int(1_000 * min(left_s, self._settings.write_timeout_s))))
        with self._transaction(begin) as connection:
            first_s = time.perf_counter()
            for write in group:
                now_s = time.perf_counter()
                if done and now_s - first_s > GROUP_S:
                    break
                write.begun_s = now_s
                if len(group) == 1:
                    write.result = write.work(connection)
                else:
                    self._run_in_group(write, connection)
                done.append(write)
        committed_s = time.perf_counter()
        for write in done:
            if write.error is None:
                write.committed_s = committed_s

    def _run_in_group(self, write: PendingWrite, connection: PostgresConnection) -> None:
        """Run a write in a savepoint.

        :raises RepeatAlone: If it left nothing to go on with, such as a lost connection.
        """
        if write.begun_s > write.until_s:
            write.error = Overloaded(WAITED_TOO_LONG)
            return
        try:
            with self._failing_plainly(), connection:
                write.result = write.work(connection)
        except RETRIED:
            raise
        except Exception as error:  # noqa: BLE001 - the thread of the write raises it
            write.error = error
        if not connection.in_transaction:
            log.info("writes_repeated", reason=type(write.error).__name__)
            raise RepeatAlone from write.error

    def _heard_news(self) -> None:
        for notify in (*self.on_news, *self.on_commit):
            try:
                notify()
            except SouvenirError as error:  # it is repeated with the next news
                log.warning("news_not_read", reason=error.message)
            except Exception:  # one listener must not keep news from the others
                log.exception("news_not_read")

    # --- connections -----------------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[PostgresConnection]:
        with self._failing_plainly():
            is_write = begin != _READ
            connection, models = self._begun(begin)
            try:
                opened = PostgresConnection(connection, self.unreadable)
                if is_write:
                    present, announced = models
                    self._model.require(present)
                    following = self.next_model
                    if following is not None and following.announcement == announced:
                        opened.next_model_id = following.id
                yield opened
                try:
                    ended = connection.execute("COMMIT").statusmessage
                except LOST as error:
                    if is_write:
                        raise DatabaseUnavailable(UNCERTAIN, retry_after_s=None) from error
                    raise DatabaseUnavailable(UNREACHABLE) from error
                if ended != "COMMIT" and is_write:
                    raise RuntimeError("A statement of the write failed, and nothing was stored")
            except BaseException:
                with suppress(psycopg.Error):
                    connection.rollback()
                raise
            finally:
                self._pool.putconn(connection)

    def _begun(self, begin: str) -> tuple[start.Raw, tuple[Any, ...]]:
        """Return a connection with an open transaction, and the row of the last statement, if it has one.

        Connections that a restart of the server broke are passed over.
        """
        broken = 0
        while True:
            connection = self._pool.getconn(self._wait_s())
            try:
                results = connection.execute(begin.encode(), prepare=False)
                while results.nextset():
                    pass
                return connection, (results.fetchone() if results.description else None) or ()
            except BaseException as error:
                with suppress(psycopg.Error):
                    connection.rollback()
                self._pool.putconn(connection)
                broken += 1
                is_broken = isinstance(error, psycopg.OperationalError) and connection.closed
                if not is_broken or broken > self._settings.database_connections:
                    raise

    def _wait_s(self) -> float:
        return time_left(self._settings.write_timeout_s if self.reachable else UNREACHABLE_WAIT_S)

    def _failing_plainly(self) -> AbstractContextManager[None]:
        return raised_plainly(lambda: self.reachable, self._settings.database_statement_timeout_s)

    # --- the embedding model ---------------------------------------------------------------------------------------

    @property
    def model_id(self) -> str:
        return self._model.id

    def switch_model(
        self, model_id: str, spec: str, ready: Callable[[Any], bool], switched: Callable[[], None]
    ) -> bool:
        def work(connection: PostgresConnection) -> bool:
            is_ready = ready(connection)
            if is_ready:
                replace_model(connection, model_id, spec)
            return is_ready

        if not self.write_rows(work):
            return False
        try:
            if self.adopt_model(model_id, switched):
                return True
        except TimeoutError:
            log.warning("model_adopted_late", reason="a write takes long")
        raise ModelReplaced

    def adopt_model(self, model_id: str, adopted: Callable[[], None]) -> bool:
        with self.read_once() as connection:
            is_stored = meta.get(connection, MODEL) == model_id
        if is_stored:
            self._model.replace(model_id, adopted)
        return is_stored

    def require_model(self, connection: Any, model_id: str) -> None:
        following = self.next_model
        if model_id not in (meta.get(connection, MODEL), None if following is None else following.id):
            raise ModelReplaced

    def await_model(self, former: str) -> None:
        self._model.wait(former)

    # --- maintenance, which is PostgreSQL's ------------------------------------------------------------------------

    def between_writes(self, work: Callable[[], T]) -> T:
        with self._between:
            if self._pool.closed:
                raise ServiceClosing
            return work()

    def check_for_damage(self) -> None:
        """Do nothing: PostgreSQL checks its pages when it reads them."""

    def stop_checking(self) -> None:
        """Do nothing, as nothing is checked."""

    def sync_marker(self) -> None:
        """Do nothing: the log is PostgreSQL's."""

    def refill_reserve(self) -> None:
        """Do nothing: the disk is PostgreSQL's."""

    def clear_unused(self) -> bool:
        """Leave deleted bytes to VACUUM."""
        return True

    def back_up(self, *, reason: str, now: datetime) -> Backup:
        _unsupported("A backup by the service", "use pg_basebackup, pg_dump or those of your provider, or GET /export")

    def restore(self, name: str, *, now: datetime, switched: Callable[[], None]) -> Backup:
        _unsupported("A restore by the service", "restore the database with PostgreSQL's own tools, or POST /import")

    def problems(self, connection: Any) -> list[str]:
        return broken_rules(connection)

    def repair(self) -> list[str]:
        _unsupported("A repair by the service", "restore the database from a backup")

    def close(self) -> None:
        self._forget_queue()
        self._replicas.close()
        self._news.close()
        self._pool.close()
        self._folder.close()


def _unsupported(action: str, advice: str) -> NoReturn:
    raise NotOfDatabase(f"{action} is not possible with a database in PostgreSQL; {advice}")
