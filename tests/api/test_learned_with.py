"""Facts learned from a conversation are deleted with its user and its session; other facts stay."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.core.types import Scope
from tests.api.conftest import Start
from tests.api.learning import ended, learned, takes_everything
from tests.memories.erasure.canaries import found_in, stored
from tests.vendors.llm import LLMRequest, LLMVendor, says

BOT = {"X-Namespace": "bot9"}
RED, BLUE, GREEN = "Quixotine drives a crimsonish cabriolet.", "Wendelin sails a ceruleanic catamaran.", "Tea is green."
WORDS = ["Quixotine", "crimsonish"]


@pytest.fixture
def client(start: Start, learner: LLMVendor) -> TestClient:
    return start(**learner.settings("openai"))


def learn(client: TestClient, text: str, **more: Any) -> dict[str, Any]:
    return learned(client, f"User: {text}", headers=BOT, **more)


def memories(client: TestClient, **more: Any) -> list[str]:
    listed = client.get("/memories", headers=BOT, params={"include_archived": True, **more}).json()["memories"]
    return [memory["text"] for memory in listed]


def erase(client: TestClient, **selector: Any) -> dict[str, Any]:
    body = {"selector": {"agent_name": "bot9", **selector}, "confirm": True}
    answer = client.post("/erase", json=body)
    assert answer.status_code == 200, answer.text
    removed: dict[str, Any] = answer.json()["removed"]
    return removed


def delete(client: TestClient, **selector: Any) -> dict[str, Any]:
    path = (
        f"/agents/bot9/users/{selector['user']}" if "user" in selector else f"/sessions/bot9/{selector['session_id']}"
    )
    answer = client.delete(path)
    assert answer.status_code == 200, answer.text
    removed: dict[str, Any] = answer.json()["removed"]
    return removed


FORGET = pytest.mark.parametrize("forget", [erase, delete])


def corrects(request: LLMRequest) -> Any:
    """A model by which every fact takes the place of the first memory that it is shown beside."""
    if request.prompt == "decide":
        decision = {"fact": 1, "verdict": "UPDATE", "memory": 1, "reason": "It changed."}
        return {"decisions": [decision]}
    return takes_everything(request)


@FORGET
@pytest.mark.parametrize("store_messages", [True, False])
@pytest.mark.parametrize("selector", [{"user": "ann"}, {"session_id": "s1"}])
def test_learned_memories_are_deleted_with_their_user_and_session(
    client: TestClient, forget: Any, store_messages: bool, selector: dict[str, str]
):
    client.post("/agents", json={"name": "bot9"})
    learn(client, RED, user="ann", session="s1", store_messages=store_messages)
    learn(client, BLUE, user="ben", session="s2", store_messages=store_messages)
    learn(client, GREEN)
    removed = forget(client, **selector)
    assert (removed["memories"], removed["messages"]) == (1, int(store_messages))
    assert sorted(memories(client)) == sorted([BLUE, GREEN])
    service = client.app.state.service  # type: ignore[attr-defined]
    assert stored(service, WORDS) == set()
    if forget is erase:
        assert found_in(service.settings.data_dir, WORDS) == {}


@FORGET
def test_the_default_user_is_that_of_the_session(client: TestClient, forget: Any):
    client.post("/sessions", json={"agent_name": "bot9", "session_id": "s1", "user": "ann"})
    learn(client, RED, session="s1")
    client.post(
        "/messages", json={"agent_name": "bot9", "session_id": "s1", "role": "user", "user": "ben", "content": "x"}
    )
    assert forget(client, user="ann")["memories"] == 1
    assert memories(client) == []


@FORGET
@pytest.mark.parametrize("selector", [{"user": "ann"}, {"session_id": "s1"}])
def test_an_extraction_that_waits_ends_with_its_user_and_session_before_they_are_stored(
    start: Start, learner: LLMVendor, forget: Any, selector: dict[str, str]
):
    client = start(extract_max_inflight=1, **learner.settings("openai"))
    client.post("/agents", json={"name": "bot9"})
    learner.replies.append(says({"facts": []}, waits=True))
    jobs = [
        client.post("/memory/extract", json={"messages": f"User: {text}", **more}, headers=BOT).json()["job_id"]
        for text, more in [(GREEN, {}), (RED, {"user": "ann", "session": "s1"}), (BLUE, {"user": "ben"})]
    ]
    preview = client.post("/erase/preview", json={"selector": {"agent_name": "bot9", **selector}})
    assert preview.json()["would_remove"]["memories"] == 0
    assert set(forget(client, **selector).values()) == {0}
    learner.go_on.set()
    assert [ended(client, job, headers=BOT)["status"] for job in jobs] == ["completed", "cancelled", "completed"]
    assert memories(client) == [BLUE]
    assert client.post("/erase/preview", json={"selector": {"agent_name": "bot9", **selector}}).status_code == 404


def test_stored_turns_of_a_new_session_are_forgotten_with_it(client: TestClient):
    body = {"messages": f"User: {RED}", "store_messages": True}
    answer = client.post("/memory/extract", json=body, headers=BOT).json()
    ended(client, answer["job_id"], headers=BOT)
    assert delete(client, session_id=answer["messages"]["session_id"])["memories"] == 1


def test_the_memories_of_a_session_are_listed_until_it_is_deleted(client: TestClient):
    learn(client, RED, session="s1", store_messages=True)
    learn(client, BLUE, session="s2", store_messages=True)
    found = client.get("/sessions/bot9/s1/memories").json()
    assert ([one["text"] for one in found["memories"]], found["total"]) == ([RED], 1)
    assert client.get("/sessions/bot9/s1/memories", params={"offset": 1}).json()["memories"] == []
    delete(client, session_id="s1")
    assert client.get("/sessions/bot9/s1/memories").status_code == 404


@FORGET
@pytest.mark.parametrize("user", ["ann", "ben"])
def test_a_memory_learned_with_two_users_is_deleted_with_either(
    client: TestClient, learner: LLMVendor, forget: Any, user: str
):
    client.post("/agents", json={"name": "bot9"})
    learn(client, RED, user="ann")
    learner.script(corrects)
    later = RED.replace("crimsonish", "vermilionic")
    assert learn(client, later, user="ben")["result"]["updated_count"] == 1
    removed = forget(client, user=user)
    assert removed["memories"] == (2 if user == "ann" else 1), "what it replaced was learned with ann alone"
    assert memories(client) == ([] if user == "ann" else [RED]), "archived"
    service = client.app.state.service  # type: ignore[attr-defined]
    assert stored(service, ["vermilionic"]) == set()
    assert stored(service, ["crimsonish"]) == (set() if user == "ann" else {"crimsonish"})


def test_a_callers_replacement_is_deleted_too(client: TestClient):
    [action] = learn(client, RED, user="ann")["result"]["actions"]
    body = {"old_id": action["id"], "new_text": "Somebody drives a vermilionic car."}
    assert client.post("/memory/supersede", json=body, headers=BOT).status_code == 200
    assert erase(client, user="ann")["memories"] == 2
    assert memories(client) == []


def test_a_caller_cannot_change_the_provenance_of_a_memory(client: TestClient):
    claimed = {"learned_with": {"user": ["ann"]}}
    added = {"text": GREEN, "source": "notes", "metadata": claimed}
    assert client.post("/memory/add", json=added, headers=BOT).status_code == 200
    [action] = learn(client, RED, user="ann")["result"]["actions"]
    patched = client.patch(f"/memory/{action['id']}", json={"metadata_patch": {"learned_with": None}}, headers=BOT)
    assert patched.status_code == 200, patched.text
    assert erase(client, user="ann")["memories"] == 1
    assert memories(client) == [GREEN]


def test_memories_committed_from_a_dry_run_are_deleted_too(client: TestClient):
    dry = learn(client, RED, user="ann", source="chat", dry_run=True)
    actions = [{**action, "approved": True} for action in dry["result"]["actions"]]
    accepted = client.post("/memory/extract/commit", json={"actions": actions, "source": "chat"}, headers=BOT)
    assert accepted.status_code == 200, accepted.text
    assert memories(client) == [RED]
    assert erase(client, user="ann")["memories"] == 1


def test_an_extraction_that_is_not_finished_ends_when_its_user_is_deleted(client: TestClient, learner: LLMVendor):
    client.post("/messages", json={"agent_name": "bot9", "role": "user", "user": "ann", "content": "x"})
    learn(client, BLUE, user="ben")
    learner.replies.append(says({"facts": []}, waits=True))
    taken = client.post("/memory/extract", json={"messages": f"User: {RED}", "user": "ann"}, headers=BOT).json()
    delete(client, user="ann")
    learner.go_on.set()
    assert ended(client, taken["job_id"], headers=BOT)["status"] == "cancelled"
    service = client.app.state.service  # type: ignore[attr-defined]
    assert stored(service, WORDS) == set()
    assert memories(client) == [BLUE]


@pytest.mark.parametrize("user", ["nobody", "ben"])
def test_who_taught_nothing_is_not_there(client: TestClient, user: str):
    learn(client, RED, user="ann")
    learned(client, f"User: {BLUE}", user="ben")
    client.post("/agents", json={"name": "bot9"})
    refused = client.delete(f"/agents/bot9/users/{user}")
    assert (refused.status_code, refused.json()["code"]) == (404, "user_not_found")
    assert memories(client) == [RED]


@FORGET
def test_jobs_and_audit_hold_no_word_of_a_transcript(client: TestClient, forget: Any):
    learn(client, RED, user="ann", store_messages=True)
    forget(client, user="ann")
    service = client.app.state.service  # type: ignore[attr-defined]
    with service.engine.namespace(Scope()) as (connection, _):
        held = repr([connection.execute(f"SELECT * FROM {table}").fetchall() for table in ("jobs", "audit_events")])
    assert "bot9" in held
    assert [word for word in WORDS if word in held] == []


@pytest.mark.parametrize("erased", [True, False])
def test_an_agent_takes_its_profiles_with_it_and_no_others(client: TestClient, erased: bool):
    for headers in (BOT, {"X-Namespace": "other"}):
        put = client.put("/extraction/profiles/notes/", json={"max_facts": 3}, headers=headers)
        assert put.status_code == 200, put.text
    learn(client, RED)
    client.post("/agents", json={"name": "bot9"})
    if erased:
        erase(client)
    else:
        assert client.delete("/agents/bot9").status_code == 200
    service = client.app.state.service  # type: ignore[attr-defined]
    with service.engine.namespace(Scope()) as (connection, _):
        query = "SELECT name FROM extraction_profiles p LEFT JOIN namespaces n ON n.id = p.namespace_id"
        assert list(connection.execute(query)) == [("other",)]
        assert list(connection.execute("SELECT count(*) FROM learned_with")) == [(0,)]
