"""Joins the texts of concurrent requests into batches for the one session that embeds them.

A worker thread owns the session. While it runs a batch, requests gather; then it takes what fits together, so a lone
request never waits for a timer. Queries go before documents, a batch at a time, so that a search waits for one batch
of a large import and not for all of it; and every few query batches one of documents, so that none starves. Requests
of one kind take turns, a batch each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from enum import Enum, auto
from threading import Condition, Thread

import numpy as np

from souvenir.embedding.tokens import TokenIds
from souvenir.errors import EmbeddingUnavailable, Overloaded, ServiceClosing, SouvenirError
from souvenir.types import FloatVector

EncodeBatch = Callable[[Sequence[TokenIds]], FloatVector]

MAX_BATCH_TOKENS = 320
"""Padded tokens of one batch. More is not faster (the rows leave the cache), and a query waits for the batch to end."""

PADDING_PER_ROW = 8
"""Padded tokens that a row may cost on average to share a run; a run of its own costs as much as about ten."""

QUERY_RUNS_PER_DOCUMENT_RUN = 8


class Kind(Enum):
    QUERY = auto()
    DOCUMENT = auto()


class _Request:
    """One caller's rows, longest first, and where their vectors go."""

    def __init__(self, rows: Sequence[TokenIds]) -> None:
        self._rows = rows
        self._waiting = deque(sorted(range(len(rows)), key=lambda place: -len(rows[place])))
        self._vectors: dict[int, FloatVector] = {}
        self.done: Future[FloatVector] = Future()

    @property
    def next_length(self) -> int:
        return len(self._rows[self._waiting[0]])

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def take(self) -> tuple[int, TokenIds]:
        place = self._waiting.popleft()
        return place, self._rows[place]

    def put(self, place: int, vector: FloatVector) -> None:
        self._vectors[place] = vector
        if len(self._vectors) == len(self._rows):
            self.done.set_result(np.stack([self._vectors[place] for place in range(len(self._rows))]))


_Batch = list[tuple[_Request, int, TokenIds]]


class Batcher:
    """:param max_waiting: Texts that may wait; a request that comes when there are more is refused."""

    def __init__(self, encode: EncodeBatch, *, max_waiting: int) -> None:
        self._encode = encode
        self._max_waiting = max_waiting
        self._lanes: dict[Kind, deque[_Request]] = {kind: deque() for kind in Kind}
        self._query_runs = 0
        self._closed = False
        self._changed = Condition()
        self._worker = Thread(target=self._work, name="souvenir-embedding", daemon=True)
        self._worker.start()

    def submit(self, rows: Sequence[TokenIds], kind: Kind) -> Future[FloatVector]:
        """Vectors (n, dim) of at least one row, in order, when they are done.

        The future fails with `ServiceClosing` if the batcher is closed first.

        :raises Overloaded: If too many texts wait already.
        :raises ServiceClosing: If the batcher is closed.
        """
        request = _Request(rows)
        with self._changed:
            if self._closed:
                raise ServiceClosing
            waiting = sum(other.waiting for lane in self._lanes.values() for other in lane)
            if waiting > self._max_waiting:
                raise Overloaded(f"{waiting} texts wait for the embedding model; try again later", retry_after_s=2)
            self._lanes[kind].append(request)
            self._changed.notify()
        return request.done

    def close(self) -> None:
        """Let the batch that runs end, fail the requests that still wait, and stop the worker."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._worker.join()

    def _work(self) -> None:
        while batch := self._next_batch():
            self._run(batch)
        for lane in self._lanes.values():
            for request in lane:
                request.done.set_exception(ServiceClosing())

    def _next_batch(self) -> _Batch:
        """What to run next; waits for it. Empty when the batcher is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or any(self._lanes.values()))
            if self._closed:
                return []
            queries, documents = self._lanes[Kind.QUERY], self._lanes[Kind.DOCUMENT]
            if queries and not (documents and self._query_runs >= QUERY_RUNS_PER_DOCUMENT_RUN):
                self._query_runs += 1
                return _fill(queries)
            self._query_runs = 0
            return _fill(documents)

    def _run(self, batch: _Batch) -> None:
        try:
            vectors = self._encode([row for _, _, row in batch])
        except Exception as error:  # noqa: BLE001 - the worker's boundary: the callers get it
            self._run_apart(batch, error)
            return
        for (request, place, _), vector in zip(batch, vectors, strict=True):
            request.put(place, vector)

    def _run_apart(self, batch: _Batch, error: Exception) -> None:
        """A joint run failed: only the requests whose own rows fail hear of it."""
        requests = dict.fromkeys(request for request, _, _ in batch)
        if len(requests) > 1:
            for request in requests:
                self._run([entry for entry in batch if entry[0] is request])
            return
        [request] = requests
        with self._changed:
            for lane in self._lanes.values():
                if request in lane:
                    lane.remove(request)
        request.done.set_exception(error if isinstance(error, SouvenirError) else _failed(error))


def _fill(lane: deque[_Request]) -> _Batch:
    """Take rows that fit together from the first requests; one that is not through goes behind the others."""
    batch: _Batch = []
    longest = tokens = 0
    while lane:
        length = lane[0].next_length
        padded = max(longest, length) * (len(batch) + 1)
        padding = padded - tokens - length
        if batch and (padded > MAX_BATCH_TOKENS or padding > PADDING_PER_ROW * (len(batch) + 1)):
            break
        longest, tokens = max(longest, length), tokens + length
        batch.append((lane[0], *lane[0].take()))
        if not lane[0].waiting:
            lane.popleft()
    if lane and batch[-1][0] is lane[0]:
        lane.rotate(-1)
    return batch


def _failed(error: Exception) -> EmbeddingUnavailable:
    failure = EmbeddingUnavailable("The embedding model failed on this text; see the log, and try again")
    failure.__cause__ = error
    return failure
