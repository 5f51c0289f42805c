"""`deadline_ms` of searches: what is left out, in which order, and that the answer says so."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.api.message_search import DEGRADED_HEADER
from souvenir.core.concurrency import awaited
from souvenir.core.types import FloatVector
from tests.api.conftest import Start
from tests.fake_embedder import FakeTokenEmbedder
from tests.models.reranking.models import write_cross_encoder

AGENT = "my_agent"
SLOW: dict[str, Any] = {"query": "slow red fox", "deadline_ms": 100}
KNOWN: dict[str, Any] = {"query": "red fox", "deadline_ms": 1}
"""A millisecond is less than what any part but the words is given."""


class SlowEmbedder(FakeTokenEmbedder):
    """Queries with the word `slow` are never done, so a search waits for them as long as it may."""

    def embed_query(self, text: str) -> FloatVector:
        if "slow" in text:
            return awaited(Future[FloatVector]())
        return super().embed_query(text)


@pytest.fixture
def client(start: Start) -> TestClient:
    return filled(start(embedder=SlowEmbedder(), request_timeout_s=2))


def said(text: str) -> dict[str, Any]:
    """A turn of a talk, which late interaction scores."""
    return {"agent_name": AGENT, "role": "user", "content": text, "name": text[-5:]}


def filled(client: TestClient) -> TestClient:
    for text in ("the red fox", "a blue fox", "green"):
        client.post("/memory/add", json={"text": text, "source": "notes"}).raise_for_status()
        client.post("/messages", json=said(text)).raise_for_status()
    return client


def search(client: TestClient, path: str = "/search", **body: Any) -> Any:
    return client.post(path, json=body).raise_for_status().json()


def omissions(client: TestClient) -> list[str]:
    lines = client.get("/metrics", headers={"Accept": "text/plain"}).text.splitlines()
    return [line for line in lines if line.startswith("souvenir_deadline_omissions_total{")]


def test_words_alone_answer_a_query_that_is_not_embedded_in_time(client: TestClient):
    found = search(client, **SLOW)
    assert found["degraded"] == ["vector"]
    assert {hit["text"] for hit in found["results"]} == {"the red fox", "a blue fox"}
    assert omissions(client) == ['souvenir_deadline_omissions_total{part="vector"} 1.0']
    # The operator's counter of failures does not count what a caller chose.
    assert "souvenir_degraded_searches_total{" not in client.get("/metrics", headers={"Accept": "text/plain"}).text


def test_a_search_by_meaning_alone_does_not_leave_its_only_arm_out(client: TestClient):
    assert client.post("/search", json={**SLOW, "hybrid": False}).status_code == 503


def test_late_interaction_is_left_out_before_the_meaning(client: TestClient):
    search(client, query=KNOWN["query"])
    seen = set[tuple[str, ...]]()
    for _ in range(20):
        # How much of it is left at either decision depends on the machine.
        seen |= {tuple(search(client, **{**KNOWN, "deadline_ms": left_ms})["degraded"]) for left_ms in range(1, 60)}
        if ("late",) in seen:
            break
    assert {("vector",), ("late",)} <= seen <= {("vector",), ("late",), ()}


def test_a_vector_arm_that_was_slow_once_is_tried_again(client: TestClient):
    search(client, query=KNOWN["query"])
    [*indexes] = client.app.state.service.engine.models.serving.registry.loaded().values()  # type: ignore[attr-defined]
    for index in indexes:
        # As if a cold scan had taken so long that it and the rest just exceed a minute.
        index.pace.scan_s = 48.03
    body = {**KNOWN, "deadline_ms": 60_000}
    assert search(client, **body)["degraded"] == ["vector"]
    assert [] in [search(client, **body)["degraded"] for _ in range(20)]
    # An index of the agent's may be loaded as well, which no search asks.
    assert min(index.pace.scan_s for index in indexes) < 48


def test_links_are_left_out(client: TestClient):
    assert search(client, **KNOWN, graph_weight=0.5)["degraded"] == ["vector"]
    client.post("/memory/1/link", json={"to_id": 3, "type": "related_to"}).raise_for_status()
    whole = search(client, query=KNOWN["query"], graph_weight=0.5)
    hurried = search(client, **KNOWN, graph_weight=0.5)
    assert (whole["degraded"], hurried["degraded"]) == ([], ["vector", "links"])
    assert hurried["results"][0]["text"] == "the red fox"


def test_the_cross_encoder_is_left_out_first(start: Start, tmp_path: Path):
    folder = write_cross_encoder(tmp_path / "cross-encoder")
    client = filled(start(rerank_model=str(folder), rerank_deadline_ms=60_000))
    assert search(client, query="red fox")["degraded"] == []
    # The word makes its model take hours.
    assert search(client, query="slow red fox", deadline_ms=500)["degraded"] == ["rerank"]
    assert search(client, **KNOWN)["degraded"] == ["vector", "rerank"]


def test_searches_of_messages_and_of_an_agent_have_it_too(client: TestClient):
    body = {"agent_name": AGENT, **KNOWN}
    messages = client.post("/messages/search", json=body).raise_for_status()
    assert messages.headers[DEGRADED_HEADER] == "vector"
    assert messages.json()[0]["content"] == "the red fox"
    assert DEGRADED_HEADER not in client.post("/messages/search", json={**body, "deadline_ms": None}).headers
    assert search(client, f"/agents/{AGENT}/search", **KNOWN)["degraded"] == ["vector"]
    assert search(client, f"/agents/{AGENT}/search", **SLOW)["degraded"] == ["vector"]


@pytest.mark.parametrize("deadline_ms", [0, 60_001, "5", 1.5])
def test_a_deadline_is_a_whole_number_of_milliseconds_up_to_a_minute(client: TestClient, deadline_ms: Any):
    assert client.post("/search", json={"query": "red", "deadline_ms": deadline_ms}).status_code == 422
