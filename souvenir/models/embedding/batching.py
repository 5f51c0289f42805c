"""Batching of the texts of concurrent requests.

Worker threads run the batches. Requests queue while workers are busy; a free worker takes those that fit together, so a
single request never waits for a timer.

The callers take turns by tokens (`souvenir.core.fair_order`), and so do the requests of one caller: a small request
waits for at most one batch of each large one, however much the others have queued. Within a caller, queries go before
documents; after some query batches one of documents runs. Jobs are one caller together, with a smaller share. Of
several workers, one is kept for queries: always for a provider; for a local model, which needs all cores for an import,
while several callers use it.

A request whose deadline passes, or whose client disconnects, leaves the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum, auto
from threading import Condition, Lock, Thread
from time import monotonic
from typing import Generic, TypeVar

from souvenir.core.concurrency import BACKGROUND, awaited, current_caller
from souvenir.core.errors import (
    DeadlineExceeded,
    EmbeddingUnavailable,
    Overloaded,
    ServiceClosing,
    SouvenirError,
)
from souvenir.core.fair_order import FairOrder
from souvenir.core.telemetry import Instruments

Row = TypeVar("Row", bound=Sized)
"""A text as the model takes it; its length is what it costs, in tokens."""

Output = TypeVar("Output")
"""The result of the model for one row."""

EncodeBatch = Callable[[Sequence[Row]], Iterable[Output]]

MAX_BATCH_TOKENS = 320
"""Padded tokens of one batch. More is not faster (the rows leave the cache), and a query waits for the batch to end."""

PADDING_PER_ROW = 8
"""Padded tokens that a row may cost on average to share a run; a run of its own costs as much as about ten."""

QUERY_RUNS_PER_DOCUMENT_RUN = 8

SHARED_BATCH_TOKENS = 64
"""Tokens of one batch of documents while several callers use the model: each of them waits for the batch to end."""

SHARED_S = 1.0
"""The model is shared for this long after a caller asked for it while another waited, or next after another."""

ALWAYS_QUEUED = 2_048
"""A request of so many tokens is queued however many wait: a search, or a short text. The number of such requests is
limited by that of concurrent requests."""

BACKGROUND_SHARE = 0.25
"""Tokens of jobs per token of each caller whose request waits."""


class Kind(Enum):
    QUERY = auto()
    DOCUMENT = auto()


@dataclass(frozen=True, slots=True)
class BatchSize:
    rows: int
    tokens: int
    longest: int


Fits = Callable[[BatchSize], bool]
"""Return whether rows fit in one run; a single row always does."""


def fits_one_run(size: BatchSize) -> bool:
    """For a model in this process, where every row is padded to the longest."""
    padded = size.rows * size.longest
    return padded <= MAX_BATCH_TOKENS and padded - size.tokens <= PADDING_PER_ROW * size.rows


class _Request(Generic[Row, Output]):
    """One request's rows, longest first, and the future that receives their outputs."""

    def __init__(self, caller: str, kind: Kind, rows: Sequence[Row]) -> None:
        self.caller = caller
        self.kind = kind
        self.cost = sum(map(len, rows))
        self._rows = rows
        self._waiting = deque(sorted(range(len(rows)), key=lambda place: -len(rows[place])))
        self._outputs: dict[int, Output] = {}
        self._answering = Lock()
        self.done: Future[list[Output]] = Future()

    @property
    def next_length(self) -> int | None:
        """The length of the next row, or None if all rows were taken."""
        return len(self._rows[self._waiting[0]]) if self._waiting else None

    def take(self) -> tuple[int, Row]:
        place = self._waiting.popleft()
        self.cost -= len(self._rows[place])
        return place, self._rows[place]

    def put(self, place: int, output: Output) -> None:
        with self._answering:
            self._outputs[place] = output
            if len(self._outputs) == len(self._rows) and not self.done.done():
                self.done.set_result([self._outputs[place] for place in range(len(self._rows))])

    def fail(self, error: SouvenirError) -> None:
        """The first failure counts; other runs of the same request may still be under way."""
        with self._answering:
            if not self.done.done():
                self.done.set_exception(error)


