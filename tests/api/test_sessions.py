"""Sessions and users over HTTP."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.core.timestamps import utc_now
from tests.api.test_messages import AGENT, refusal, store


def start_session(client: TestClient, **fields: Any) -> dict[str, Any]:
    started = client.post("/sessions", json={"agent_name": AGENT, **fields})
    assert started.status_code == 200, started.text
    session: dict[str, Any] = started.json()
    return session


def test_a_session_is_started_named_filled_and_ended(client: TestClient):
    started = start_session(client, session_id="s 1", user="alice", title="Colours", metadata={"n": 1})
    assert (started["session_id"], started["user"], started["messages"]) == ("s 1", "alice", 0)
    path = f"/sessions/{AGENT}/s 1"
    assert client.get(path).json() == started == start_session(client, session_id="s 1")
    assert client.patch(path, json={"title": "Blues"}).json()["title"] == "Blues"
    stored = [store(client, content, session_id="s 1") for content in ("one", "two", "three")]
    assert [one["user"] for one in stored] == ["alice"] * 3
    page = client.get(f"{path}/messages?offset=1&limit=1")
    assert (page.json(), page.headers["X-Total-Count"]) == ([stored[1]], "3")
    for place, offset, limit in [(0, 0, 3), (2, 1, 3), (2, 2, 1)]:
        page = client.get(f"{path}/messages", params={"around": stored[place]["id"], "limit": limit})
        assert (page.json(), page.headers["X-Offset"]) == (stored[offset : offset + limit], str(offset))
    other = store(client, "elsewhere", session_id="s 2")
    assert refusal(client.get(f"{path}/messages?around={other['id']}")) == (404, "message_not_found")
    ended = client.post(f"{path}/end").json()
    assert (ended["messages"], ended["ended_at"] is None) == (3, False)
    assert client.post(f"{path}/end").json() == ended
    refused = client.post("/messages", json={"agent_name": AGENT, "role": "user", "content": "c", "session_id": "s 1"})
    assert refusal(refused) == (409, "session_ended")
    assert refusal(client.post("/sessions", json={"agent_name": AGENT, "session_id": "s 1"})) == (409, "session_ended")


def test_a_session_has_start_and_end_and_future_times_count_as_now(client: TestClient):
    before, during, after = (f"2024-03-0{day}T09:00:00.000000+00:00" for day in (1, 2, 3))
    assert start_session(client, session_id="s", user="alice", started_at=during)["started_at"] == during
    store(client, "one", session_id="s", created_at=before)
    assert start_session(client, session_id="s", started_at=after)["started_at"] == before, "it is answered as it is"
    path = f"/sessions/{AGENT}/s"
    assert client.post(f"{path}/end", json={"ended_at": after}).json()["ended_at"] == after
    assert client.post(f"{path}/end", json={"ended_at": before}).json()["ended_at"] == after
    now = utc_now().isoformat()
    later = start_session(client, session_id="l", started_at="2999-01-01")
    ended = client.post(f"/sessions/{AGENT}/l/end", json={"ended_at": "2999-01-01"}).json()["ended_at"]
    assert now < later["started_at"] < ended < "2900"


def test_a_user_has_the_time_of_their_first_message(client: TestClient):
    since = []
    start_session(client, user="alice", started_at="2024-03-02")
    for at in ("2024-03-03", "2024-03-01"):
        store(client, "one", user="alice", created_at=at)
        [alice] = client.get(f"/agents/{AGENT}/users").json()["users"]
        since.append(alice["created_at"][:10])
    assert since == ["2024-03-02", "2024-03-01"]


def test_a_session_without_an_id_gets_a_uuid_and_is_started_once_under_a_key(client: TestClient):
    body, key = {"agent_name": AGENT, "title": "t"}, {"Idempotency-Key": "k"}
    first = client.post("/sessions", json=body, headers=key)
    assert uuid.UUID(first.json()["session_id"]).version == 4
    again = client.post("/sessions", json=body, headers=key)
    assert (again.json(), again.headers["Idempotency-Replayed"]) == (first.json(), "true")
    assert client.get(f"/sessions/{AGENT}").json()["total"] == 1


def test_sessions_are_listed_newest_first_by_user_and_state(client: TestClient):
    for number, user in enumerate(("alice", "bob", "alice")):
        store(client, "m", session_id=f"s{number}", user=user, created_at=f"2025-04-0{number + 1}")
    client.post(f"/sessions/{AGENT}/s0/end")

    def listed(query: str = "") -> list[str]:
        page = client.get(f"/sessions/{AGENT}{query}").json()
        return [one["session_id"] for one in page["sessions"]]

    assert listed() == ["s2", "s1", "s0"]
    assert listed("?user=alice") == ["s2", "s0"]
    assert listed("?open=true") == ["s2", "s1"]
    assert listed("?open=false") == ["s0"]
    assert listed("?offset=1&limit=1") == ["s1"]
    assert client.get(f"/sessions/{AGENT}?limit=1").json()["total"] == 3


def test_a_missing_resource_is_404(client: TestClient):
    assert refusal(client.get("/sessions/nobody")) == (404, "agent_not_found")
    store(client, "m", session_id="s")
    path = f"/sessions/{AGENT}/other"
    answers = [
        client.get(path),
        client.get(f"{path}/messages"),
        client.patch(path, json={"title": "t"}),
        client.post(f"{path}/end"),
    ]
    assert [refusal(answer) for answer in answers] == [(404, "session_not_found")] * 4
    assert refusal(client.patch(f"/sessions/{AGENT}/s", json={})) == (400, "nothing_to_do")


@pytest.mark.parametrize("field", [{"session_id": "a/b"}, {"user": ""}, {"title": "a\nb"}, {"metadata": []}], ids=str)
def test_a_field_that_cannot_be_used_is_422(client: TestClient, field: dict[str, Any]):
    assert client.post("/sessions", json={"agent_name": AGENT, **field}).status_code == 422


def test_users_are_listed_with_how_much_was_said(client: TestClient):
    start_session(client, user="carol")
    for user in ("bob", "alice", "bob"):
        store(client, "m", user=user)
    page = client.get(f"/agents/{AGENT}/users").json()
    assert [(one["name"], one["messages"]) for one in page["users"]] == [("alice", 1), ("bob", 2), ("carol", 0)]
    assert page["total"] == 3
    second = client.get(f"/agents/{AGENT}/users?offset=1&limit=1").json()
    assert [one["name"] for one in second["users"]] == ["bob"]


def test_statistics_count_the_contents_of_one_agent(client: TestClient):
    client.post("/agents", json={"name": AGENT})
    empty = client.get(f"/agents/{AGENT}/stats").json()
    assert set(empty.values()) == {0, None}
    store(client, "blue", user="alice", created_at="2025-04-02T09:30:00Z")
    store(client, "red", user="alice", created_at="2025-04-02T09:40:00Z")
    client.post("/messages", json={"agent_name": "other", "role": "user", "content": "c"})
    client.post("/memory/add", json={"text": "t", "source": "s"}, headers={"X-Namespace": AGENT})
    client.post("/memory-blocks", json={"agent_name": AGENT, "label": "human", "value": "v"})
    client.post("/messages/search", json={"agent_name": AGENT, "query": "blue"})
    stats = client.get(f"/agents/{AGENT}/stats").json()
    assert stats.pop("index_bytes") > 0
    assert stats == {
        "messages": 2,
        "sessions": 1,
        "users": 1,
        "blocks": 1,
        "memories": 1,
        "first_message_at": "2025-04-02T09:30:00.000000+00:00",
        "last_message_at": "2025-04-02T09:40:00.000000+00:00",
    }
