"""Access levels: the data of an agent that a key without the admin role can read, on every route."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi import FastAPI, Request
from starlette.testclient import TestClient

from souvenir.core.types import Role
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import SEARCHING, Reader, Writer, locrit_scope, result_limit
from souvenir.server.routing import Routes
from tests.api.conftest import KEY, Start
from tests.api.operations import AGENT, OPERATIONS, Operation
from tests.api.test_agents import ENV, key_for

ALL = {"quick_memory": True, "full_memory": True, "logs": True}
ADVICE = "an admin can give it with PUT /agents/NAME/access"

READING = [one for one in OPERATIONS if one.role is Role.READ_ONLY]
WRITING = [one for one in OPERATIONS if one.role is Role.READ_WRITE]


def give(client: TestClient, **levels: bool) -> Any:
    client.post("/agents", json={"name": AGENT}, headers=ENV)
    answer = client.put(f"/agents/{AGENT}/access", json=levels, headers=ENV)
    assert answer.status_code == 200, answer.text
    return answer.json()


def send(client: TestClient, operation: Operation, headers: dict[str, str]) -> Any:
    return client.request(
        operation.method, operation.path, json=operation.body, params=operation.query, headers=headers
    )


def talk(client: TestClient, count: int = 8) -> None:
    said = [{"role": "user", "content": f"The blue boat {number} sails."} for number in range(count)]
    client.post("/messages/batch", json={"agent_name": AGENT, "session_id": "s", "messages": said}, headers=ENV)
    known = [{"text": f"Blue paint number {number} is dry.", "source": "notes"} for number in range(count)]
    client.post("/memory/add-batch", json={"memories": known}, headers={**ENV, "X-Namespace": AGENT})
    for number in range(count):
        body = {"agent_name": AGENT, "key": f"colour {number}", "value": "blue"}
        client.post("/remember", json=body, headers=ENV)


def test_an_agent_gives_every_level_until_one_is_taken_and_the_others_stay(client: TestClient):
    client.post("/agents", json={"name": AGENT})
    path = f"/agents/{AGENT}/access"
    assert client.get(path).json() == ALL
    assert client.put(path, json={"logs": False}).json() == {**ALL, "logs": False}
    assert client.put(path, json={"full_memory": False, "quick_memory": None}).json() == {
        **ALL, "full_memory": False, "logs": False
    }  # fmt: skip
    assert client.put(path, json={"logs": True}).json() == client.get(path).json() == {**ALL, "full_memory": False}


def test_a_namespace_that_is_no_agent_has_no_levels_and_is_not_made_by_asking(client: TestClient):
    for answer in (client.get("/agents/nobody/access"), client.put("/agents/nobody/access", json={"logs": False})):
        assert (answer.status_code, answer.json()["code"]) == (404, "agent_not_found")
    assert client.get("/agents").json()["total"] == 0
    assert client.get("/stats", headers={"X-Namespace": "nobody"}).json()["created_at"] is None


def test_a_key_without_any_level_reads_nothing_that_needs_one_and_writes_all_the_same(start: Start):
    client = start(api_key=KEY)
    give(client, **dict.fromkeys(ALL, False))
    key = key_for(client, namespace=AGENT)
    for operation in READING:
        answer, needed = send(client, operation, key), operation.description["x-access"]
        if not needed:
            assert answer.status_code in {200, 404}, operation
            continue
        assert (answer.status_code, answer.json()["code"]) == (403, "access_limited"), operation
        named = " and ".join(level for level in ALL if level in needed)
        assert answer.json()["detail"] == f"The access of the agent {AGENT!r} does not include {named}; {ADVICE}"
    # Without its agent a namespace has no levels, so what deletes it comes last.
    for operation in sorted(WRITING, key=lambda one: str(one) == "DELETE /agents/{agent_name}"):
        limited = bool(operation.description["x-access"])
        assert (send(client, operation, key).status_code == 403) is limited, operation


def test_quick_access_finds_five_at_most_wherever_it_searches(start: Start):
    client = start(api_key=KEY, max_context_messages=20)
    talk(client)
    give(client, full_memory=False, logs=False)
    key = key_for(client, namespace=AGENT, role="read-only")

    def counted(headers: dict[str, str]) -> dict[str, int]:
        def post(path: str, **body: Any) -> Any:
            answer = client.post(path, json={"query": "blue", **body}, headers={**headers, "X-Namespace": AGENT})
            assert answer.status_code == 200, answer.text
            return answer.json()

        context = post(f"/context/{AGENT}")
        shown = len(context["relevant_messages"]) + len(context["relevant_memories"])
        return {
            "search": post("/search", k=20)["count"],
            "search_batch": post("/search/batch", queries=[{"query": "blue", "k": 20}])["results"][0]["count"],
            "search_agent": post(f"/agents/{AGENT}/search", limit=20)["count"],
            "search_messages": len(post("/messages/search", agent_name=AGENT, limit=20)),
            "recall": len(post("/recall", agent_name=AGENT, limit=20)["memories"]),
            "search_long_term": len(post("/recall/search", agent_name=AGENT, limit=20)["memories"]),
            "build_context": shown,
            "in its text": context["text"].lower().count("blue"),
        }

    assert set(counted(key).values()) == {5}
    assert min(counted(ENV).values()) > 5
    fewer = client.post("/search", json={"query": "blue", "k": 2}, headers=key)
    assert fewer.json()["count"] == 2


def test_without_the_logs_single_messages_are_found_and_none_is_listed(start: Start):
    client = start(api_key=KEY)
    talk(client)
    give(client, logs=False)
    key = key_for(client, namespace=AGENT, role="read-only")
    assert client.get(f"/messages/{AGENT}", headers=key).json()["code"] == "access_limited"
    assert client.get(f"/agents/{AGENT}/export", headers=key).json()["code"] == "access_limited"
    found = client.post("/messages/search", json={"agent_name": AGENT, "query": "boat", "limit": 7}, headers=key)
    assert len(found.json()) == 7
    assert client.get("/memories", headers=key).status_code == 200


def test_without_the_logs_concepts_have_neither_sentences_nor_roles_of_messages(start: Start):
    client = start(api_key=KEY)
    said = {"agent_name": AGENT, "session_id": "s", "role": "user", "content": "Zebedee, my architect, is ill."}
    client.post("/messages", json=said, headers=ENV)
    client.app.state.service.graph.indexer.catch_up()  # type: ignore[attr-defined]
    key = key_for(client, namespace=AGENT)
    paths = (f"/agents/{AGENT}/concepts", f"/api/locrits/{AGENT}/memory/concepts")
    found = [client.get(path, headers=key).json()["concepts"][0] for path in paths]
    assert [one["description"] for one in found] == [said["content"]] * 2
    give(client, logs=False)
    hidden = [client.get(path, headers=key).json()["concepts"][0] for path in paths]
    assert hidden == [{name: None if name in ("description", "role") else one[name] for name in one} for one in found]


def test_levels_are_set_by_admins_only_hold_at_once_and_are_in_the_audit(start: Start):
    client = start(api_key=KEY)
    give(client, full_memory=False)
    own, other = key_for(client, namespace=AGENT), key_for(client, namespace="other")
    assert client.put(f"/agents/{AGENT}/access", json=ALL, headers=own).json()["code"] == "forbidden"
    assert client.get(f"/agents/{AGENT}/access", headers=own).json() == {**ALL, "full_memory": False}
    assert client.get(f"/agents/{AGENT}/access", headers=other).json()["code"] == "forbidden"
    assert client.get("/memories", headers=own).status_code == 403
    assert client.get("/memories", headers=other).status_code == 200
    give(client, full_memory=True)
    assert client.get("/memories", headers=own).status_code == 200
    entries = client.get("/audit", headers=ENV).json()["entries"]
    assert [one["resource_id"] for one in entries if one["action"] == "access.set"] == [AGENT, AGENT]
    assert ("access_limited", "/memories") in [(one["detail"], one["route"]) for one in entries]


@pytest.mark.sqlite_only(reason="restores a backup")
def test_exports_say_the_levels_and_a_restore_brings_them_back(start: Start):
    client = start(api_key=KEY)
    limited = give(client, logs=False)
    lines = [json.loads(line) for line in client.get(f"/agents/{AGENT}/export", headers=ENV).text.splitlines()]
    assert [line["access"] for line in lines if line["type"] == "agent"] == [limited]
    backup = client.post("/backup", headers=ENV).json()["backup_path"].rpartition("/")[2]
    give(client, logs=True)
    assert client.post("/restore", json={"backup_name": backup}, headers=ENV).status_code == 200
    assert client.get(f"/agents/{AGENT}/access", headers=ENV).json() == limited


def test_below_api_locrits_the_levels_hold_for_everybody(start: Start):
    routes = Routes("agents")

    @routes.get("/api/locrits/{name}/memory/found", cost=CostClass.SEARCH, access=SEARCHING, sdk="test.found")
    def found(name: str, _: Reader, request: Request) -> dict[str, Any]:
        return {"namespace": locrit_scope(request, name).namespace, "limit": result_limit(request, 50)}

    @routes.delete("/api/locrits/{name}/memory/lost", cost=CostClass.LONG, sdk="test.lost")
    def lost(name: str, _: Writer, request: Request) -> dict[str, Any]:
        return {"namespace": locrit_scope(request, name).namespace}

    def with_routes(app: FastAPI) -> None:
        app.router.routes.extend(routes.routes)

    client = start(with_routes, api_key=KEY)
    path = f"/api/locrits/{AGENT}/memory/found"
    give(client)
    key = key_for(client, namespace=AGENT)
    for caller in (ENV, key):
        assert client.get(path, headers=caller).json() == {"namespace": AGENT, "limit": 50}
    give(client, full_memory=False)
    for caller in (ENV, key):
        assert client.get(path, headers=caller).json()["limit"] == 5
    give(client, quick_memory=False)
    for caller in (ENV, key):
        assert client.get(path, headers=caller).json()["code"] == "access_limited"
        assert client.delete(f"/api/locrits/{AGENT}/memory/lost", headers=caller).json() == {"namespace": AGENT}
    assert client.get("/api/locrits/nobody/memory/found", headers=ENV).json()["limit"] == 50
