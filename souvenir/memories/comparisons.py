"""Comparisons of new texts with stored ones, each one step with the write that follows from it.

Of two equal texts at the same time only one is new: callers in this process wait for each other, and a write of another
process in between makes the comparison run again.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from souvenir.core.concurrency import time_left
from souvenir.core.errors import Overloaded
from souvenir.core.types import Scope
from souvenir.memories.indexed_store import IndexedStore
from souvenir.store.transaction import Transaction

T = TypeVar("T")

_LOCKS = 64
_TRIES = 20

LOCK_S = 30.0
"""The longest wait for the comparison of other writes."""

TOO_MANY = "Other writes are being compared with the same memories; try again in a moment"


class _Changed(Exception):
    """The namespace was written to since the comparison."""


class Comparisons:
    """Thread-safe."""

    def __init__(self, store: IndexedStore) -> None:
        self._store = store
        self._locks = [Lock() for _ in range(_LOCKS)]

    def run(self, scope: Scope, work: Callable[[int], T]) -> T:
        """Run `work`, which compares and then calls `write` with its argument, until nothing was written in between.

        :raises DeadlineExceeded: If nobody waits for it any more. :raises Overloaded: If others keep it from ending.
        """
        lock = self._locks[hash(scope.namespace) % _LOCKS]
        if not lock.acquire(timeout=time_left(LOCK_S)):
            raise Overloaded(TOO_MANY)
        try:
            for _ in range(_TRIES):
                try:
                    return work(self._change_seq(scope))
                except _Changed:
                    continue
            raise Overloaded(TOO_MANY)
        finally:
            lock.release()

    def write(self, scope: Scope, compared: int, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one durable transaction, within `run`."""

        def unchanged(tx: Transaction) -> T:
            if self._store.is_shared and tx.namespace.change_seq != compared:
                raise _Changed
            return work(tx)

        return self._store.write(scope, unchanged)

    def _change_seq(self, scope: Scope) -> int:
        if not self._store.is_shared:
            return 0
        with self._store.namespace(scope) as (_, namespace):
            return 0 if namespace is None else namespace.change_seq
