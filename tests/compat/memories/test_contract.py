"""Every operation of the Memories family is answered as its clients expect: path, limits, statuses and keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from app import create_app
from benchmarks.running import serving, wait_until_ready
from souvenir.core.settings import Settings
from tests.api.conftest import BASE_URL, JSON
from tests.api.operations import DOCUMENT
from tests.compat.memories.calls import main, missing_keys, name_of, sent
from tests.compat.memories.wire import OPERATIONS, Field, Operation
from tests.fake_embedder import FakeEmbedder, fake_of


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("wire"), extract_fallback_add=True, extract_queue_max=500)
    with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL, headers=JSON) as client:
        client.app.state.service.loading.join(60)  # type: ignore[attr-defined]
        yield client


def of_engines(operations: Iterable[Operation]) -> list[Any]:
    """Those that make or restore a backup are for SQLite only."""
    files = pytest.mark.sqlite_only(reason="backs up or restores")
    return [pytest.param(one, id=name_of(one), marks=files if is_of_backups(one) else ()) for one in operations]


def is_of_backups(operation: Operation) -> bool:
    return operation.method == "POST" and operation.path.startswith(("/backup", "/snapshots", "/restore"))


@pytest.mark.parametrize("operation", of_engines(one for one in OPERATIONS if "$key" not in one.path))
def test_an_operation_is_answered_with_its_status_and_keys(client, operation):
    if operation.method in ("GET", "DELETE") and "/extraction/profiles" in operation.path:
        client.put("/extraction/profiles/chat/", json={"max_facts": 5})
    answer = sent(client, operation, operation.body)
    assert answer.status_code == operation.status, answer.text
    assert missing_keys(operation, answer) == set()


WITH_LIMITS = [(one, field) for one in OPERATIONS for field in one.fields]


def values_at(field: Field) -> list[tuple[Any, bool]]:
    """Values at the limits and one beyond, with whether they are accepted."""
    if field.choices:
        return [*((choice, True) for choice in field.choices), ("other", False)]
    if field.item is None:
        step = 1 if field.high is None or field.high > 2 else 0.01
        found = [] if field.low is None else [(field.low, True), (field.low - step, False)]
        return found + ([] if field.high is None else [(field.high, True), (field.high + step, False)])
    sizes = [] if field.low is None else [(int(field.low), True), (int(field.low) - 1, False)]
    sizes += [] if field.high is None else [(int(field.high), True), (int(field.high) + 1, False)]
    item = field.item
    return [(item * size if isinstance(item, str) else [item] * size, allowed) for size, allowed in sizes]


@pytest.mark.parametrize(
    ("operation", "field"), WITH_LIMITS, ids=[f"{name_of(one)} {field.name}" for one, field in WITH_LIMITS]
)
def test_a_value_at_its_limit_is_accepted_and_one_beyond_is_422(client, operation, field):
    if field.name == "ids" and field.low == 2:
        answer = sent(client, operation, {**operation.body, "ids": ["$a"]})
        assert answer.status_code in (400, 422)
        return
    for value, allowed in values_at(field):
        answer = sent(client, operation, {**operation.body, field.name: value})
        assert (answer.status_code != 422) is allowed, f"{str(value)[:40]}: {answer.text[:300]}"
        assert answer.status_code < 500


@pytest.mark.parametrize(
    "operation", of_engines(one for one in OPERATIONS if isinstance(one.body, dict) and one.status < 300)
)
def test_unknown_fields_are_ignored(client, operation):
    if "$key" in operation.path:
        return
    answer = sent(client, operation, {**operation.body, "unknown_field": 1})
    assert answer.status_code == operation.status, answer.text


def test_keys_are_made_changed_and_revoked(tmp_path):
    settings = Settings(data_dir=tmp_path / "data")
    with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL, headers=JSON) as client:
        made = client.post("/api/keys", json={"name": "ana", "role": "admin", "prefixes": []}).json()
        assert made.keys() >= set("id key key_prefix name principal_id role prefixes created_at".split())
        client.headers["X-API-Key"] = made["key"]
        other = client.post("/api/keys", json={"name": "b", "role": "read-write", "prefixes": ["notes"]}).json()
        by_name = {(one.method, one.path): one for one in OPERATIONS if "$key" in one.path}
        for method in ("PATCH", "DELETE"):
            operation = by_name[method, "/api/keys/$key"]
            answer = client.request(method, f"/api/keys/{other['id']}", json=operation.body)
            assert answer.status_code == 200
            assert set(operation.keys.split()) - answer.json().keys() == set()
        assert client.delete(f"/api/keys/{other['id']}").status_code == 404
        assert client.post("/api/keys", json={"name": "c", "role": "read-write"}).status_code == 400
        assert client.post("/api/keys", json={"name": "", "role": "admin"}).status_code == 422
        assert client.post("/api/keys", json={"name": "x" * 200, "role": "admin"}).status_code == 200
        assert client.post("/api/keys", json={"name": "x" * 201, "role": "admin"}).status_code == 422
        assert client.post("/api/keys", json={"name": "c", "role": "owner"}).status_code == 422


def test_a_judgement_is_listed_and_retracted_once(client):
    memory_id = client.post("/memory/add", json={"text": "The boat is green", "source": "notes"}).json()["id"]
    judged = {"memory_id": memory_id, "query": "boat", "signal": "useful", "search_id": "s"}
    assert client.post("/search/feedback", json=judged).json() == {"status": "recorded"}
    [entry] = client.get("/search/feedback/history", params={"memory_id": memory_id}).json()["entries"]
    assert {"id", "ts", "memory_id", "query", "signal", "search_id"} <= entry.keys()
    retracted = client.delete(f"/search/feedback/{entry['id']}")
    assert retracted.json() == {"status": "retracted", "id": entry["id"]}
    assert client.delete(f"/search/feedback/{entry['id']}").status_code == 404


def test_a_folder_is_renamed(client):
    client.post("/memory/add", json={"text": "The boat is blue", "source": "boats/notes"})
    renamed = client.post("/folders/rename", json={"old_name": "boats", "new_name": "ships"}).json()
    assert {**renamed, "errors": 0} == renamed
    assert (renamed["success"], renamed["updated"], renamed["old_name"], renamed["new_name"]) == (
        True,
        1,
        "boats",
        "ships",
    )


def test_a_webhook_is_listed_and_deleted_once(client):
    made = client.post("/webhooks", json={"url": "https://192.0.1.1/other"}).json()
    assert made["id"] in {hook["id"] for hook in client.get("/webhooks").json()["webhooks"]}
    assert client.delete(f"/webhooks/{made['id']}").json() == {"deleted": True}
    assert made["id"] not in {hook["id"] for hook in client.get("/webhooks").json()["webhooks"]}


def test_a_commit_of_nothing_approved_answers_zero_counts(client):
    actions = [{"action": "ADD", "text": "The boat is red", "fact_index": 0, "approved": False}]
    answer = client.post("/memory/extract/commit", json={"actions": actions, "source": "chat"}).json()
    counts = {name: value for name, value in answer.items() if name.endswith("_count")}
    assert {"stored_count", "updated_count", "deleted_count", "conflict_count"} <= counts.keys()
    assert set(counts.values()) == {0}


@pytest.mark.sqlite_only(reason="backs up or restores")
@pytest.mark.parametrize("kind", ["backup", "snapshot"])
def test_a_copy_is_restored(tmp_path, kind):
    settings = Settings(data_dir=tmp_path / "data")
    with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL, headers=JSON) as client:
        client.app.state.service.loading.join(60)  # type: ignore[attr-defined]
        client.post("/memory/add", json={"text": "The boat is green", "source": "notes"})
        if kind == "backup":
            name = Path(client.post("/backup").json()["backup_path"]).name
            [backup] = client.get("/backups").json()["backups"]
            assert (backup["name"], isinstance(backup["created"], float | int)) == (name, True)
        else:
            name = client.post("/snapshots").json()["snapshot"]
            [snapshot] = client.get("/snapshots").json()["snapshots"]
            assert {"name", "reason", "timestamp", "point_count"} <= snapshot.keys()
        client.delete("/memory/1").raise_for_status()
        if kind == "backup":
            restored = client.post("/restore", json={"backup_name": name}).json()
            assert (restored["success"], restored["total_memories"]) == (True, 1)
            assert {"restored_from", "message"} <= restored.keys()
        else:
            restored = client.post(f"/snapshots/{name}/restore").json()
            assert restored["success"]
            assert "restored" in restored
        assert client.get("/memory/1").json()["text"] == "The boat is green"


def test_every_operation_of_the_table_is_in_the_openapi_document():
    """A path that only falls on another one, as `/memory/missed` on `/memory/{memory_id}`, is not an operation."""
    document, missing = DOCUMENT["paths"], []
    for one in OPERATIONS:
        segments = one.path.partition("?")[0].rstrip("/").split("/")
        literal = [path for path in document if matches(path.rstrip("/").split("/"), segments)]
        if not any(one.method.lower() in document[path] for path in literal):
            missing.append(name_of(one))
    assert missing == []


def matches(template: list[str], segments: list[str]) -> bool:
    """Whether a path is of a template; words are not taken for an integer id."""
    if len(template) != len(segments):
        return False
    pairs = zip(template, segments, strict=True)
    return all(
        one == other or (one.startswith("{") and (one != "{memory_id}" or other.strip("$ab").isdigit() or "$" in other))
        for one, other in pairs
    )


@pytest.mark.sqlite_only(reason="the command backs up and restores too")
def test_a_running_service_streams_events_and_the_command_finds_no_difference_in_it(tmp_path, capsys):
    settings = Settings(data_dir=tmp_path / "data", extract_fallback_add=True, extract_queue_max=500)
    with serving(create_app(settings, FakeEmbedder(), fake_of)) as port:
        wait_until_ready(port)
        found = main(f"http://127.0.0.1:{port}")
        with httpx.stream("GET", f"http://127.0.0.1:{port}/events/stream", trust_env=False) as stream:
            assert stream.headers["Content-Type"].startswith("text/event-stream")
            assert next(stream.iter_lines()) == "retry: 5000"
    printed = capsys.readouterr().out
    assert found == 0, [line for line in printed.splitlines() if line.startswith("differs")]
    assert printed.count("\nok") >= len(OPERATIONS)
