"""The batcher, with a gated encoder whose vectors identify their run."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context

import pytest

from souvenir.core.concurrency import deadline
from souvenir.core.errors import DeadlineExceeded, EmbeddingUnavailable, Overloaded, ServiceClosing
from souvenir.core.telemetry import Instruments
from souvenir.models.embedding import batching
from souvenir.models.embedding.batching import (
    MAX_BATCH_TOKENS,
    QUERY_RUNS_PER_DOCUMENT_RUN,
    SHARED_BATCH_TOKENS,
    Batcher,
    Kind,
)
from tests.api.busy import until as eventually

Output = tuple[int, int]


class GatedEncoder:
    """Encodes rows as (first id, batch number); each run waits for its release and records its input."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.started = threading.Semaphore(0)
        self._gate = threading.Semaphore(0)

    def __call__(self, rows: Sequence[Sequence[int]]) -> list[Output]:
        self.batches.append([row[0] for row in rows])
        self.started.release()
        self._gate.acquire()
        if any(row[0] < 0 for row in rows):
            raise ValueError("a row that no model can read")
        return [(row[0], len(self.batches)) for row in rows]

    def let_go(self, runs: int = 1000) -> None:
        self._gate.release(runs)


@pytest.fixture
def encoder() -> GatedEncoder:
    return GatedEncoder()


@contextmanager
def opened(encoder: GatedEncoder, *, max_waiting: int) -> Iterator[Batcher[Sequence[int], Output]]:
    """A batcher whose first run, of the row [0], has begun and waits."""
    batcher = Batcher(encoder, max_waiting=max_waiting)
    batcher.submit([[0]], Kind.DOCUMENT)
    assert encoder.started.acquire(timeout=30)
    try:
        yield batcher
    finally:
        encoder.let_go()
        batcher.close()


@pytest.fixture
def batcher(encoder: GatedEncoder) -> Iterator[Batcher[Sequence[int], Output]]:
    with opened(encoder, max_waiting=50) as batcher:
        yield batcher


def test_requests_during_a_run_share_the_next_one(batcher, encoder):
    futures = [batcher.submit([[number]], Kind.QUERY) for number in (1, 2, 3)]
    encoder.let_go()
    assert [future.result(30) for future in futures] == [[(1, 2)], [(2, 2)], [(3, 2)]]
    assert encoder.batches == [[0], [1, 2, 3]]


def test_a_query_precedes_the_rest_of_a_large_import(batcher, encoder):
    document = [1] * MAX_BATCH_TOKENS
    documents = batcher.submit([document] * 5, Kind.DOCUMENT)
    query = batcher.submit([[7]], Kind.QUERY)
    encoder.let_go()
    documents.result(30)
    assert query.result(30) == [(7, 2)]
    assert encoder.batches == [[0], [7], [1], [1], [1], [1], [1]]


def test_queries_do_not_starve_documents(batcher, encoder):
    queries = [batcher.submit([[2] * MAX_BATCH_TOKENS], Kind.QUERY) for _ in range(20)]
    document = batcher.submit([[1]], Kind.DOCUMENT)
    encoder.let_go()
    assert document.result(30)[0][1] == 2 + QUERY_RUNS_PER_DOCUMENT_RUN
    assert len([query.result(30) for query in queries]) == 20


def test_a_small_request_does_not_wait_for_all_of_a_large_one(batcher, encoder):
    large = batcher.submit([[1] * MAX_BATCH_TOKENS] * 6, Kind.DOCUMENT)
    small = batcher.submit([[2] * MAX_BATCH_TOKENS], Kind.DOCUMENT)
    encoder.let_go()
    large.result(30)
    assert small.result(30)[0][1] == 3


def test_rows_are_batched_by_length_and_come_back_in_order(batcher, encoder):
    lengths = [5, 200, 7, 190, 6, 50]
    future = batcher.submit([[length] * length for length in lengths], Kind.DOCUMENT)
    encoder.let_go()
    assert [first for first, _ in future.result(30)] == lengths
    assert encoder.batches == [[0], [200], [190], [50], [7, 6, 5]]


