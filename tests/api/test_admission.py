"""Concurrency limits: admitted, queued and refused requests, and what each holds meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import EmbedProvider, Settings
from souvenir.server import admission
from souvenir.server.admission import Admission, PlaceFigures
from souvenir.server.load_shedding import CostClass, Refusal
from souvenir.server.request_guards import Reader
from souvenir.server.routing import Routes
from souvenir.server.service import Service
from tests.api.busy import PATIENCE_S, StoppableEmbedder, asking, until
from tests.api.conftest import BASE_URL
from tests.api.test_errors import problem

NEVER_S = 1000.0
ADMIN = "k-of-the-admin"
SMALL_BATCH = {"memories": [{"text": "green apple", "source": "s"}]}


class Busy:
    """A service with one place for searches and one for writes, and threads that ask it."""

    def __init__(self, client: TestClient, service: Service, embedder: StoppableEmbedder, threads: ThreadPoolExecutor):
        self.client, self.service, self.embedder = client, service, embedder
        self._threads = threads

    def search(self, query: str) -> Future[Any]:
        """An answer to come. A query with the word `stop` takes its place until the model is let go."""
        return self._threads.submit(self.client.post, "/search", json={"query": query})

    def add(self, text: str) -> Future[Any]:
        return self._threads.submit(self.client.post, "/memory/add", json={"text": text, "source": "s"})

    def figures(self, cost: CostClass) -> PlaceFigures:
        return self.service.admission.figures()[cost]

    def occupy_search(self) -> Future[Any]:
        """A search that is at work and does not end by itself."""
        answer = self.search("stop")
        until(lambda: "stop" in self.embedder.begun)
        return answer

    def wait_for(self, cost: CostClass, *, waiting: int) -> None:
        until(lambda: self.figures(cost).waiting == waiting)


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Any]:
    """Makes a `Busy` with these settings."""
    with ExitStack() as running:

        def make(*, routes: Any = None, **settings: Any) -> Busy:
            embedder = StoppableEmbedder()
            chosen = {"max_searches": 1, "max_writes": 1, "queue_wait_s": NEVER_S, **settings}
            app: FastAPI = create_app(Settings(data_dir=tmp_path / "data", **chosen), embedder)
            app.router.routes.extend(routes.routes if routes else [])
            client = running.enter_context(TestClient(app, base_url=BASE_URL))
            headers = {"X-API-Key": chosen["api_key"]} if "api_key" in chosen else {}
            first = {"text": "a first memory", "source": "s"}
            client.post("/memory/add", json=first, headers=headers).raise_for_status()
            return Busy(client, app.state.service, embedder, running.enter_context(asking(embedder)))

        yield make


def refused(response: httpx2.Response) -> tuple[int, str]:
    """Status and code of an answer that says when to come back."""
    assert int(response.headers["Retry-After"]) >= 1
    return problem(response)


def test_a_route_that_declares_no_cost_cannot_be_made():
    with pytest.raises(TypeError, match="cost"):
        Routes("test").get("/x", sdk="test.x")(lambda: None)  # type: ignore[call-arg]


def test_a_request_that_finds_the_queue_full_is_refused_at_once_with_retry_after(busy, monkeypatch):
    monkeypatch.setattr(admission, "WAITING_PER_PLACE", 2)
    service = busy()
    answers = [service.occupy_search(), service.search("second"), service.search("third")]
    service.wait_for(CostClass.SEARCH, waiting=2)
    assert refused(service.search("fourth").result()) == (429, "overloaded")
    service.embedder.go.set()
    assert [answer.result().status_code for answer in answers] == [200, 200, 200]
    assert "fourth" not in service.embedder.begun
    assert service.figures(CostClass.SEARCH).refused == {Refusal.FULL: 1}


def test_those_who_wait_are_served_in_the_order_in_which_they_came(busy):
    service = busy()
    answers = [service.occupy_search()]
    for place, query in enumerate(("one", "two", "three"), 1):
        answers.append(service.search(query))
        service.wait_for(CostClass.SEARCH, waiting=place)
    service.embedder.go.set()
    for answer in answers:
        assert answer.result().status_code == 200
    assert service.embedder.begun[-4:] == ["stop", "one", "two", "three"]


def test_a_request_whose_turn_does_not_come_in_time_is_refused(busy):
    service = busy(queue_wait_s=0.02)
    first = service.occupy_search()
    assert refused(service.search("second").result()) == (429, "overloaded")
    service.embedder.go.set()
    assert first.result().status_code == 200
    assert service.search("third").result().status_code == 200
    assert service.figures(CostClass.SEARCH).refused == {Refusal.WAITED: 1}


def test_a_request_that_would_wait_too_long_is_refused_before_the_queue_is_full(busy):
    service = busy(queue_wait_s=0.05)
    first = service.search("stop and take a while")
    until(lambda: service.figures(CostClass.SEARCH).at_work == 1)
    assert refused(service.search("second").result())[0] == 429  # waited, so that the first one took longer than that
    service.embedder.go.set()
    assert first.result().status_code == 200
    service.embedder.go.clear()
    again = service.search("stop again")
    until(lambda: service.figures(CostClass.SEARCH).at_work == 1)
    assert refused(service.search("third").result())[0] == 429
    service.embedder.go.set()
    assert again.result().status_code == 200
    assert service.figures(CostClass.SEARCH).refused == {Refusal.WAITED: 1, Refusal.FULL: 1}


def test_health_reads_and_writes_are_answered_while_searches_wait(busy):
    service = busy()
    first = service.occupy_search()
    second = service.search("second")
    service.wait_for(CostClass.SEARCH, waiting=1)
    for path in ("/health", "/health/ready", "/memory/1", "/memories/count", "/stats", "/metrics"):
        assert service.client.get(path).status_code == 200, path
    assert service.add("red apple").result().status_code == 200
    assert not first.done()
    service.embedder.go.set()
    assert (first.result().status_code, second.result().status_code) == (200, 200)


def test_a_request_that_takes_too_long_is_answered_and_keeps_its_place_until_it_is_done(busy):
    service = busy(request_timeout_s=0.2)
    assert refused(service.occupy_search().result()) == (503, "deadline_exceeded")
    assert service.figures(CostClass.SEARCH).at_work == 1
    service.embedder.go.set()
    until(lambda: service.figures(CostClass.SEARCH).at_work == 0)
    assert service.search("next").result().status_code == 200
    assert service.figures(CostClass.SEARCH).refused == {Refusal.DEADLINE: 1}


def test_an_abandoned_batch_of_searches_ends_early(busy):
    service = busy(request_timeout_s=0.2)
    queries = [{"query": "stop here"}, {"query": "never asked"}]
    assert refused(service.client.post("/search/batch", json={"queries": queries})) == (503, "deadline_exceeded")
    service.embedder.go.set()
    until(lambda: service.figures(CostClass.LONG).at_work == 0)
    assert service.embedder.begun[-1] == "stop here"


def test_an_abandoned_write_is_not_begun(busy):
    service = busy(request_timeout_s=0.2)
    assert refused(service.add("stop this write").result()) == (503, "deadline_exceeded")
    service.embedder.go.set()
    until(lambda: service.figures(CostClass.WRITE).at_work == 0)
    assert service.client.get("/memories/count").json() == {"count": 1}


def test_bodies_that_fill_their_memory_are_refused_and_their_memory_comes_back(busy):
    service = busy(body_memory_mb=1, max_writes=2)
    first = service.add("stop " + "x" * 45_000)
    big = {"memories": [{"text": "y" * 40_000, "source": "s"}] * 26}
    until(lambda: service.service.bodies.held_bytes > 45_000)
    assert refused(service.client.post("/memory/add-batch", json=big)) == (429, "overloaded")
    service.embedder.go.set()
    assert first.result().status_code == 200
    assert service.service.bodies.held_bytes == 0
    assert service.figures(CostClass.LONG).refused == {Refusal.BODY_MEMORY: 1}


def test_a_stopping_service_finishes_running_requests_and_refuses_waiting_ones(busy):
    service = busy()
    first, second = service.occupy_search(), service.search("second")
    service.wait_for(CostClass.SEARCH, waiting=1)
    service.client.portal.call(service.service.stop_admitting)
    assert refused(second.result()) == (503, "service_closing")
    assert refused(service.search("third").result()) == (503, "service_closing")
    assert service.client.get("/health").status_code == 200
    service.embedder.go.set()
    assert first.result().status_code == 200
    assert service.figures(CostClass.SEARCH).refused == {Refusal.CLOSING: 2}


def test_an_answer_that_is_streamed_keeps_its_place_until_it_was_taken(busy):
    routes = Routes("test")
    seen: list[int] = []

    @routes.get("/streamed", cost=CostClass.LONG, include_in_schema=False)
    def streamed(scope: Reader) -> StreamingResponse:
        def lines() -> Iterator[bytes]:
            seen.append(service.figures(CostClass.LONG).at_work)
            yield b"a line\n"

        return StreamingResponse(lines())

    service = busy(routes=routes)
    assert service.client.get("/streamed").text == "a line\n"
    assert seen == [1]
    assert service.figures(CostClass.LONG).at_work == 0


def test_a_service_whose_vectors_come_from_another_server_works_on_more_requests_at_once():
    here = Admission(Settings()).figures()[CostClass.SEARCH]
    remote = Admission(Settings(embed_provider=EmbedProvider.OLLAMA)).figures()[CostClass.SEARCH]
    assert remote.places == 16 * here.places


class Keys:
    """A service with one place for searches and one for writes, and two keys that ask it."""

    def __init__(self, service: Busy, threads: ThreadPoolExecutor) -> None:
        self.service, self._threads = service, threads
        self._keys = {name: self._made(name) for name in ("greedy", "modest")}

    def ask(self, name: str, path: str, body: Any) -> Future[httpx2.Response]:
        headers = {"X-API-Key": self._keys[name]}
        return self._threads.submit(self.service.client.post, path, json=body, headers=headers)

    def _made(self, name: str) -> str:
        body = {"name": name, "role": "read-write", "namespace": "default"}
        made = self.service.client.post("/api/keys", json=body, headers={"X-API-Key": ADMIN})
        return str(made.raise_for_status().json()["key"])


@pytest.fixture
def keys(busy) -> Iterator[Any]:
    with ThreadPoolExecutor(64) as threads:
        service = busy(api_key=ADMIN)
        try:
            yield Keys(service, threads)
        finally:
            service.embedder.go.set()


def test_a_key_that_fills_all_places_and_the_queue_does_not_keep_another_key_out(keys: Keys):
    greedy = [keys.ask("greedy", "/search", {"query": f"stop {number}"}) for number in range(40)]
    until(lambda: keys.service.figures(CostClass.SEARCH).waiting >= admission.WAITING_PER_PLACE)
    assert keys.ask("modest", "/search", {"query": "apple"}).result(PATIENCE_S).status_code == 200
    assert keys.ask("modest", "/memory/add", {"text": "red apple", "source": "s"}).result(PATIENCE_S).status_code == 200
    assert not all(answer.done() for answer in greedy)
    keys.service.embedder.go.set()
    statuses = [answer.result(PATIENCE_S).status_code for answer in greedy]
    assert set(statuses) <= {200, 429}


def test_batches_of_searches_wait_for_their_turns_among_the_searches_of_others(keys: Keys):
    queries = {"queries": [{"query": f"stop {number}"} for number in range(20)]}
    batches = [keys.ask("greedy", "/search/batch", queries) for _ in range(6)]
    until(lambda: keys.service.figures(CostClass.LONG).at_work == 6)
    until(lambda: keys.service.figures(CostClass.SEARCH).waiting == 5)
    assert keys.service.figures(CostClass.SEARCH).at_work == 1
    assert keys.ask("modest", "/search", {"query": "apple"}).result(PATIENCE_S).status_code == 200
    one = {"queries": [{"query": "apple"}]}
    assert keys.ask("modest", "/search/batch", one).result(PATIENCE_S).status_code == 200
    keys.service.embedder.go.set()
    assert [batch.result(PATIENCE_S).json()["count"] for batch in batches] == [20] * 6


def test_batches_of_memories_do_not_take_the_places_of_small_writes(keys: Keys):
    memories = {"memories": [{"text": "stop this batch", "source": "s"}]}
    batches = [keys.ask("greedy", "/memory/add-batch", memories) for _ in range(8)]
    until(lambda: keys.service.figures(CostClass.LONG).at_work == 6)
    for name in ("greedy", "modest"):
        added = keys.ask(name, "/memory/add", {"text": "red apple", "source": "s"})
        assert added.result(PATIENCE_S).status_code == 200
    assert keys.ask("modest", "/memory/add-batch", SMALL_BATCH).result(PATIENCE_S).status_code == 200
    keys.service.embedder.go.set()
    assert [batch.result(PATIENCE_S).status_code for batch in batches] == [200] * 8


def test_the_bodies_of_one_key_leave_memory_for_those_of_another(busy):
    service = busy(api_key=ADMIN, body_memory_mb=1, max_long=20)
    large = {"memories": [{"text": "stop " + "x" * 40_000, "source": "s"}] * 6}
    with ThreadPoolExecutor(16) as threads:
        keys = Keys(service, threads)
        first = [keys.ask("greedy", "/memory/add-batch", large) for _ in range(3)]
        until(lambda: service.service.bodies.held_bytes > 700_000)
        assert refused(keys.ask("greedy", "/memory/add-batch", large).result(PATIENCE_S)) == (429, "overloaded")
        added = keys.ask("modest", "/memory/add", {"text": "y" * 45_000, "source": "s"})
        assert added.result(PATIENCE_S).status_code == 200
        service.embedder.go.set()
        assert [one.result(PATIENCE_S).status_code for one in first] == [200] * 3
