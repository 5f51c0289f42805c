"""Cache of query vectors by text, and the mean vector of a query with several windows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock

import numpy as np

from souvenir.core.concurrency import awaited, require_time
from souvenir.core.errors import DeadlineExceeded
from souvenir.core.telemetry import Instruments
from souvenir.core.types import FloatVector


class QueryVectors:
    """Thread-safe.

    :param size: Capacity; the least recently used vectors are evicted. 0 disables the cache.
    """

    def __init__(self, size: int, instruments: Instruments) -> None:
        self._size = size
        self._instruments = instruments
        self._vectors: OrderedDict[str, FloatVector] = OrderedDict()
        self._pending: dict[str, Future[FloatVector]] = {}
        self._lock = Lock()

    def get(self, text: str, windows: Callable[[], FloatVector]) -> FloatVector:
        """Return the unit vector (dim,) of a query; read-only, because it is shared.

        Concurrent equal queries are embedded once; the others wait for the vector or the failure.

        :param windows: Embeds an unknown query: returns the vectors (n, dim) of its windows.
        """
        mine: Future[FloatVector] = Future()
        with self._lock:
            known = self._vectors.get(text)
            if known is not None:
                self._vectors.move_to_end(text)
            pending = self._pending.setdefault(text, mine) if known is None else mine
        self._instruments.looked_up_query(hit=known is not None or pending is not mine)
        if known is not None:
            return known
        if pending is mine:
            return self._embed(text, windows, mine)
        try:
            return awaited(pending)
        except DeadlineExceeded:
            # Perhaps only the deadline of the request that embedded it.
            require_time()
            return self.get(text, windows)

    def _embed(self, text: str, windows: Callable[[], FloatVector], done: Future[FloatVector]) -> FloatVector:
        try:
            vector = mean_direction(windows())
            vector.setflags(write=False)
            self._keep(text, vector)
            done.set_result(vector)
            return vector
        except BaseException as error:
            done.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._pending[text]

    def _keep(self, text: str, vector: FloatVector) -> None:
        with self._lock:
            self._vectors[text] = vector
            self._vectors.move_to_end(text)
            while len(self._vectors) > self._size:
                self._vectors.popitem(last=False)


def mean_direction(vectors: FloatVector) -> FloatVector:
    """Return the unit vector (dim,) of the mean of unit vectors (n, dim)."""
    mean: FloatVector = vectors.mean(axis=0)
    direction: FloatVector = mean / np.linalg.norm(mean)
    return direction
