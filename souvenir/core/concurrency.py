"""Deadlines of requests, and a readers-writer lock.

A deadline is passed on in the context of a thread or task. The HTTP boundary sets it, and every wait limits itself to
the remaining time. Without a deadline, as in a job or in maintenance, only the wait's own limit applies.

The lock admits many readers at once, or one writer alone, in fair turns. A waiting writer precedes readers that arrive
later, and the readers that waited for a writer precede the next one, so that neither a stream of searches nor a long
import blocks the other side (phase-fair locks, Brandenburg and Anderson 2010).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Condition, Lock
from time import monotonic

from souvenir.core.errors import DeadlineExceeded


@dataclass(slots=True)
class Deadline:
    """`timeout_s` after creation or renewal; `at` is on the clock of `time.monotonic`."""

    timeout_s: float
    at: float

    def renew(self) -> None:
        self.at = monotonic() + self.timeout_s

    @property
    def left_s(self) -> float:
        return self.at - monotonic()


_current: ContextVar[Deadline | None] = ContextVar("souvenir_deadline", default=None)


@contextmanager
def deadline(timeout_s: float) -> Iterator[Deadline]:
    """Set a deadline for the calls inside, including threads that inherit the context."""
    made = Deadline(timeout_s, monotonic() + timeout_s)
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)


def time_left(bound_s: float) -> float:
    """Return the seconds that a wait may last: its own limit, or the remaining time if that is less.

    :raises DeadlineExceeded: If the deadline has passed, so that no useless work begins.
    """
    current = _current.get()
    if current is None:
        return bound_s
    left_s = current.at - monotonic()
    if left_s <= 0:
        raise DeadlineExceeded(current.timeout_s)
    return min(bound_s, left_s)


class ReadersWriterLock:
    """Not reentrant: a thread that holds it for reading or writing must not acquire it again."""

    def __init__(self) -> None:
        self._changed = Condition(Lock())
        self._readers = 0
        self._readers_waiting = 0
        self._readers_due = 0  # readers that waited for the last writer and precede the next one
        self._writing = False
        self._writers_waiting = 0
        self._writes = 0

    @contextmanager
    def read(self) -> Iterator[None]:
        with self._changed:
            if self._writing or self._writers_waiting:
                self._wait_for_one_writer()
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                if not self._readers:
                    self._changed.notify_all()

    def _wait_for_one_writer(self) -> None:
        arrived_at = self._writes
        self._readers_waiting += 1
        while self._writes == arrived_at:
            self._changed.wait()
        self._readers_waiting -= 1
        self._readers_due -= 1

    @contextmanager
    def write(self, timeout_s: float | None = None) -> Iterator[None]:
        """:param timeout_s: Maximum wait, since arriving readers wait too.

        :raises TimeoutError: If readers did not release it in that time.
        """
        with self._changed:
            self._writers_waiting += 1
            free = self._changed.wait_for(self._is_free, timeout_s)
            self._writers_waiting -= 1
            if not free:
                if not self._writing:
                    self._admit_readers()
                raise TimeoutError
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._admit_readers()

    def _is_free(self) -> bool:
        return not (self._writing or self._readers or self._readers_due)

    def _admit_readers(self) -> None:
        """Admit the readers that waited for a writer."""
        self._writes += 1
        self._readers_due = self._readers_waiting
        self._changed.notify_all()
