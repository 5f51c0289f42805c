"""Model jobs about concepts over HTTP, undo of their claims, and relations between concepts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import KEY, Start, indexed
from tests.api.test_agents import ENV, key_for
from tests.knowledge.agent import ANN
from tests.knowledge.model_claims_setup import MOVED, WORKS, claim, lives
from tests.vendors.llm import LLMVendor, says

AGENT = "/agents/ann"
DESCRIBE = f"{AGENT}/graph/describe"


@pytest.fixture
def vendor() -> Iterator[LLMVendor]:
    model = LLMVendor()
    model.start()
    claims = {"claims": [lives(), claim("alias", "Alice", "Heron", MOVED)]}
    model.script(lambda request: says(claims, input_tokens=300, output_tokens=40))
    yield model
    model.stop()


def told(client: TestClient, *texts: str, headers: dict[str, str] | None = None) -> dict[str, int]:
    """Say these to the agent; the concepts of which it is read, by their keys."""
    for text in texts:
        body = {"agent_name": "ann", "role": "user", "content": text, "session_id": "s"}
        assert client.post("/messages", json=body, headers=headers).status_code == 200
    service = indexed(client).app.state.service  # type: ignore[attr-defined]
    with service.engine.namespace(ANN) as (connection, _):
        return dict(connection.execute("SELECT key, id FROM concepts"))


@pytest.mark.parametrize("provider", ["anthropic", "openai", "ollama"])
def test_a_model_is_asked_looked_at_and_undone(start: Start, vendor: LLMVendor, provider: str):
    client = start(**vendor.settings(provider))
    told(client, MOVED)
    done = client.post(DESCRIBE, json={"session_id": "s"}).json()
    assert (done["messages"], done["claims"], done["questions"]) == (1, {"relation": 1}, 1)
    assert (done["input_tokens"], done["output_tokens"]) == (300, 40)
    assert done["dropped"] == [{"kind": "alias", "reason": "not_said_there", "count": 1}]
    shown = client.get(f"{DESCRIBE}/{done['job_id']}").json()
    [one] = shown["claims"]
    assert (shown["status"], shown["result"]) == ("completed", done)
    assert (one["concept"], one["text"], one["other"], one["confidence"]) == ("alice", "lives_in", "lisbon", 0.9)
    said = client.get(f"/messages/ann/{one['message_id']}").json()
    assert said["content"] == MOVED
    related = client.get(f"{AGENT}/concepts/{one['other_id']}/relations").json()["relations"]
    assert [(r["concept"], r["type"], r["other"], r["made_by"]) for r in related] == [
        ("Alice", "lives_in", "Lisbon", "model")
    ]
    undone = client.post(f"{DESCRIBE}/{done['job_id']}/undo")
    assert undone.json() == {"job_id": done["job_id"], "claims": 1, "messages": 1}
    assert client.get(f"{AGENT}/concepts/{one['other_id']}/relations").json() == {"relations": []}
    assert client.post(f"{DESCRIBE}/{done['job_id']}/undo").status_code == 409
    # Broken twice, the rest is saved item by item.
    broken = '{"claims": [{"kind": "kind", "concept": "Alice", "text": "nomad", "quote": "Alice moved"}, 7'
    vendor.replies.extend([broken, broken])
    assert client.post(DESCRIBE, json={"session_id": "s"}).json()["claims"] == {"kind": 1}
    assert {request.prompt for request in vendor.requests} == {"describe"}


def test_topics_are_named_by_a_model_and_their_texts_need_access_to_conversations(start: Start, vendor: LLMVendor):
    client = start(api_key=KEY, **vendor.settings("openai"))
    told(client, MOVED, headers=ENV)
    writer = key_for(client, namespace="ann")
    vendor.script(lambda request: {"claims": [claim("topic_name", "T1", "Life in Lisbon", MOVED)]})
    done = client.post(DESCRIBE, json={"session_id": "s"}, headers=writer).json()
    assert (done["claims"], done["dropped"]) == ({"topic_name": 1}, [])
    [one] = client.get(f"{DESCRIBE}/{done['job_id']}", headers=ENV).json()["topics"]
    [topic] = client.get(f"{AGENT}/topics", headers=ENV).json()["topics"]
    assert (topic["id"], topic["name"], topic["named_by"]) == (one["topic_id"], one["text"], "model")
    assert (one["kind"], one["text"]) == ("topic_name", "Life in Lisbon")
    assert client.get(f"/messages/ann/{one['message_id']}", headers=ENV).json()["content"] == MOVED
    assert client.put(f"{AGENT}/access", json={"logs": False}, headers=ENV).status_code == 200
    assert client.get(f"{DESCRIBE}/{done['job_id']}", headers=writer).json()["topics"] == [{**one, "text": ""}]
    assert client.post(f"{DESCRIBE}/{done['job_id']}/undo", headers=ENV).json()["claims"] == 1


def test_long_work_is_answered_with_where_its_result_will_be(start: Start, vendor: LLMVendor):
    client = start(**vendor.settings("openai"))
    told(client, MOVED)
    accepted = client.post(DESCRIBE, params={"wait_s": 0}, json={"session_id": "s"})
    assert accepted.status_code == 202
    assert client.get(accepted.json()["result_url"]).status_code == 200


def test_without_a_model_an_agent_or_a_session_nothing_is_queued(start: Start, vendor: LLMVendor):
    client = start(**vendor.settings("openai"))
    nobody = client.post(DESCRIBE)
    assert (nobody.status_code, nobody.json()["code"]) == (404, "agent_not_found")
    told(client, MOVED)
    unknown = client.post(DESCRIBE, json={"session_id": "other"})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "session_not_found")
    assert vendor.requests == []


def test_keys_access_only_their_own_data(start: Start, vendor: LLMVendor):
    client = start(api_key=KEY, **vendor.settings("openai"))
    concepts = told(client, MOVED, headers=ENV)
    reader, other = key_for(client, role="read-only", namespace="ann"), key_for(client, namespace="ben")
    writer, some = key_for(client, namespace="ann"), key_for(client, namespace="ann", prefixes=["talk"])
    relations = f"{AGENT}/concepts/{concepts['alice']}/relations"
    likes: dict[str, str | int] = {"to": concepts["lisbon"], "type": "likes"}
    for key in (reader, other, some):
        assert client.post(DESCRIBE, headers=key).status_code == 403
        assert client.delete(relations, params=likes, headers=key).status_code == 403
    done = client.post(DESCRIBE, json={"session_id": "s"}, headers=writer).json()
    job, others_of_ann = f"{DESCRIBE}/{done['job_id']}", key_for(client, namespace="ann")
    for key, status in ((reader, 404), (others_of_ann, 404), (other, 403), (ENV, 200)):
        assert client.get(job, headers=key).status_code == status
    assert client.get(relations, headers=reader).status_code == 200
    for key, status in ((others_of_ann, 404), (other, 403), (writer, 200)):
        assert client.post(f"{job}/undo", headers=key).status_code == status
    elsewhere = client.get(job.replace("/ann/", "/ben/"), headers=ENV)
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (404, "job_not_found")


def test_relations_of_callers_and_models_are_removed_together(start: Start, vendor: LLMVendor):
    client = start(**vendor.settings("openai"))
    concepts = told(client, MOVED, WORKS)
    stated = {"from_key": "alice", "to_key": "lisbon", "relationship_type": "Lives in"}
    assert client.post(f"{AGENT}/graph", json={"relations": [stated]}).json()["stated"] == 1
    client.post(DESCRIBE, json={"session_id": "s"})
    relations = f"{AGENT}/concepts/{concepts['alice']}/relations"
    lives_in: dict[str, str | int] = {"to": concepts["lisbon"], "type": "Lives in"}
    [of_caller, of_model] = client.get(relations).json()["relations"]
    assert (of_caller["type"], of_caller["made_by"], of_caller["confidence"]) == ("lives_in", "caller", 1.0)
    assert of_model["made_by"] == "model"
    assert client.delete(relations, params=lives_in).json()["relations"] == [of_caller, of_model]
    assert client.delete(relations, params=lives_in).status_code == 404
    assert client.get("/agents/nobody/concepts/1/relations").json()["code"] == "agent_not_found"
