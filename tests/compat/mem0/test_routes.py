"""Mem0's routes without Mem0's package: keys, roles, levels, extraction by a model, and those of its own server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

import souvenir.compat.mem0
from app import create_app
from souvenir.core.settings import Settings
from souvenir.core.types import Role
from souvenir.server.routing import discovered_routes
from tests.api.conftest import BASE_URL, KEY
from tests.api.learning import ended, takes_everything
from tests.fake_embedder import FakeEmbedder, fake_of
from tests.vendors.llm import LLMVendor

ENV = {"Authorization": f"Token {KEY}"}
ROUTES = [(route, next(iter(route.methods or ()))) for route in discovered_routes(souvenir.compat.mem0)]
SECRET = "zebraquartz"


def path_of(path: str) -> str:
    names = {"{memory_id}": "1", "{kind}": "user", "{name}": "alice", "{project}": "a", "{organisation}": "souvenir"}
    for name, value in names.items():
        path = path.replace(name, value)
    return path


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("keys"), api_key=SecretStr(KEY), auth_rate_limit=10**6)
    with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL) as running:
        body = {"messages": [{"role": "user", "content": f"{SECRET} one"}], "agent_id": "a", "user_id": "alice"}
        for _ in range(8):
            assert running.post("/v3/memories/add/", json=body, headers=ENV).status_code == 200
        yield running


def key_for(client: TestClient, **more: Any) -> dict[str, str]:
    body = {"name": "mem0", "role": "read-write", "namespace": "a", **more}
    return {"Authorization": f"Token {client.post('/api/keys', json=body, headers=ENV).json()['key']}"}


@pytest.mark.parametrize(("route", "method"), ROUTES, ids=[f"{method} {route.path}" for route, method in ROUTES])
def test_a_route_answers_only_callers_with_its_role(client, route, method):
    path = path_of(route.path)
    for headers in ({}, {"Authorization": "Token mem_wrong"}, {"Authorization": f"Basic {KEY}"}):
        assert client.request(method, path, headers=headers, json={}).status_code == 401
    needed = route.analysed.role
    reader = key_for(client, role="read-only")
    answer = client.request(method, path, headers=reader, json={})
    assert (answer.status_code == 403) is (needed is not Role.READ_ONLY)
    elsewhere = {**reader, "X-Namespace": "elsewhere"}
    assert client.request(method, path, headers=elsewhere, json={}).status_code == 403
    assert isinstance(answer.json(), list) or isinstance(answer.json().get("detail", ""), str)


def test_the_levels_of_an_agent_limit_what_its_keys_read(client):
    key = key_for(client)
    client.put("/agents/a/access", json={"full_memory": False, "logs": False}, headers=ENV)
    try:
        assert len(client.post("/v3/memories/search/", json={"query": SECRET}, headers=key).json()["results"]) == 5
        for method, path in (("GET", "/v1/memories/1/"), ("POST", "/v3/memories/"), ("GET", "/v1/entities/")):
            refused = client.request(method, path, headers=key, json={})
            assert (refused.status_code, refused.json()["code"]) == (403, "access_limited")
        changed = client.put("/v1/memories/1/", json={"metadata": {"n": 1}}, headers=key)
        assert changed.status_code == 200
        assert SECRET not in changed.text
        added = client.post("/v3/memories/add/", json={"messages": [{"role": "user", "content": SECRET}]}, headers=key)
        assert added.json()["results"][0]["event"] == "ADD"
        assert SECRET not in added.text
    finally:
        client.put("/agents/a/access", json={"full_memory": True, "logs": True}, headers=ENV)


def test_a_key_for_some_sources_sees_and_writes_these_only(client):
    notes = key_for(client, prefixes=["notes"])
    assert client.post("/v3/memories/", json={}, headers=notes).json()["count"] == 0
    assert client.get("/v1/entities/", headers=notes).json()["results"] == []
    body = {"messages": [{"role": "user", "content": SECRET}]}
    refused = client.post("/v3/memories/add/", json=body, headers=notes)
    assert (refused.status_code, refused.json()["code"]) == (403, "source_forbidden")
    client.delete("/v1/memories/?user_id=*", headers=notes)
    own = key_for(client, prefixes=["mem0"])
    assert client.post("/v3/memories/", json={}, headers=own).json()["count"] >= 8


def test_an_id_of_another_namespace_is_answered_like_a_missing_one(client):
    other = key_for(client, namespace="b")
    for method, path in (("GET", ""), ("GET", "history/"), ("PUT", ""), ("DELETE", "")):
        body = {"text": "changed"} if method == "PUT" else None
        theirs, missing = (
            client.request(method, f"/v1/memories/{id_}/{path}", json=body, headers=other) for id_ in ("1", "999999")
        )
        assert theirs.status_code == missing.status_code == 404
        assert theirs.json()["detail"].replace(" 1 ", " 999999 ") == missing.json()["detail"]
    for answer in (
        client.post("/v3/memories/", json={"filters": {"agent_id": "a"}}, headers=other),
        client.post("/v3/memories/search/", json={"query": SECRET, "filters": {"agent_id": "a"}}, headers=other),
        client.delete("/v1/memories/?agent_id=a", headers=other),
        client.delete("/v2/entities/agent/a/", headers=other),
    ):
        assert (answer.status_code, SECRET in answer.text) == (403, False)
    assert client.get("/v1/memories/1/", headers=ENV).json()["memory"] == f"{SECRET} one"


def test_a_body_that_is_no_json_is_refused_with_one_sentence(client):
    headers = {**ENV, "Content-Type": "application/json"}
    answer = client.post("/v3/memories/search/", content="{", headers=headers)
    assert (answer.status_code, answer.json()["detail"]) == (422, "The body cannot be used: JSON decode error")


@pytest.mark.parametrize("content", ["", None, [], 3, [{"type": "image_url"}]], ids=str)
def test_the_sentence_about_a_field_names_no_type(client, content):
    body = {"messages": [{"role": "user", "content": content}], "user_id": "ann"}
    answer = client.post("/v3/memories/add/", json=body, headers=ENV)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("messages.0.content cannot be used: ")


@pytest.mark.parametrize("time", ["2020", "yesterday", 1e30, "x" * 100, True], ids=str)
def test_a_time_that_is_none_is_refused_with_what_a_time_takes(client, time):
    takes = "takes seconds since 1970, or an ISO-8601 date or time such as 2024-07-01T00:00:00Z"
    listed = client.post("/v3/memories/", json={"filters": {"created_at": {"gte": time}}}, headers=ENV)
    assert (listed.status_code, listed.json()["detail"]) == (400, f"created_at {takes}")
    body = {"messages": [{"role": "user", "content": "tea"}], "user_id": "ann", "timestamp": time}
    added = client.post("/v3/memories/add/", json=body, headers=ENV)
    assert (added.status_code, added.json()["detail"]) == (422, f"timestamp cannot be used: {takes}")


@pytest.mark.parametrize(
    "filters",
    [
        "{[]: 1}",
        "{'metadata': {1: 2}}",
        "{'metadata': {None: 2}}",
        "{'user_id': {1: [], 'eq': 'a'}}",
        "{'user_id': '\\ud800'}",
        '{"user_id": "\\ud800"}',
        '{"metadata": {"\\ud800": 1}}',
        '{"created_at": {"gt": Infinity}}',
        "{'metadata': {'a': b'x'}}",
        "{'metadata': {'a': {1, 2}}}",
        "{'a': " * 3000,
        "[1]",
        "x",
    ],
)
def test_a_filter_in_a_query_that_is_no_json_is_refused(client, filters):
    answer = client.delete("/v1/memories/", params={"filters": filters}, headers=ENV)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_filter")
    assert answer.json()["detail"].startswith("filters takes a JSON object of at most 10000 characters")


def test_a_repeated_add_with_an_idempotency_key_adds_once(client):
    body = {"messages": [{"role": "user", "content": "once"}], "user_id": "once"}
    headers = {**ENV, "Idempotency-Key": "mem0-once"}
    first, second = (client.post("/v3/memories/add/", json=body, headers=headers).json() for _ in range(2))
    assert first["results"][0]["id"] == second["results"][0]["id"]


class Server:
    """The routes of Mem0's open-source server, with a key of an agent."""

    def __init__(self, client: TestClient, agent: str) -> None:
        self._client, self._headers = client, key_for(client, namespace=agent)

    def __getattr__(self, method: str) -> Any:
        send = getattr(self._client, method)
        return lambda path, **more: send(f"/mem0{path}", headers=self._headers, **more)

    def add(self, text: str, **more: Any) -> str:
        answer = self.post("/memories", json={"messages": [{"role": "user", "content": text}], **more})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["results"][0]["id"])


