"""Read-only connections, each used by one thread at a time, and a read with one of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Condition, Lock
from types import TracebackType

import apsw
import structlog

from souvenir.core.concurrency import BACKGROUND, ReadersWriterLock, current_caller, require_time, time_left
from souvenir.core.errors import Overloaded, ServiceClosing, Unavailable
from souvenir.store.sqlite.connections import open_reader
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


class Reading:
    """A read-only connection while it is used, by default inside one transaction: all statements see the same snapshot.

    :param pool_of: Returns the connections, which a restore replaces.
    :param gate: Held as a reader as long; without it, the caller holds it.

    Entering raises `Overloaded` if none became free in `READER_WAIT_S`, and `DeadlineExceeded` if the caller's deadline
    has passed; both ends raise `Unavailable` if the database cannot be read.
    """

    __slots__ = ("_caller", "_connection", "_gate", "_in_transaction", "_pool", "_pool_of")

    def __init__(
        self, pool_of: Callable[[], ReaderPool], gate: ReadersWriterLock | None = None, *, in_transaction: bool = True
    ) -> None:
        self._pool_of, self._gate, self._in_transaction = pool_of, gate, in_transaction

    def __enter__(self) -> apsw.Connection:
        if self._gate is not None:
            self._gate.enter_as_reader()
        try:
            # Only now: a restore, which the gate waits for, replaces the connections.
            self._pool = self._pool_of()
            self._caller = current_caller()
            self._connection = self._pool.take(self._caller)
        except BaseException:
            if self._gate is not None:
                self._gate.leave_as_reader()
            raise
        if self._in_transaction:
            try:
                self._connection.execute("BEGIN")
            except BaseException as error:
                self.__exit__(type(error), error, error.__traceback__)
                raise
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")
            if not isinstance(error, apsw.Error):
                return
            failure = error
        except apsw.Error as failed:
            failure = failed
        finally:
            self._pool.give_back(self._connection, self._caller)
            if self._gate is not None:
                self._gate.leave_as_reader()
        log.error("read_failed", error=type(failure).__name__, reason=str(failure))
        raise Unavailable("The database could not be read; look at the disk and the service's log") from failure


class ReaderPool:
    """Read-only connections, each used by one thread at a time; the most recently used one is reused first.

    One caller holds all but one of them at most. A statement is interrupted when the deadline of its request passes.
    """

    def __init__(self, path: Path, size: int, unreadable: UnreadableRows) -> None:
        self._connections = [open_reader(path, unreadable) for _ in range(size)]
        for connection in self._connections:
            connection.set_progress_handler(_is_over, STEPS_BETWEEN_LOOKS)
        self._idle = [*self._connections]
        self._held: dict[str, int] = {}
        self._mutex = Lock()
        self._changed = Condition(self._mutex)
        self._waiting = 0
        self._closed = False

    def take(self, caller: str) -> apsw.Connection:
        """:raises Overloaded: If none became free in `READER_WAIT_S`."""
        if self._closed:
            raise ServiceClosing
        wait_s = time_left(READER_WAIT_S)
        most = len(self._connections) - (caller != BACKGROUND and len(self._connections) > 1)
        with self._mutex:
            if not self._idle or self._held.get(caller, 0) >= most:
                self._wait(caller, most, wait_s)
            self._held[caller] = self._held.get(caller, 0) + 1
            return self._idle.pop()

    def _wait(self, caller: str, most: int, wait_s: float) -> None:
        self._waiting += 1
        try:
            if not self._changed.wait_for(lambda: self._idle and self._held.get(caller, 0) < most, wait_s):
                raise Overloaded("Too many reads are waiting for the database; try again in a moment")
        finally:
            self._waiting -= 1

    def give_back(self, connection: apsw.Connection, caller: str) -> None:
        with self._mutex:
            self._idle.append(connection)
            self._held[caller] -= 1
            if not self._held[caller]:
                del self._held[caller]
            if self._waiting:
                self._changed.notify_all()

    def close(self) -> None:
        """Close all connections; no read may be running."""
        self._closed = True
        for connection in self._connections:
            connection.close()
