"""Cache of embedded queries by text, and the mean vector of a query with several windows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock

import numpy as np

from souvenir.core.concurrency import awaited, require_time
from souvenir.core.errors import DeadlineExceeded
from souvenir.core.telemetry import Instruments
from souvenir.core.types import FloatVector, QueryTokens


@dataclass(frozen=True, slots=True)
class EmbeddedQuery:
    """:param vector: Unit vector, (dim,). :param tokens: None: the model has no token output."""

    vector: FloatVector
    tokens: QueryTokens | None = None

    @classmethod
    def of_windows(cls, vectors: FloatVector, tokens: QueryTokens | None = None) -> EmbeddedQuery:
        """Return the query whose windows have these vectors (n, dim). Its arrays are read-only, since it is shared."""
        vector = mean_direction(vectors)
        for array in (vector,) if tokens is None else (vector, tokens.vectors, tokens.ids):
            array.setflags(write=False)
        return cls(vector, tokens)


class QueryCache:
    """Thread-safe.

    :param size: Capacity; the least recently used queries are evicted. 0 disables the cache.
    """

    def __init__(self, size: int, instruments: Instruments) -> None:
        self._size = size
        self._instruments = instruments
        self._queries: OrderedDict[str, EmbeddedQuery] = OrderedDict()
        self._pending: dict[str, Future[EmbeddedQuery]] = {}
        self._lock = Lock()

    def get(self, text: str, embed: Callable[[], EmbeddedQuery], *, counted: bool = True) -> EmbeddedQuery:
        """Return an embedded query.

        Concurrent equal queries are embedded once; the others wait for the result or the failure.

        :param embed: Embeds an unknown query.
        :param counted: Whether the metrics count this as a use of the cache.
        """
        with self._lock:
            known = self._queries.get(text)
            if known is not None:
                self._queries.move_to_end(text)
                if counted:
                    self._instruments.looked_up_query(hit=True)
                return known
            mine: Future[EmbeddedQuery] = Future()
            pending = self._pending.setdefault(text, mine)
        if counted:
            self._instruments.looked_up_query(hit=pending is not mine)
        if pending is mine:
            return self._embed(text, embed, mine)
        try:
            return awaited(pending)
        except DeadlineExceeded:
            # Perhaps only the deadline of the request that embedded it.
            require_time()
            return self.get(text, embed, counted=counted)

    def _embed(self, text: str, embed: Callable[[], EmbeddedQuery], done: Future[EmbeddedQuery]) -> EmbeddedQuery:
        try:
            # Nobody would wait for the result of the model.
            require_time()
            query = embed()
            self._keep(text, query)
            done.set_result(query)
            return query
        except BaseException as error:
            done.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._pending[text]

    def _keep(self, text: str, query: EmbeddedQuery) -> None:
        with self._lock:
            self._queries[text] = query
            self._queries.move_to_end(text)
            while len(self._queries) > self._size:
                self._queries.popitem(last=False)


def mean_direction(vectors: FloatVector) -> FloatVector:
    """Return the unit vector (dim,) of the mean of unit vectors (n, dim)."""
    mean: FloatVector = vectors.mean(axis=0)
    direction: FloatVector = mean / np.linalg.norm(mean)
    return direction
