"""The vectors of the last queries, by their text; and the one vector of a query that took several windows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock

import numpy as np

from souvenir.core.telemetry import Instruments
from souvenir.core.types import FloatVector


class QueryVectors:
    """Safe to call from many threads.

    :param size: Vectors kept, the least recently used are dropped; 0 keeps none.
    """

    def __init__(self, size: int, instruments: Instruments) -> None:
        self._size = size
        self._instruments = instruments
        self._vectors: OrderedDict[str, FloatVector] = OrderedDict()
        self._under_way: dict[str, Future[FloatVector]] = {}
        self._lock = Lock()

    def get(self, text: str, windows: Callable[[], FloatVector]) -> FloatVector:
        """The unit vector (dim,) of a query; read-only, because it is shared.

        Of equal queries at once the first is embedded, and the others wait for its vector or its failure.

        :param windows: Embeds the query, if it is not known: the vectors (n, dim) of its windows.
        """
        mine: Future[FloatVector] = Future()
        with self._lock:
            known = self._vectors.get(text)
            if known is not None:
                self._vectors.move_to_end(text)
            under_way = self._under_way.setdefault(text, mine) if known is None else mine
        self._instruments.looked_up_query(hit=known is not None or under_way is not mine)
        if known is not None:
            return known
        return self._embed(text, windows, mine) if under_way is mine else under_way.result()

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
                del self._under_way[text]

    def _keep(self, text: str, vector: FloatVector) -> None:
        with self._lock:
            self._vectors[text] = vector
            self._vectors.move_to_end(text)
            while len(self._vectors) > self._size:
                self._vectors.popitem(last=False)


def mean_direction(vectors: FloatVector) -> FloatVector:
    """The unit vector (dim,) of the mean of unit vectors (n, dim)."""
    mean: FloatVector = vectors.mean(axis=0)
    direction: FloatVector = mean / np.linalg.norm(mean)
    return direction
