"""Batching of the texts of concurrent requests.

Worker threads run the batches: one for a local model, several for a provider. Requests queue while workers are busy;
a free worker takes those that fit together, so a single request never waits for a timer. Query batches have priority,
so that a search waits for at most one batch of a large import; after some query batches one of documents runs, so that
imports do not starve. With several workers, one is reserved for queries. Requests of one kind take turns by batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence, Sized
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum, auto
from threading import Condition, Lock, Thread
from typing import Generic, TypeVar

import numpy as np

from souvenir.core.errors import EmbeddingUnavailable, Overloaded, ServiceClosing, SouvenirError
from souvenir.core.telemetry import Instruments
from souvenir.core.types import FloatVector

Row = TypeVar("Row", bound=Sized)
"""A text in the form of the model's input; its length is its cost in tokens."""

EncodeBatch = Callable[[Sequence[Row]], FloatVector]

MAX_BATCH_TOKENS = 320
"""Padded tokens of one batch.

More is not faster (the rows exceed the cache), and a query waits for the batch to end.
"""

PADDING_PER_ROW = 8
"""Average number of padded tokens per row to share a run; a separate run costs as much as about ten."""

QUERY_RUNS_PER_DOCUMENT_RUN = 8


class Kind(Enum):
    QUERY = auto()
    DOCUMENT = auto()


@dataclass(frozen=True, slots=True)
class BatchSize:
    rows: int
    tokens: int
    longest: int


Fits = Callable[[BatchSize], bool]
"""Returns True if the rows fit in one run; a single row always does."""


def fits_one_run(size: BatchSize) -> bool:
    """Return True for a model in this process, where every row is padded to the longest."""
    padded = size.rows * size.longest
    return padded <= MAX_BATCH_TOKENS and padded - size.tokens <= PADDING_PER_ROW * size.rows


