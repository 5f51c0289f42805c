"""A store in PostgreSQL as a side of a migration."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import psycopg

from souvenir.core.errors import StoreUnusable
from souvenir.core.service_warnings import ServiceWarnings
from souvenir.core.settings import Settings
from souvenir.store import meta
from souvenir.store.postgres import start
from souvenir.store.postgres.connection import PostgresConnection
from souvenir.store.postgres.replicas import LEASE_S
from souvenir.store.postgres.schema import SCHEMA, migrate
from souvenir.transfer.migration_rows import Row, Table
from souvenir.transfer.migration_stores import MIGRATION, Work

_LOCK = 0x534F5557
"""The advisory lock of a migration, from or to the database."""

LOCK_WAIT_S = 5
"""The server needs a moment to notice that a process was killed."""

_TYPES = {"INTEGER": "int8", "TEXT": "text", "BLOB": "bytea", "REAL": "float8"}

_COPYING_TRIGGERS = (
    "SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
    "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? AND NOT t.tgisinternal AND t.tgtype & 2 = 0"
)
"""Triggers that run after a change, and so make other rows; those before a change fill in columns of this engine."""

_NOW = "floor(extract(epoch FROM clock_timestamp()) * 1000000)"


class PostgresStore:
    """A store in PostgreSQL without running replicas."""

    def __init__(self, settings: Settings, raw: start.Raw) -> None:
        self.name = f"the database {raw.info.dbname!r} of PostgreSQL"
        self.settings = settings
        self.connection = PostgresConnection(raw)
        self._raw = raw

    @classmethod
    @contextmanager
    def open(cls, settings: Settings, work: Work = MIGRATION) -> Iterator[PostgresStore]:
        """:raises StoreUnusable: If it cannot be used, or another migration or a service uses it."""
        try:
            with psycopg.connect(start.address_of(settings), autocommit=True) as raw:
                start.require_usable(raw, ServiceWarnings())
                migrate(raw)
                raw.execute(f"SET search_path = {SCHEMA}")
                raw.execute("SET synchronous_commit = on")
                for limit in ("statement_timeout", "idle_in_transaction_session_timeout"):
                    raw.execute(f"SET {limit} = 0")
                raw.execute(f"SET lock_timeout = '{LOCK_WAIT_S}s'")
                store = cls(settings, raw)
                try:
                    raw.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
                except psycopg.errors.LockNotAvailable as error:
                    raise StoreUnusable(f"Another migration uses {store.name}; let it end first") from error
                store.require_alone()
                yield store
        except psycopg.Error as error:
            name, following = work
            raise StoreUnusable(
                f"{name} stopped because of the database in PostgreSQL ({error}); {following}"
            ) from error

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self.connection:
            self.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield

    def require_sound(self) -> None:
        """Do nothing: the rows have no checksums of ours."""

    def require_movable(self) -> None:
        """Do nothing: SQLite stores every value of PostgreSQL."""

    def require_alone(self) -> None:
        query = f"SELECT count(*) FROM replicas WHERE seen_at > {_NOW} - ?"
        if running := self.connection.execute(query, (int(LEASE_S * 1_000_000),)).get:
            raise StoreUnusable(f"{running} services use {self.name}; stop them, and migrate {LEASE_S:g} s later")

    def counters(self) -> Mapping[str, int]:
        query = (
            "SELECT replace(sequencename, '_id_seq', ''), coalesce(last_value, 0) FROM pg_sequences "
            "WHERE schemaname = ?"
        )
        found = dict(self.connection.execute(query, (SCHEMA,)).fetchall())
        for table, counted in found.items():
            found[table] = max(counted, self.connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").get)
        return found

    def begin(self, source_state: str) -> None:
        with self.connection:
            self.connection.execute("UPDATE generations SET id = ?", (uuid.uuid4().hex,))
            self.connection.execute("DELETE FROM meta")
            meta.put(self.connection, meta.MIGRATION, source_state)
            self._switch_triggers("DISABLE")

    def _switch_triggers(self, action: str) -> None:
        for table, trigger in self.connection.execute(_COPYING_TRIGGERS, (SCHEMA,)).fetchall():
            self.connection.execute(f"ALTER TABLE {table} {action} TRIGGER {trigger}")

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        statement = f"COPY {table.name} ({', '.join(table.columns)}) FROM STDIN (FORMAT BINARY)"
        with self._raw.cursor() as cursor, cursor.copy(statement.encode()) as copy:
            copy.set_types([_TYPES[kind] for kind in table.types])
            for row in rows:
                try:
                    copy.write_row(row)
                except (TypeError, OverflowError) as error:
                    raise StoreUnusable(
                        f"PostgreSQL cannot store the row {table.named(row)}, because a value has not the type of its "
                        f"column ({error}); correct or delete it in the source, and begin again with an empty database"
                    ) from error

    def complete(self, counters: Mapping[str, int]) -> None:
        present = self.counters()
        for table, last in counters.items():
            if reached := max(last, present[table]):
                self.connection.execute(f"SELECT setval('{table}_id_seq', ?)", (reached,))
        self.connection.execute("ANALYZE")

    def end(self) -> None:
        with self.connection:
            self._switch_triggers("ENABLE")
            meta.forget(self.connection, meta.MIGRATION)
