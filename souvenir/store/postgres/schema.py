"""The schema in PostgreSQL, and the numbered migrations that lead to it; numbers are those of SQLite's versions."""

from __future__ import annotations

import re
from importlib import resources

import psycopg

from souvenir.core.errors import StoreUnusable

SCHEMA = "souvenir"
"""The PostgreSQL schema that holds the tables, and the functions of the shared SQL."""

_LOCK = 0x534F5556
"""The advisory lock of migrations: replicas that start together migrate once."""

_FILES = resources.files(__package__)


def _load_migrations() -> dict[int, str]:
    files = sorted((_FILES / "migrations").iterdir(), key=lambda file: file.name)
    numbered = {re.match(r"(\d{4})_\w+\.sql$", file.name): file for file in files}
    return {int(number[1]): file.read_text(encoding="utf-8") for number, file in numbered.items() if number}


MIGRATIONS = _load_migrations()
SCHEMA_VERSION = max(MIGRATIONS)


def migrate(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Create or migrate the schema in one transaction; others that migrate wait for it.

    :raises StoreUnusable: If a newer release made it.
    """
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        connection.execute(f"SET LOCAL search_path = {SCHEMA}")
        connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)")
        row = connection.execute("SELECT max(version) FROM schema_version").fetchone()
        version = 0 if row is None or row[0] is None else int(str(row[0]))
        if version > SCHEMA_VERSION:
            raise StoreUnusable(
                f"The database has schema version {version} and this release knows {SCHEMA_VERSION}; "
                "start the newer release that wrote it"
            )
        if not version:
            connection.execute((_FILES / "functions.sql").read_text(encoding="utf-8").encode())
        for number in sorted(MIGRATIONS):
            if number > version:
                connection.execute(MIGRATIONS[number].encode())
                connection.execute("INSERT INTO schema_version VALUES (%s)", (number,))
