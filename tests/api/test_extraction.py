"""Extraction over HTTP: with the vendors' SDKs against a scripted server on loopback, and without a model."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.core.text import fenced
from tests.api.conftest import JSON, KEY, Start
from tests.api.learning import PATIENCE_S, ended, learned
from tests.vendors.llm import LLMVendor, fails, says

SAID = "We moved billing to Postgres 17."
TALK = f"User: {SAID}\nAssistant: Noted."
SOURCE = "claude-code/billing"
ENV = {"X-API-Key": KEY}
NO_FACTS: Any = {"facts": []}


def taken(client: TestClient, *, headers: dict[str, str] | None = None, **more: Any) -> Any:
    body = {"messages": TALK, "source": SOURCE, **more}
    return client.post("/memory/extract", json=body, headers=headers)


def texts(client: TestClient, headers: dict[str, str] | None = None) -> list[str]:
    return [memory["text"] for memory in client.get("/memories", headers=headers).json()["memories"]]


def key_for(client: TestClient, **more: Any) -> dict[str, str]:
    body = {"name": "agent", "role": "read-write", **more}
    return {"X-API-Key": client.post("/api/keys", json=body, headers=ENV).json()["key"]}


@pytest.mark.parametrize("provider", ["anthropic", "openai", "ollama"])
def test_a_transcript_is_taken_at_once_and_learned_from_as_a_job(start: Start, learner: LLMVendor, provider: str):
    client = start(**learner.settings(provider))
    answer = taken(client, context="session_end")
    assert answer.status_code == 202
    accepted = answer.json()
    assert len(accepted["job_id"]) == 32
    assert accepted["result_url"] == f"/memory/extract/{accepted['job_id']}"
    assert {"status", "queue_depth"} < accepted.keys()
    shown = ended(client, accepted["job_id"])
    assert (shown["queue_depth"], shown["result"]["job_id"]) == (0, accepted["job_id"])
    assert (shown["result"]["conflict_count"], shown["result"]["promotion_candidates"]) == (0, [])
    assert (shown["status"], shown["source"], shown["context"]) == ("completed", SOURCE, "session_end")
    assert (shown["message_length"], shown["mode"]) == (len(TALK), "llm")
    assert (shown["auth_key_id"], shown["trusted_authorship"]) == (None, False)
    assert shown["created_at"] <= shown["started_at"] <= shown["completed_at"]
    result = shown["result"]
    assert (result["extracted_count"], result["stored_count"]) == (2, 2)
    assert result["tokens"] == {"extract": {"input": 100, "output": 20}, "audn": {"input": 100, "output": 20}}
    first = result["actions"][0]
    assert (first["action"], first["text"]) == ("add", SAID)
    memory = client.get(f"/memory/{first['id']}").json()
    assert (memory["text"], memory["source"]) == (SAID, SOURCE)
    assert SAID in client.post("/search", json={"query": "billing"}).text


def test_without_a_provider_it_is_501_and_everything_else_works(start: Start):
    client = start()
    refused = taken(client)
    assert (refused.status_code, refused.json()["code"]) == (501, "extraction_not_configured")
    assert refused.json()["detail"] == "Extraction not configured. Set EXTRACT_PROVIDER env var."
    assert client.get("/jobs").json()["total"] == 0
    assert client.post("/memory/add", json={"text": SAID, "source": SOURCE}).status_code == 200


def test_without_a_provider_plain_sentences_are_stored_and_the_answer_says_so_already(start: Start):
    client = start(extract_fallback_add=True)
    client.app.state.service.loading.join(PATIENCE_S)  # type: ignore[attr-defined]
    answer = taken(client, messages="User: Remember that we use port 8900 for staging.\nAssistant: Sure.")
    accepted = answer.json()
    assert (answer.status_code, accepted["status"]) == (202, "completed")
    assert (accepted["result"]["stored_count"], accepted["result"]["mode"]) == (1, "fallback_add")
    [action] = accepted["result"]["actions"]
    assert (action["action"], action["mode"]) == ("fallback_add", "fallback_add")
    assert action["text"] in texts(client)
    shown = client.get(accepted["result_url"]).json()
    assert (shown["mode"], shown["result"]) == ("fallback_add", accepted["result"])


def test_a_longer_transcript_than_the_settings_allow_is_refused(start: Start, learner: LLMVendor):
    client = start(max_extract_message_chars=50, **learner.settings("openai"))
    assert taken(client, messages="User: " + "a" * 44).status_code == 202
    refused = taken(client, messages="User: " + "a" * 45)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
    assert "MAX_EXTRACT_MESSAGE_CHARS" in refused.json()["detail"]


def test_a_key_for_some_sources_names_one_of_them(start: Start, learner: LLMVendor):
    client = start(api_key=KEY, **learner.settings("openai"))
    key = key_for(client, prefixes=["claude-code"])
    without = taken(client, headers=key, source="")
    assert (without.status_code, without.json()["detail"]) == (400, "source is required for scoped keys")
    outside = taken(client, headers=key, source="claude-codex")
    assert (outside.status_code, outside.json()["code"]) == (403, "source_forbidden")
    assert taken(client, headers=key).status_code == 202
    assert taken(client, headers=ENV, source="").status_code == 202


def test_an_extraction_is_visible_to_its_submitter_and_admins_only(start: Start, learner: LLMVendor):
    client = start(api_key=KEY, **learner.settings("openai"))
    own, other = (key_for(client, prefixes=[SOURCE]) for _ in range(2))
    shown = learned(client, TALK, source=SOURCE, headers=own)
    path = f"/memory/extract/{shown['job_id']}"
    key_id = client.get("/api/keys/me", headers=own).json()["id"]
    assert (shown["auth_key_id"], shown["trusted_authorship"]) == (key_id, True)
    assert client.get(path, headers=ENV).json() == shown
    for method in ("GET", "DELETE"):
        refused = client.request(method, path, headers=other)
        assert (refused.status_code, refused.json()["code"]) == (404, "job_not_found")
        assert client.request(method, path, headers={**ENV, "X-Namespace": "elsewhere"}).status_code == 404


def test_a_job_of_another_kind_is_no_extraction(start: Start, learner: LLMVendor):
    client = start(**learner.settings("openai"))
    service = client.app.state.service  # type: ignore[attr-defined]
    scope = service.authenticator.authenticate(None, "").scope("read-only", None)
    job = service.jobs.submit("deduplicate", scope, {"threshold": 0.9, "dry_run": True})
    for method in ("GET", "DELETE"):
        assert client.request(method, f"/memory/extract/{job.id}").status_code == 404
    assert client.get(f"/jobs/{job.id}").status_code == 200


def test_extractions_over_the_queue_limit_are_refused_with_the_compatible_object(start: Start, learner: LLMVendor):
    client = start(extract_max_inflight=1, extract_queue_max=1, **learner.settings("openai"))
    learner.replies.append(says(NO_FACTS, waits=True))
    first = taken(client).json()["job_id"]
    assert learner.arrived.acquire(timeout=PATIENCE_S)
    second = taken(client).json()
    assert (second["status"], second["queue_depth"]) == ("queued", 1)
    assert client.get(second["result_url"]).json()["queue_depth"] == 1
    full = taken(client, store_messages=True, session="s1")
    assert (full.status_code, full.json()["code"]) == (429, "extract_queue_full")
    detail = full.json()["detail"]
    assert (detail["error"], detail["queue_depth"], detail["queue_max"]) == ("extract_queue_full", 1, 1)
    assert full.headers["Retry-After"] == str(detail["retry_after_sec"])
    figures = {"queue_depth": 1, "queue_max": 1, "queue_remaining": 0, "workers": 1, "jobs_tracked": 2}
    assert client.get("/metrics", headers=JSON).json()["extract"] == figures
    assert figures.items() <= client.get("/extract/status").json().items()
    assert 'souvenir_queue_depth{queue="extract"} 1.0' in client.get("/metrics", headers={"Accept": "text/plain"}).text
    learner.go_on.set()
    for job_id in (first, second["job_id"]):
        assert ended(client, job_id)["status"] == "completed"
    assert client.get("/messages/default").status_code == 404, "nothing is stored of what was refused"


def test_a_cancelled_extraction_changes_nothing(start: Start, learner: LLMVendor):
    client = start(extract_max_inflight=1, **learner.settings("openai"))
    learner.replies.append(says({"facts": [{"category": "DETAIL", "text": SAID, "quote": SAID}]}, waits=True))
    running = taken(client).json()["result_url"]
    assert learner.arrived.acquire(timeout=PATIENCE_S)
    waiting = taken(client).json()["result_url"]
    assert client.delete(waiting).json()["status"] == "cancelled"
    assert client.delete(running).json()["status"] == "running"
    learner.go_on.set()
    assert ended(client, running.rpartition("/")[2])["status"] == "cancelled"
    assert texts(client) == []
    again = client.delete(running)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


def test_a_model_that_fails_changes_nothing_and_the_job_says_so(start: Start, learner: LLMVendor):
    client = start(**learner.settings("openai"))
    learner.script(lambda _: fails(401, "No such key"))
    shown = learned(client, TALK, source=SOURCE)
    assert (shown["status"], shown["result"]["error"]) == ("completed", "provider_runtime_failure")
    assert (shown["result"]["error_stage"], shown["result"]["actions"]) == ("extract", [])
    assert shown["result"]["error_message"]
    assert texts(client) == []


def test_the_status_names_the_model_without_calling_it(start: Start, learner: LLMVendor, tmp_path):
    client = start(**learner.settings("anthropic"))
    shown = client.get("/extract/status").json()
    assert shown["enabled"] is True
    assert (shown["provider"], shown["model"], shown["status"]) == ("anthropic", "scripted-1", "healthy")
    assert learner.requests == []
    without = start(extract_fallback_add=True, data_dir=tmp_path / "other").get("/extract/status").json()
    assert (without["enabled"], without["status"], without["fallback_add_enabled"]) == (False, "disabled", True)
    assert (without["provider"], without["model"]) == (None, None)


# --- the transcript as messages ------------------------------------------------------------------------------------


def test_the_turns_are_found_at_once_while_the_model_still_reads(start: Start, learner: LLMVendor):
    client = start(**learner.settings("openai"))
    learner.replies.append(says(NO_FACTS, waits=True))
    answer = taken(client, store_messages=True, session="s1", user="ann", document_at="2025-04-02T09:30:00Z").json()
    assert answer["messages"] == {"count": 2, "session_id": "s1"}
    found = client.post("/messages/search", json={"agent_name": "default", "query": "Postgres"}).json()
    assert [(one["content"], one["role"], one["user"]) for one in found[:1]] == [(SAID, "user", "ann")]
    assert found[0]["created_at"] == "2025-04-02T09:30:00.000000+00:00"
    assert client.get(answer["result_url"]).json()["status"] != "completed"
    learner.go_on.set()
    ended(client, answer["job_id"])
    assert [one["content"] for one in client.get("/sessions/default/s1/messages").json()] == [SAID, "Noted."]


def test_without_a_session_the_turns_are_one_of_their_own(start: Start, learner: LLMVendor):
    client = start(**learner.settings("openai"))
    sessions = [taken(client, store_messages=True).json()["messages"]["session_id"] for _ in range(2)]
    assert len(set(sessions)) == 2
    assert {one["session_id"] for one in client.get("/messages/default").json()} == set(sessions)


def test_recalled_text_is_neither_stored_as_a_message_nor_learned(start: Start, learner: LLMVendor):
    client = start(**learner.settings("openai"))
    recalled = "User: " + fenced("- Ann lives in Bern.")
    answer = taken(client, messages=recalled, store_messages=True).json()
    assert answer["messages"] == {"count": 0, "session_id": None}
    assert ended(client, answer["job_id"])["result"]["skipped_reason"] == "empty_after_hygiene"
    assert learner.requests == []
    assert client.get("/messages/default").status_code == 404


def test_messages_need_a_key_of_the_whole_namespace(start: Start, learner: LLMVendor):
    client = start(api_key=KEY, **learner.settings("openai"))
    refused = taken(client, headers=key_for(client, prefixes=[SOURCE]), store_messages=True)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert client.get("/jobs", headers=ENV).json()["total"] == 0
    own = key_for(client, namespace="ann")
    assert taken(client, headers=own, store_messages=True).status_code == 202
    assert len(client.get("/messages/ann", headers=own).json()) == 2


def test_a_session_that_has_ended_takes_no_turns_and_no_job(start: Start, learner: LLMVendor):
    client = start(**learner.settings("openai"))
    client.post("/sessions", json={"agent_name": "default", "session_id": "s1"})
    client.post("/sessions/default/s1/end")
    refused = taken(client, store_messages=True, session="s1")
    assert (refused.status_code, refused.json()["code"]) == (409, "session_ended")
    assert client.get("/jobs").json()["total"] == 0


@pytest.mark.parametrize("store_messages", [False, True])
def test_the_same_request_under_one_key_is_done_once(start: Start, learner: LLMVendor, store_messages: bool):
    client = start(**learner.settings("openai"))
    once = {"Idempotency-Key": "7f1f9c1e"}
    first, again = (taken(client, headers=once, store_messages=store_messages) for _ in range(2))
    assert [answer.headers.get("Idempotency-Replayed") for answer in (first, again)] == [None, "true"]
    for name in ("job_id", "messages", "result_url"):
        assert first.json().get(name) == again.json().get(name)
    ended(client, first.json()["job_id"])
    assert client.get("/jobs").json()["total"] == 1
    assert texts(client) == [SAID, "Noted."]
    if store_messages:
        assert len(client.get("/messages/default").json()) == 2
    other = taken(client, headers=once, context="pre_compact")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
