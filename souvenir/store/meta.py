"""Values that the database stores about itself, by key."""

from __future__ import annotations

from souvenir.store.rows import first
from souvenir.store.sql import Connection


def get(connection: Connection, key: str) -> str | None:
    return first(connection, str, "SELECT value FROM meta WHERE key = ?", (key,))


def put(connection: Connection, key: str, value: str) -> None:
    query = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    connection.execute(query, (key, value))


def forget(connection: Connection, key: str) -> None:
    connection.execute("DELETE FROM meta WHERE key = ?", (key,))
