"""Topics and insights over HTTP: listed, shown with their sessions and messages, named, counted."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import indexed

SAILING = "Lisbon to Madeira on the Albatross, says Alice"
BAKING = "Wedding cakes from Milan, baked by Boris with Greta"


def ask(client: TestClient, path: str = "") -> Any:
    answer = client.get(f"/agents/ann/topics{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def agent(client: TestClient) -> TestClient:
    """`ann`, who sailed in two sessions and baked in one."""
    for session, text in (("sea0", SAILING), ("sea1", SAILING), ("oven", BAKING), ("oven", BAKING)):
        said = {"agent_name": "ann", "role": "user", "content": text, "session_id": session}
        assert client.post("/messages", json=said).status_code == 200
    return indexed(client)


def test_topics_are_listed_by_sessions_and_shown_with_messages(agent: TestClient):
    listed = ask(agent)
    assert (listed["total"], [topic["sessions"] for topic in listed["topics"]]) == (2, [2, 1])
    sea = ask(agent, f"/{listed['topics'][0]['id']}")
    assert {name: sea[name] for name in listed["topics"][0]} == listed["topics"][0]
    assert {(one["session_id"], one["primary_topic"]) for one in sea["in_sessions"]} == {("sea0", True), ("sea1", True)}
    assert {one["content"] for one in sea["in_messages"]} == {SAILING}
    assert ask(agent, "?limit=1&offset=1")["topics"] == listed["topics"][1:]


def test_a_topic_is_named_and_is_called_by_its_terms_again(agent: TestClient):
    topic = ask(agent)["topics"][0]
    path = f"/agents/ann/topics/{topic['id']}"
    named = agent.patch(path, json={"name": "Sailing", "summary": "Trips at sea"}).json()
    assert (named["name"], named["named_by"], named["summary"]) == ("Sailing", "caller", "Trips at sea")
    other = agent.patch(f"/agents/ann/topics/{ask(agent)['topics'][1]['id']}", json={"name": "sailing"})
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    assert other.json()["detail"].startswith(f"Topic {topic['id']} has the name 'sailing'; give another one")
    again = agent.patch(path, json={"name": None}).json()
    assert (again["name"], again["named_by"], again["summary"]) == (topic["name"], "caller", "Trips at sea")
    assert agent.patch(path, json={"name": ""}).status_code == 422
    for blank in ({"name": "\u200b"}, {"summary": "\u2060 \u200b"}):
        assert agent.patch(path, json=blank).status_code == 422
    assert agent.patch(path, json={"name": "Sai\u200bling"}).json()["name"] == "Sailing"
    assert agent.patch(path, json={}).json()["detail"] == "Nothing to change; give name or summary"


def test_a_topic_of_another_agent_is_404(agent: TestClient):
    agent.post("/agents", json={"name": "bob"})
    path = f"/agents/bob/topics/{ask(agent)['topics'][0]['id']}"
    for answer in (agent.get(path), agent.patch(path, json={"name": "Mine"})):
        assert (answer.status_code, answer.json()["code"]) == (404, "topic_not_found")
    assert agent.get("/agents/nobody/topics").json()["code"] == "agent_not_found"


def test_a_topic_of_hidden_messages_is_404_like_an_absent_one(agent: TestClient):
    path = f"/agents/ann/topics/{ask(agent)['topics'][0]['id']}"
    for message in agent.get("/messages/ann").json():
        flagged = agent.patch(f"/messages/ann/{message['id']}", json={"metadata": {"sensitive_topics": ["health"]}})
        assert flagged.status_code == 200
    assert agent.get(path).status_code == 200
    agent.put("/agents/ann/policy", json={"hidden_topics": ["health"]})
    for answer in (agent.get(path), agent.patch(path, json={"name": "Sea"})):
        assert (answer.status_code, answer.json()["code"]) == (404, "topic_not_found")
    assert ask(agent)["topics"] == []


def test_insights_are_sent_as_they_are_described(agent: TestClient):
    promise = {
        "agent_name": "ann", "role": "user", "content": "I'll send Priya the draft by 5 January 2024.",
        "session_id": "sea0", "created_at": "2024-01-01T09:00:00Z",
    }  # fmt: skip
    said = agent.post("/messages", json=promise).json()
    indexed(agent)
    [found] = agent.get("/agents/ann/insights?at=2024-01-02").json()["insights"]
    assert (found["kind"], found["due"]) == ("upcoming", "2024-01-05")
    assert found["sources"] == [{"kind": "message", "id": said["id"], "session_id": "sea0"}]
    assert [one["name"] for one in found["concepts"]] == ["Priya"]
    assert agent.get("/agents/ann/insights?at=2024-02-01").json()["insights"][0]["kind"] == "overdue"
    assert agent.get("/agents/ann/insights?at=2999-01-01").json() == {"insights": []}
    assert agent.get("/agents/ann/insights?at=soon").status_code == 422
    assert agent.get("/agents/ann/summary").json()["insights"] == agent.get("/agents/ann/insights").json()["insights"]