def test_an_error_reaches_only_the_caller_of_the_failed_row(batcher, encoder):
    good, bad, fine = (batcher.submit([[number], [9]], Kind.DOCUMENT) for number in (1, -1, 2))
    encoder.let_go()
    assert [first for first, _ in good.result(30)] == [1, 9]
    assert [first for first, _ in fine.result(30)] == [2, 9]
    with pytest.raises(EmbeddingUnavailable) as failure:
        bad.result(30)
    assert isinstance(failure.value.__cause__, ValueError)
    assert batcher.submit([[3]], Kind.QUERY).result(30)[0][0] == 3


def test_a_failed_request_causes_no_further_runs(batcher, encoder):
    failing = batcher.submit([[-1] * MAX_BATCH_TOKENS] * 5, Kind.DOCUMENT)
    encoder.let_go()
    with pytest.raises(EmbeddingUnavailable):
        failing.result(30)
    batcher.submit([[3]], Kind.DOCUMENT).result(30)
    assert encoder.batches == [[0], [-1], [3]]


BATCH = [1] * MAX_BATCH_TOKENS
"""A row that fills a run of its own."""


@contextmanager
def caller(name: str) -> Iterator[None]:
    with deadline(1_000.0, caller=name):
        yield


def test_the_texts_of_a_request_count_before_it_is_queued(encoder):
    with opened(encoder, max_waiting=5_000) as batcher, caller("greedy"):
        batcher.submit([BATCH] * 10, Kind.DOCUMENT)
        with pytest.raises(Overloaded) as refused:
            batcher.submit([BATCH] * 10, Kind.DOCUMENT)
    assert refused.value.retry_after_s > 0


def test_a_large_request_is_queued_if_nothing_waits_and_a_small_one_always(encoder):
    with opened(encoder, max_waiting=5_000) as batcher, caller("greedy"):
        large = batcher.submit([BATCH] * 20, Kind.DOCUMENT)
        small = batcher.submit([[2]], Kind.DOCUMENT)
        encoder.let_go()
        assert len(large.result(30)) == 20
        assert len(small.result(30)) == 1


def test_a_full_queue_takes_an_equal_share_from_each_caller(encoder):
    with opened(encoder, max_waiting=10_000) as batcher:
        with caller("greedy"):
            batcher.submit([BATCH] * 30, Kind.DOCUMENT)
        with caller("modest"):
            accepted = batcher.submit([BATCH] * 15, Kind.DOCUMENT)
            with pytest.raises(Overloaded):
                batcher.submit([BATCH] * 15, Kind.DOCUMENT)
        encoder.let_go()
        assert len(accepted.result(30)) == 15


def test_a_small_request_waits_for_one_run_of_another_caller_however_many_requests_that_has(encoder):
    with opened(encoder, max_waiting=1_000_000) as batcher:
        with caller("greedy"):
            greedy = [batcher.submit([BATCH] * 5, Kind.DOCUMENT) for _ in range(20)]
        with caller("modest"):
            small = batcher.submit([[7]], Kind.DOCUMENT)
        encoder.let_go()
        assert small.result(30)[0][1] == 2
        assert [len(one.result(30)) for one in greedy] == [5] * 20


def test_a_small_request_waits_for_one_run_of_the_large_ones_of_its_own_caller(encoder):
    with opened(encoder, max_waiting=1_000_000) as batcher, caller("one"):
        large = [batcher.submit([BATCH] * 5, Kind.DOCUMENT) for _ in range(8)]
        encoder.let_go(5)
        for _ in range(5):
            assert encoder.started.acquire(timeout=30)
        small = batcher.submit([[7]], Kind.DOCUMENT)
        encoder.let_go()
        assert small.result(30)[0][1] <= 8
        assert [len(one.result(30)) for one in large] == [5] * 8


