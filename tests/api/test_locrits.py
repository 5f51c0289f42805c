"""The Locrit routes: typical client sessions from the first message to clearing the memory."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import Start, keeps_backups, loaded

MEMORY = "/api/locrits/pixie/memory"
STORE = "/api/v1/locrits/pixie/memory/store-conversation"
TALK = [
    {"id": "1", "type": "user", "content": "My name is Alice", "timestamp": "2025-04-02T09:30:00Z"},
    {"id": "2", "type": "assistant", "content": "Nice to meet you, Alice!", "timestamp": "2025-04-02T09:30:02Z"},
    {"id": "3", "type": "user", "content": "What's my name?", "timestamp": "2025-04-02T09:31:00Z"},
]
SESSION = "web_alice_pixie"


@pytest.fixture
def told(client: TestClient) -> TestClient:
    """A service whose Locrit talked with Alice, and has read it."""
    store(loaded(client), TALK, user_id="alice")
    return read(client)


def store(client: TestClient, messages: list[dict[str, Any]], **more: Any) -> Any:
    response = client.post(STORE, json={"messages": messages, "force_update": True, **more})
    assert response.status_code == 200, response.text
    return response.json()


def read(client: TestClient) -> TestClient:
    client.app.state.service.graph.indexer.catch_up()  # type: ignore[attr-defined]
    return client


def get(client: TestClient, path: str, **query: Any) -> Any:
    response = client.get(f"{MEMORY}/{path}", params=query)
    assert response.status_code == 200, response.text
    return response.json()


def test_a_locrit_recalls_the_name_of_a_user(told: TestClient):
    history = get(told, f"sessions/{SESSION}/messages")
    assert [(one["role"], one["content"]) for one in history["messages"]] == [
        (one["type"], one["content"]) for one in TALK
    ]
    assert {one["user_id"] for one in history["messages"]} == {"alice"}
    assert history["total"] == 3
    [alice] = [one for one in get(told, "concepts")["concepts"] if one["name"] == "Alice"]
    assert alice["mentions"] == 2
    details = get(told, "concepts/details", name="alice")
    assert details["id"] == alice["id"]
    assert details["description"] == "My name is Alice"
    assert [one["role"] for one in details["context_examples"]] == ["assistant", "user"]
    found = get(told, "search", q="name", strategy="keyword")["results"]
    assert "My name is Alice" in {one["content"] for one in found}
    assert found[0]["session_id"] == SESSION


def test_summary_and_statistics_count_the_contents(told: TestClient):
    summary = get(told, "summary")
    concepts = get(told, "concepts")["total"]
    assert summary["locrit_name"] == "pixie"
    assert summary["statistics"] == {
        "total_messages": 3, "total_sessions": 1, "total_concepts": concepts, "total_users": 1,
        "total_memories": 0, "waiting_to_be_read": 0,
    }  # fmt: skip
    assert summary["recent_messages"][0]["content"] == "What's my name?"
    assert summary["recent_sessions"][0]["id"] == SESSION
    # Nothing is said but the user's own name.
    assert summary["top_concepts"] == []
    assert summary["memory_insights"] == []
    stats = get(told, "stats")
    assert stats == {"locrit_name": "pixie", "statistics": summary["statistics"], "access_level": "full"}


def test_a_conversation_that_is_sent_again_is_stored_once(told: TestClient):
    again = [*TALK, {"type": "assistant", "content": "Your name is Alice!", "timestamp": "2025-04-02T09:31:02Z"}]
    stored = store(told, again, user_id="alice")
    assert stored["details"] == {"total_processed": 4, "memories_stored": 1}
    assert get(told, f"sessions/{SESSION}")["session"]["message_count"] == 4
    assert store(told, [{"content": "  "}], user_id="alice")["details"]["total_processed"] == 0
    assert store(told, [{"content": "Hi"}])["session_id"] == "web_unknown_pixie"
    latest = get(told, f"sessions/{SESSION}/messages", limit=2)
    assert [one["content"] for one in latest["messages"]] == ["What's my name?", "Your name is Alice!"]


def test_messages_and_sessions_are_shown_edited_and_deleted(told: TestClient):
    first = get(told, f"sessions/{SESSION}/messages")["messages"][0]
    path = f"{MEMORY}/messages/{first['id']}"
    assert told.get(path).json() == {"message": first}
    assert told.put(path, json={"content": "My name is Boris"}).json()["success"] is True
    read(told)
    assert get(told, "concepts/details", name="boris")["mentions"] == 1
    assert get(told, "concepts/details", name="alice")["mentions"] == 1
    assert told.delete(path).json()["success"] is True
    assert told.get(path).json()["code"] == told.delete(path).json()["code"] == "message_not_found"
    assert get(told, "sessions")["total"] == 1
    assert told.delete(f"{MEMORY}/sessions/{SESSION}").json()["success"] is True
    assert told.delete(f"{MEMORY}/sessions/{SESSION}").json()["code"] == "session_not_found"
    assert get(told, "concepts") == {"concepts": [], "total": 0}


def test_concepts_are_related_edited_and_deleted(told: TestClient):
    store(told, [{"content": "Alice met Boris in Lisbon"}, {"content": "I met Dora"}], user_id="alice")
    read(told)
    related = get(told, "concepts/alice/related", depth=1)
    assert (related["concept"], related["depth"], related["total"]) == (
        "alice", 1, len(related["related_concepts"])
    )  # fmt: skip
    assert {"Boris", "Lisbon"} <= {one["name"] for one in related["related_concepts"]}
    assert told.get(f"{MEMORY}/concepts/AC%2FDC/related").json()["detail"].startswith("Concept 'AC/DC' not found")
    boris = f"{MEMORY}/concepts/{get(told, 'concepts/details', name='boris')['id']}"
    assert 0 < get(told, "concepts/details", name="boris")["confidence"] < 1
    changed = told.put(boris, json={"name": "Boris Petrov", "description": "A friend", "confidence": 0.9})
    assert changed.json()["success"] is True
    details = get(told, "concepts/details", name="boris petrov")
    assert (details["name"], details["description"], details["confidence"]) == ("Boris Petrov", "A friend", 0.9)
    assert told.put(boris, json={"confidence": 0.5}).json()["code"] == "nothing_to_do"
    assert told.put(boris, json={"name": "B", "confidence": 1.5}).status_code == 422
    assert told.delete(boris).json()["success"] is True
    assert told.delete(boris).json()["code"] == "concept_not_found"


def test_memories_are_added_listed_and_deleted(told: TestClient):
    added = told.post(f"{MEMORY}/memories", json={"content": "Alice likes blue", "metadata": {"by": "hand"}}).json()
    told.post(f"{MEMORY}/memories", json={"content": "Boris likes red", "importance": 0.9})
    listed = get(told, "memories")
    assert [(one["content"], one["importance"]) for one in listed["memories"]] == [
        ("Boris likes red", 0.9),
        ("Alice likes blue", 0.5),
    ]
    assert (listed["memories"][1]["id"], listed["memories"][1]["metadata"]) == (added["memory_id"], {"by": "hand"})
    assert told.post(f"{MEMORY}/memories", json={"content": "x", "importance": 2}).status_code == 422
    path = f"{MEMORY}/memories/{added['memory_id']}"
    assert told.delete(path).json()["success"] is True
    assert told.delete(path).json()["code"] == "memory_not_found"
    assert get(told, "memories")["total"] == 1


def test_clearing_needs_a_word_makes_a_backup_and_leaves_the_locrit_as_it_was_set_up(told: TestClient):
    told.put("/agents/pixie/access", json={"logs": False})
    told.put("/agents/pixie/policy", json={"pii": "redact"})
    told.post(f"{MEMORY}/memories", json={"content": "Alice likes blue"})
    for body in ({}, {"confirm": False}):
        assert told.request("DELETE", f"{MEMORY}/clear", json=body).status_code == 422
    assert told.request("DELETE", f"{MEMORY}/clear", json={"confirm": True}).json()["success"] is True
    assert ("pre_clear" in told.get("/backups").text) is keeps_backups(told)
    assert set(get(told, "stats")["statistics"].values()) == {0}
    assert told.get("/agents/pixie/access").json()["logs"] is False
    assert told.get("/agents/pixie/policy").json()["pii"] == "redact"
    nobody = told.request("DELETE", "/api/locrits/nobody/memory/clear", json={"confirm": True})
    assert nobody.json()["code"] == "agent_not_found"


def test_denied_access_levels_apply_to_every_key(start: Start):
    client = loaded(start())
    store(client, TALK, user_id="alice")
    client.put("/agents/pixie/access", json={"full_memory": False, "logs": False})
    for path in ("summary", "sessions", f"sessions/{SESSION}/messages", "concepts", "memories"):
        assert client.get(f"{MEMORY}/{path}").json()["code"] == "access_limited"
    assert get(client, "stats")["access_level"] == "quick"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("links", "x"),
        ("conflicts_with", 7),
        ("is_latest", "q"),
        ("valid_to", 7),
        ("author", "boss"),
        ("contributors", ["ceo"]),
        ("promotion", {"a": 1}),
        ("source_memory_ids", [1]),
    ],
)
def test_metadata_of_a_memory_sets_no_field_of_the_service(told: TestClient, name: str, value: Any):
    added = told.post(f"{MEMORY}/memories", json={"content": "Alice likes blue", "metadata": {name: value, "mood": 1}})
    assert added.status_code == 200, added.text
    headers = {"X-Namespace": "pixie"}
    record = told.get(f"/memory/{added.json()['memory_id']}", headers=headers)
    assert record.status_code == 200, record.text
    assert (name in record.json(), record.json()["mood"]) == (False, 1)
    assert told.get("/memories", headers=headers).status_code == 200
    assert told.post("/search", json={"query": "blue"}, headers=headers).status_code == 200


@pytest.mark.parametrize("field", [{"document_at": 5}, {"entity_key": {}}, {"pinned": "yes"}])
def test_metadata_that_cannot_be_a_field_of_the_memory_is_422(told: TestClient, field: dict[str, Any]):
    assert told.post(f"{MEMORY}/memories", json={"content": "blue", "metadata": field}).status_code == 422


@pytest.mark.parametrize("blank", [" ", "\u200b", "\u3000"])
def test_a_blank_memory_is_422(told: TestClient, blank: str):
    assert told.post(f"{MEMORY}/memories", json={"content": blank}).status_code == 422
