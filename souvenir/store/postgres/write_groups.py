"""Group commit: the writes of this replica that wait for the same locks are stored by one transaction."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Condition
from typing import Any, Protocol

from souvenir.core.concurrency import time_left
from souvenir.core.errors import Overloaded
from souvenir.store.postgres.connection import PostgresConnection

MAX_GROUP = 32

WAITED_TOO_LONG = "The write waited too long for others; try again in a moment"


@dataclass(slots=True, eq=False)
class PendingWrite:
    """A write and its outcome.

    :param begin: The statements that begin its transaction and take its locks.
    """

    begin: str
    work: Callable[[PostgresConnection], Any]
    asked_s: float = field(default_factory=time.perf_counter)
    begun_s: float = 0.0
    committed_s: float = 0.0
    result: Any = None
    error: BaseException | None = None
    has_ended: bool = False


class Store(Protocol):
    def __call__(self, group: Sequence[PendingWrite]) -> None:
        """Run writes with the same `begin` in one transaction and commit it.

        Each write gets its result, or its error if it failed alone and left nothing; an error that is raised is that
        of all.
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
        until_s = time.perf_counter() + time_left(timeout_s)
        with self._changed:
            self._waiting.append(write)
        while group := self._next_group(write, until_s):
            try:
                self._store(group)
            except BaseException as error:  # noqa: BLE001 - the thread of each write raises it
                for failed in group:
                    failed.error = error
            finally:
                with self._changed:
                    self._is_storing = False
                    for ended in group:
                        ended.has_ended = True
                    self._changed.notify_all()

    def _next_group(self, write: PendingWrite, until_s: float) -> list[PendingWrite]:
        """Return what this thread has to store; nothing if the write has ended."""
        with self._changed:
            while not write.has_ended:
                if not self._is_storing:
                    self._is_storing = True
                    return self._take()
                is_waiting = write in self._waiting
                left_s = until_s - time.perf_counter()
                if is_waiting and left_s <= 0:
                    self._waiting.remove(write)
                    raise Overloaded(WAITED_TOO_LONG)
                self._changed.wait(left_s if is_waiting else None)
        return []

    def _take(self) -> list[PendingWrite]:
        group = [self._waiting.popleft()]
        while self._waiting and len(group) < MAX_GROUP and self._waiting[0].begin == group[0].begin:
            group.append(self._waiting.popleft())
        return group
