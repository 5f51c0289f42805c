"""Who wrote a memory, with which program, and the sources that are reserved for principals."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import KEY, Start
from tests.api.learning import ended, learned, takes_everything
from tests.vendors.llm import LLMRequest, LLMVendor

ENV = {"X-API-Key": KEY}
CODEX = {"X-Memories-Client": "Codex"}
Keys = dict[str, dict[str, str]]


@pytest.fixture
def client(start: Start) -> TestClient:
    return start(api_key=KEY, extract_fallback_add=True)


@pytest.fixture
def keys(client: TestClient) -> Keys:
    """Keys of the whole namespace: of the principals ana and bo, of an admin called root, and without a principal."""
    made = {}
    for name, role in (("ana", "read-write"), ("bo", "read-write"), ("root", "admin"), ("No Name", "read-write")):
        body = {"name": name, "role": role, "namespace": None if role == "admin" else "default"}
        made[name] = {"X-API-Key": client.post("/api/keys", json=body, headers=ENV).json()["key"]}
    return made


def add(client: TestClient, headers: dict[str, str], text: str = "red apple", source: str = "notes") -> int:
    answer = client.post("/memory/add", json={"text": text, "source": source}, headers=headers)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["id"])


def record(client: TestClient, memory_id: int) -> dict[str, Any]:
    body: dict[str, Any] = client.get(f"/memory/{memory_id}", headers=ENV).raise_for_status().json()
    return body


def of(memory: dict[str, Any]) -> tuple[Any, Any, Any]:
    return memory.get("author"), memory.get("contributors"), memory.get("origin_client")


def exported(client: TestClient) -> list[dict[str, Any]]:
    lines = client.get("/export", headers=ENV).text.splitlines()[1:]
    return [json.loads(line) for line in lines]


def test_search_get_list_and_export_show_author_and_client(client: TestClient, keys: Keys):
    memory_id = add(client, {**keys["ana"], **CODEX})
    found = client.post("/search", json={"query": "apple"}, headers=ENV).json()["results"]
    listed = client.get("/memories", headers=ENV).json()["memories"]
    for shown in (found[0], record(client, memory_id), listed[0], exported(client)[0]["custom_fields"]):
        assert of(shown) == ("ana", None, "codex")


def test_callers_without_a_principal_or_a_client_leave_no_trace(client: TestClient, keys: Keys):
    for headers in (ENV, keys["No Name"], {**ENV, "X-Memories-Client": " "}):
        assert not {"author", "contributors", "origin_client"} & record(client, add(client, headers)).keys()


@pytest.mark.parametrize(("sent", "kept"), [("Claude Code", "claude-code"), ("vim", "other"), ("hook", "hook")])
def test_the_header_names_one_of_a_few_clients_and_outweighs_metadata(client: TestClient, sent: str, kept: str):
    body = {"text": "red", "source": "s", "metadata": {"origin_client": "manual"}}
    answer = client.post("/memory/add", json=body, headers={**ENV, "X-Memories-Client": sent})
    assert record(client, answer.json()["id"])["origin_client"] == kept


def test_every_route_that_writes_memories_notes_the_author(client: TestClient, keys: Keys):
    ana = {**keys["ana"], **CODEX}

    def post(path: str, body: Any) -> Any:
        return client.post(path, json=body, headers=ana).raise_for_status().json()

    one, two, three = (
        {"text": text, "source": "notes", "metadata": {"author": "forged", "contributors": ["forged"]}}
        for text in ("one red apple", "two green pears", "three blue plums")
    )
    ids = [post("/memory/add", {**one, "on_duplicate": "supersede"})["id"]]
    ids += post("/memory/add-batch", {"memories": [two, three]})["ids"]
    ids += [post("/memory/upsert", {**one, "key": "k"})["id"]]
    ids += [row["id"] for row in post("/memory/upsert-batch", {"memories": [{**two, "key": "l"}]})["results"]]
    ids += [post(f"/memory/{ids[0]}/supersede", {"text": "one yellow apple"})["new_id"]]
    ids += [post("/memory/merge", {"ids": ids[1:3], "merged_text": "pears and plums", "source": "notes"})["id"]]
    assert [of(record(client, one)) for one in ids] == [("ana", None, "codex")] * len(ids)


def test_tools_note_the_author(client: TestClient, keys: Keys):
    call = {"name": "add_memory", "arguments": {"text": "Ana likes tea."}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {**keys["ana"], **CODEX, "Accept": "application/json, text/event-stream"}
    assert not client.post("/mcp", json=message, headers=headers).json()["result"]["isError"]
    assert [of(line["custom_fields"]) for line in exported(client)] == [("ana", None, "codex")]


def test_jobs_note_the_author_of_their_request(client: TestClient, keys: Keys):
    body = {"messages": "User: We decided to use Redis for the red service.", "source": "chat"}
    accepted = client.post("/memory/extract", json=body, headers={**keys["ana"], **CODEX}).json()
    assert ended(client, accepted["job_id"], headers=ENV)["status"] == "completed"
    assert [of(line["custom_fields"]) for line in exported(client)] == [("ana", None, "codex")]


def test_other_principals_that_change_a_text_contribute(client: TestClient, keys: Keys):
    memory_id = add(client, keys["ana"])
    for name, patch in (("ana", {"text": "green apple"}), ("root", {"pinned": True}), ("No Name", {"text": "apple"})):
        client.patch(f"/memory/{memory_id}", json=patch, headers=keys[name]).raise_for_status()
    assert of(record(client, memory_id)) == ("ana", None, None)
    for name in ("bo", "root", "bo"):
        client.patch(f"/memory/{memory_id}", json={"text": f"apple of {name}"}, headers=keys[name]).raise_for_status()
    assert of(record(client, memory_id)) == ("ana", ["bo", "root"], None)


def test_authors_of_what_was_replaced_contribute_to_what_replaces_it(client: TestClient, keys: Keys):
    first, other = add(client, keys["ana"]), add(client, keys["bo"], "blue plum")
    new = client.post(f"/memory/{first}/supersede", json={"text": "green apple"}, headers=keys["bo"]).json()["new_id"]
    assert of(record(client, new)) == ("bo", ["ana"], None)
    merge = {"ids": [new, other], "merged_text": "fruit", "source": "notes"}
    merged = client.post("/memory/merge", json=merge, headers=ENV).json()["id"]
    assert of(record(client, merged)) == (None, ["bo", "ana"], None)


def test_the_author_outlives_the_key_and_its_principal(client: TestClient, keys: Keys):
    memory_id = add(client, keys["ana"])
    listed = client.get("/api/keys", headers=ENV).json()["keys"]
    of_ana = next(key["id"] for key in listed if key["name"] == "ana")
    client.patch(f"/api/keys/{of_ana}", json={"principal_id": "anna"}, headers=ENV).raise_for_status()
    assert of(record(client, add(client, keys["ana"], "blue plum"))) == ("anna", None, None)
    client.delete(f"/api/keys/{of_ana}", headers=ENV).raise_for_status()
    assert of(record(client, memory_id)) == ("ana", None, None)


def test_imports_keep_authors_for_an_admin_and_are_by_the_importer_otherwise(client: TestClient, keys: Keys):
    line = {"text": "red", "source": "s", "custom_fields": {"author": "zoe", "origin_client": "codex"}}
    plain = {"text": "blue", "source": "s"}
    body = "\n".join(map(json.dumps, (line, plain)))
    for headers in (keys["root"], keys["ana"]):
        answer = client.post(
            "/import",
            content=body,
            headers={**headers, "Content-Type": "application/x-ndjson", "X-Memories-Client": "hook"},
        )
        assert answer.json()["imported"] == 2, answer.text
    assert [of(one["custom_fields"]) for one in exported(client)] == [
        ("zoe", None, "codex"),
        (None, None, None),
        ("ana", None, "codex"),
        ("ana", None, None),
    ]


@pytest.mark.parametrize("name", ["ana", "root", "No Name", "env"])
def test_only_admins_and_keys_without_principal_write_to_the_person_of_others(
    client: TestClient, keys: Keys, name: str
):
    headers = {**keys, "env": ENV}[name]
    expected = 403 if name == "ana" else 200
    held = add(client, keys["bo"], source="person/bo/notes")
    own = add(client, keys["ana"], "blue plum", "person/ana/notes")
    batch = {"memories": [{"text": "x", "source": "person/bo"}]}
    requests = [
        client.post("/memory/add", json={"text": "x y", "source": "person/bo/notes"}, headers=headers),
        client.post("/memory/add", json={"text": "y z", "source": "person"}, headers=headers),
        client.post("/memory/add", json={"text": "z x", "source": "person/analog"}, headers=headers),
        client.post("/memory/add-batch", json=batch, headers=headers),
        client.post("/memory/upsert", json={"text": "x", "source": "person/bo", "key": "k"}, headers=headers),
        client.patch(f"/memory/{own}", json={"source": "person/bo/taken"}, headers=headers),
        client.patch(f"/memory/{held}", json={"text": "changed"}, headers=headers),
        client.patch(f"/memory/{held}", json={"source": "person/ana/taken"}, headers=headers),
        client.patch(f"/memory/{held}", json={"source": "person/bo/notes"}, headers=headers),
        client.post(f"/memory/{held}/supersede", json={"text": "new", "source": "person/ana"}, headers=headers),
        client.delete(f"/memory/{held}", headers=headers),
    ]
    assert [answer.status_code for answer in requests] == [expected] * len(requests)
    if expected == 403:
        assert {answer.json()["code"] for answer in requests} == {"source_forbidden"}
        assert record(client, held)["text"] == "red apple"
    assert add(client, headers, "mine", "person/ana/more")
    assert add(client, headers, "ours", "project/shop")
    assert add(client, headers, "elsewhere", "personal/bo")


def test_a_batch_leaves_the_memories_of_others_and_changes_the_rest(client: TestClient, keys: Keys):
    held, own = add(client, keys["bo"], source="person/bo/notes"), add(client, keys["ana"], "blue plum", "notes")

    def change(**fields: object) -> Any:
        return client.post("/memory/update-batch", json={"ids": [held, own], **fields}, headers=keys["ana"])

    refused = change(source="person/bo/taken", pinned=True)
    assert (refused.status_code, refused.json()["code"]) == (403, "source_forbidden")
    assert record(client, own)["pinned"] is False
    for fields in ({"add_tags": ["t"]}, {"source": "person/ana"}):
        answer = change(**fields).json()
        assert (answer["updated_ids"], answer["missing_ids"]) == ([own], [])
        assert [one["id"] for one in answer["refused"]] == [held]
    assert (record(client, held)["source"], record(client, own)["source"]) == ("person/bo/notes", "person/ana")


def test_conflicts_with_the_memories_of_others_are_left_as_they_are(client: TestClient, keys: Keys):
    held, own = add(client, keys["bo"], source="person/bo/notes"), add(client, keys["ana"], "blue plum", "notes")
    for one, other in ((held, own), (own, held)):
        path = f"/memory/{one}/conflict/{other}"
        refused = [client.request(method, path, headers=keys["ana"]) for method in ("PUT", "DELETE")]
        assert [answer.json()["code"] for answer in refused] == ["source_forbidden"] * 2
        assert client.put(path, headers=keys["bo"]).json() == {"flagged": True}
        assert client.delete(path, headers=ENV).json() == {"dismissed": True}


def test_bulk_deletes_leave_the_person_of_others(client: TestClient, keys: Keys):
    held = add(client, keys["bo"], source="person/bo/notes")
    assert client.delete("/memories?source=person", headers=keys["ana"]).status_code == 403
    assert record(client, held)["text"] == "red apple"


def test_extraction_by_a_principal_is_refused_for_project_sources(client: TestClient, keys: Keys):
    body = {"messages": "User: We decided to use Redis.", "source": "project/shop"}
    refused = client.post("/memory/extract", json=body, headers=keys["ana"])
    assert (refused.status_code, refused.json()["code"]) == (422, "source_reserved")
    commit = {"actions": [{"action": "ADD", "fact": {"text": "x"}, "approved": True}], "source": "project/shop"}
    assert client.post("/memory/extract/commit", json=commit, headers=keys["ana"]).status_code == 422
    other = client.post("/memory/extract", json={**body, "source": "person/bo"}, headers=keys["ana"])
    assert (other.status_code, other.json()["code"]) == (403, "source_forbidden")
    for source, headers in (("projects/shop", keys["ana"]), ("project/shop", ENV), ("project/shop", keys["No Name"])):
        assert client.post("/memory/extract", json={**body, "source": source}, headers=headers).status_code == 202


def test_extraction_by_a_principal_does_not_change_memories_of_projects_or_of_others(start: Start, learner: LLMVendor):
    client = start(api_key=KEY, **learner.settings("openai"))
    key = client.post("/api/keys", json={"name": "ana", "role": "read-write", "namespace": "default"}, headers=ENV)
    ana = {"X-API-Key": key.json()["key"]}
    texts = ["Billing runs on Postgres 15.", "Bo drinks black tea every morning.", "Lunch is at twelve in the yard."]
    sources = ["project/shop", "person/bo/likes", "notes"]
    held = [add(client, ENV, text, source) for text, source in zip(texts, sources, strict=True)]

    def updates(request: LLMRequest) -> Any:
        if request.prompt != "decide":
            return takes_everything(request)
        shown = re.findall(r"^\[(\d+)\] \d{4}-\d\d-\d\d: (\w+)", request.user, re.MULTILINE)
        number = {word: int(number) for number, word in shown}
        facts = re.findall(r"^\[(\d+)\] \(\w+\): (\w+)", request.user, re.MULTILINE)
        return {
            "decisions": [
                {"fact": int(one), "verdict": "UPDATE", "memory": number[word], "text": None, "reason": "It changed."}
                for one, word in facts
            ]
        }

    learner.script(updates)
    said = "Billing runs on Postgres 17. Bo drinks green tea every morning. Lunch is at one in the yard."
    result = learned(client, f"User: {said}", headers=ana)["result"]
    assert [record(client, one)["archived"] for one in held] == [False, False, True], result
    assert {record(client, one["id"])["author"] for one in result["actions"] if "id" in one} == {"ana"}
