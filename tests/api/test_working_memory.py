"""Active sessions over HTTP: messages, context, and the parts of a prompt from each tier."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import KEY, Start, loaded
from tests.api.test_agents import ENV, key_for
from tests.api.test_messages import AGENT, refusal, search, store
from tests.api.test_sessions import start_session

RUNNING = f"/sessions/{AGENT}/s"


def say(client: TestClient, *contents: str, key: str | None = None) -> list[dict[str, Any]]:
    said = []
    for number, content in enumerate(contents):
        answer = client.post(
            f"{RUNNING}/messages",
            json={"role": "assistant" if number % 2 else "user", "content": content},
            headers={"Idempotency-Key": key} if key else {},
        )
        assert answer.status_code == 200, answer.text
        said.append(answer.json())
    return said


def window(client: TestClient, **query: int) -> list[str]:
    answer = client.get(f"{RUNNING}/window", params=query)
    assert answer.status_code == 200, answer.text
    return [message["content"] for message in answer.json()["messages"]]


def test_messages_are_in_the_context_and_searchable_after_the_session(client: TestClient):
    # Loading ends with indexing what an earlier process left, and would index these messages too.
    loaded(client)
    start_session(client, session_id="s", user="alice")
    [message, _] = say(client, "my boat is green", "noted")
    assert (message["session_id"], message["user"], message["role"]) == ("s", "alice", "user")
    assert client.get(f"/messages/{AGENT}/{message['id']}").json() == message
    [first, second] = client.get(f"{RUNNING}/window").json()["messages"]
    assert first.keys() == {"role", "content", "timestamp"}
    assert (first["content"], second["role"]) == ("my boat is green", "assistant")
    assert search(client, "green boat") == []
    client.post(f"{RUNNING}/end")
    assert window(client) == []
    assert search(client, "green boat")[0]["id"] == message["id"]


def test_the_context_is_cut_to_tokens_and_to_a_number_of_messages(start: Start):
    client = start(session_max_messages=4)
    start_session(client, session_id="s")
    say(client, "a", "b" * 40, "c" * 8, "d" * 8, "e" * 8)
    assert window(client) == ["b" * 40, "c" * 8, "d" * 8, "e" * 8]
    assert window(client, token_limit=6) == ["c" * 8, "d" * 8, "e" * 8]
    assert window(client, token_limit=5) == ["d" * 8, "e" * 8]
    assert window(client, token_limit=6, limit=1) == ["e" * 8]
    assert window(client, limit=0) == window(client, token_limit=0) == []


def test_a_cleared_context_is_empty_and_the_session_keeps_its_messages(client: TestClient):
    start_session(client, session_id="s")
    say(client, "one", "two")
    assert client.delete(f"{RUNNING}/window").json() == {"cleared": 2}
    assert window(client) == []
    say(client, "three")
    assert window(client) == ["three"]
    kept = client.get(f"{RUNNING}/messages").json()
    assert [message["content"] for message in kept] == ["one", "two", "three"]


def test_the_context_outlives_a_restart(start: Start):
    client = start()
    start_session(client, session_id="s")
    say(client, "one", "two")
    client.delete(f"{RUNNING}/window")
    say(client, "three")
    client.__exit__()
    assert window(start()) == ["three"]


def test_a_changed_message_is_changed_in_the_context(client: TestClient):
    start_session(client, session_id="s")
    [message] = say(client, "the wrong thing")
    assert window(client) == ["the wrong thing"]
    client.patch(f"/messages/{AGENT}/{message['id']}", json={"content": "the right thing"})
    store(client, "and another", session_id="s")
    assert window(client) == ["the right thing", "and another"]


def test_a_prompt_context_has_all_tiers(client: TestClient):
    store(client, "we sailed a green boat", session_id="before")
    client.post("/remember", json={"agent_name": AGENT, "key": "boat", "value": "is called Ada"})
    client.put(f"/preferences/{AGENT}/boat talk", json={"value": "short"})
    start_session(client, session_id="s")
    say(client, "what about my boat?")
    answer = client.post(f"{RUNNING}/context", json={"query": "green boat"}).json()
    assert [message["content"] for message in answer["session_messages"]] == ["what about my boat?"]
    [past] = answer["relevant_history"]
    assert (past["content"], past["session_id"]) == ("we sailed a green boat", "before")
    assert past["similarity"] > 0
    assert answer["relevant_memories"] == ["boat: is called Ada"]
    assert answer["user_preferences"] == {"boat talk": "short"}
    assert answer["degraded"] == []
    assert len(answer) == 5


def test_the_running_session_is_no_past(client: TestClient):
    start_session(client, session_id="s")
    store(client, "a green boat", session_id="s")
    answer = client.post(f"{RUNNING}/context", json={"query": "green boat"}).json()
    assert answer["relevant_history"] == []
    assert len(answer["session_messages"]) == 1


def test_a_message_that_is_sent_again_is_said_once(client: TestClient):
    start_session(client, session_id="s")
    [first], [again] = say(client, "once", key="k"), say(client, "once", key="k")
    assert first == again
    assert window(client) == ["once"]
    other = client.post(
        f"{RUNNING}/messages", json={"role": "user", "content": "other"}, headers={"Idempotency-Key": "k"}
    )
    assert refusal(other) == (422, "idempotency_key_reused")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "messages", {"role": "user", "content": "hello"}),
        ("GET", "window", None),
        ("DELETE", "window", None),
        ("POST", "context", {"query": "hello"}),
    ],
)
def test_a_session_that_is_not_there_is_404_and_is_not_made(client: TestClient, method: str, path: str, body: Any):
    nobody = client.request(method, f"/sessions/nobody/s/{path}", json=body)
    assert refusal(nobody) == (404, "agent_not_found")
    client.post("/agents", json={"name": AGENT})
    assert refusal(client.request(method, f"{RUNNING}/{path}", json=body)) == (404, "session_not_found")
    assert client.get(f"/sessions/{AGENT}").json()["total"] == 0


def test_an_ended_session_takes_no_messages(client: TestClient):
    start_session(client, session_id="s")
    client.post(f"{RUNNING}/end")
    refused = client.post(f"{RUNNING}/messages", json={"role": "user", "content": "hello"})
    assert refusal(refused) == (409, "session_ended")


def test_sixteen_callers_at_once_lose_no_message(client: TestClient):
    start_session(client, session_id="s")
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: say(client, str(number)), range(48)))
    kept = [message["content"] for message in client.get(f"{RUNNING}/messages").json()]
    assert sorted(kept, key=int) == [str(number) for number in range(48)]
    assert window(client) == kept


def test_an_agents_key_sees_the_context_of_its_agent_only(start: Start):
    client = start(api_key=KEY)
    for name in ("mine", "other"):
        client.post("/sessions", json={"agent_name": name, "session_id": "s"}, headers=ENV)
    mine = key_for(client, namespace="mine")
    assert client.get("/sessions/mine/s/window", headers=mine).status_code == 200
    assert refusal(client.get("/sessions/other/s/window", headers=mine)) == (403, "forbidden")


def test_deleted_messages_leave_the_context_immediately(client: TestClient):
    start_session(client, session_id="s")
    _, second, _ = say(client, "one", "two", "three")
    assert window(client) == ["one", "two", "three"]
    client.delete(f"/messages/{AGENT}/{second['id']}")
    assert window(client) == ["one", "three"]
    client.delete(RUNNING)
    assert refusal(client.get(f"{RUNNING}/window")) == (404, "session_not_found")


def test_a_recreated_agent_has_no_data_of_the_deleted_one(client: TestClient):
    for _ in range(2):
        start_session(client, session_id="s")
        say(client, "of the first")
        assert window(client) == ["of the first"]
        client.delete(f"/agents/{AGENT}")
        start_session(client, session_id="s")
        say(client, "of the second")
        assert window(client) == ["of the second"]
        client.delete(f"/agents/{AGENT}")