def test_a_memory_goes_through_its_life(client):
    server = Server(client, "server")
    id_ = server.add("I drink green tea", user_id="ann", run_id="r", metadata={"n": 1})
    server.add("I drink coffee", user_id="ben")
    assert server.get(f"/memories/{id_}").json()["memory"] == "I drink green tea"
    listed = server.get("/memories", params={"user_id": "ann", "run_id": "r"}).json()["results"]
    assert [one["id"] for one in listed] == [id_]
    found = server.post("/search", json={"query": "drink", "user_id": "ann", "filters": {"metadata": {"n": 1}}}).json()
    assert [one["id"] for one in found["results"]] == [id_]
    assert server.put(f"/memories/{id_}", json={"text": "I drink black tea"}).status_code == 200
    events = [row["event"] for row in server.get(f"/memories/{id_}/history").json()]
    assert events == ["ADD", "UPDATE"]
    assert server.delete(f"/memories/{id_}").status_code == 200
    assert server.get(f"/memories/{id_}").status_code == 404


def test_all_of_a_user_or_of_the_key_are_deleted_and_no_others(client):
    server, other = Server(client, "server"), Server(client, "other-server")
    server.add("one", user_id="cat")
    server.add("two", user_id="dan")
    kept = other.add("three", user_id="dan")
    assert server.delete("/memories").status_code == 400
    server.delete("/memories", params={"user_id": "cat"})
    assert server.get("/memories", params={"user_id": "cat"}).json()["results"] == []
    assert server.post("/reset").json() == {"message": "All memories reset"}
    assert server.get("/memories").json()["results"] == []
    assert other.get(f"/memories/{kept}").json()["memory"] == "three"


