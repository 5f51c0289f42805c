"""Opens connections of the database.

SQLite is the version bundled with apsw. `synchronous=FULL` because an acknowledged write must survive a power cut: in
WAL mode, NORMAL does not sync the log on commit.
"""

from __future__ import annotations

from pathlib import Path

import apsw
import structlog

from souvenir.core.errors import StoreUnusable
from souvenir.store.sqlite.schema import register_functions, require_known
from souvenir.store.unreadable import UnreadableRows

BUSY_TIMEOUT_MS = 5_000

log = structlog.get_logger(__name__)


class ReportingConnection(apsw.Connection):
    """A connection whose unreadable rows are reported; those of other connections are only logged."""

    unreadable: UnreadableRows | None = None


def open_writer(path: Path, unreadable: UnreadableRows | None = None) -> apsw.Connection:
    """Open for reading and writing, and create the file if it is missing. Another program's database is not touched.

    Does not wrap apsw errors.

    :param unreadable: Gets the rows that reads leave out.
    :raises StoreUnusable: If the database belongs to another program, or to a newer release than this one.
    """
    connection = ReportingConnection(str(path))
    connection.unreadable = unreadable
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
        register_functions(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path, unreadable: UnreadableRows | None = None) -> apsw.Connection:
    """:param unreadable: Gets the rows that reads leave out."""
    connection = ReportingConnection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.unreadable = unreadable
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    register_functions(connection)
    return connection


def require_sound(connection: apsw.Connection, path: Path) -> None:
    """Rows whose values break a rule are no reason: reads leave them out, and `python app.py check` names them.

    :raises StoreUnusable: If SQLite finds the file corrupt.
    """
    connection.pragma("ignore_check_constraints", True)
    verdict = connection.execute("PRAGMA quick_check(1)").get
    connection.pragma("ignore_check_constraints", False)
    if verdict != "ok":
        raise StoreUnusable(f"{path} is damaged ({' '.join(str(verdict).split())})")
