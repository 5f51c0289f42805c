"""The two sides of a migration: what each engine needs before its rows are read or written, and after."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Protocol

import apsw

from souvenir.core.errors import StoreUnusable
from souvenir.core.settings import Settings
from souvenir.store import meta
from souvenir.store.sql import Connection
from souvenir.store.sqlite import checksums, generations, losses, renumbering
from souvenir.store.sqlite.backups import Backups
from souvenir.store.sqlite.connections import open_writer, require_sound
from souvenir.store.sqlite.permissions import make_private
from souvenir.store.sqlite.restore import lock_store, migrate_and_record_loss, raise_sequences, require_store, sequences
from souvenir.store.sqlite.schema import migrate
from souvenir.transfer.migration_rows import Row, Table, tables

Work = tuple[str, str]
"""What is done with a store, and what to do if it stops."""

MIGRATION: Work = ("The migration", "look at it, and run the same command again to go on")

NAMED = 5
"""Rows that a refusal names."""

_NUL_IN_JSON = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

_WAITING_IMPORTS = "SELECT count(*) FROM jobs WHERE kind = 'import' AND status IN ('queued', 'running')"


class MovedStore(Protocol):
    """A store that is open for a migration alone."""

    @property
    def name(self) -> str:
        """Its place, without a password."""

    @property
    def settings(self) -> Settings:
        """The settings that open the store as a service would."""

    @property
    def connection(self) -> Connection:
        """Reads and writes rows."""

    def reading(self) -> AbstractContextManager[object]:
        """Return a context in which the rows stay the same."""

    def require_sound(self) -> None:
        """:raises StoreUnusable: If rows are damaged or missing."""

    def require_movable(self) -> None:
        """:raises StoreUnusable: If the rows cannot be copied to the other engine."""

    def require_alone(self) -> None:
        """:raises StoreUnusable: If a service uses the store."""

    def counters(self) -> Mapping[str, int]:
        """Return the greatest id that was ever given to a row, by table; 0 if none was."""

    def begin(self, source_state: str) -> None:
        """Make the empty store the target of a migration, with a history of its own, in one transaction."""

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """Insert rows; the caller has a transaction. Triggers of the schema add nothing."""

    def complete(self, counters: Mapping[str, int]) -> None:
        """Make the rest of the store that of its rows, and give no id again; may be repeated."""

    def end(self) -> None:
        """Let the store be served."""


def state_of(store: MovedStore) -> str:
    """Return a digest that differs after the store was used."""
    history = generations.history_id(store.connection)
    writes = store.connection.execute("SELECT sum(change_seq) FROM namespaces").get
    state = json.dumps([history, sorted(store.counters().items()), writes])
    return hashlib.sha256(state.encode()).hexdigest()


def require_finished_jobs(store: MovedStore) -> None:
    """:raises StoreUnusable: If imports wait, whose files would not be found by a service of the target."""
    if waiting := store.connection.execute(_WAITING_IMPORTS).get:
        raise StoreUnusable(
            f"{waiting} unfinished imports of {store.name} cannot be moved with their files; start its service, let "
            "them finish or cancel them, and run the same command again"
        )


def begin_or_go_on(target: MovedStore, source_state: str) -> bool:
    """Make an empty store the target; return True if it is the target of the same migration already.

    :raises StoreUnusable: If it has other rows, or those of another migration.
    """
    begun = meta.get(target.connection, meta.MIGRATION)
    if begun == source_state:
        return True
    if begun is not None:
        raise StoreUnusable(
            f"{target.name} is the unfinished target of another store, or the source was used since; delete all of the "
            "target, and migrate again"
        )
    require_empty(target)
    target.begin(source_state)
    return False


def require_empty(target: MovedStore) -> None:
    """:raises StoreUnusable: If the store has rows, or is the unfinished target of another move."""
    if meta.get(target.connection, meta.MIGRATION) is not None:
        raise StoreUnusable(f"{target.name} is an unfinished target; delete all of it, and run the same command again")
    for table in tables():
        if table.name != "meta" and table.last_key(target.connection) is not None:
            raise StoreUnusable(
                f"{target.name} is not empty: there are rows in {table.name}; name an empty folder or database as the "
                "target"
            )


class SqliteStore:
    """A store in a data folder, which is locked."""

    def __init__(self, settings: Settings, connection: apsw.Connection) -> None:
        self.name = str(settings.database_path)
        self.settings = settings
        self.connection = connection

    @classmethod
    @contextmanager
    def open(cls, settings: Settings, *, is_target: bool, work: Work = MIGRATION) -> Iterator[SqliteStore]:
        """:raises StoreUnusable: If it must not be opened, or another process uses it."""
        path = settings.database_path
        if not is_target:
            require_store(settings)
        with ExitStack() as held:
            lock = held.enter_context(lock_store(settings))
            held.enter_context(_file_errors(path, work))
            if is_target and not path.exists():
                _require_empty_folder(settings)
            lock.lock_database()
            connection = held.enter_context(closing(open_writer(path)))
            if is_target:
                migrate(connection)
                # Copied rows are those of the source, and so are those that its triggers made of them.
                connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
            else:
                require_sound(connection, path)
                newest = Backups(settings.backup_dir, keep=settings.max_backups).newest
                migrate_and_record_loss(connection, settings, newest)
            yield cls(settings, connection)

    def reading(self) -> AbstractContextManager[object]:
        return nullcontext()

    def require_sound(self) -> None:
        damaged = [
            difference.sentence
            for covered in checksums.COVERED
            for difference in checksums.differences(self.connection, covered.table)
        ]
        if found := [*losses.recorded(self.connection), *damaged]:
            more = f", and {len(found) - NAMED} more" if len(found) > NAMED else ""
            raise StoreUnusable(
                f"{self.name} is not sound ({'; '.join(found[:NAMED])}{more}); run `python app.py check --repair` or "
                "`python app.py accept-loss` with its DATA_DIR first"
            )
        if renumbering.is_affected(self.connection):
            raise StoreUnusable(f"The ids in {self.name} need a repair; run `python app.py repair-ids` first")

    def require_movable(self) -> None:
        if found := list(_with_nul(self.connection)):
            more = f", and {len(found) - NAMED} more" if len(found) > NAMED else ""
            raise StoreUnusable(
                f"PostgreSQL cannot store NUL characters, which are in {', '.join(found[:NAMED])}{more}; delete these "
                f"with a service on {self.settings.data_dir}, and migrate again"
            )

    def require_alone(self) -> None:
        """Do nothing: the folder is locked."""

    def counters(self) -> Mapping[str, int]:
        return sequences(self.connection)

    def begin(self, source_state: str) -> None:
        with self.connection:
            generations.begin_history(self.connection, ())
            self.connection.execute("DELETE FROM meta WHERE key <> 'restored_over'")
            meta.put(self.connection, meta.MIGRATION, source_state)

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        places = ", ".join("?" * len(table.columns))
        self.connection.executemany(f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({places})", rows)

    def complete(self, counters: Mapping[str, int]) -> None:
        with self.connection:
            for covered in checksums.COVERED:
                self.connection.execute(f"DELETE FROM {covered.checksums}")
                self.connection.execute(f"INSERT INTO {covered.checksums} {covered.computed}")
            raise_sequences(self.connection, counters)

    def end(self) -> None:
        meta.forget(self.connection, meta.MIGRATION)
        make_private(self.settings)


@contextmanager
def _file_errors(path: Path, work: Work) -> Iterator[None]:
    try:
        yield
    except (OSError, apsw.Error) as error:
        name, following = work
        raise StoreUnusable(
            f"{name} stopped because {path} could not be read or written ({error}); {following}"
        ) from error


def _require_empty_folder(settings: Settings) -> None:
    """:raises StoreUnusable: If the folder has files of a store whose database is missing."""
    marker = generations.marker_path(settings.database_path)
    has_backups = bool(Backups(settings.backup_dir, keep=settings.max_backups).all())
    if marker.exists() or has_backups or losses.index_snapshots(settings.index_dir):
        raise StoreUnusable(
            f"{settings.data_dir} has backups, index snapshots or {marker.name} of another store; name an empty folder "
            "as the target"
        )


def _with_nul(connection: Connection) -> Iterator[str]:
    """Yield the column, table and key of texts with NUL, also where JSON writes it as an escape."""
    for table in tables():
        if not table.texts:
            continue
        escaped = sorted(table.json)
        conditions = [f"instr(CAST({name} AS BLOB), x'00') > 0" for name in table.texts]
        conditions += [f"instr({name}, '\\u0000') > 0" for name in escaped]
        query = f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE {' OR '.join(conditions)}"
        for row in connection.execute(query):
            values = dict(zip(table.columns, row, strict=True))
            for name in table.texts:
                text = str(values[name] or "")
                if "\0" in text or (name in table.json and _NUL_IN_JSON.search(text)):
                    yield f"{name} of {table.named(row)}"