class _Queue(Generic[Row, Output]):
    """The waiting requests of one caller.

    :ivar query_runs: Batches of queries since the last one of documents.
    """

    def __init__(self) -> None:
        self.requests: dict[Kind, list[_Request[Row, Output]]] = {kind: [] for kind in Kind}
        self.query_runs = 0
        self._order = FairOrder[_Request[Row, Output]]()

    def __iter__(self) -> Iterator[_Request[Row, Output]]:
        for requests in self.requests.values():
            yield from requests

    @property
    def cost(self) -> int:
        return sum(request.cost for request in self)

    def add(self, request: _Request[Row, Output]) -> None:
        self._order.arrive(request)
        self.requests[request.kind].append(request)

    def first(self, kind: Kind) -> _Request[Row, Output] | None:
        return self._order.first(self.requests[kind], lambda request: min(request.cost, MAX_BATCH_TOKENS))

    def charge(self, request: _Request[Row, Output], tokens: int) -> None:
        self._order.charge(request, tokens)

    def remove(self, request: _Request[Row, Output]) -> None:
        self._order.forget(request)
        self.requests[request.kind].remove(request)

    def next_kind(self, *, documents_may: bool) -> Kind | None:
        documents = documents_may and bool(self.requests[Kind.DOCUMENT])
        if self.requests[Kind.QUERY] and not (documents and self.query_runs >= QUERY_RUNS_PER_DOCUMENT_RUN):
            return Kind.QUERY
        return Kind.DOCUMENT if documents else None


_Batch = list[tuple[_Request[Row, Output], int, Row]]


