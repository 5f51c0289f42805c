"""Secrets and personal data in requests: redacted, flagged or refused before storage and embedding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.core.types import ClaimedBy, ClaimKind, FactsBy, MemoryDraft, Scope
from souvenir.store.graph import claims, mentions
from souvenir.store.graph.claims import ClaimDraft
from souvenir.store.transaction import Transaction
from tests.api.conftest import Start
from tests.api.learning import learned, takes_everything
from tests.vendors.llm import LLMVendor

KEY_ID = "AKIA" + "IOSFODNN7EXAMPLE"
MAIL = "ann.smith@example.org"
AGENT = {"X-Namespace": "my_agent"}


def policy(client: TestClient, **values: Any) -> Any:
    client.post("/agents", json={"name": "my_agent"})
    answer = client.put("/agents/my_agent/policy", json=values)
    assert answer.status_code == 200, answer.text
    return answer.json()


def stored(client: TestClient, text: str, **body: Any) -> Any:
    made = client.post("/memory/add", json={"text": text, "source": "notes", **body}, headers=AGENT)
    assert made.status_code == 200, made.text
    return client.get(f"/memory/{made.json()['id']}", headers=AGENT).json()


def holds(folder: Path, text: str) -> bool:
    return any(text.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_secret_is_redacted_by_default_and_personal_data_is_kept(client: TestClient, tmp_path: Path):
    memory = stored(client, f"The deploy key is {KEY_ID}, ask {MAIL}", metadata={"seen": {"in": [KEY_ID]}})
    assert KEY_ID not in str(memory)
    assert MAIL in memory["text"]
    assert len(memory["sensitive_data"]) == 1
    assert not holds(tmp_path / "data", KEY_ID)


def test_no_verb_stores_a_secret(client: TestClient, tmp_path: Path):
    text = f"key {KEY_ID}"
    first = stored(client, "one thing")["id"]
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/memory/add-batch", {"memories": [{"text": text, "source": "s"}]}),
        ("POST", "/memory/upsert", {"text": text, "source": "s", "key": "k"}),
        ("PATCH", f"/memory/{first}", {"text": text, "metadata_patch": {"note": text}}),
        ("POST", f"/memory/{first}/supersede", {"text": text, "metadata": {"note": text}}),
        ("POST", "/agents", {"name": "other", "metadata": {"note": text}}),
        ("POST", "/memory-blocks", {"agent_name": "my_agent", "label": "l", "value": text, "description": text}),
        ("PUT", "/memory-blocks/my_agent/l", {"value": f"again {text}", "description": f"again {text}"}),
        ("POST", "/remember", {"agent_name": "my_agent", "key": "k", "value": text}),
        ("PUT", "/preferences/my_agent/k", {"value": text}),
    ]
    for method, path, body in requests:
        answer = client.request(method, path, json=body, headers=AGENT)
        assert answer.status_code == 200, f"{method} {path}: {answer.text}"
        assert KEY_ID not in answer.text
    lines = f'{{"text": "{text}", "source": "s", "metadata": {{"note": "{text}"}}}}\n'
    headers = {**AGENT, "Content-Type": "application/x-ndjson"}
    imported = client.post("/import?no_backup=true", content=lines, headers=headers)
    assert imported.json()["imported"] == 1
    client.__exit__(None, None, None)
    assert not holds(tmp_path / "data", KEY_ID)


def test_no_extraction_sends_or_stores_a_secret(start: Start, tmp_path: Path):
    """JSON writes a line break as two characters, of which the second is a letter before the key."""
    vendor = LLMVendor()
    vendor.start()
    vendor.script(takes_everything)
    try:
        client = start(**vendor.settings("openai"))
        said = f"The deploy key is this:\n{KEY_ID}"
        for talk in (f"User: {said}", json.dumps([{"role": "user", "content": said}])):
            job = learned(client, talk, headers=AGENT, source="notes", debug=True, store_messages=True)
            assert job["result"]["stored_count"] + job["result"]["noop_count"] > 0
            assert KEY_ID not in str(job)
        committed = {"action": "add", "text": f"It is {KEY_ID}", "approved": True}
        body = {"actions": [committed], "source": "notes"}
        done = client.post("/memory/extract/commit", json=body, headers=AGENT)
        assert (done.status_code, done.json()["stored_count"]) == (200, 1)
        policy(client, secrets="reject")
        refused = client.post("/memory/extract/commit", json=body, headers=AGENT)
        assert (refused.status_code, refused.json()["code"]) == (422, "personal_data_rejected")
        assert KEY_ID not in done.text + refused.text + str([request.body for request in vendor.requests])
        client.__exit__(None, None, None)
        assert not holds(tmp_path / "data", KEY_ID)
    finally:
        vendor.stop()


def test_a_search_for_a_secret_finds_its_redaction(client: TestClient):
    memory = stored(client, f"key {KEY_ID}")
    found = client.post("/search", json={"query": f"key {KEY_ID}", "k": 1}, headers=AGENT).json()
    assert [hit["id"] for hit in found["results"]] == [memory["id"]]
    assert found["query"] == f"key {KEY_ID}"


def test_the_policy_of_an_agent_redacts_flags_or_refuses(client: TestClient):
    policy(client, pii="redact")
    assert MAIL not in stored(client, f"write to {MAIL}")["text"]
    policy(client, pii="flag")
    flagged = stored(client, f"write to {MAIL}")
    assert (flagged["text"], flagged["sensitive_data"]) == (f"write to {MAIL}", ["email"])
    policy(client, pii="reject")
    count = client.get("/memories/count", headers=AGENT).json()
    refused = client.post("/memory/add", json={"text": f"write to {MAIL}", "source": "s"}, headers=AGENT)
    assert (refused.status_code, refused.json()["code"]) == (422, "personal_data_rejected")
    assert MAIL not in refused.text
    assert client.get("/memories/count", headers=AGENT).json() == count
    elsewhere = client.post("/memory/add", json={"text": f"write to {MAIL}", "source": "s"})
    assert elsewhere.status_code == 200


def test_a_policy_overrides_only_its_fields_of_the_rules(client: TestClient):
    assert policy(client, pii="flag", hidden_topics=["health"]) == {
        "secrets": "redact",
        "pii": "flag",
        "hidden_topics": ["health"],
    }
    assert client.get("/agents/my_agent/policy").json()["pii"] == "flag"
    assert policy(client)["pii"] == "allow"


@pytest.mark.parametrize("body", [{"pii": "burn"}, {"hidden_topics": ["astrology"]}, {"hidden_topics": "health"}])
def test_a_policy_that_cannot_be_used_is_422_and_changes_nothing(client: TestClient, body: dict[str, Any]):
    before = policy(client, pii="flag")
    assert client.put("/agents/my_agent/policy", json=body).status_code == 422
    assert client.get("/agents/my_agent/policy").json() == before


def test_a_policy_with_an_unknown_topic_is_answered_with_the_known_ones(client: TestClient):
    policy(client)
    known = "health, financial, legal, password, api_key, token"
    refused = client.put("/agents/my_agent/policy", json={"hidden_topics": ["health", "helth"]})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
    assert refused.json()["detail"] == f"The rules know no topic 'helth'; they know {known}"


def test_the_policy_of_an_unknown_agent_is_404(client: TestClient):
    for answer in (client.get("/agents/nobody/policy"), client.put("/agents/nobody/policy", json={"pii": "flag"})):
        assert (answer.status_code, answer.json()["code"]) == (404, "agent_not_found")


def test_topics_are_noted_and_go_when_the_text_goes(client: TestClient):
    memory = stored(client, "The doctor changed her medication")
    assert memory["sensitive_topics"] == ["health"]
    client.patch(f"/memory/{memory['id']}", json={"text": "She walks in the park"}, headers=AGENT)
    assert "sensitive_topics" not in client.get(f"/memory/{memory['id']}", headers=AGENT).json()


def test_topics_stay_unless_a_patch_names_them(client: TestClient):
    path = f"/memory/{stored(client, 'Her hospital is new')['id']}"
    client.patch(path, json={"metadata_patch": {"seen": 1}}, headers=AGENT)
    assert client.get(path, headers=AGENT).json()["sensitive_topics"] == ["health"]
    client.patch(path, json={"metadata_patch": {"sensitive_topics": []}}, headers=AGENT)
    assert client.get(path, headers=AGENT).json()["sensitive_topics"] == []


def test_a_rescan_applies_the_current_policy_to_stored_data(client: TestClient):
    memory = stored(client, f"write to {MAIL}", metadata={"note": f"or {MAIL}"})
    other = stored(client, "nothing to see")
    client.post("/memory-blocks", json={"agent_name": "my_agent", "label": "l", "value": f"mail {MAIL}"})
    client.put("/memory-blocks/my_agent/l", json={"value": f"her mail is {MAIL}"})
    etag = client.get("/memory-blocks/my_agent/l").headers["ETag"]
    policy(client, pii="redact")
    done = client.post("/privacy/rescan", headers=AGENT)
    assert done.status_code == 200, done.text
    assert done.json()["changed"] > 0
    after = client.get(f"/memory/{memory['id']}", headers=AGENT).json()
    assert MAIL not in str(after)
    assert after["sensitive_data"] == ["email"]
    assert client.get(f"/memory/{other['id']}", headers=AGENT).json()["updated_at"] == other["updated_at"]
    block = client.get("/memory-blocks/my_agent/l")
    assert MAIL not in block.text
    assert block.headers["ETag"] != etag
    assert MAIL not in client.get("/memory-blocks/my_agent/l/history").text
    export = client.get("/export?history=true", headers=AGENT)
    assert export.status_code == 200
    assert MAIL not in export.text
    found = client.post("/search", json={"query": "write to", "k": 1}, headers=AGENT).json()["results"]
    assert [hit["id"] for hit in found] == [memory["id"]]
    assert client.post("/privacy/rescan", headers=AGENT).json()["changed"] == 0
    assert client.app.state.service.engine.check() == []  # type: ignore[attr-defined]


def test_a_rescan_reaches_facts_and_leaves_them_no_word_that_their_text_loses(client: TestClient):
    engine = client.app.state.service.engine  # type: ignore[attr-defined]
    scope = Scope("my_agent", "somebody")
    policy(client, pii="allow")
    drafts = [
        MemoryDraft(f"write to {MAIL} today", "notes", facts=(f"her mail is {MAIL}", "today"), facts_by=FactsBy.MODEL),
        MemoryDraft("her mail is secret", "notes", facts=(f"it is {MAIL}", f"it  is {MAIL}"), tags=(MAIL,)),
        MemoryDraft("nothing to see", "notes", facts=("nothing",)),
    ]
    ids = engine.add_batch(scope, drafts)
    before = engine.get(scope, ids)
    policy(client, pii="redact")
    assert client.post("/privacy/rescan", headers=AGENT).json()["changed"] > 0
    after = engine.get(scope, ids)
    assert MAIL not in repr([(one.text, one.facts, one.metadata) for one in after.values()])
    assert [len(after[id_].facts) for id_ in ids] == [2, 2, 1]
    assert after[ids[0]].facts[0].made_by is FactsBy.MODEL
    assert after[ids[0]].facts[1] == before[ids[0]].facts[1]
    assert after[ids[1]].metadata["sensitive_data"] == ["email"]
    assert after[ids[1]].tags == (MAIL,), "labels are not screened"
    assert after[ids[2]] == before[ids[2]]
    with engine.namespace(scope) as (connection, _):
        rows = [connection.execute(f"SELECT * FROM {table}").fetchall() for table in ("facts", "passages", "history")]
    assert MAIL not in repr(rows)
    assert client.post("/privacy/rescan", headers=AGENT).json()["changed"] == 0
    assert engine.check() == []


def test_a_rescan_redacts_text_that_the_policy_rejects(start: Start):
    client = start()
    memory = stored(client, f"write to {MAIL}")
    policy(client, pii="reject")
    assert client.post("/privacy/rescan", headers=AGENT).json()["changed"] > 0
    assert MAIL not in client.get(f"/memory/{memory['id']}", headers=AGENT).text


def test_messages_and_their_edits_are_screened_and_noted(client: TestClient, tmp_path: Path):
    said = {"agent_name": "my_agent", "role": "user", "content": f"my key is {KEY_ID}", "session_id": "s"}
    message = client.post("/messages", json=said).json()
    assert message["metadata"]["sensitive_data"]
    batch = {"agent_name": "my_agent", "session_id": "s", "messages": [{"role": "user", "content": f"or {KEY_ID}"}]}
    assert client.post("/messages/batch", json=batch).status_code == 200
    path = f"/messages/my_agent/{message['id']}"
    edited = client.patch(path, json={"content": f"the doctor has {KEY_ID}"}).json()
    assert edited["metadata"]["sensitive_topics"] == ["health"]
    assert client.patch(path, json={"content": "it rains"}).json()["metadata"] == {}
    titled = client.post("/sessions", json={"agent_name": "my_agent", "session_id": "t", "title": f"on {KEY_ID}"})
    running = client.post("/sessions/my_agent/t/messages", json={"role": "user", "content": f"again {KEY_ID}"})
    for answer in (titled, running, client.get("/messages/my_agent"), client.get("/agents/my_agent/export")):
        assert answer.status_code == 200, answer.text
        assert KEY_ID not in answer.text
    client.__exit__(None, None, None)
    assert not holds(tmp_path / "data", KEY_ID)


def test_the_name_of_who_says_something_is_screened_too(client: TestClient, tmp_path: Path):
    said = {"agent_name": "my_agent", "role": "user", "content": "hello", "name": f"Bob {KEY_ID}", "session_id": "s"}
    name = client.post("/messages", json=said).json()["name"]
    assert name.startswith("Bob ")
    assert KEY_ID not in name
    client.post("/messages/batch", json={"agent_name": "my_agent", "messages": [said]})
    running = {"role": "user", "content": "hello", "name": f"Ann {KEY_ID}"}
    assert client.post("/sessions/my_agent/s/messages", json=running).status_code == 200
    assert KEY_ID not in client.get("/messages/my_agent").text
    client.__exit__(None, None, None)
    assert not holds(tmp_path / "data", KEY_ID)


def test_new_metadata_does_not_bring_a_hidden_topic_into_the_context(client: TestClient):
    said = {"agent_name": "my_agent", "role": "user", "content": "The doctor called about the diagnosis."}
    path = f"/messages/my_agent/{client.post('/messages', json=said).json()['id']}"
    policy(client, hidden_topics=["health"])
    for metadata in ({"seen": True}, {}):
        changed = client.patch(path, json={"metadata": metadata}).json()
        assert changed["metadata"] == {**metadata, "sensitive_topics": ["health"]}
        context = client.post("/context/my_agent", json={"query": "What did the doctor say of the diagnosis?"}).json()
        assert context["relevant_messages"] == []
    unmarked = client.patch(path, json={"metadata": {"sensitive_topics": []}}).json()
    assert unmarked["metadata"] == {"sensitive_topics": []}


def test_memories_of_a_context_and_of_a_concept_have_no_links_to_hidden_ones(client: TestClient):
    policy(client)
    hidden = stored(client, "Greta sees a doctor about her diagnosis")["id"]
    body = {"text": "Greta rows on the lake in Leeds", "source": "s"}
    shown = client.post(f"/memory/{hidden}/supersede", json=body, headers=AGENT).json()["new_id"]
    assert client.post(f"/memory/{shown}/link", json={"to_id": hidden, "type": "caused_by"}, headers=AGENT).is_success
    client.app.state.service.graph.indexer.catch_up()  # type: ignore[attr-defined]

    def seen() -> list[dict[str, Any]]:
        context = client.post("/context/my_agent", json={"query": "Where does Greta row?"}).json()
        concept = client.get("/agents/my_agent/concept?name=Greta").json()
        return [one for one in (*context["relevant_memories"], *concept["memories"]) if one["id"] == shown]

    assert [{link["to_id"] for link in one["links"]} for one in seen()] == [{hidden}, {hidden}]
    assert all("doctor" in one["previous_text"] for one in seen())
    policy(client, hidden_topics=["health"])
    assert [(one.get("links"), one.get("previous_text"), one.get("supersedes")) for one in seen()] == [(None,) * 3] * 2


def test_no_answer_on_concepts_and_topics_quotes_a_hidden_message(client: TestClient):
    shown, hidden = "Kuba is my brother.", "Kuba is my therapist for depression."
    said = [
        {"role": "user", "content": text} for text in (shown, hidden, *["Kuba went to Lisbon"] * 3, "Emil", "Greta")
    ]
    policy(client)
    body = {"agent_name": "my_agent", "session_id": "s", "messages": said}
    assert client.post("/messages/batch", json=body).is_success
    client.app.state.service.graph.indexer.catch_up()  # type: ignore[attr-defined]
    agent, locrit = "/agents/my_agent", "/api/locrits/my_agent/memory"
    kuba = client.get(f"{agent}/concept?name=Kuba").json()["id"]
    paths = [
        *(f"{agent}/concepts{path}" for path in ("", f"/{kuba}", f"/{kuba}/related", f"/{kuba}/relations")),
        *(f"{agent}{path}" for path in ("/concept?name=Kuba", "/topics", "/insights")),
        *(f"{locrit}/concepts{path}" for path in ("", "/details?name=Kuba", "/Kuba/related")),
    ]

    def quoting() -> list[str]:
        answers = {path: client.get(path) for path in paths}
        assert all(answer.status_code == 200 for answer in answers.values())
        answers["patch"] = client.patch(f"{agent}/concepts/{kuba}", json={"name": "Kuba"})
        found = [path for path, answer in answers.items() if "therapist" in answer.text]
        top = client.get(f"{agent}/summary").json()["top_concepts"]
        nodes = [one for one in client.get(f"{agent}/graph").json()["nodes"] if one["label"] != "Message"]
        assert [one["role"] for one in top if one["id"] == kuba] == [client.get(paths[1]).json()["role"]]
        return [*found, *(["export"] if "therapist" in str(nodes) else [])]

    assert {paths[0], paths[1], "patch", "export"} <= {*quoting()}
    policy(client, hidden_topics=["health"])
    assert quoting() == []
    assert client.get(paths[1]).json()["role"] == "your brother"
    assert hidden in client.get("/messages/my_agent").text


def test_a_rescan_reaches_messages_and_titles(client: TestClient):
    said = {"agent_name": "my_agent", "role": "user", "content": f"write to {MAIL}", "session_id": "s", "name": MAIL}
    message = client.post("/messages", json=said).json()
    client.patch("/sessions/my_agent/s", json={"title": f"about {MAIL}"})
    policy(client, pii="redact")
    assert client.post("/privacy/rescan", headers=AGENT).json()["changed"] == 2
    found = client.post("/messages/search", json={"agent_name": "my_agent", "query": "write to"}).json()
    assert [hit["id"] for hit in found] == [message["id"]]
    assert MAIL not in client.get("/agents/my_agent/export").text
    assert client.app.state.service.engine.check() == []  # type: ignore[attr-defined]


def test_a_rescan_covers_the_graph_and_its_claims(client: TestClient):
    service = client.app.state.service  # type: ignore[attr-defined]
    policy(client, pii="allow")
    said = {
        "agent_name": "my_agent",
        "role": "user",
        "content": f"Yesterday I met Alice, see {MAIL}",
        "session_id": "s",
    }
    assert client.post("/messages", json=said).status_code == 200
    service.graph.indexer.catch_up()
    scope = Scope("my_agent", "somebody")

    def state(tx: Transaction) -> None:
        [alice] = mentions.known_keys(tx.connection, tx.namespace_id, ["alice"]).values()
        draft = ClaimDraft(ClaimKind.DESCRIPTION, alice, f"writes from {MAIL}", ClaimedBy.CALLER)
        claims.insert(tx.connection, tx.namespace_id, draft, tx.now)

    service.engine.write(scope, state)
    policy(client, pii="redact")
    assert client.post("/privacy/rescan", headers=AGENT).json()["changed"] == 2
    service.graph.indexer.catch_up()
    tables = ("claims", "concepts", "concept_forms", "mentions", "passages")
    with service.engine.namespace(scope) as (connection, _):
        rows = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables}
    assert "writes from" in repr(rows["claims"])
    assert "alice" in repr(rows["concepts"])
    assert MAIL not in repr(rows)
    assert service.engine.check() == []


def test_a_rescan_reaches_the_claims_of_entities_through_their_memories(client: TestClient):
    service = client.app.state.service  # type: ignore[attr-defined]
    policy(client, pii="allow")
    long_type = f"wrote a very long letter about the house to {MAIL}"
    graph = {
        "entities": [{"name": "Zoe", "entity_type": f"friend of {MAIL}", "observations": [f"writes to {MAIL}"]}],
        "relations": [{"from_entity": "Cleo", "to_entity": "Ben", "relation_type": long_type}],
    }
    assert client.post("/knowledge-graph", json=graph, headers=AGENT).status_code == 200
    service.graph.indexer.catch_up()
    policy(client, pii="redact")
    assert client.post("/privacy/rescan", headers=AGENT).json()["changed"] > 0
    service.graph.indexer.catch_up()
    assert client.get("/agents/my_agent/concept", params={"name": "zoe"}).json()["kind"] == "friend_of_email_redacted"
    assert service.engine.check() == []
