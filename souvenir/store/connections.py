"""How the database is opened: one writing connection, a small pool of reading ones.

SQLite comes with apsw, so its version is ours to choose. `synchronous=FULL` because an answered write must survive a
power cut: in WAL mode NORMAL does not sync the log on commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, LifoQueue

import apsw
import structlog

from souvenir.deadlines import time_left
from souvenir.errors import Overloaded, ServiceClosing, StoreUnusable, Unavailable
from souvenir.store.schema import require_known

BUSY_TIMEOUT_MS = 5_000
READER_WAIT_S = 30.0

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


class ReaderPool:
    """Read-only connections, each used by one thread at a time, last used first."""

    def __init__(self, path: Path, size: int) -> None:
        self._idle: LifoQueue[apsw.Connection] = LifoQueue()
        self._connections = [open_reader(path) for _ in range(size)]
        for connection in self._connections:
            self._idle.put(connection)
        self._closed = False

    @contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """A connection inside one read transaction: every statement sees the same state.

        :raises Overloaded: If none became free in `READER_WAIT_S`.
        :raises DeadlineExceeded: If nobody waits for it any more.
        :raises Unavailable: If the database cannot be read.
        """
        if self._closed:
            raise ServiceClosing
        try:
            connection = self._idle.get(timeout=time_left(READER_WAIT_S))
        except Empty:
            raise Overloaded("Too many reads are waiting for the database; try again in a moment") from None
        try:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")
        except apsw.Error as error:
            log.error("read_failed", error=type(error).__name__, reason=str(error))
            raise Unavailable("The database could not be read; look at the disk and the service's log") from error
        finally:
            self._idle.put(connection)

    def close(self) -> None:
        """Nobody may be reading."""
        self._closed = True
        for connection in self._connections:
            connection.close()