class Batcher(Generic[Row, Output]):
    """Safe to call from many threads.

    :param max_waiting: Tokens that may wait. A request that would exceed them is refused if its caller has more than
        an equal share of them; jobs are never refused, since each of them waits for one batch at a time.
    :param workers: Runs at once; `encode` must be safe to call from so many threads.
    :param keeps_one_for_queries: Keep one of several workers for queries, not only while several callers use the model.
    :param instruments: Where the queue is seen until the batcher is closed.
    """

    def __init__(
        self,
        encode: EncodeBatch[Row, Output],
        *,
        max_waiting: int,
        fits: Fits = fits_one_run,
        workers: int = 1,
        keeps_one_for_queries: bool = True,
        instruments: Instruments | None = None,
    ) -> None:
        self._encode = encode
        self._max_waiting = max_waiting
        self._fits = fits
        self._queues: dict[str, _Queue[Row, Output]] = {}
        self._order = FairOrder[str]()
        self._document_runs_under_way = 0
        self._keeps_one_for_queries = keeps_one_for_queries
        self._last_caller: str | None = None
        self._shared_until = 0.0
        self._closed = False
        self._changed = Condition()
        self._workers = [
            Thread(target=self._work, name=f"souvenir-embedding-{number}", daemon=True) for number in range(workers)
        ]
        for worker in self._workers:
            worker.start()
        watched = instruments or Instruments()
        self._forget_queue = watched.watch_queue("embedding", lambda: self.waiting, capacity=max_waiting)

    def embed(self, rows: Sequence[Row], kind: Kind) -> list[Output]:
        """Wait for the outputs of at least one row, in order.

        :raises Overloaded: If too many tokens wait already.
        :raises DeadlineExceeded: If they are not there in time; what was not taken by then is not embedded.
        :raises ServiceClosing: If the batcher is closed.
        """
        outputs = self.submit(rows, kind)
        try:
            return awaited(outputs)
        except DeadlineExceeded:
            self._withdraw(outputs)
            raise

    def submit(self, rows: Sequence[Row], kind: Kind) -> Future[list[Output]]:
        """The outputs to come, charged to the caller of this thread.

        The future fails with `ServiceClosing` if the batcher is closed first.

        :raises Overloaded: If too many tokens wait already.
        :raises ServiceClosing: If the batcher is closed.
        """
        request: _Request[Row, Output] = _Request(current_caller(), kind, rows)
        with self._changed:
            if self._closed:
                raise ServiceClosing
            self._require_space(request)
            queue = self._queues.get(request.caller)
            if queue is None:
                self._order.arrive(request.caller)
                queue = self._queues[request.caller] = _Queue()
            queue.add(request)
            if {self._last_caller or request.caller, *self._queues} != {request.caller}:
                self._shared_until = monotonic() + SHARED_S
            self._last_caller = request.caller
            self._changed.notify_all()
        return request.done

    @property
    def waiting(self) -> int:
        """Tokens that no run has taken yet."""
        with self._changed:
            return self._waiting()

    def close(self) -> None:
        """Fail the requests that still wait, let the batches that run end, and stop the workers."""
        with self._changed:
            self._closed = True
            waiting = [request for queue in self._queues.values() for request in queue]
            self._changed.notify_all()
        for request in waiting:
            request.fail(ServiceClosing())
        for worker in self._workers:
            worker.join()
        self._forget_queue()

    def _waiting(self) -> int:
        return sum(queue.cost for queue in self._queues.values())

    def _require_space(self, request: _Request[Row, Output]) -> None:
        """:raises Overloaded: If the request would exceed what may wait, and its caller's share of that."""
        waiting = self._waiting()
        if request.caller == BACKGROUND or request.cost <= ALWAYS_QUEUED or not waiting:
            return
        callers = {request.caller, *self._queues} - {BACKGROUND}
        own = self._queues[request.caller].cost if request.caller in self._queues else 0
        if waiting + request.cost > self._max_waiting and own + request.cost > self._max_waiting / len(callers):
            raise Overloaded(f"{waiting:,} tokens wait for the embedding model; try again later", retry_after_s=2)

    def _withdraw(self, outputs: Future[list[Output]]) -> None:
        with self._changed:
            for request in [one for queue in self._queues.values() for one in queue if one.done is outputs]:
                self._remove(request)

    def _remove(self, request: _Request[Row, Output]) -> None:
        """Take a request out of its queue, if it is still there."""
        queue = self._queues.get(request.caller)
        if queue is not None and request in queue.requests[request.kind]:
            queue.remove(request)
            if not any(queue):
                del self._queues[request.caller]

    def _work(self) -> None:
        while taken := self._next_batch():
            kind, batch = taken
            self._run(batch)
            with self._changed:
                self._document_runs_under_way -= kind is Kind.DOCUMENT
                self._changed.notify_all()

    def _next_batch(self) -> tuple[Kind, _Batch[Row, Output]] | None:
        """The next batch, waiting for one; None once the batcher is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._next_turn() is not None)
            turn = self._next_turn()
            if self._closed or turn is None:
                return None
            caller, kind = turn
            queue = self._queues[caller]
            queue.query_runs = queue.query_runs + 1 if kind is Kind.QUERY else 0
            self._document_runs_under_way += kind is Kind.DOCUMENT
            return kind, self._filled(caller, kind)

    def _next_turn(self) -> tuple[str, Kind] | None:
        kept = self._keeps_one_for_queries or self._is_shared
        may = self._document_runs_under_way < max(1, len(self._workers) - kept)
        kinds = {caller: queue.next_kind(documents_may=may) for caller, queue in self._queues.items()}
        caller = self._first(caller for caller, kind in kinds.items() if kind is not None)
        kind = None if caller is None else kinds[caller]
        return None if caller is None or kind is None else (caller, kind)

    def _filled(self, caller: str | None, kind: Kind) -> _Batch[Row, Output]:
        """Take rows that fit together: of the caller's first request, and where it leaves space of the next ones."""
        batch: _Batch[Row, Output] = []
        longest = tokens = 0
        # With several workers, one is free for queries.
        shared = kind is Kind.DOCUMENT and len(self._workers) == 1 and self._is_shared
        while caller is not None:
            queue = self._queues[caller]
            request = queue.first(kind)
            while request is not None and (length := request.next_length) is not None:
                longest, tokens = max(longest, length), tokens + length
                is_full = shared and tokens > SHARED_BATCH_TOKENS
                if batch and (is_full or not self._fits(BatchSize(len(batch) + 1, tokens, longest))):
                    return batch
                batch.append((request, *request.take()))
                queue.charge(request, length)
                self._order.charge(caller, length / (BACKGROUND_SHARE if caller == BACKGROUND else 1.0))
            if request is not None:
                self._remove(request)
            caller = self._first(one for one, queue in self._queues.items() if queue.requests[kind])
        return batch

    @property
    def _is_shared(self) -> bool:
        return monotonic() < self._shared_until

    def _first(self, callers: Iterable[str]) -> str | None:
        return self._order.first(callers, lambda caller: min(self._queues[caller].cost, MAX_BATCH_TOKENS))

    def _run(self, batch: _Batch[Row, Output]) -> None:
        try:
            outputs = self._encode([row for _, _, row in batch])
        except Exception as error:  # noqa: BLE001 - the worker's boundary: the callers get it
            self._run_apart(batch, error)
            return
        for (request, place, _), output in zip(batch, outputs, strict=True):
            request.put(place, output)

    def _run_apart(self, batch: _Batch[Row, Output], error: Exception) -> None:
        """A joint run failed: only the requests whose own rows fail hear of it."""
        requests = dict.fromkeys(request for request, _, _ in batch)
        if len(requests) > 1:
            for request in requests:
                self._run([entry for entry in batch if entry[0] is request])
            return
        [request] = requests
        with self._changed:
            self._remove(request)
        request.fail(error if isinstance(error, SouvenirError) else _failed(error))


def _failed(error: Exception) -> EmbeddingUnavailable:
    failure = EmbeddingUnavailable("The embedding model failed on this text; see the log, and try again")
    failure.__cause__ = error
    return failure