def test_a_document_of_one_caller_does_not_wait_for_the_long_queries_of_another(encoder):
    with opened(encoder, max_waiting=1_000_000) as batcher:
        with caller("greedy"):
            queries = [batcher.submit([BATCH] * 8, Kind.QUERY) for _ in range(4)]
        with caller("modest"):
            document = batcher.submit([[7]], Kind.DOCUMENT)
        encoder.let_go()
        assert document.result(30)[0][1] == 2
        assert [len(one.result(30)) for one in queries] == [8] * 4


def test_two_callers_with_much_to_embed_get_equal_shares(encoder):
    with opened(encoder, max_waiting=1_000_000) as batcher:
        with caller("many requests"):
            many = [batcher.submit([[1, *BATCH[1:]]] * 4, Kind.DOCUMENT) for _ in range(5)]
        with caller("one request"):
            one = batcher.submit([[2, *BATCH[1:]]] * 20, Kind.DOCUMENT)
        encoder.let_go()
        for future in (*many, one):
            future.result(30)
    first = [batch[0] for batch in encoder.batches[1:21]]
    assert first.count(1) == first.count(2) == 10


def test_jobs_get_a_smaller_share_than_requests_and_are_not_starved(encoder):
    with opened(encoder, max_waiting=1_000_000) as batcher:
        job = batcher.submit([[1, *BATCH[1:]]] * 20, Kind.DOCUMENT)
        with caller("one"):
            request = batcher.submit([[2, *BATCH[1:]]] * 20, Kind.DOCUMENT)
        encoder.let_go()
        job.result(30)
        request.result(30)
    first = [batch[0] for batch in encoder.batches[1:21]]
    assert 3 <= first.count(1) <= 5


def test_jobs_are_never_refused(encoder):
    with opened(encoder, max_waiting=1_000) as batcher:
        jobs = [batcher.submit([BATCH] * 10, Kind.DOCUMENT) for _ in range(3)]
        encoder.let_go()
        assert [len(job.result(30)) for job in jobs] == [10] * 3


def test_rows_of_a_request_whose_deadline_has_passed_leave_the_queue(encoder):
    with opened(encoder, max_waiting=1_000_000) as batcher:
        with deadline(0.05), pytest.raises(DeadlineExceeded):
            batcher.embed([BATCH] * 100, Kind.DOCUMENT)
        assert batcher.waiting == 0
        encoder.let_go()
        batcher.submit([[3]], Kind.DOCUMENT).result(30)
    assert encoder.batches == [[0], [3]]


def test_rows_of_a_request_that_nobody_waits_for_any_more_leave_the_queue(encoder):
    with opened(encoder, max_waiting=1_000_000) as batcher, ThreadPoolExecutor(1) as threads:
        with deadline(1000.0) as until:
            answer = threads.submit(copy_context().run, batcher.embed, [BATCH] * 100, Kind.DOCUMENT)
            eventually(lambda: batcher.waiting > 0)
            until.end()
        with pytest.raises(DeadlineExceeded):
            answer.result(30)
        assert batcher.waiting == 0
        encoder.let_go()


def test_runs_of_documents_are_short_while_several_callers_use_the_model(encoder):
    row = [1] * 30
    with opened(encoder, max_waiting=1_000_000) as batcher:
        with caller("modest"):
            batcher.submit([[2]], Kind.QUERY)
        job = batcher.submit([row] * 20, Kind.DOCUMENT)
        encoder.let_go()
        job.result(30)
    assert max(map(len, encoder.batches)) * len(row) <= SHARED_BATCH_TOKENS


def test_closing_ends_the_run_and_fails_waiting_requests(encoder):
    batcher = Batcher(encoder, max_waiting=1_000_000)
    running = batcher.submit([[1]], Kind.QUERY)
    assert encoder.started.acquire(timeout=30)
    waiting = batcher.submit([[2]], Kind.QUERY)
    closing = threading.Thread(target=batcher.close)
    closing.start()

    def submit_until_it_closes() -> None:
        while True:
            batcher.submit([[3]], Kind.QUERY)

    with pytest.raises(ServiceClosing):
        submit_until_it_closes()
    encoder.let_go()
    closing.join(30)
    assert running.result(30)[0][0] == 1
    with pytest.raises(ServiceClosing):
        waiting.result(30)


