"""How connections of the database are opened.

SQLite comes with apsw, so its version is ours to choose. `synchronous=FULL` because an answered write must survive a
power cut: in WAL mode NORMAL does not sync the log on commit.
"""

from __future__ import annotations

from pathlib import Path

import apsw
import structlog

from souvenir.core.errors import StoreUnusable
from souvenir.store.schema import require_known

BUSY_TIMEOUT_MS = 5_000

log = structlog.get_logger(__name__)


def open_writer(path: Path) -> apsw.Connection:
    """Open for reading and writing, made if missing; a database that is not ours is not touched.

    Raises apsw errors as they come.

    :raises StoreUnusable: If the database is another program's, or of a newer release than this one.
    """
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        # Closing would write another program's log into its database.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        require_known(connection, path)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "full")
        connection.pragma("foreign_keys", True)
        connection.pragma("secure_delete", True)
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return connection


def require_sound(connection: apsw.Connection, path: Path) -> None:
    """:raises StoreUnusable: If SQLite finds the file damaged."""
    verdict = connection.execute("PRAGMA quick_check(1)").get
    if verdict != "ok":
        raise StoreUnusable(f"{path} is damaged ({verdict})")
