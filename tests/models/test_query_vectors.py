"""Embedded queries: cached, and computed once for concurrent equal queries."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from souvenir.core.errors import EmbeddingUnavailable
from souvenir.core.telemetry import Instruments
from souvenir.models.embedding.query_cache import EmbeddedQuery, QueryCache

WAIT_S = 30.0


class SlowModel:
    """Counts its calls, and answers on release."""

    def __init__(self, *, broken: bool = False) -> None:
        self.asked = 0
        self.broken = broken
        self.began, self.go_on = Event(), Event()

    def __call__(self) -> EmbeddedQuery:
        self.asked += 1
        self.began.set()
        assert self.go_on.wait(WAIT_S)
        if self.broken:
            raise EmbeddingUnavailable("The model is gone")
        return EmbeddedQuery.of_windows(np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32))


def test_concurrent_equal_queries_are_embedded_once():
    cache, model = QueryCache(8, Instruments()), SlowModel()
    other = EmbeddedQuery.of_windows(np.array([[0.0, 1.0]], dtype=np.float32))
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(cache.get, "q", model)
        assert model.began.wait(WAIT_S)
        others = [threads.submit(cache.get, "q", model) for _ in range(3)]
        other_question = cache.get("another", lambda: other)
        model.go_on.set()
        expected = np.full(2, np.sqrt(0.5), dtype=np.float32)
        for one in (first, *others):
            np.testing.assert_allclose(one.result(WAIT_S).vector, expected)
    assert other_question is other
    assert model.asked == 1


def test_a_failure_reaches_all_waiting_callers_and_is_not_cached():
    cache, model = QueryCache(8, Instruments()), SlowModel(broken=True)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(cache.get, "q", model)
        assert model.began.wait(WAIT_S)
        second = threads.submit(cache.get, "q", model)
        model.go_on.set()
        for one in (first, second):
            with pytest.raises(EmbeddingUnavailable):
                one.result(WAIT_S)
    model.broken = False
    assert cache.get("q", model).vector.shape == (2,)