class _Request(Generic[Row]):
    """The rows of one caller, longest first, and the future of their vectors."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._waiting = deque(sorted(range(len(rows)), key=lambda place: -len(rows[place])))
        self._vectors: dict[int, FloatVector] = {}
        self._answering = Lock()
        self.done: Future[FloatVector] = Future()

    @property
    def next_length(self) -> int:
        return len(self._rows[self._waiting[0]])

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def take(self) -> tuple[int, Row]:
        place = self._waiting.popleft()
        return place, self._rows[place]

    def put(self, place: int, vector: FloatVector) -> None:
        with self._answering:
            self._vectors[place] = vector
            if len(self._vectors) == len(self._rows) and not self.done.done():
                self.done.set_result(np.stack([self._vectors[place] for place in range(len(self._rows))]))

    def fail(self, error: SouvenirError) -> None:
        """Set the first failure; other runs of the same request may still be active."""
        with self._answering:
            if not self.done.done():
                self.done.set_exception(error)


_Batch = list[tuple[_Request[Row], int, Row]]


class Batcher(Generic[Row]):
    """Thread-safe.

    :param max_waiting: Limit of waiting texts; a request beyond it is rejected.
    :param workers: Concurrent runs; `encode` must be safe for that many threads.
    :param instruments: Receives metrics of the queue until the batcher is closed.
    """

    def __init__(
        self,
        encode: EncodeBatch[Row],
        *,
        max_waiting: int,
        fits: Fits = fits_one_run,
        workers: int = 1,
        instruments: Instruments | None = None,
    ) -> None:
        self._encode = encode
        self._max_waiting = max_waiting
        self._fits = fits
        self._queues: dict[Kind, deque[_Request[Row]]] = {kind: deque() for kind in Kind}
        self._query_runs = 0
        self._document_runs_active = 0
        self._max_document_runs = max(1, workers - 1)
        self._closed = False
        self._changed = Condition()
        self._workers = [
            Thread(target=self._work, name=f"souvenir-embedding-{number}", daemon=True) for number in range(workers)
        ]
        for worker in self._workers:
            worker.start()
        watched = instruments or Instruments()
        self._unwatch_queue = watched.watch_queue("embedding", lambda: self.waiting, capacity=max_waiting)

    def submit(self, rows: Sequence[Row], kind: Kind) -> Future[FloatVector]:
        """Return a future of the vectors (n, dim) of at least one row, in order.

        The future fails with `ServiceClosing` if the batcher is closed first.

        :raises Overloaded: If too many texts wait.
        :raises ServiceClosing: If the batcher is closed.
        """
        request = _Request(rows)
        with self._changed:
            if self._closed:
                raise ServiceClosing
            waiting = self._waiting()
            if waiting > self._max_waiting:
                raise Overloaded(f"{waiting} texts wait for the embedding model; try again later", retry_after_s=2)
            self._queues[kind].append(request)
            self._changed.notify_all()
        return request.done

    @property
    def waiting(self) -> int:
        """Number of texts that no run has taken yet."""
        with self._changed:
            return self._waiting()

    def close(self) -> None:
        """Fail waiting requests, finish running batches, and stop the workers."""
        with self._changed:
            self._closed = True
            waiting = [request for queue in self._queues.values() for request in queue]
            self._changed.notify_all()
        for request in waiting:
            request.fail(ServiceClosing())
        for worker in self._workers:
            worker.join()
        self._unwatch_queue()

    def _waiting(self) -> int:
        return sum(request.waiting for queue in self._queues.values() for request in queue)

    def _work(self) -> None:
        while taken := self._next_batch():
            kind, batch = taken
            self._run(batch)
            with self._changed:
                self._document_runs_active -= kind is Kind.DOCUMENT
                self._changed.notify_all()

    def _next_batch(self) -> tuple[Kind, _Batch[Row]] | None:
        """Wait for the next batch; None once the batcher is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._next_kind() is not None)
            kind = self._next_kind()
            if self._closed or kind is None:
                return None
            self._query_runs = self._query_runs + 1 if kind is Kind.QUERY else 0
            self._document_runs_active += kind is Kind.DOCUMENT
            return kind, self._filled(self._queues[kind])

    def _next_kind(self) -> Kind | None:
        documents = self._queues[Kind.DOCUMENT] and self._document_runs_active < self._max_document_runs
        if self._queues[Kind.QUERY] and not (documents and self._query_runs >= QUERY_RUNS_PER_DOCUMENT_RUN):
            return Kind.QUERY
        return Kind.DOCUMENT if documents else None

    def _filled(self, queue: deque[_Request[Row]]) -> _Batch[Row]:
        """Take rows that fit together from the first requests; an unfinished request moves to the end of the queue."""
        batch: _Batch[Row] = []
        longest = tokens = 0
        while queue:
            length = queue[0].next_length
            longest, tokens = max(longest, length), tokens + length
            if batch and not self._fits(BatchSize(len(batch) + 1, tokens, longest)):
                break
            batch.append((queue[0], *queue[0].take()))
            if not queue[0].waiting:
                queue.popleft()
        if queue and batch[-1][0] is queue[0]:
            queue.rotate(-1)
        return batch

    def _run(self, batch: _Batch[Row]) -> None:
        try:
            vectors = self._encode([row for _, _, row in batch])
        except Exception as error:  # noqa: BLE001 - the worker's boundary: the callers get it
            self._run_apart(batch, error)
            return
        for (request, place, _), vector in zip(batch, vectors, strict=True):
            request.put(place, vector)

    def _run_apart(self, batch: _Batch[Row], error: Exception) -> None:
        """Run each request of a failed batch separately, so that only those with failing rows fail."""
        requests = dict.fromkeys(request for request, _, _ in batch)
        if len(requests) > 1:
            for request in requests:
                self._run([entry for entry in batch if entry[0] is request])
            return
        [request] = requests
        with self._changed:
            for queue in self._queues.values():
                if request in queue:
                    queue.remove(request)
        request.fail(error if isinstance(error, SouvenirError) else _failed(error))


def _failed(error: Exception) -> EmbeddingUnavailable:
    failure = EmbeddingUnavailable("The embedding model failed on this text; see the log, and try again")
    failure.__cause__ = error
    return failure
