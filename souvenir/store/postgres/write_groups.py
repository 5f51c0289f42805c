"""Group commit: the writes of this replica that wait for the same locks are stored by one transaction."""

from __future__ import annotations

import copy
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from threading import Condition
from typing import Any, Protocol

from souvenir.core.concurrency import time_left
from souvenir.core.errors import Overloaded
from souvenir.store.postgres.connection import PostgresConnection

MAX_GROUP = 32

WAITED_TOO_LONG = "The write waited too long for others; try again in a moment"


class RepeatAlone(Exception):
    """The transaction of a group failed as a whole, and certainly stored nothing."""


@dataclass(slots=True, eq=False)
class PendingWrite:
    """A write and its outcome.

    :param locks: The expressions of a SELECT that takes its locks.
    :param until_s: When it must have begun.
    :param is_alone: It is in no group any more.
    """

    locks: str
    work: Callable[[PostgresConnection], Any]
    asked_s: float = field(default_factory=time.perf_counter)
    until_s: float = math.inf
    begun_s: float = 0.0
    committed_s: float = 0.0
    result: Any = None
    error: BaseException | None = None
    is_alone: bool = False
    has_ended: bool = False

    @property
    def is_decided(self) -> bool:
        return self.error is not None or self.committed_s > 0


class Store(Protocol):
    def __call__(self, group: Sequence[PendingWrite]) -> None:
        """Run writes with the same locks in one transaction and commit it.

        Each write gets its result and the time of the commit, or its error if it failed alone and left nothing; those
        that get neither are stored later. An error that is raised is that of all that have begun, or
        of all if none has.

        :raises RepeatAlone: If each of several writes must be tried alone.
        """


class WriteGroups:
    """The writes of one turn. One thread at a time stores: it takes those that wait with its own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: deque[PendingWrite] = deque()
        self._is_storing = False
        self._changed = Condition()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def write(self, write: PendingWrite, timeout_s: float) -> None:
        """Return when the write has ended.

        :raises Overloaded: If it did not begin in `timeout_s`; nothing was written.
        """
        write.until_s = time.perf_counter() + time_left(timeout_s)
        with self._changed:
            self._waiting.append(write)
        while group := self._next_group(write):
            try:
                if group == [write]:
                    self._store(group)
                else:
                    # The deadline of this thread's request is none of the others'.
                    Context().run(self._store, group)
            except RepeatAlone:
                for one in group:
                    one.is_alone, one.error = True, None
            except BaseException as error:  # noqa: BLE001 - the thread of each write raises it
                # The error of one that failed alone may rest on what the others wrote.
                for one in [one for one in group if one.begun_s] or group:
                    one.error = error if len(group) == 1 else _copied(error)
            finally:
                self._ended(group)

    def _next_group(self, write: PendingWrite) -> list[PendingWrite]:
        """Return what this thread has to store; nothing if the write has ended."""
        with self._changed:
            while not write.has_ended:
                is_waiting = write in self._waiting
                left_s = write.until_s - time.perf_counter()
                if is_waiting and left_s <= 0:
                    self._waiting.remove(write)
                    raise Overloaded(WAITED_TOO_LONG)
                if is_waiting and not self._is_storing:
                    self._is_storing = True
                    return self._take()
                self._changed.wait(left_s if is_waiting else None)
        return []

    def _take(self) -> list[PendingWrite]:
        group = [self._waiting.popleft()]
        while self._waiting and len(group) < MAX_GROUP and _fits(self._waiting[0], group[0]):
            group.append(self._waiting.popleft())
        return group

    def _ended(self, group: Sequence[PendingWrite]) -> None:
        with self._changed:
            self._is_storing = False
            for one in group:
                one.has_ended = one.is_decided
            self._waiting.extendleft(one for one in reversed(group) if not one.is_decided)
            self._changed.notify_all()


def _fits(write: PendingWrite, first: PendingWrite) -> bool:
    return write.locks == first.locks and not write.is_alone and not first.is_alone


def _copied(error: BaseException) -> BaseException:
    """Return an exception for one thread, which adds its traceback to it."""
    try:
        copied = copy.copy(error)
    except Exception:  # noqa: BLE001 - a class that cannot be copied is shared
        return error
    copied.__cause__ = error
    return copied
