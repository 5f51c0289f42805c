"""Quotas of keys: what counts towards them, over which routes they hold, and what frees them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest
from starlette.testclient import TestClient

from souvenir.access.request_rates import RequestRates
from souvenir.core.errors import RequestQuotaExceeded
from souvenir.core.settings import Settings
from tests.api.conftest import KEY, Start, loaded
from tests.transfer.stores import ndjson

ENV = {"X-API-Key": KEY}
AT = "2023-05-08T09:30:00.000000+00:00"
PATIENCE_S = 30.0


@pytest.fixture
def guarded(start: Start) -> TestClient:
    return loaded(start(api_key=KEY))


def key_with(client: TestClient, role: str = "read-write", namespace: str | None = "mine", **quotas: int) -> Any:
    """A new key and the header that carries it."""
    body = {"name": "limited", "role": role, "quotas": quotas} | ({"namespace": namespace} if namespace else {})
    made = client.post("/api/keys", json=body, headers=ENV)
    assert made.status_code == 200, made.text
    return made.json()["id"], {"X-API-Key": made.json()["key"]}


def add(client: TestClient, key: dict[str, str], text: str = "a text") -> Any:
    return client.post("/memory/add", json={"text": text, "source": "s"}, headers=key)


def used(client: TestClient, key: dict[str, str]) -> dict[str, int]:
    usage: dict[str, int] = client.get("/usage", headers=key).json()["used"]
    return usage


def refused(answer: Any, quota: str) -> str:
    assert (answer.status_code, answer.json()["code"]) == (429, f"quota_{quota}"), answer.text
    assert int(answer.headers["Retry-After"]) >= 1
    return str(answer.json()["detail"])


def imported(*texts: str) -> bytes:
    return ndjson(*({"text": text, "source": "s", "created_at": AT, "updated_at": AT} for text in texts))


def send(client: TestClient, key: dict[str, str], body: Any) -> Any:
    return client.post("/import", content=body, headers={**key, "Content-Type": "application/x-ndjson"})


class Unread:
    """A body that must not be read."""

    def __iter__(self) -> Iterator[bytes]:
        raise AssertionError("the body was read")


# --- requests --------------------------------------------------------------------------------------------------------


def test_requests_beyond_the_quota_are_refused_before_their_body_is_read(guarded: TestClient):
    _, key = key_with(guarded, requests_per_minute=3)
    _, other = key_with(guarded)
    for _ in range(3):
        assert guarded.get("/memories", headers=key).status_code == 200
    assert "3 requests a minute" in refused(
        guarded.post("/memory/add", content=Unread(), headers=key), "requests_per_minute"
    )
    ping = guarded.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=key)
    assert (ping.status_code, "3 requests a minute" in ping.text) == (429, True)
    assert guarded.get("/api/locrits/mine/memory/stats", headers=key).status_code == 429
    for free in (other, ENV):
        assert guarded.get("/memories", headers=free).status_code == 200


def test_a_key_never_sends_more_than_its_quota_in_any_minute():
    now = [0.0]
    rates = RequestRates(clock=lambda: now[0])
    admitted: list[float] = []
    for _ in range(100):
        now[0] += 0.5
        try:
            rates.admit("a", 7)
        except RequestQuotaExceeded as refusal:
            now[0] += refusal.retry_after_s
            rates.admit("a", 7)
        admitted.append(now[0])
    assert all(sum(start <= at < start + 60 for at in admitted) <= 7 for start in admitted)
    rates.keep(())
    assert rates.count("a") == 0


def test_concurrent_requests_do_not_exceed_the_quota(guarded: TestClient):
    _, key = key_with(guarded, requests_per_minute=5)
    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(lambda _: guarded.get("/memories", headers=key).status_code, range(24)))
    assert (statuses.count(200), statuses.count(429)) == (5, 19)


# --- memories --------------------------------------------------------------------------------------------------------


def test_memories_beyond_the_quota_are_refused_until_one_is_deleted(guarded: TestClient):
    _, key = key_with(guarded, memories=2)
    first = add(guarded, key, "one").json()["id"]
    batch = {"memories": [{"text": f"number {number}", "source": "s"} for number in range(2)]}
    assert "2 memories and stores 1" in refused(guarded.post("/memory/add-batch", json=batch, headers=key), "memories")
    assert used(guarded, key)["memories"] == 1
    assert add(guarded, key, "two").status_code == 200
    refused(add(guarded, key, "three"), "memories")
    upsert = {"text": "three", "source": "s", "key": "k"}
    refused(guarded.post("/memory/upsert", json=upsert, headers=key), "memories")
    assert guarded.patch(f"/memory/{first}", json={"text": "one, changed"}, headers=key).status_code == 200
    assert guarded.delete(f"/memory/{first}", headers=key).status_code == 200
    assert add(guarded, key, "three").status_code == 200
    assert guarded.get("/memories", headers=key).json()["total"] == used(guarded, key)["memories"] == 2


def test_memories_of_tools_and_other_formats_count_too(guarded: TestClient):
    _, key = key_with(guarded, memories=0)
    call = {"name": "add_memory", "arguments": {"text": "a text", "source": "s"}}
    headers = {**key, "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    answer = guarded.post(
        "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}, headers=headers
    )
    assert "This key may store 0 memories" in answer.text
    longterm = guarded.post(
        "/knowledge-graph", json={"entities": [{"name": "Ann", "entityType": "person"}]}, headers=key
    )
    refused(longterm, "memories")
    assert guarded.get("/memories", headers=key).json()["total"] == 0


def test_an_import_stops_at_the_quota_and_says_so(guarded: TestClient):
    _, key = key_with(guarded, memories=70)
    answer = send(guarded, key, imported(*(f"number {number}" for number in range(100))))
    assert (answer.status_code, answer.json()["code"]) == (429, "quota_exceeded")
    assert int(answer.headers["Retry-After"]) > 60
    assert "This key may store 70 memories" in answer.json()["detail"]
    assert used(guarded, key)["memories"] == 64  # the first batch


def test_concurrent_writes_do_not_exceed_the_quota(guarded: TestClient):
    _, key = key_with(guarded, memories=5)
    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(lambda number: add(guarded, key, f"text {number}").status_code, range(16)))
    assert statuses.count(200) == used(guarded, key)["memories"] == 5
    assert statuses.count(429) == 11


def test_what_a_key_stores_is_counted_across_restarts_and_by_its_own_rows_only(start: Start):
    client = loaded(start(api_key=KEY))
    _, key = key_with(client, memories=1)
    assert client.post(
        "/memory/add", json={"text": "x", "source": "s"}, headers={**ENV, "X-Namespace": "mine"}
    ).is_success
    assert add(client, key).status_code == 200
    client.__exit__(None, None, None)
    client = loaded(start(api_key=KEY))
    refused(add(client, key, "second"), "memories")
    body = {"selector": {"agent_name": "mine"}, "confirm": True}
    assert client.post("/erase", json=body, headers=ENV).status_code == 200
    assert used(client, key) == dict.fromkeys(used(client, key), 0)
    assert add(client, key).status_code == 200


@pytest.mark.sqlite_only(reason="restores a backup")
def test_a_restore_brings_back_the_usage_of_what_it_brings_back(guarded: TestClient):
    _, key = key_with(guarded, memories=2)
    kept = add(guarded, key, "one").json()["id"]
    backup = guarded.post("/snapshots", headers=ENV).json()["snapshot"]
    guarded.delete(f"/memory/{kept}", headers=key)
    assert used(guarded, key)["memories"] == 0
    assert guarded.post(f"/snapshots/{backup}/restore", headers=ENV).status_code == 200
    assert used(guarded, key)["memories"] == 1


# --- bytes -----------------------------------------------------------------------------------------------------------


def stored_bytes_of(data_dir: Path, key_id: str) -> int:
    """The obvious way: read every row of the key."""
    rows: list[str | None] = []
    with apsw.Connection(str(Settings(data_dir=data_dir).database_path)) as connection:
        for query in (
            "SELECT text, metadata FROM memories WHERE key_id = ?1",
            "SELECT content, metadata FROM messages WHERE key_id = ?1",
            "SELECT before, after FROM history WHERE actor = 'key:' || ?1",
            "SELECT content, metadata FROM message_versions WHERE key_id = ?1",
        ):
            rows += [value for row in connection.execute(query, (key_id,)) for value in row]
    return sum(len(value.encode()) for value in rows if value is not None)


@pytest.mark.sqlite_only(reason="reads the file")
def test_stored_bytes_equal_the_rows_after_any_operations(guarded: TestClient, tmp_path: Path):
    key_id, key = key_with(guarded)
    ids = [add(guarded, key, f"Müller number {number}").json()["id"] for number in range(4)]
    guarded.patch(f"/memory/{ids[0]}", json={"text": "longer than it was before"}, headers=key)
    guarded.patch(f"/memory/{ids[1]}", json={"text": "of another hand"}, headers={**ENV, "X-Namespace": "mine"})
    guarded.delete(f"/memory/{ids[2]}", headers=key)
    message = {"agent_name": "mine", "role": "user", "content": "it räins", "session_id": "s"}
    said = guarded.post("/messages", json=message, headers=key).json()["id"]
    other = guarded.post("/messages", json=message, headers=ENV).json()["id"]
    for uid in (said, said, other):
        changed = guarded.patch(f"/messages/mine/{uid}", json={"content": "it snows and snows"}, headers=key)
        assert changed.is_success, changed.text
    found = used(guarded, key)
    assert found["memories"] == 3
    assert found["stored_bytes"] == stored_bytes_of(tmp_path / "data", key_id) > 0
    assert guarded.delete("/agents/mine", headers=ENV).status_code == 200
    assert used(guarded, key)["stored_bytes"] == stored_bytes_of(tmp_path / "data", key_id) == 0


def test_bytes_beyond_the_quota_are_refused_in_memories_messages_and_changes(guarded: TestClient):
    _, key = key_with(guarded, stored_bytes=2_000)
    memory_id = add(guarded, key, "x" * 300).json()["id"]
    assert "2000 bytes" in refused(add(guarded, key, "y" * 2_000), "stored_bytes")
    message = {"agent_name": "mine", "role": "user", "content": "z" * 2_000, "session_id": "s"}
    refused(guarded.post("/messages", json=message, headers=key), "stored_bytes")
    refused(guarded.patch(f"/memory/{memory_id}", json={"text": "w" * 1_000}, headers=key), "stored_bytes")
    assert guarded.get(f"/memory/{memory_id}", headers=key).json()["text"] == "x" * 300
    said = guarded.post("/messages", json={**message, "content": "z" * 100}, headers=key).json()["id"]
    edits = (guarded.patch(f"/messages/mine/{said}", json={"content": "v" * 200}, headers=key) for _ in range(20))
    refused(next(edit for edit in edits if not edit.is_success), "stored_bytes")
    assert guarded.delete(f"/messages/mine/{said}", headers=key).is_success
    assert guarded.delete(f"/memory/{memory_id}", headers=key).status_code == 200
    assert used(guarded, key)["stored_bytes"] < 300


# --- jobs and extractions --------------------------------------------------------------------------------------------


def test_jobs_beyond_the_quota_are_refused_before_the_body_is_read(guarded: TestClient):
    _, key = key_with(guarded, jobs_per_day=1)
    assert send(guarded, key, imported("one")).status_code == 200
    detail = refused(send(guarded, key, Unread()), "jobs_per_day")
    assert detail == "This key may submit 1 jobs a day; try again tomorrow"
    assert used(guarded, key)["jobs_per_day"] == 1


def test_extractions_have_a_quota_of_their_own(start: Start):
    client = loaded(start(api_key=KEY, extract_fallback_add=True))
    _, key = key_with(client, extractions_per_day=1, jobs_per_day=0)
    body = {"messages": "User: Remember that we use port 8900 for staging.", "source": "s"}
    assert client.post("/memory/extract", json=body, headers=key).status_code == 202
    refused(
        client.post("/memory/extract", json={**body, "messages": "User: I like tea."}, headers=key),
        "extractions_per_day",
    )
    assert (used(client, key)["extractions_per_day"], used(client, key)["jobs_per_day"]) == (1, 0)


# --- setting and showing them ----------------------------------------------------------------------------------------


def test_quotas_are_changed_as_a_whole_and_hold_from_then_on(guarded: TestClient):
    key_id, key = key_with(guarded, memories=0, stored_bytes=10_000)
    refused(add(guarded, key), "memories")
    assert guarded.patch(f"/api/keys/{key_id}", json={"quotas": {"memories": 1}}, headers=ENV).status_code == 200
    assert add(guarded, key).status_code == 200
    nothing = dict.fromkeys(("requests_per_minute", "memories", "stored_bytes", "jobs_per_day", "extractions_per_day"))
    assert guarded.get("/usage", headers=key).json()["quotas"] == {**nothing, "memories": 1}
    [listed] = [one for one in guarded.get("/api/keys", headers=ENV).json()["keys"] if one["id"] == key_id]
    assert listed["quotas"] == {**nothing, "memories": 1}
    assert guarded.patch(f"/api/keys/{key_id}", json={"name": "other"}, headers=ENV).status_code == 200
    refused(add(guarded, key, "two"), "memories")
    assert guarded.patch(f"/api/keys/{key_id}", json={"quotas": {}}, headers=ENV).status_code == 200
    assert guarded.get("/usage", headers=key).json()["quotas"] == nothing


@pytest.mark.parametrize("quotas", [{"memorys": 1}, {"memories": -1}, {"memories": "many"}, {"memories": 2**60}])
def test_quotas_that_cannot_be_are_422(guarded: TestClient, quotas: dict[str, Any]):
    body = {"name": "k", "role": "read-write", "namespace": "mine", "quotas": quotas}
    assert guarded.post("/api/keys", json=body, headers=ENV).status_code == 422


def test_defaults_hold_for_keys_without_the_admin_role_that_set_nothing_else(start: Start):
    client = loaded(start(api_key=KEY, key_quotas="memories=1, jobs_per_day=5"))
    _, plain = key_with(client)
    _, more = key_with(client, memories=2)
    _, admin = key_with(client, role="admin", namespace=None)
    assert (
        client.get("/usage", headers=more).json()["quotas"] | {"jobs_per_day": 5, "memories": 2}
        == (client.get("/usage", headers=more).json()["quotas"])
    )
    for key, allowed in ((plain, 1), (more, 2)):
        for number in range(allowed):
            assert add(client, key, f"text {number}").status_code == 200
        refused(add(client, key, "one too many"), "memories")
    for key in (admin, ENV):
        assert [add(client, key, f"text {number}").status_code for number in range(3)] == [200] * 3


@pytest.mark.parametrize("text", ["memories", "memories=many", "memory=1", "memories=-1"])
def test_defaults_that_cannot_be_read_are_refused_at_the_start(tmp_path: Path, text: str):
    with pytest.raises(ValueError, match=r"quota|name=number"):
        Settings(data_dir=tmp_path, key_quotas=text)


def test_only_an_admin_sees_the_usage_of_another_key(guarded: TestClient):
    mine, key = key_with(guarded, memories=3)
    other, _ = key_with(guarded)
    add(guarded, key)
    assert guarded.get("/usage", headers=key).json()["key_id"] == mine
    assert guarded.get("/usage", params={"key_id": mine}, headers=key).status_code == 200
    assert guarded.get("/usage", params={"key_id": other}, headers=key).status_code == 403
    shown = guarded.get("/usage", params={"key_id": mine}, headers=ENV).json()
    assert (shown["quotas"]["memories"], shown["used"]["memories"]) == (3, 1)
    assert guarded.get("/usage", params={"key_id": "none"}, headers=ENV).status_code == 404
    own = guarded.get("/usage", headers=ENV).json()
    assert (own["key_id"], set(own["used"].values())) == (None, {0})
