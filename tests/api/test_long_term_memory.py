"""Long-term memory and preferences over HTTP."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from tests.api.conftest import KEY, Start
from tests.api.test_agents import ENV, key_for


def remember(client: TestClient, key: str, value: str, **more: Any) -> Any:
    answer = client.post("/remember", json={"agent_name": "my_agent", "key": key, "value": value, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_values_are_recalled_as_texts_and_as_records(client: TestClient):
    first = remember(client, "favorite color", "blue: light blue")
    assert (first["key"], first["value"], first["category"]) == ("favorite color", "blue: light blue", "general")
    assert first["created"] is True
    again = remember(client, "favorite color", "green")
    assert (again["id"], again["created"], again["created_at"]) == (first["id"], False, first["created_at"])
    asked = {"agent_name": "my_agent", "query": "color"}
    recalled = client.post("/recall", json=asked).json()
    assert (recalled["memories"], recalled["evidence"], recalled["degraded"]) == (
        ["favorite color: green"],
        "strong",
        [],
    )
    [found] = client.post("/recall/search", json=asked).json()["memories"]
    assert found.keys() == again.keys() - {"created"} | {"score", "similarity"}
    assert (found["id"], found["value"]) == (first["id"], "green")
    assert client.get("/agents/my_agent").status_code == 200


def test_recall_can_be_held_to_a_category_and_a_limit(client: TestClient):
    for category in ("fact", "routine", "contact"):
        remember(client, "tea", f"tea of {category}", category=category)
    body = {"agent_name": "my_agent", "query": "tea"}
    assert len(client.post("/recall", json=body).json()["memories"]) == 3
    assert len(client.post("/recall", json={**body, "limit": 2}).json()["memories"]) == 2
    only = client.post("/recall", json={**body, "category": "routine"}).json()["memories"]
    assert only == ["tea: tea of routine"]


def test_recall_judges_and_scores_as_search_does(client: TestClient):
    for key in ("tea", "coffee", "water"):
        remember(client, key, f"{key} with milk")
    recalled = client.post("/recall/search", json={"agent_name": "my_agent", "query": "tea milk"}).json()
    searched = client.post(
        "/search", json={"query": "tea milk", "source_prefix": "long-term"}, headers={"X-Namespace": "my_agent"}
    ).json()
    assert [one["score"] for one in recalled["memories"]] == [one["score"] for one in searched["results"]]
    assert [recalled[name] for name in ("relevance", "evidence")] == [
        searched[name] for name in ("relevance", "evidence")
    ]
    least = recalled["memories"][0]["score"]
    body = {"agent_name": "my_agent", "query": "tea milk", "min_score": least}
    assert client.post("/recall", json=body).json()["memories"] == ["tea: tea with milk"]


def test_an_unknown_category_is_422_and_stores_nothing(client: TestClient):
    body = {"agent_name": "my_agent", "key": "k", "value": "v", "category": "gossip"}
    for path, sent in (("/remember", body), ("/forget", body), ("/recall", {**body, "query": "k"})):
        refused = client.post(path, json=sent)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
        assert "general, preference" in refused.json()["detail"]
    assert client.get("/agents/my_agent").status_code == 404


def test_a_forgotten_key_is_gone(client: TestClient):
    remember(client, "pin", "on the fridge", category="fact")
    body = {"agent_name": "my_agent", "key": "pin"}
    assert client.post("/forget", json=body).json() == {"forgotten": False}
    assert client.post("/forget", json={**body, "category": "fact"}).json() == {"forgotten": True}
    assert client.post("/recall", json={"agent_name": "my_agent", "query": "fridge"}).json()["memories"] == []


def test_a_preference_is_set_read_listed_and_forgotten(client: TestClient):
    path = "/preferences/my_agent/tone of voice"
    assert client.get("/preferences/my_agent").json()["preferences"] == {}
    made = client.put(path, json={"value": "formal"}).json()
    changed = client.put(path, json={"value": "friendly: very"}).json()
    assert (changed["id"], changed["category"], changed["value"]) == (made["id"], "preference", "friendly: very")
    assert client.get(path).json() == changed
    listed = client.get("/preferences/my_agent").json()
    assert listed == {"preferences": {"tone of voice": "friendly: very"}, "total": 1, "offset": 0, "limit": 100}
    assert client.delete(path).json() == {"forgotten": True}
    for answer in (client.get(path), client.delete(path)):
        assert (answer.status_code, answer.json()["code"]) == (404, "preference_not_found")


def test_preferences_are_listed_in_pages_by_key(client: TestClient):
    for key in ("c", "a", "d", "b"):
        client.put(f"/preferences/my_agent/{key}", json={"value": key.upper()})
    page = client.get("/preferences/my_agent?offset=1&limit=2").json()
    assert (list(page["preferences"].items()), page["total"]) == ([("b", "B"), ("c", "C")], 4)


def test_an_agents_key_remembers_for_its_agent_only(start: Start):
    client = start(api_key=KEY)
    mine = key_for(client, namespace="mine")
    assert client.put("/preferences/mine/tone", json={"value": "formal"}, headers=mine).status_code == 200
    body = {"agent_name": "other", "key": "k", "value": "v"}
    for answer in (
        client.post("/remember", json=body, headers=mine),
        client.post("/recall", json={**body, "query": "k"}, headers=mine),
        client.get("/preferences/other", headers=mine),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert client.get("/preferences/mine", headers=ENV).json()["preferences"] == {"tone": "formal"}


def test_a_remember_that_is_sent_again_does_not_undo_a_later_one(client: TestClient):
    headers = {"Idempotency-Key": "first"}
    body = {"agent_name": "my_agent", "key": "color", "value": "blue"}
    first = client.post("/remember", json=body, headers=headers)
    assert first.json()["created"]
    client.post("/remember", json={**body, "value": "teal"})
    again = client.post("/remember", json=body, headers=headers)
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (200, "true")
    assert (again.json()["id"], again.json()["created"]) == (first.json()["id"], True)
    recalled = client.post("/recall", json={"agent_name": "my_agent", "query": "color"}).json()
    assert recalled["memories"] == ["color: teal"]
    other = client.post("/remember", json={**body, "value": "red"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
