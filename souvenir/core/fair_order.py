"""Fair order: whose turn it is among callers that share something, whatever each of them asks for.

Start-time fair queueing (Goyal, Vin and Cheng 1996): a caller has a virtual time, which advances by the cost of what it
was given; of those that wait, the one with the lowest goes first, or the one whose next piece would end first where its
cost is known. A caller that did not wait for a while starts at the
time of the one that is being served, so idle time earns no credit. A caller with little to do therefore waits for at
most one piece of work of each other caller, and all of the capacity goes to a caller that is alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from threading import Condition
from time import monotonic
from typing import Generic, TypeVar

from souvenir.core.concurrency import LOOK_EVERY_S, current_caller, time_left

Caller = TypeVar("Caller", bound=Hashable)


def _unknown(_: object) -> float:
    return 0.0


MAX_KEPT = 1_024
"""Callers whose virtual time is kept; beyond, those are forgotten that have none to make up for."""


class FairOrder(Generic[Caller]):
    """Not thread-safe: its owner holds a lock, or runs on one thread."""

    def __init__(self) -> None:
        self._now = 0.0
        self._times: dict[Caller, float] = {}

    def arrive(self, caller: Caller) -> None:
        """Note that a caller waits, which did not wait until now."""
        if len(self._times) > MAX_KEPT:
            self._times = {one: time for one, time in self._times.items() if time > self._now}
            if len(self._times) > MAX_KEPT:
                self._times.clear()
        self._times[caller] = max(self._times.get(caller, self._now), self._now)

    def first(self, waiting: Iterable[Caller], cost: Callable[[Caller], float] = _unknown) -> Caller | None:
        """The caller whose turn it is; of equal ones the first that is given. None if none waits.

        :param cost: Of the next piece for a caller.
        """
        return min(waiting, key=lambda caller: self._times.get(caller, self._now) + cost(caller), default=None)

    def charge(self, caller: Caller, cost: float) -> None:
        """Note that a caller was given something."""
        time = self._times.get(caller, self._now)
        self._now = max(self._now, time)
        self._times[caller] = time + cost

    def forget(self, caller: Caller) -> None:
        """Forget a caller that does not come again; those that come in its place start where it ended."""
        self._now = max(self._now, self._times.pop(caller, self._now))


class FairLock:
    """A lock that callers take in turns, by the time for which they held it. Thread-safe, and not reentrant."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._order = FairOrder[str]()
        self._waiting: Counter[str] = Counter()
        self._held = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the lock.

        :raises DeadlineExceeded: If it is not this caller's turn before the deadline.
        """
        caller = current_caller()
        self._take(caller)
        began = monotonic()
        try:
            yield
        finally:
            with self._changed:
                self._held = False
                self._order.charge(caller, monotonic() - began)
                self._changed.notify_all()

    def _take(self, caller: str) -> None:
        with self._changed:
            if not self._waiting[caller]:
                self._order.arrive(caller)
            self._waiting[caller] += 1
            try:
                while self._held or self._order.first(self._waiting) != caller:
                    self._changed.wait(time_left(LOOK_EVERY_S))
                self._held = True
            finally:
                self._waiting[caller] -= 1
                if not self._waiting[caller]:
                    del self._waiting[caller]
