"""The export of an agent: all of its data and no other, each line as the other routes return it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.api.agent_export import TypedLines
from souvenir.conversations.agents import agent_lines
from souvenir.core.types import Scope
from tests.api.conftest import KEY, Start
from tests.api.test_agents import key_for
from tests.api.test_messages import AGENT, ENV, refusal, store

TYPES = ["header", "agent", "user", "session", "message", "block", "memory"]


def exported(client: TestClient, agent: str = AGENT) -> list[dict[str, Any]]:
    answer = client.get(f"/agents/{agent}/export")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


def of_type(lines: list[dict[str, Any]], wanted: str) -> list[dict[str, Any]]:
    return [{name: said for name, said in line.items() if name != "type"} for line in lines if line["type"] == wanted]


def without_similarity(message: dict[str, Any]) -> dict[str, Any]:
    return {name: said for name, said in message.items() if name != "similarity"}


def fill(client: TestClient, agent: str) -> None:
    for day, user in ((3, "alice"), (1, "bob"), (2, "alice")):
        message = {"role": "user", "content": f"{agent} {day}", "user": user, "created_at": f"2025-04-0{day}"}
        client.post("/messages", json={"agent_name": agent, "metadata": {"n": day}, **message})
    client.post("/memory-blocks", json={"agent_name": agent, "label": "human", "value": "Name: Alice"})
    client.post("/memory/add", json={"text": f"{agent} fact", "source": "s"}, headers={"X-Namespace": agent})


def test_everything_of_one_agent_is_exported_as_other_routes_show_it(client: TestClient):
    for agent in (AGENT, "other"):
        fill(client, agent)
    lines = exported(client)
    assert list(dict.fromkeys(line["type"] for line in lines)) == TYPES
    [header] = of_type(lines, "header")
    counts = {"users": 2, "sessions": 3, "messages": 3, "blocks": 1, "memories": 1}
    assert {name: header[name] for name in counts} == counts
    for name, number in counts.items():
        assert len(of_type(lines, name.removesuffix("s").replace("memorie", "memory"))) == number
    levels = client.get(f"/agents/{AGENT}/access").json()
    assert of_type(lines, "agent") == [{**client.get(f"/agents/{AGENT}").json(), "access": levels}]
    assert of_type(lines, "user") == client.get(f"/agents/{AGENT}/users").json()["users"]
    assert of_type(lines, "session") == client.get(f"/sessions/{AGENT}").json()["sessions"][::-1]
    messages = [without_similarity(one) for one in client.get(f"/messages/{AGENT}").json()]
    assert of_type(lines, "message") == messages[::-1]
    assert of_type(lines, "block") == client.get(f"/memory-blocks/{AGENT}").json()
    memory = client.get("/export", headers={"X-Namespace": AGENT}).text.splitlines()[1]
    assert of_type(lines, "memory") == [json.loads(memory)]
    assert "other" not in json.dumps(lines)


def test_many_messages_are_exported_oldest_first(client: TestClient):
    body = [{"role": "user", "content": f"m{number}"} for number in range(1000)]
    client.post("/messages/batch", json={"agent_name": AGENT, "session_id": "s", "messages": body})
    messages = of_type(exported(client), "message")
    assert [one["content"] for one in messages] == [f"m{number}" for number in range(1000)]


@pytest.mark.parametrize("namespace", ["nobody", "plain"])
def test_a_namespace_that_is_no_agent_is_404(client: TestClient, namespace: str):
    client.post("/memory/add", json={"text": "t", "source": "s"}, headers={"X-Namespace": "plain"})
    assert refusal(client.get(f"/agents/{namespace}/export")) == (404, "agent_not_found")


@pytest.mark.parametrize("path", ["export", "graph"])
def test_an_export_is_written_down_and_needs_a_key_of_the_whole_agent(start: Start, path: str):
    client = start(api_key=KEY)
    client.post("/messages", json={"agent_name": AGENT, "role": "user", "content": "c"}, headers=ENV)
    own = key_for(client, namespace=AGENT, role="read-only")
    assert client.get(f"/agents/{AGENT}/{path}", headers=own).status_code == 200
    [entry] = client.get("/audit?action=export", headers=ENV).json()["entries"]
    assert entry["namespace"] == AGENT
    stated = {"concepts": [{"key": "redis", "description": "Mine."}]}
    for fields in ({"namespace": "other"}, {"namespace": AGENT, "prefixes": ["s"]}):
        refused = client.get(f"/agents/{AGENT}/{path}", headers=key_for(client, **fields))
        assert refusal(refused) == (403, "forbidden")
        refused = client.post(f"/agents/{AGENT}/graph", json=stated, headers=key_for(client, **fields))
        assert refusal(refused) == (403, "forbidden")
    assert refusal(client.post(f"/agents/{AGENT}/graph", json=stated, headers=own)) == (403, "forbidden")


def test_an_export_is_one_state_while_messages_come(client: TestClient):
    store(client, "first")
    reading = agent_lines(client.app.state.service.engine, Scope(AGENT), TypedLines())  # type: ignore[attr-defined]
    header = json.loads(next(reading))
    store(client, "second")
    assert header["messages"] == len(of_type([json.loads(line) for line in reading], "message")) == 1
    assert len(of_type(exported(client), "message")) == 2
