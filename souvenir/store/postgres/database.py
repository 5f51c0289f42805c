"""A store in PostgreSQL: any number of processes read and write it, each with its own indexes.

A write locks the row of its namespace, so writes to one namespace run one after another, and their `change_seq` is the
order of their commits. Indexes follow by the log of index changes (`souvenir.store.index_changes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from threading import RLock
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

import psycopg
import structlog
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from souvenir.core.errors import InvalidRequest, Overloaded, ServiceClosing, StoreUnusable, Unavailable
from souvenir.core.passages import CommitId, Embeddable, Embedding
from souvenir.core.quotas import UNLIMITED_QUOTAS, Quotas
from souvenir.core.service_warnings import ServiceWarnings
from souvenir.core.settings import Settings
from souvenir.core.types import Scope
from souvenir.store import meta
from souvenir.store.check import broken_rules
from souvenir.store.index_changes import IndexUpdate
from souvenir.store.passages import VectorModels
from souvenir.store.postgres.connection import PostgresConnection
from souvenir.store.postgres.schema import SCHEMA, migrate
from souvenir.store.sqlite import generations
from souvenir.store.sqlite.backups import Backup, Backups
from souvenir.store.sqlite.copies import Copies
from souvenir.store.transaction import Transaction, run_write
from souvenir.store.unreadable import UnreadableRows
from souvenir.store.vectors import MODEL

T = TypeVar("T")
CONNECTIONS = 8
WAIT_S = 5.0
"""Time that a request waits for a connection."""

log = structlog.get_logger(__name__)


class PostgresDatabase:
    """Implements `souvenir.store.database.Database`."""

    is_shared = True

    def __init__(self, settings: Settings, address: str, model_id: str) -> None:
        """:param address: The URL of the database.

        :raises StoreUnusable: If it cannot be reached, or must not be used; the message says what to do.
        """
        self.warnings = ServiceWarnings()
        self.unreadable = UnreadableRows(self.warnings)
        self.model_id = model_id
        self.next_model_id: str | None = None
        self.quotas_of: Callable[[str], Quotas] = lambda _: UNLIMITED_QUOTAS
        self.on_commit: list[Callable[[], None]] = []
        self.backups = Backups(settings.backup_dir, keep=settings.max_backups)
        self.copies = Copies(self.backups, settings.database_path)
        self._between = RLock()
        try:
            with psycopg.connect(address, autocommit=True) as connection:
                migrate(connection)
        except psycopg.Error as error:
            raise StoreUnusable(f"The database cannot be opened ({error}); look at its URL and its server") from error
        self._pool: ConnectionPool[psycopg.Connection[tuple[Any, ...]]] = ConnectionPool(
            address,
            min_size=1,
            max_size=CONNECTIONS,
            timeout=WAIT_S,
            kwargs={"autocommit": True, "options": f"-c search_path={SCHEMA}"},
            open=True,
        )
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        with self._connection() as connection, connection:
            connection.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO NOTHING", (MODEL, self.model_id))
            stored = meta.get(connection, MODEL)
            if stored != self.model_id:
                raise StoreUnusable(
                    f"The vectors in the database were made by {stored} and EMBED_MODEL is {self.model_id}; "
                    "set EMBED_MODEL back, or use another database"
                )
            self._committed = CommitId(generations.history_id(connection), 1)

    @property
    def committed(self) -> CommitId:
        return self._committed

    @property
    def bytes_on_disk(self) -> tuple[int, int]:
        with self.read_once() as connection:
            return int(connection.execute("SELECT pg_database_size(current_database())").get), 0

    @contextmanager
    def _connection(self) -> Iterator[PostgresConnection]:
        try:
            with self._pool.connection() as connection:
                yield PostgresConnection(connection, self.unreadable)
        except PoolTimeout:
            raise Overloaded("Too many requests are waiting for the database; try again in a moment") from None
        except PoolClosed:
            raise ServiceClosing from None
        except psycopg.Error as error:
            log.error("database_failed", error=type(error).__name__, reason=str(error))
            raise Unavailable("The database could not be used; try again in a moment") from error

    @contextmanager
    def read(self) -> Iterator[PostgresConnection]:
        with self._connection() as connection, connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield connection

    def read_once(self) -> AbstractContextManager[PostgresConnection]:
        return self._connection()

    def reader(self) -> AbstractContextManager[PostgresConnection]:
        return self.read()

    def write(
        self,
        scope: Scope,
        now: datetime,
        work: Callable[[Transaction], T],
        apply: Callable[[IndexUpdate], None],
        again: Mapping[tuple[str, Embeddable], Embedding] = MappingProxyType({}),
    ) -> T:
        def in_transaction(connection: PostgresConnection) -> tuple[T, IndexUpdate]:
            models = VectorModels(self.model_id, self.next_model_id, again)
            return run_write(connection, scope, models, now, self.quotas_of(scope.actor), work)

        return self.write_rows(in_transaction, lambda done: apply(done[1]))[0]

    def write_rows(self, work: Callable[[Any], T], apply: Callable[[T], None] = lambda _: None) -> T:
        with self._connection() as connection, connection:
            result = work(connection)
        try:
            apply(result)
        except Exception:  # the write is durable; the index catches up when it is used
            log.exception("index_update_failed")
        for notify in tuple(self.on_commit):
            notify()
        return result

    def switch_model(
        self, model_id: str, spec: str, ready: Callable[[Any], bool], switched: Callable[[], None]
    ) -> bool:
        _unsupported("Changing the model")

    def between_writes(self, work: Callable[[], T]) -> T:
        with self._between:
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
        _unsupported("A backup")

    def restore(self, name: str, *, now: datetime, switched: Callable[[], None]) -> Backup:
        _unsupported("A restore")

    def problems(self, connection: Any) -> list[str]:
        return broken_rules(connection)

    def repair(self) -> list[str]:
        _unsupported("A repair")

    def close(self) -> None:
        self._pool.close()


def _unsupported(action: str) -> NoReturn:
    raise InvalidRequest(f"{action} is not possible with a database in PostgreSQL; use PostgreSQL's own tools")
