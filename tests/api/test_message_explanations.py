"""Score explanations of messages over HTTP: the parts of a score, and the part that callers can weight."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import KEY, Start
from tests.api.test_agents import key_for
from tests.api.test_messages import AGENT, search, store


@pytest.fixture
def chat(client: TestClient) -> TestClient:
    store(client, "which teapot is the blue one", session_id="s")
    store(client, "the blue teapot is on the shelf", role="assistant", session_id="s")
    return client


def explained(client: TestClient, query: str, **fields: Any) -> dict[str, Any]:
    found = client.post("/messages/search/explain", json={"agent_name": AGENT, "query": query, **fields})
    assert found.status_code == 200, found.text
    body: dict[str, Any] = found.json()
    return body


def parts_by_role(body: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {hit["role"]: hit["explanation"]["parts"] for hit in body["results"]}


def test_an_explanation_finds_the_same_and_adds_up(chat: TestClient):
    body = explained(chat, "blue teapot")
    plain = [{name: hit[name] for name in hit if name != "explanation"} for hit in body["results"]]
    assert plain == search(chat, "blue teapot")
    assert (body["count"], body["degraded"], body["fusion"], body["candidates_considered"]) == (2, [], "sum", 2)
    for hit in body["results"]:
        explanation = hit["explanation"]
        assert sum(explanation["parts"].values()) == pytest.approx(explanation["raw_score"])
        assert explanation["profile"] == "chat"
        assert {term["term"] for term in explanation["terms"]} == {"blue", "teapot"}


def test_the_weight_of_user_turns_is_configurable(chat: TestClient):
    assert parts_by_role(explained(chat, "blue teapot"))["user"]["role"] == pytest.approx(0.4)
    assert "role" not in parts_by_role(explained(chat, "what did you say about the blue teapot"))["user"]
    weighed = explained(chat, "blue teapot", role_weight=-1.0)
    assert parts_by_role(weighed)["user"]["role"] == pytest.approx(-1.0)
    assert [hit["role"] for hit in weighed["results"]] == ["assistant", "user"]
    by_role = {weight: search(chat, "blue teapot", role_weight=weight)[0]["role"] for weight in (-1.0, 1.0)}
    assert by_role == {-1.0: "assistant", 1.0: "user"}
    too_much = chat.post("/messages/search", json={"agent_name": AGENT, "query": "q", "role_weight": 1.5})
    assert too_much.status_code == 422


def test_turns_of_the_named_speaker_are_explained(client: TestClient):
    for name, content in (("Ann", "I have painted the boat"), ("Ben", "I have sold the boat")):
        store(client, content, name=name, session_id="s")
    best = explained(client, "What did Ben do with the boat?")["results"][0]
    assert (best["name"], best["explanation"]["profile"]) == ("Ben", "talk")
    assert best["explanation"]["parts"]["speaker"] == pytest.approx(0.3)


def test_an_explanation_shows_repaired_words_and_the_times_that_were_read(chat: TestClient):
    body = explained(chat, "blue taepot in May 2023", reference_date="2023-06-15")
    assert list(body["repairs"].values()) == ["teapot"]
    assert body["time"]["phrases"] == ["May 2023"]
    assert explained(chat, "blue teapot in May 2023", auto_intent=False)["time"] is None


def test_explanations_are_for_admins_and_of_agents_that_are_there(start: Start):
    client = start(api_key=KEY)
    admin = {"X-API-Key": KEY}
    body = {"agent_name": AGENT, "query": "q"}
    missing = client.post("/messages/search/explain", json=body, headers=admin)
    assert (missing.status_code, missing.json()["code"]) == (404, "agent_not_found")
    client.post("/agents", json={"name": AGENT}, headers=admin)
    own = key_for(client, namespace=AGENT)
    refused = client.post("/messages/search/explain", json=body, headers=own)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert client.post("/messages/search/explain", json=body, headers=admin).json()["results"] == []
