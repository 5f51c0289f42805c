"""The choice of the engine: a file of SQLite, or a database in PostgreSQL."""

from __future__ import annotations

from contextlib import closing

import apsw

from souvenir.core.errors import StoreUnusable
from souvenir.core.settings import Settings
from souvenir.core.telemetry import Instruments
from souvenir.store import meta
from souvenir.store.database import Database
from souvenir.store.memories import reads
from souvenir.store.sql import Connection
from souvenir.store.sqlite.connections import open_reader
from souvenir.store.sqlite.database import SqliteDatabase
from souvenir.store.vectors import MODEL, MODEL_SPEC


def open_database(settings: Settings, model_id: str, instruments: Instruments, *, model_spec: str | None) -> Database:
    """Open the database of the settings.

    :param model_spec: The configuration from which the model is created again; stored next to its id.
    :raises StoreUnusable: If it must not be opened; the message says what to do.
    """
    if settings.database_url is None:
        return SqliteDatabase.open(settings, model_id, instruments, model_spec=model_spec)
    # Its libraries take a tenth of a second of the start.
    from souvenir.store.postgres.database import PostgresDatabase

    return PostgresDatabase(settings, model_id, instruments, model_spec)


def require_file(settings: Settings, action: str) -> None:
    """:raises StoreUnusable: If the database is no file, so that a command on the file is about nothing."""
    if settings.database_url is not None:
        raise StoreUnusable(f"{action} is for a database file; DATABASE_URL names one in PostgreSQL, so unset it first")


def stored_model(settings: Settings) -> tuple[str, str] | None:
    """Return id and spec of the model that made the vectors; None if there are none, or the database is unusable."""
    if settings.database_url is not None:
        from souvenir.store.postgres.start import connected

        return connected(settings, _stored_model)
    if not settings.database_path.exists():
        return None
    try:
        with closing(open_reader(settings.database_path)) as connection:
            return _stored_model(connection)
    except apsw.Error:
        return None


def _stored_model(connection: Connection) -> tuple[str, str] | None:
    model_id, spec = meta.get(connection, MODEL), meta.get(connection, MODEL_SPEC)
    if model_id is None or spec is None or not reads.counts(connection).passages:
        return None
    return model_id, spec
