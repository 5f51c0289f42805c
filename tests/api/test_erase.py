"""Erasure over HTTP: permissions, required parameters, the receipt, and concurrent requests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.core.types import JsonObject, MemoryPatch, Scope, SearchQuery
from souvenir.jobs.handler import RunningJob
from souvenir.transfer.import_job import ImportHandler
from tests.api.conftest import KEY, Start
from tests.api.test_agents import ENV, key_for
from tests.api.test_removals import MINE, say, service_in
from tests.conversations.talk import draft
from tests.memories.erasure.canaries import found_in

PATIENCE_S = 60.0


def erase(client: TestClient, selector: dict[str, Any] | None = None, **fields: Any) -> Any:
    body = {"selector": {"agent_name": "mine", **(selector or {})}, "confirm": True, **fields}
    return client.post("/erase", json=body)


def test_without_confirm_nothing_is_erased_and_the_error_says_what_to_send(client: TestClient):
    say(client, "one")
    for fields in ({"confirm": False}, {}):
        refused = client.post("/erase", json={"selector": {"agent_name": "mine"}, **fields})
        assert (refused.status_code, refused.json()["code"]) == (400, "nothing_to_do")
        assert "send confirm true" in refused.json()["detail"]
    assert client.get("/agents/mine").status_code == 200


@pytest.mark.parametrize(
    "selector",
    [
        {"user": "mia", "session_id": "s"},
        {"memory_id": 1, "source": "notes"},
        {"memory_id": "one"},
        {"memory_ids": []},
        {"memory_ids": [1], "user": "mia"},
        {"memory_ids": [1], "message_id": "one"},
        {"memory_ids": list(range(600)), "message_ids": [str(number) for number in range(401)]},
        {"user": ""},
        {"agent_name": "a/b"},
    ],
)
def test_a_selector_that_means_two_things_or_none_is_422(client: TestClient, selector: dict[str, Any]):
    say(client, "one", user="mia", session_id="s")
    assert erase(client, selector).status_code == 422
    assert client.get("/agents/mine").status_code == 200


@pytest.mark.parametrize(
    ("selector", "code"),
    [
        ({"agent_name": "nobody"}, "agent_not_found"),
        ({"user": "nobody"}, "user_not_found"),
        ({"session_id": "none"}, "session_not_found"),
        ({"message_id": "none"}, "message_not_found"),
        ({"memory_id": 77}, "memory_not_found"),
        ({"memory_ids": [77, 78], "message_ids": ["none"]}, "not_found"),
        ({"source": "none"}, "not_found"),
        ({"block": "none"}, "block_not_found"),
    ],
)
def test_erasing_data_that_neither_store_nor_backup_has_is_404(client: TestClient, selector: dict[str, Any], code: str):
    say(client, "one", user="mia")
    client.post("/backup")
    missing = erase(client, selector, backups=True)
    assert (missing.status_code, missing.json()["code"]) == (404, code)
    preview = client.post("/erase/preview", json={"selector": {"agent_name": "mine", **selector}})
    assert (preview.status_code, preview.json()["code"]) == (404, code)
    assert client.get("/jobs").json()["total"] == 0


def test_only_an_admin_erases(start: Start):
    client = start(api_key=KEY)
    say(client, "one")
    for key in (key_for(client, namespace="mine"), key_for(client, namespace="mine", role="read-only")):
        refused = client.post("/erase", json={"selector": {"agent_name": "mine"}, "confirm": True}, headers=key)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        assert client.post("/erase/preview", json={"selector": {"agent_name": "mine"}}, headers=key).status_code == 403
    body = {"selector": {"agent_name": "mine"}, "confirm": True}
    assert client.post("/erase", json=body, headers=ENV).status_code == 200


def test_several_memories_and_messages_are_erased_at_once_with_one_receipt(client: TestClient):
    said = say(client, "one", "two", "three", session_id="s", user="mia")
    mine = {"X-Namespace": "mine"}
    texts = ["red tea", "green tea", "black tea"]
    ids = [client.post("/memory/add", json={"text": text, "source": "n"}, headers=mine).json()["id"] for text in texts]
    theirs = client.post("/memory/add", json={"text": "white tea", "source": "n"}).json()["id"]
    # Ids of other agents and ids that nothing has are ignored.
    selector = {"memory_ids": [*ids[:2], ids[0], theirs, 999_999], "message_ids": [said[0], "none"]}
    preview = client.post("/erase/preview", json={"selector": {"agent_name": "mine", **selector}}).json()
    assert client.get("/audit?action=erase").json()["count"] == 0
    receipt = erase(client, selector).json()
    counts = {name: preview["would_remove"][name] for name in ("memories", "messages", "sessions", "agents")}
    assert counts == {"memories": 2, "messages": 1, "sessions": 0, "agents": 0}
    assert counts.items() <= receipt["removed"].items()
    assert receipt["tombstones"] == 3
    assert client.get("/jobs?kind=erase").json()["total"] == 1
    assert [one["id"] for one in client.get("/memories", headers=mine).json()["memories"]] == ids[2:]
    assert client.get(f"/memory/{theirs}").status_code == 200
    assert client.get("/agents/mine/stats").json()["messages"] == 2
    assert client.get("/audit?action=erase").json()["entries"][0]["detail"] == "message_ids, memory_ids"
    again = erase(client, selector)
    assert (again.status_code, again.json()["code"]) == (404, "not_found")


def test_the_receipt_counts_removed_rows_and_the_job_keeps_it(client: TestClient):
    engine = service_in(client).engine
    say(client, "the cat sleeps", session_id="s", user="mia")
    memory = client.post(
        "/memory/add", json={"text": "mint tea", "source": "n"}, headers={"X-Namespace": "mine"}
    ).json()
    owned = MemoryPatch(facts=("tea is mint", "mint tea"), tags=("hot", "drink"))
    engine.update(Scope("mine"), memory["id"], owned)
    service_in(client).graph.indexer.catch_up()
    receipt = erase(client).json()
    counts = {name: count for name, count in receipt["removed"].items() if count}
    assert counts == {
        "agents": 1,
        "users": 1,
        "sessions": 1,
        "messages": 1,
        "memories": 1,
        "facts": 2,
        "tags": 2,
        "history": 2,
        "mentions": 2,
        "concepts": 2,
        "passages": 3,
        "vectors": 3,
    }
    # cat, sleep; mint, tea; tea, mint
    assert (receipt["postings"], receipt["tombstones"], receipt["files_cleared"]) == (6, 1, True)
    [job] = client.get("/jobs?kind=erase").json()["jobs"]
    assert job["result"] == receipt
    assert client.get(f"/memory/{memory['id']}", headers={"X-Namespace": "mine"}).status_code == 404
    assert list(engine.check()) == []


def test_an_erasure_is_audited_without_the_erased_names(client: TestClient):
    say(client, "one", session_id="holiday", user="mia-the-first")
    say(client, "one", session_id="holiday-in-rome", user="mia-the-first")
    for selector in ({"session_id": "holiday-in-rome"}, {"user": "mia-the-first"}):
        assert erase(client, selector).status_code == 200
    acts = [act for act in client.get("/audit").json()["entries"] if act["action"] == "erase"]
    assert [act["detail"] for act in acts] == ["user", "session_id"]
    assert found_in(service_in(client).settings.data_dir, ["mia-the-first", "holiday-in-rome"]) == {}


def test_an_answer_that_would_take_too_long_is_202_and_the_receipt_comes_to_the_job(client: TestClient):
    say(client, "one")
    accepted = client.post("/erase?wait_s=0", json={"selector": {"agent_name": "mine"}, "confirm": True})
    assert accepted.status_code == 202
    assert client.get("/agents/mine").status_code == 404
    job = service_in(client).erasure_jobs.wait(accepted.json()["job_id"], PATIENCE_S)
    assert job.result is not None
    assert job.result["removed"]["agents"] == 1


def test_an_erasure_is_done_while_an_import_holds_the_other_jobs(client: TestClient, monkeypatch: pytest.MonkeyPatch):
    let_go, begun = Event(), Event()

    def held(handler: ImportHandler, job: RunningJob) -> JsonObject:
        begun.set()
        assert let_go.wait(PATIENCE_S)
        return {}

    monkeypatch.setattr(ImportHandler, "run", held)
    say(client, "one")
    assert (
        client.post(
            "/import?wait_s=0", content=b'{"text": "x"}\n', headers={"Content-Type": "application/x-ndjson"}
        ).status_code
        == 202
    )
    assert begun.wait(PATIENCE_S)
    try:
        receipt = erase(client)
        assert (receipt.status_code, receipt.json()["removed"]["agents"]) == (200, 1)
        [imported] = client.get("/jobs?kind=import").json()["jobs"]
        assert imported["status"] == "running"
    finally:
        let_go.set()


def test_an_erasure_reports_how_much_of_it_is_done(client: TestClient, monkeypatch: pytest.MonkeyPatch):
    for number in range(5):
        say(client, f"number {number}", session_id="s", user="mia")
    client.post("/memory/add", json={"text": "red tea", "source": "n"}, headers={"X-Namespace": "mine"})
    seen: list[tuple[int, int | None]] = []
    save = RunningJob.save

    def noted(job: RunningJob, connection: Any, *, done: int, total: int | None, state: JsonObject) -> None:
        seen.append((done, total))
        save(job, connection, done=done, total=total, state=state)

    monkeypatch.setattr(RunningJob, "save", noted)
    assert erase(client).status_code == 200
    done = [one for one, _ in seen]
    assert {total for _, total in seen} == {6}
    assert done == sorted(done)
    assert done[-1] == 6


@pytest.mark.sqlite_only(reason="PostgreSQL clears deleted bytes by VACUUM")
def test_bytes_that_a_long_read_keeps_are_cleared_when_it_is_over(client: TestClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("souvenir.store.sqlite.database.LOG_WAIT_S", 0.3)
    service = service_in(client)
    folder = service.settings.data_dir
    say(client, "Quizzaciously one", user="mia")
    service.engine.snapshot()
    with service.engine.namespace(Scope()) as (connection, _):
        assert connection.execute("SELECT count(*) FROM messages").get == 1
        say(client, "another", user="tom")
        receipt = erase(client, {"user": "mia"}).json()
        assert receipt["files_cleared"] is False
        assert found_in(folder, ["Quizzaciously"])
    service.removals.finish()
    assert found_in(folder, ["Quizzaciously"]) == {}


def test_writes_and_searches_during_an_erasure_succeed(client: TestClient):
    service = service_in(client)
    many = [draft(f"apple {n}", session_id=f"s{n % 5}", user="mia") for n in range(1_500)]
    service.conversations.add(MINE, many)
    client.post("/backup")
    stop = Event()

    def post(agent: str) -> list[tuple[int, str]]:
        made = []
        while not stop.is_set():
            body = {"agent_name": agent, "role": "user", "content": "a pear", "session_id": "now"}
            answer = client.post("/messages", json=body)
            made.append((answer.status_code, answer.json().get("id", "")))
        return made

    def search(agent: str) -> list[tuple[int, str]]:
        codes = []
        while not stop.is_set():
            body = {"agent_name": agent, "query": "apple pear"}
            codes.append((client.post("/messages/search", json=body).status_code, ""))
            service.engine.search(Scope(agent), SearchQuery("apple"))
        return codes

    with ThreadPoolExecutor(4) as callers:
        doing = [callers.submit(work, agent) for work in (post, search) for agent in ("mine", "other")]
        try:
            answer = erase(client, backups=True)
        finally:
            stop.set()
        posted_mine, posted_other, *searched = [one.result(PATIENCE_S) for one in doing]
    assert answer.status_code == 200, answer.text
    assert answer.json()["removed"]["messages"] >= len(many)
    assert {code for code, _ in (*posted_mine, *posted_other)} <= {200, 429}
    assert {code for codes in searched for code, _ in codes} <= {200, 404, 429}
    kept = {one.uid for one in service.conversations.of_session(Scope("other"), "now", limit=10_000)[0]}
    assert kept == {uid for code, uid in posted_other if code == 200}
    # Who wrote to the agent after it was gone made a new one, of which nothing is lost.
    left = {one.uid for one in service.conversations.of_session(MINE, "now", limit=10_000)[0]}
    stayed = [uid in left for code, uid in posted_mine if code == 200]
    assert stayed == sorted(stayed)
    assert list(service.engine.check()) == []
