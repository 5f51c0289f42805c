"""Relations in an agent's graph that need more than messages: learned facts and topics."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import Start, indexed
from tests.api.learning import learned
from tests.vendors.llm import LLMVendor

BOT = {"X-Namespace": "bot"}
SAID = ("Anna sails the Ceruleana to Bergen.", "We saw the Ceruleana today.", "Redis runs on our old server.")


@pytest.fixture
def client(start: Start, learner: LLMVendor) -> TestClient:
    return start(**learner.settings("openai"))


def graph(client: TestClient) -> dict[str, Any]:
    answer = indexed(client).get("/agents/bot/graph")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def of_type(found: dict[str, Any], wanted: str) -> list[tuple[str, str, Any]]:
    """Relations by what their ends say."""
    said = {one["id"]: one["properties"].get("content", one["properties"].get("name")) for one in found["nodes"]}
    return [
        (said[one["from_id"]], said[one["to_id"]], one["properties"])
        for one in found["relations"]
        if one["type"] == wanted
    ]


def test_a_message_triggers_memories_of_its_session_by_shared_concepts(client: TestClient):
    messages = [{"role": "user", "content": content} for content in SAID]
    for session in ("learned", "other"):
        client.post("/messages/batch", json={"agent_name": "bot", "session_id": session, "messages": messages})
    learned(client, f"User: {SAID[0]}", headers=BOT, session="learned")
    found = graph(client)
    triggers = of_type(found, "TRIGGERS")
    assert [(one, other) for one, other, _ in triggers] == [(SAID[0], SAID[0]), (SAID[1], SAID[0])]
    whole, part = (properties["trigger_strength"] for _, _, properties in triggers)
    assert whole == 1.0 > part > 0
    first = next(one["from_id"] for one in found["relations"] if one["type"] == "CONTAINS")
    contained = {one["to_id"] for one in found["relations"] if one["type"] == "CONTAINS" and one["from_id"] == first}
    assert {one["from_id"] for one in found["relations"] if one["type"] == "TRIGGERS"} <= contained


def test_messages_discuss_the_topics_of_their_session(
    client: TestClient,
):
    sea = ("Alice took the Albatross from Lisbon to Madeira", "Lisbon and Madeira again on the Albatross, says Alice")
    oven = ("Boris bakes panettone with Greta in Milan", "Greta brought panettone from Milan for Boris", "So it is.")
    for number in range(2):
        for name, said in (("sea", sea), ("oven", oven)):
            messages = [{"role": "user", "content": content} for content in said]
            body = {"agent_name": "bot", "session_id": f"{name}{number}", "messages": messages}
            client.post("/messages/batch", json=body)
    found = graph(client)
    shown = client.get("/agents/bot/topics").json()["topics"]
    assert {one["properties"]["name"] for one in found["nodes"] if one["label"] == "Topic"} == {
        one["name"] for one in shown
    }
    assert [properties for _, _, properties in of_type(found, "BELONGS_TO")] == [{"primary_topic": True}] * 4
    discussed = of_type(found, "DISCUSSES")
    assert {content for content, _, _ in discussed} == {*sea, *oven[:2]}
    assert all(0 < properties["relevance"] <= 1 for _, _, properties in discussed)
