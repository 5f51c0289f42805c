"""Values that the database stores about itself, by key."""

from __future__ import annotations

from datetime import datetime

from souvenir.core.errors import StoreUnusable
from souvenir.store.rows import first
from souvenir.store.sql import Connection

MIGRATION = "migration"
"""The key of the state of the source while a store is moved here (`souvenir.transfer.migration`)."""

DESCRIBE_REQUESTS = "describe_requests"
"""The key, followed by a day, of the requests to the language model by `souvenir.knowledge.description_schedule`."""


def get(connection: Connection, key: str) -> str | None:
    return first(connection, str, "SELECT value FROM meta WHERE key = ?", (key,))


def put(connection: Connection, key: str, value: str) -> None:
    query = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    connection.execute(query, (key, value))


def forget(connection: Connection, key: str) -> None:
    connection.execute("DELETE FROM meta WHERE key = ?", (key,))


def counted_on_day(connection: Connection, key: str, now: datetime) -> int:
    """Return how often `count_of_day` counted today."""
    return int(get(connection, _of_day(key, now)) or 0)


def count_of_day(connection: Connection, key: str, now: datetime, limit: int) -> bool:
    """Count an event of the UTC day, unless there were `limit` already; return whether it was counted."""
    today = _of_day(key, now)
    connection.execute(f"DELETE FROM meta WHERE key LIKE '{key}:%' AND key < ?", (today,))
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, '1') ON CONFLICT (key) DO UPDATE SET "
        "value = CAST(CAST(meta.value AS INTEGER) + 1 AS TEXT) WHERE CAST(meta.value AS INTEGER) < ?",
        (today, limit),
    )
    return connection.changes() > 0


def _of_day(key: str, now: datetime) -> str:
    return f"{key}:{now.date().isoformat()}"


def require_no_migration(connection: Connection) -> None:
    """:raises StoreUnusable: If the store was not moved here completely."""
    if get(connection, MIGRATION) is not None:
        raise StoreUnusable(
            "This database is the unfinished target of a migration or an import; stop whatever uses the source, and "
            "run the same `python app.py migrate` again to finish it, or delete all of it and import the archive again"
        )
