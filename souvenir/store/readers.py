"""The pool of read-only connections: fair between callers, with deadlines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Condition

import apsw
import structlog

from souvenir.core.concurrency import BACKGROUND, current_caller, require_time, time_left
from souvenir.core.errors import Overloaded, ServiceClosing, Unavailable
from souvenir.store.connections import open_reader
from souvenir.store.unreadable import UnreadableRows

STEPS_BETWEEN_LOOKS = 50_000
"""Steps of SQLite between two looks at the deadline of a read: some milliseconds."""

READER_WAIT_S = 30.0
"""Maximum time to wait for a free connection."""

log = structlog.get_logger(__name__)


def _is_over() -> bool:
    """:raises DeadlineExceeded: If the deadline of this thread has passed, which interrupts its statement."""
    require_time()
    return False


class ReaderPool:
    """Read-only connections, each used by one thread at a time; the most recently used one is reused first.

    One caller holds all but one of them at most. A statement is interrupted when the deadline of its request passes.
    """

    def __init__(self, path: Path, size: int, unreadable: UnreadableRows) -> None:
        self._connections = [open_reader(path, unreadable) for _ in range(size)]
        for connection in self._connections:
            connection.set_progress_handler(_is_over, STEPS_BETWEEN_LOOKS)
        self._idle = [*self._connections]
        self._held: Counter[str] = Counter()
        self._changed = Condition()
        self._closed = False

    @contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """Yield a connection inside one read transaction: all statements see the same snapshot.

        :raises Overloaded: If none became free in `READER_WAIT_S`.
        :raises DeadlineExceeded: If the caller's deadline has passed.
        :raises Unavailable: If the database cannot be read.
        """
        if self._closed:
            raise ServiceClosing
        caller = current_caller()
        connection = self._taken(caller)
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
            with self._changed:
                self._idle.append(connection)
                self._held[caller] -= 1
                if not self._held[caller]:
                    del self._held[caller]
                self._changed.notify_all()

    def _taken(self, caller: str) -> apsw.Connection:
        most = len(self._connections) - (caller != BACKGROUND and len(self._connections) > 1)
        with self._changed:
            if not self._changed.wait_for(
                lambda: self._idle and self._held[caller] < most, timeout=time_left(READER_WAIT_S)
            ):
                raise Overloaded("Too many reads are waiting for the database; try again in a moment")
            self._held[caller] += 1
            return self._idle.pop()

    def close(self) -> None:
        """Close all connections; no read may be running."""
        self._closed = True
        for connection in self._connections:
            connection.close()
