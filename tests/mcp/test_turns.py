"""Tool calls are queued with the requests of their cost class, and release their slot when their work has ended."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from souvenir.server.admission import PlaceFigures
from souvenir.server.load_shedding import CostClass, Refusal
from tests.api.busy import PATIENCE_S, StoppableEmbedder, asking, until
from tests.client.running import RunningService
from tests.mcp.conftest import BOTH, Asking, calling
from tests.mcp.conftest import asking as message

SEARCH = calling("search_memory", {"query": "please stop"})
STREAMED = calling("search_memory", {"query": "please stop"}, progressToken=1)


class Busy:
    """A service whose model stops at the word `stop`."""

    def __init__(self, service: RunningService, embedder: StoppableEmbedder, http: httpx.Client) -> None:
        self.service, self.embedder, self.ask = service, embedder, Asking(http)

    @property
    def searches(self) -> PlaceFigures:
        figures: PlaceFigures = self.service.app.state.service.admission.figures()[CostClass.SEARCH]
        return figures


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Callable[..., Busy]]:
    with ExitStack() as running:

        def start(**settings: object) -> Busy:
            service, embedder = RunningService(tmp_path / "data", max_searches=1, **settings), StoppableEmbedder()
            service.start(embedder)
            running.callback(service.stop)
            running.callback(embedder.go.set)
            http = running.enter_context(httpx.Client(base_url=service.url, timeout=PATIENCE_S, trust_env=False))
            made = Busy(service, embedder, http)
            made.ask.call("add_memory", text="Something to find.")
            return made

        yield start


def test_a_call_over_the_limit_is_429_and_others_are_answered(busy):
    service = busy(queue_wait_s=0.001)
    service.ask.call("search_memory", query="a first one, which says how long they take")
    with asking(service.embedder) as threads:
        first = threads.submit(service.ask.post, SEARCH)
        until(lambda: service.searches.at_work == 1)
        refused = service.ask.post(SEARCH)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert refused.json()["error"]["data"]["code"] == "overloaded"
        assert refused.json()["id"] == SEARCH["id"]
        assert service.ask.call("list_memories")["total"] == 1
        service.embedder.go.set()
        assert first.result(PATIENCE_S).status_code == 200
    until(lambda: service.searches.at_work == 0)


def test_a_call_that_takes_too_long_is_503_and_keeps_its_place_until_it_is_through(busy):
    service = busy(request_timeout_s=0.3)
    answer = service.ask.post(SEARCH)
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (503, "deadline_exceeded")
    assert service.searches.at_work == 1
    service.embedder.go.set()
    until(lambda: service.searches.at_work == 0)


@pytest.mark.parametrize("sent", [SEARCH, STREAMED], ids=["json", "stream"])
def test_a_client_that_goes_away_gives_its_place_back_when_the_work_is_through(busy, sent):
    service = busy()
    request = service.ask.http.build_request("POST", "/mcp", json=sent, headers={"Accept": BOTH, "Connection": "close"})
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    with socket.create_connection(("127.0.0.1", service.service.port)) as peer:
        peer.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + request.read())
        until(lambda: "please stop" in service.embedder.begun)
    assert service.ask.post(message("tools/list")).status_code == 200
    assert service.searches.at_work == 1
    service.embedder.go.set()
    until(lambda: service.searches.at_work == 0)


def test_many_clients_at_once_lose_nothing(busy):
    service = busy(queue_wait_s=30)
    with ThreadPoolExecutor(8) as threads:
        added = list(
            threads.map(lambda n: service.ask.call("add_memory", f"/mcp/agent-{n % 3}", text=f"Fact {n}."), range(48))
        )
    assert len({one["memory_id"] for one in added}) == 48
    totals = [service.ask.call("list_memories", f"/mcp/agent-{n}")["total"] for n in range(3)]
    assert totals == [16, 16, 16]


def test_the_texts_of_a_call_are_bounded_like_those_of_a_request(busy):
    service = busy(max_request_tokens=100)
    refused = service.ask.post(calling("add_memory", {"text": " ".join(["word"] * 120)})).json()["result"]
    assert refused["isError"]
    assert "100 tokens together" in refused["content"][0]["text"]
    assert service.ask.call("list_memories")["total"] == 1


def test_a_call_whose_client_disconnects_ends_before_it_stores_anything(busy):
    service = busy(max_writes=1)
    body = calling("add_memory", {"text": "stop this memory"})
    request = service.ask.http.build_request("POST", "/mcp", json=body, headers={"Accept": BOTH, "Connection": "close"})
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    with socket.create_connection(("127.0.0.1", service.service.port)) as peer:
        peer.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + request.read())
        until(lambda: "stop this memory" in service.embedder.begun)
    writes = service.service.app.state.service.admission.places[CostClass.WRITE]
    until(lambda: writes.figures().refused.get(Refusal.LEFT) == 1)
    service.embedder.go.set()
    until(lambda: writes.figures().at_work == 0)
    assert service.ask.call("list_memories")["total"] == 1
