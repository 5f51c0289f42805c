"""Deleting agents, users, sessions and messages over HTTP."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from souvenir.core.types import Scope
from souvenir.server.service import Service
from tests.api.conftest import KEY, Start
from tests.api.test_agents import key_for
from tests.conversations.talk import draft

MINE = Scope("mine", "somebody")


def service_in(client: TestClient) -> Service:
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    return service


def say(client: TestClient, *contents: str, **fields: Any) -> list[str]:
    """The ids of messages of the agent `mine`."""
    said = service_in(client).conversations.add(MINE, [draft(content, **fields) for content in contents])
    return [one.uid for one in said]


def test_each_delete_reports_its_rows_and_is_404_when_repeated(client: TestClient):
    uid, _ = say(client, "one", "two", session_id="s", user="mia")
    say(client, "three", session_id="t", user="tom")
    expected = [
        (f"/messages/mine/{uid}", {"messages": 1}, "message_not_found"),
        ("/sessions/mine/t", {"messages": 1, "sessions": 1}, "session_not_found"),
        ("/agents/mine/users/mia", {"messages": 1, "sessions": 1, "users": 1}, "user_not_found"),
        ("/agents/mine", {"agents": 1, "users": 1, "messages": 0}, "agent_not_found"),
    ]
    for path, counts, code in expected:
        answer = client.delete(path)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert body["success"] is True
        assert {name: body["removed"][name] for name in counts} == counts
        again = client.delete(path)
        assert (again.status_code, again.json()["code"]) == (404, code)
    assert client.get("/agents/mine").status_code == 404


def test_a_deleted_agent_takes_its_memories_its_jobs_and_their_spools(client: TestClient):
    client.post("/agents", json={"name": "mine"})
    mine = {"X-Namespace": "mine"}
    client.post("/memory/add", json={"text": "apple", "source": "notes"}, headers=mine)
    service = service_in(client)
    service.jobs.close()
    lines = '{"text": "a pear that waits", "source": "notes"}\n'
    accepted = client.post("/import?wait_s=0", content=lines, headers={**mine, "Content-Type": "application/x-ndjson"})
    assert accepted.status_code == 202, accepted.text
    folder = service.settings.import_dir
    assert [path.read_text() for path in folder.iterdir()] == [lines]
    removed = client.delete("/agents/mine").json()["removed"]
    assert (removed["memories"], removed["jobs"], removed["agents"]) == (1, 1, 1)
    assert list(folder.iterdir()) == []
    assert client.get("/jobs", headers=mine).json()["total"] == 0
    assert client.get("/memories/count", headers=mine).json()["count"] == 0


def test_who_may_not_write_to_the_agent_deletes_nothing_of_it(start: Start):
    client = start(api_key=KEY)
    [uid] = say(client, "one", session_id="s", user="mia")
    paths = ["/agents/mine", "/agents/mine/users/mia", "/sessions/mine/s", f"/messages/mine/{uid}"]
    reader = key_for(client, namespace="mine", role="read-only")
    other, part = key_for(client, namespace="other"), key_for(client, namespace="mine", prefixes=["notes"])
    for path in paths:
        assert client.delete(path).status_code == 401
        for key in (reader, other, part):
            refused = client.delete(path, headers=key)
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    writer = key_for(client, namespace="mine")
    assert [client.delete(path, headers=writer).status_code for path in reversed(paths)] == [200] * 4


def test_the_deletion_of_an_agent_or_a_user_is_in_the_audit_without_their_texts(client: TestClient):
    say(client, "one", session_id="s", user="mia")
    client.delete("/agents/mine/users/mia")
    client.delete("/agents/mine")
    acts = [act for act in client.get("/audit").json()["entries"] if act["action"].endswith(".delete")]
    assert [(act["action"], act["namespace"]) for act in acts] == [("agent.delete", "mine"), ("user.delete", "mine")]
    assert "mia" not in str(acts)
