"""Values that the database stores about itself, by key."""

from __future__ import annotations

from souvenir.core.errors import StoreUnusable
from souvenir.store.rows import first
from souvenir.store.sql import Connection

MIGRATION = "migration"
"""The key of the state of the source while a store is moved here (`souvenir.transfer.migration`)."""


def get(connection: Connection, key: str) -> str | None:
    return first(connection, str, "SELECT value FROM meta WHERE key = ?", (key,))


def put(connection: Connection, key: str, value: str) -> None:
    query = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    connection.execute(query, (key, value))


def forget(connection: Connection, key: str) -> None:
    connection.execute("DELETE FROM meta WHERE key = ?", (key,))


def require_no_migration(connection: Connection) -> None:
    """:raises StoreUnusable: If the store was not moved here completely."""
    if get(connection, MIGRATION) is not None:
        raise StoreUnusable(
            "This database is the unfinished target of a migration or an import; stop whatever uses the source, and "
            "run the same `python app.py migrate` again to finish it, or delete all of it and import the archive again"
        )