def test_a_field_that_is_too_large_or_empty_is_refused_with_one_sentence(client):
    server = Server(client, "server")
    for answer in (
        server.post("/search", json={"query": "tea", "top_k": 10**6}),
        server.get("/memories", params={"top_k": 0}),
        server.post("/memories", json={"messages": [], "user_id": "ann"}),
    ):
        assert (answer.status_code, isinstance(answer.json()["detail"], str)) == (422, True)


@pytest.fixture
def learner(tmp_path: Path) -> Iterator[TestClient]:
    """An open service whose model takes every sentence as a fact."""
    vendor = LLMVendor()
    vendor.start()
    vendor.script(takes_everything)
    settings = Settings(data_dir=tmp_path, **vendor.settings("openai"))
    with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL) as running:
        yield running
    vendor.stop()


def test_with_a_model_memories_are_extracted_as_a_job_for_their_user(learner):
    body = {"messages": [{"role": "user", "content": "I live in Lisbon."}], "user_id": "alice"}
    accepted = learner.post("/v3/memories/add/", json=body).json()
    assert (accepted["results"], accepted["status"]) == ([], "PENDING")
    ended(learner, accepted["event_id"])
    wanted = {"filters": {"user_id": "alice"}}
    [memory] = learner.post("/v3/memories/", json=wanted).json()["results"]
    assert (memory["memory"], memory["user_id"]) == ("I live in Lisbon.", "alice")
    assert [one["type"] for one in learner.get("/v1/entities/").json()["results"]] == ["agent", "user"]

    kept = learner.post("/v3/memories/add/", json={**body, "run_id": "r", "metadata": {"n": 1}}).json()
    assert (kept["results"][0]["run_id"], kept["results"][0]["metadata"]) == ("r", {"n": 1})
    as_said = learner.post("/v3/memories/add/", json={**body, "infer": False}).json()
    assert [one["event"] for one in as_said["results"]] == ["ADD"]

    learner.delete("/v2/entities/user/alice/")
    assert learner.post("/v3/memories/", json=wanted).json()["count"] == 0


def test_the_progress_of_an_extraction_is_found_as_its_message_says(learner):
    body = {"messages": [{"role": "user", "content": "I live in Lisbon."}], "agent_id": "named"}
    accepted = learner.post("/v3/memories/add/", json=body).json()
    path = f"/memory/extract/{accepted['event_id']}"
    told = f"GET {path} tells the progress, with the name of the agent in the header X-Namespace"
    assert accepted["message"] == f"Memories are being extracted; {told}"
    assert learner.get(path, headers={"X-Namespace": "named"}).status_code == 200


@pytest.mark.parametrize("user", ["茶" * 60, "é%20..%", "x" * 200, "René"], ids=["cjk", "signs", "long", "accent"])
def test_memories_are_extracted_for_a_user_of_any_name(learner, user):
    body = {"messages": [{"role": "user", "content": "I live in Lisbon."}], "user_id": user}
    ended(learner, learner.post("/v3/memories/add/", json=body).json()["event_id"])
    for wanted in (user, {"contains": user[1:]}, {"contains": user[-1]}):
        [memory] = learner.post("/v3/memories/", json={"filters": {"user_id": wanted}}).json()["results"]
        assert memory["user_id"] == user
    for part in ("C3", "25", "%2E"):
        assert learner.post("/v3/memories/", json={"filters": {"user_id": {"contains": part}}}).json()["count"] == 0
    assert [one["name"] for one in learner.get("/v1/entities/").json()["results"]] == ["default", user]
