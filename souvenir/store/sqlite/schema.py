"""The schema version and the numbered migrations that lead to it.

A migration is one SQL file in `migrations/`, applied once, in order, in one transaction with its version number, so a
crash leaves either the version before or the version after. `tests/store/databases` holds a database of every version.
"""

from __future__ import annotations

import re
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import apsw

from souvenir.core.errors import StoreUnusable
from souvenir.core.labels import place_digests
from souvenir.store.sql import Connection
from souvenir.store.sqlite import checksums

APPLICATION_ID = 0x534F5556
"""`SOUV`: identifies the file as ours in SQLite's header."""

_MIGRATIONS_DIR = Path(__file__).parent / "migrations"


def _load_migrations() -> dict[int, str]:
    found: dict[int, str] = {}
    for path in sorted(_MIGRATIONS_DIR.glob("*.sql")):
        number = re.match(r"(\d{4})_", path.name)
        if number is None:
            raise StoreUnusable(f"Migration {path.name} has no number; name it like 0002_what_it_does.sql")
        found[int(number[1])] = path.read_text(encoding="utf-8")
    return found


MIGRATIONS = _load_migrations()
SCHEMA_VERSION = max(MIGRATIONS)


def schema_version(connection: apsw.Connection) -> int:
    return int(connection.pragma("user_version"))


def require_known(connection: apsw.Connection, path: Path) -> None:
    """:raises StoreUnusable: If the database belongs to another program, or to a newer release than this one."""
    version = schema_version(connection)
    application_id = int(connection.pragma("application_id"))
    if version and application_id != APPLICATION_ID:
        raise StoreUnusable(f"{path} is a database of another program; set DATA_DIR or DB_PATH to another place")
    if version > SCHEMA_VERSION:
        raise StoreUnusable(
            f"{path} has schema version {version} and this release knows {SCHEMA_VERSION}; "
            "start the newer release that wrote it, or restore a backup made by this one"
        )
    if not version and _has_tables(connection):
        raise StoreUnusable(f"{path} holds tables of another program; set DATA_DIR or DB_PATH to another place")


def register_functions(connection: apsw.Connection) -> None:
    """Define the functions that triggers of the schema call."""
    checksums.register(connection)
    digests: Any = place_digests
    connection.create_scalar_function("place_digests", digests, 1, deterministic=True, flags=apsw.SQLITE_INNOCUOUS)


def migrate(connection: apsw.Connection) -> None:
    """Migrate the database to `SCHEMA_VERSION`. An empty one becomes a copy of the one that this process made first."""
    register_functions(connection)
    if schema_version(connection) or _has_tables(connection):
        _apply_migrations(connection)
        return
    with closing(apsw.Connection(":memory:")) as source:
        source.deserialize("main", _new_database())
        with connection.backup("main", source, "main") as copy:
            copy.step()
    with connection:
        connection.execute("UPDATE generations SET id = lower(hex(randomblob(16)))")


@cache
def _new_database() -> bytes:
    """A migrated database without memories: applying every migration takes ten times as long as copying it."""
    with closing(apsw.Connection(":memory:")) as connection:
        register_functions(connection)
        _apply_migrations(connection)
        return connection.serialize("main")


def _apply_migrations(connection: apsw.Connection) -> None:
    for number in range(schema_version(connection) + 1, SCHEMA_VERSION + 1):
        with connection:
            connection.execute(MIGRATIONS[number])
            connection.pragma("user_version", number)
            connection.pragma("application_id", APPLICATION_ID)


def _has_tables(connection: apsw.Connection) -> bool:
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM sqlite_schema)").get)


def has_table(connection: Connection, name: str) -> bool:
    """Return whether the database, which may have an older schema, has a table."""
    query = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?)"
    return bool(connection.execute(query, (name,)).get)
