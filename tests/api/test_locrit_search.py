"""Search in the Locrit API: the search of agents in that API's vocabulary and under its access levels."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import KEY, Start
from tests.api.test_agent_search import note, say
from tests.api.test_agents import key_for

ENV = {"X-API-Key": KEY}
PIXIE = "pixie"


@pytest.fixture
def pixie(start: Start) -> TestClient:
    """Told by Alice and by Ben, and read."""
    client = start(api_key=KEY)
    say(
        client, "My name is Alice", PIXIE, session_id="web_alice_pixie", user="alice", created_at="2023-05-08T12:00:00Z"
    )
    say(client, "so Alice flew to Lisbon", PIXIE, session_id="s2", user="ben", created_at="2023-05-09T12:00:00Z")
    say(client, "seven gulls", PIXIE, session_id="s2", user="ben", created_at="2023-05-10T12:00:00Z")
    note(
        client,
        "the pinhole camera of Alice",
        PIXIE,
        metadata={"document_at": "2023-05-11", "importance": 0.9},
        tags=["gear"],
    )
    client.app.state.service.graph.indexer.catch_up()  # type: ignore[attr-defined]
    return client


def found(client: TestClient, q: str, headers: dict[str, str] = ENV, **query: Any) -> dict[str, Any]:
    answer = client.get(f"/api/locrits/{PIXIE}/memory/search", params={"q": q, **query}, headers=headers)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    assert body["total"] == len(body["results"])
    return body


def contents(body: dict[str, Any]) -> list[str]:
    return [one["content"] for one in body["results"]]


def test_the_documented_name_example_is_found_with_its_concepts(pixie: TestClient):
    body = found(pixie, "name")
    assert (body["query"], body["strategy"], body["access_level"]) == ("name", "auto", "full")
    assert body["searched_by"] == ["semantic", "keyword"]
    first = body["results"][0]
    assert (first["content"], first["kind"], first["role"]) == ("My name is Alice", "message", "user")
    assert (first["session_id"], first["user"]) == ("web_alice_pixie", "alice")
    assert first["timestamp"] == "2023-05-08T12:00:00.000000+00:00"
    assert 0 < first["similarity_score"] <= 1
    who = found(pixie, "who is Alice?", strategy="concept")
    assert who["concepts"] == ["Alice"]
    assert set(contents(who)) == {"My name is Alice", "so Alice flew to Lisbon", "the pinhole camera of Alice"}
    assert all(one["concepts"] == ["Alice"] for one in who["results"])


def test_every_strategy_returns_its_results(pixie: TestClient):
    assert contents(found(pixie, "gulls", strategy="keyword")) == ["seven gulls"]
    assert len(contents(found(pixie, "gulls", strategy="semantic"))) == 4
    of_may = found(pixie, "what was said in May 2023?", strategy="time", limit=2)
    assert contents(of_may) == ["the pinhole camera of Alice", "seven gulls"]
    assert [one["similarity_score"] for one in of_may["results"]] == [None, None]
    nameless = pixie.get(f"/api/locrits/{PIXIE}/memory/search", params={"q": "gulls", "strategy": "time"}, headers=ENV)
    assert (nameless.status_code, nameless.json()["code"]) == (422, "invalid_request")
    unknown = pixie.get(f"/api/locrits/{PIXIE}/memory/search", params={"q": "gulls", "strategy": "magic"}, headers=ENV)
    assert unknown.status_code == 422


def test_time_user_and_session_narrow_before_the_choice(pixie: TestClient):
    for strategy in ("auto", "semantic", "concept"):
        assert contents(found(pixie, "Alice", strategy=strategy, user="alice")) == ["My name is Alice"]
        assert contents(found(pixie, "Alice", strategy=strategy, session="s2", limit=1)) == ["so Alice flew to Lisbon"]
        late = found(pixie, "Alice", strategy=strategy, since="2023-05-11")
        assert contents(late) == ["the pinhole camera of Alice"]
        assert contents(found(pixie, "Alice", strategy=strategy, until="2023-05-08")) == ["My name is Alice"]


def test_the_first_version_of_the_wire_says_how_it_was_found(pixie: TestClient):
    path = f"/api/v1/locrits/{PIXIE}/memory/ai-search"
    body = pixie.get(
        path, params={"q": "the pinhole camera of Alice", "strategy": "concept", "limit": 1}, headers=ENV
    ).json()
    assert (body["query"], body["strategy"], body["total"]) == ("the pinhole camera of Alice", "concept", 1)
    [one] = body["results"]
    assert (one["content"], one["storage_type"], one["tags"]) == ("the pinhole camera of Alice", "memory", ["gear"])
    assert one["importance"] == 0.9
    assert one["reasoning"] == "Found by concept and semantic and keyword; mentions pinhole camera, Alice"
    assert 0 < one["similarity_score"] <= 1
    assert pixie.get(path, params={"q": "x", "limit": 51}, headers=ENV).status_code == 422
    assert pixie.get(path, headers=ENV).status_code == 422


def test_quick_access_gives_five_results_to_everybody_and_none_gives_nothing(pixie: TestClient):
    for number in range(8):
        say(pixie, f"Alice again {number}", PIXIE)
    levels = {"quick_memory": True, "full_memory": False, "logs": False}
    assert found(pixie, "Alice", limit=50)["total"] == 12
    pixie.put(f"/agents/{PIXIE}/access", json=levels, headers=ENV)
    own = key_for(pixie, namespace=PIXIE, role="read-only")
    for headers in (ENV, own):
        quick = found(pixie, "Alice", headers, limit=50)
        assert (quick["total"], quick["access_level"]) == (5, "quick")
        ai = pixie.get(f"/api/v1/locrits/{PIXIE}/memory/ai-search", params={"q": "Alice", "limit": 50}, headers=headers)
        assert ai.json()["total"] == 5
    pixie.put(f"/agents/{PIXIE}/access", json={"quick_memory": False}, headers=ENV)
    for headers in (ENV, own):
        refused = pixie.get(f"/api/locrits/{PIXIE}/memory/search", params={"q": "Alice"}, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "access_limited")


def test_other_agents_are_never_searched_and_must_be_there(pixie: TestClient):
    say(pixie, "Alice of another", "other")
    pixie.app.state.service.graph.indexer.catch_up()  # type: ignore[attr-defined]
    for strategy in ("auto", "concept", "keyword"):
        assert "Alice of another" not in contents(found(pixie, "Alice", strategy=strategy, limit=50))
    missing = pixie.get("/api/locrits/nobody/memory/search", params={"q": "Alice"}, headers=ENV)
    assert (missing.status_code, missing.json()["code"]) == (404, "agent_not_found")
    theirs = key_for(pixie, namespace="other", role="read-only")
    refused = pixie.get(f"/api/locrits/{PIXIE}/memory/search", params={"q": "Alice"}, headers=theirs)
    assert refused.status_code == 403