# --- several workers -----------------------------------------------------------------------------------------------


@pytest.fixture
def pair(encoder: GatedEncoder) -> Iterator[Batcher[Sequence[int], Output]]:
    """A batcher with two workers and at most two rows per run."""
    batcher = Batcher(encoder, max_waiting=50, fits=lambda size: size.rows <= 2, workers=2)
    yield batcher
    encoder.let_go()
    batcher.close()


def test_one_of_several_workers_is_kept_for_queries(pair, encoder):
    documents = pair.submit([[1], [2], [3]], Kind.DOCUMENT)
    assert encoder.started.acquire(timeout=30)
    query = pair.submit([[7]], Kind.QUERY)
    assert encoder.started.acquire(timeout=30)
    assert encoder.batches == [[1, 2], [7]]
    encoder.let_go()
    assert [first for first, _ in documents.result(30)] == [1, 2, 3]
    assert query.result(30)[0][0] == 7


@pytest.fixture
def local(encoder: GatedEncoder) -> Iterator[Batcher[Sequence[int], Output]]:
    """A batcher with two workers for a model in this process, and one row per run."""
    batcher = Batcher(encoder, max_waiting=50, fits=lambda size: size.rows <= 1, workers=2, keeps_one_for_queries=False)
    yield batcher
    encoder.let_go()
    batcher.close()


def test_an_import_that_is_alone_takes_all_workers_of_a_local_model(local, encoder):
    imported = local.submit([[1], [2], [3]], Kind.DOCUMENT)
    assert encoder.started.acquire(timeout=30)
    assert encoder.started.acquire(timeout=30)
    assert sorted(encoder.batches) == [[1], [2]]
    encoder.let_go()
    assert [first for first, _ in imported.result(30)] == [1, 2, 3]


def test_an_import_leaves_a_worker_of_a_local_model_to_the_queries_of_others(local, encoder, monkeypatch):
    monkeypatch.setattr(batching, "SHARED_S", 1_000.0)
    encoder.let_go(1)
    with caller("one"):
        assert local.submit([[7]], Kind.QUERY).result(30)[0][0] == 7
    with caller("another"):
        local.submit([[1], [2], [3]], Kind.DOCUMENT)
    with caller("one"):
        local.submit([[8]], Kind.QUERY)
    for _ in range(3):
        assert encoder.started.acquire(timeout=30)
    assert sorted(encoder.batches) == [[1], [7], [8]]


def test_concurrent_failed_runs_of_a_request_report_once(pair, encoder):
    failing = pair.submit([[-1], [-2], [-3], [-4]], Kind.QUERY)
    assert encoder.started.acquire(timeout=30)
    assert encoder.started.acquire(timeout=30)
    encoder.let_go()
    with pytest.raises(EmbeddingUnavailable):
        failing.result(30)
    assert pair.submit([[5]], Kind.QUERY).result(30)[0][0] == 5


def test_the_queue_metric_sums_open_batchers_only(encoder):
    def seen() -> float | None:
        return instruments.registry.get_sample_value("souvenir_queue_depth", {"queue": "embedding"})

    instruments = Instruments()
    one, other = (Batcher(encoder, max_waiting=50, instruments=instruments) for _ in range(2))
    for batcher in (one, other):
        batcher.submit([[0]], Kind.DOCUMENT)
        assert encoder.started.acquire(timeout=30)
        batcher.submit([[1], [2]], Kind.DOCUMENT)
    assert seen() == 4
    encoder.let_go()
    one.close()
    other.submit([[3]], Kind.QUERY).result(timeout=30)
    other.close()
    assert seen() == 0
