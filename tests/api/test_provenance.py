"""The words that facts and memories came from: in the transcript, in stored messages, and for whom."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import KEY, Start
from tests.api.learning import learned, takes_everything
from tests.vendors.llm import LLMRequest, LLMVendor

BOT = {"X-Namespace": "bot9"}
ENV = {"X-API-Key": KEY}
SAID, OTHER = "We moved billing to Postgres 17.", "Staging listens on port 8900."
TALK = f"Ana (user): Good morning! 🎉 {SAID} {OTHER}\nAssistant: Noted."


def rewords(request: LLMRequest) -> Any:
    """A model that finds the two statements, and rewords one of them."""
    if request.prompt == "decide":
        return takes_everything(request)
    said = {one: one.replace("We moved billing", "Billing was moved") for one in (SAID, OTHER) if one in request.user}
    return {"facts": [{"category": "DETAIL", "text": text, "quote": one, "when": None} for one, text in said.items()]}


@pytest.fixture
def vendor() -> Iterator[LLMVendor]:
    model = LLMVendor()
    model.start()
    model.script(rewords)
    yield model
    model.stop()


@pytest.fixture
def client(start: Start, vendor: LLMVendor) -> TestClient:
    return start(**vendor.settings("openai"))


def read(client: TestClient, path: str, headers: dict[str, str] = BOT, status: int = 200) -> Any:
    answer = client.get(path, headers=headers)
    assert answer.status_code == status, answer.text
    return answer.json()


def commit(client: TestClient, actions: list[dict[str, Any]]) -> Any:
    body = {"actions": [{**one, "approved": True} for one in actions], "source": "notes"}
    answer = client.post("/memory/extract/commit", json=body, headers=BOT)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("as_json", [False, True])
def test_each_fact_is_quoted_in_its_turn(client: TestClient, as_json: bool):
    talk = (
        '[{"role": "user", "content": "Good \\u006dorning! \\ud83c\\udf89 ' + SAID + " " + OTHER + '", "name": "Ana"}]'
        if as_json
        else TALK
    )
    job = learned(client, talk, headers=BOT, source="notes", dry_run=True, document_at="2025-04-02")["job_id"]
    first, second = read(client, f"/memory/extract/{job}/quotes")["quotes"]
    assert (first["ordinal"], first["before"], first["words"], first["after"]) == (
        0,
        "Good morning! 🎉 ",
        SAID,
        f" {OTHER}",
    )
    assert (first["role"], first["speaker"], first["at"]) == ("user", "Ana", "2025-04-02T00:00:00.000000+00:00")
    assert (first["session_id"], first["message_id"]) == (None, None)
    assert second["words"] == OTHER


def test_a_commit_quotes_the_transcript_of_its_dry_run(client: TestClient):
    dry = learned(client, TALK, headers=BOT, source="notes", dry_run=True)["result"]
    done = commit(client, [{**dry["actions"][1], "text": "Staging is on port 8900."}])
    [quote] = read(client, f"/memory/extract/{done['job_id']}/quotes")["quotes"]
    assert (quote["ordinal"], quote["words"]) == (0, OTHER)
    found = read(client, f"/memory/{done['actions'][0]['id']}/provenance")
    assert found["extraction"] == {"job_id": done["job_id"], "kept": True, "ordinal": 0}
    assert found["quote"]["words"] == OTHER


def test_what_is_forgotten_is_quoted_by_no_run_over_the_transcript(client: TestClient):
    dry = learned(client, TALK, headers=BOT, source="notes", dry_run=True)
    path = f"/memory/extract/{dry['job_id']}"
    rerun = client.post(f"{path}/rerun", headers=BOT).json()["job_id"]
    client.app.state.service.extraction.jobs.wait(rerun, 30)  # type: ignore[attr-defined]  # an application
    done = commit(client, dry["result"]["actions"][:1])
    client.delete(f"/memory/{done['actions'][0]['id']}", headers=BOT)
    for job in (dry["job_id"], rerun, done["job_id"]):
        shown = read(client, f"/memory/extract/{job}")
        assert shown["result"]["actions"][0]["action"] == "forgotten"
        assert "Billing was moved" not in str(shown)
        assert read(client, f"/memory/extract/{job}/quotes")["quotes"] == []


def test_a_memory_names_the_message_that_it_came_from_after_its_job_is_gone(client: TestClient):
    told = {"user": "ana", "session": "s1", "store_messages": True}
    action = learned(client, TALK, headers=BOT, **told)["result"]["actions"][0]
    [message, *_] = read(client, "/sessions/bot9/s1/messages")
    path = f"/memory/{action['id']}/provenance"
    found = read(client, path)
    assert (found["users"], found["sessions"], found["extraction"]["kept"]) == (["ana"], ["s1"], True)
    quote = found["quote"]
    assert (quote["words"], quote["message_id"], quote["session_id"]) == (SAID, message["id"], "s1")
    assert quote["before"] + quote["words"] + quote["after"] == message["content"]
    client.app.state.service.engine.write_rows(  # type: ignore[attr-defined]  # an application
        lambda connection: connection.execute("DELETE FROM jobs")
    )
    later = read(client, path)
    assert (later["extraction"]["kept"], later["quote"]) == (False, quote)
    client.patch(f"/messages/bot9/{message['id']}", json={"content": "Another text."}, headers=BOT)
    edited = read(client, path)["quote"]
    assert (edited["before"] + edited["words"] + edited["after"], edited["words"]) == ("Another text.", "")
    client.delete(f"/messages/bot9/{message['id']}", headers=BOT)
    assert read(client, path)["quote"] is None


def _rescanned(client: TestClient, _: str) -> None:
    assert client.put("/agents/bot9/policy", json={"pii": "redact"}, headers=BOT).status_code == 200
    done = client.post("/privacy/rescan", headers=BOT)
    assert done.status_code == 200, done.text


@pytest.mark.parametrize(
    "forget",
    [
        lambda client, uid: client.delete(f"/messages/bot9/{uid}", headers=BOT),
        lambda client, uid: client.patch(f"/messages/bot9/{uid}", json={"content": "Nothing."}, headers=BOT),
        _rescanned,
    ],
    ids=["deleted", "edited", "redacted"],
)
def test_words_of_a_message_that_is_gone_are_quoted_by_no_extraction(
    client: TestClient, forget: Callable[[TestClient, str], object]
):
    secret = "ana.smith@example.org"
    talk = TALK.replace("Good morning!", f"Write to {secret}.")
    told: dict[str, Any] = {"session": "s1", "store_messages": True}
    job = learned(client, talk, headers=BOT, **told)
    dry = learned(client, talk, headers=BOT, session="s1", dry_run=True)
    memory = job["result"]["actions"][0]["id"]
    jobs = [job["job_id"], dry["job_id"]]
    assert all(secret in str(read(client, f"/memory/extract/{one}/quotes")) for one in jobs)
    assert secret in str(read(client, f"/memory/{memory}/provenance"))
    for message in read(client, "/sessions/bot9/s1/messages"):
        if secret in message["content"]:
            forget(client, message["id"])
    for one in jobs:
        assert read(client, f"/memory/extract/{one}/quotes")["quotes"] == []
        assert client.post(f"/memory/extract/{one}/rerun", headers=BOT).status_code == 409
    assert secret not in str(read(client, f"/memory/{memory}/provenance"))


def _takes_lines(request: LLMRequest) -> Any:
    if request.prompt == "decide":
        return takes_everything(request)
    said = [line for line in re.findall(r"^\[\d+\] \([^)]*\): (.*)$", request.user, re.MULTILINE) if line]
    return {"facts": [{"category": "DETAIL", "text": one, "quote": one, "when": None} for one in said]}


def test_a_rescan_redacts_what_extractions_of_no_session_keep(client: TestClient, vendor: LLMVendor):
    client.post("/agents", json={"name": "bot9"}, headers=BOT)
    vendor.script(_takes_lines)
    secret = "ana.smith@example.org"
    with_it = learned(client, f"user: Write to {secret} about tea", headers=BOT, dry_run=True)["job_id"]
    without = learned(client, "user: The sea is blue", headers=BOT, dry_run=True)["job_id"]
    assert secret in str(read(client, f"/memory/extract/{with_it}"))
    _rescanned(client, "")
    [action] = read(client, f"/memory/extract/{with_it}")["result"]["actions"]
    assert action["text"] == "Write to [EMAIL_REDACTED] about tea"
    assert read(client, f"/memory/extract/{with_it}/quotes")["quotes"] == []
    assert len(read(client, f"/memory/extract/{without}/quotes")["quotes"]) == 1


def test_no_caller_states_where_a_memory_comes_from(client: TestClient):
    learned(client, TALK, headers=BOT, session="s1", store_messages=True)
    uid = read(client, "/sessions/bot9/s1/messages")[0]["id"]
    job = read(client, "/memory/extract")["extractions"][0]["job_id"]
    forged = {"message_id": uid, "message_span": {"start": 0, "end": 9}, "extraction_job_id": job}
    body = {"text": "Pay x.", "source": "a", "metadata": forged}
    added = client.post("/memory/add", json=body, headers=BOT).json()["id"]
    client.patch(f"/memory/{added}", json={"metadata_patch": forged}, headers=BOT)
    body = {"text": "Pay y.", "metadata": forged}
    new = client.post(f"/memory/{added}/supersede", json=body, headers=BOT).json()["new_id"]
    for memory in (added, new):
        found = read(client, f"/memory/{memory}/provenance")
        assert (found["extraction"], found["quote"]) == (None, None)
        assert not {*forged} & {*read(client, f"/memory/{memory}")}


def test_only_an_admin_imports_where_a_memory_comes_from(start: Start, vendor: LLMVendor):
    client = start(api_key=KEY, **vendor.settings("openai"))
    body = {"name": "writer", "role": "read-write", "namespace": "default"}
    writer = {"X-API-Key": client.post("/api/keys", json=body, headers=ENV).json()["key"]}
    for text, headers, kept in (("red", writer, False), ("blue", ENV, True)):
        line = {"text": text, "source": "s", "custom_fields": {"message_id": "m", "extraction_job_id": "j"}}
        imported = client.post(
            "/import", content=json.dumps(line), headers={**headers, "Content-Type": "application/x-ndjson"}
        )
        assert imported.status_code == 200, imported.text
        [memory] = [one for one in read(client, "/memories", ENV)["memories"] if one["text"] == text]
        assert ("message_id" in memory, "extraction_job_id" in memory) == (kept, kept)


def test_a_text_that_was_changed_by_hand_comes_from_no_extraction(client: TestClient):
    done = learned(client, TALK, headers=BOT, session="s1", store_messages=True)
    first, second = (action["id"] for action in done["result"]["actions"])
    nothing = (None, None)

    def origin(memory: int) -> tuple[Any, Any]:
        found = read(client, f"/memory/{memory}/provenance")
        assert found["sessions"] == ["s1"]
        return found["extraction"], found["quote"]

    new = client.post(f"/memory/{first}/supersede", json={"text": "Billing is on MySQL."}, headers=BOT).json()["new_id"]
    assert origin(new) == nothing
    assert origin(first) != nothing
    same = read(client, f"/memory/{second}")["text"]
    client.patch(f"/memory/{second}", json={"text": same, "pinned": True}, headers=BOT)
    assert origin(second)[0]["job_id"] == done["job_id"]
    client.patch(f"/memory/{second}", json={"text": "Cats sleep."}, headers=BOT)
    assert origin(second) == nothing
    assert not {"message_id", "message_span", "span", "extraction_job_id"} & {*read(client, f"/memory/{second}")}


def test_a_memory_that_was_not_extracted_has_no_provenance(client: TestClient):
    memory = client.post("/memory/add", json={"text": "x y", "source": "notes"}, headers=BOT).json()["id"]
    empty = {"memory_id": memory, "extraction": None, "users": [], "sessions": [], "quote": None}
    assert read(client, f"/memory/{memory}/provenance") == empty
    read(client, "/memory/99/provenance", status=404)


def test_a_key_of_some_sources_sees_no_conversation_of_others(start: Start, vendor: LLMVendor):
    client = start(api_key=KEY, **vendor.settings("openai"))

    def key(**more: Any) -> dict[str, str]:
        body = {"name": "agent", "role": "read-write", **more}
        return {"X-API-Key": client.post("/api/keys", json=body, headers=ENV).json()["key"]}

    own, other, whole = key(prefixes=["notes"]), key(prefixes=["notes"]), key(namespace="default")
    told = {"source": "notes", "session": "s1", "user": "ana"}
    client.post("/messages/batch", json=_said(), headers=ENV)
    memory = learned(client, TALK, headers=own, **told)["result"]["actions"][0]["id"]
    path = f"/memory/{memory}/provenance"
    seen = read(client, path, own)
    assert (seen["users"], seen["sessions"], seen["extraction"]["kept"]) == ([], [], True)
    assert (seen["quote"]["words"], seen["quote"]["message_id"]) == (SAID, None)
    hidden = read(client, path, other)
    assert (hidden["users"], hidden["sessions"], hidden["quote"]) == ([], [], None)
    assert hidden["extraction"]["kept"] is False
    assert read(client, path, whole)["quote"]["message_id"] is not None
    client.put("/agents/default/access", json={"full_memory": True, "logs": False}, headers=ENV)
    limited = read(client, path, whole)
    assert (limited["quote"], limited["sessions"], limited["users"]) == (None, [], [])
    read(client, f"/memory/{memory}/provenance", key(prefixes=["elsewhere"]), 404)


def _said() -> dict[str, Any]:
    message = {"role": "user", "content": f"Good morning! 🎉 {SAID} {OTHER}", "name": "Ana", "user": "ana"}
    return {"agent_name": "default", "session_id": "s1", "messages": [message]}


def test_extractions_are_listed_with_their_counts_newest_first(start: Start, vendor: LLMVendor):
    client = start(extract_max_deletes=0, **vendor.settings("openai"))
    applied = learned(client, TALK, headers=BOT, source="notes")
    client.post(f"/memory/extract/{applied['job_id']}/undo", headers=BOT)
    dry = learned(client, TALK, headers=BOT, source="notes", dry_run=True)
    client.post("/memory/add", json={"text": SAID, "source": "notes"}, headers=BOT)
    vendor.script(_deletes)
    waiting = learned(client, TALK, headers=BOT, source="notes")
    listed = read(client, "/memory/extract?limit=2")
    assert (listed["count"], listed["total"]) == (2, 3)
    assert [one["job_id"] for one in listed["extractions"]] == [waiting["job_id"], dry["job_id"]]
    first, second = listed["extractions"]
    assert (first["approval"], first["dry_run"], second["dry_run"]) == ("required", False, True)
    assert (second["model"], second["counts"]["stored_count"], second["source"]) == ("scripted-1", 2, "notes")
    assert "result" not in first
    assert read(client, "/memory/extract?offset=2")["extractions"][0]["undone"] is True
    only = read(client, "/memory/extract?waiting=true")
    assert [one["job_id"] for one in only["extractions"]] == [waiting["job_id"]]
    client.post(f"/memory/extract/{waiting['job_id']}/approve", headers=BOT)
    assert read(client, "/memory/extract?waiting=true")["total"] == 0


def _deletes(request: LLMRequest) -> Any:
    made = rewords(request)
    if request.prompt == "decide":
        made["decisions"] = [{**one, "verdict": "DELETE", "memory": 1} for one in made["decisions"][:1]] + made[
            "decisions"
        ][1:]
    return made
