"""The audit log: every change, every admin action and every denial; a flood of denials cannot break it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.access.audit import BURST, DENIED, SEVERAL, SWEEP_INTERVAL_S, AuditLog, Denial
from souvenir.core.settings import Settings
from souvenir.core.timestamps import utc_now
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin.audit import AuditEvent, AuditFilter, record
from tests.api.conftest import KEY, Add, Start
from tests.fake_embedder import FakeEmbedder

ADMIN = {"X-API-Key": KEY}


def audited(client: TestClient, headers: dict[str, str] | None = None, **query: Any) -> list[dict[str, Any]]:
    answer = client.get("/audit", params=query, headers=headers)
    assert answer.status_code == 200, answer.text
    entries: list[dict[str, Any]] = answer.json()["entries"]
    return entries


def actions(client: TestClient, **query: Any) -> list[str]:
    return [entry["action"] for entry in audited(client, **query)]


# --- changes -------------------------------------------------------------------------------------------------------


def test_memory_changes_are_audited_with_actor_time_and_action_but_no_text(client: TestClient, add: Add):
    stored = add("a secret text", source="a/secret/source")
    client.patch(f"/memory/{stored}", json={"pinned": True})
    client.delete(f"/memory/{stored}", params={"force": True})
    entries = audited(client, resource_id=stored)
    assert [entry["action"] for entry in entries] == ["memory.delete", "memory.update", "memory.add"]
    assert {entry["actor"] for entry in entries} == {"anonymous"}
    assert {entry["namespace"] for entry in entries} == {"default"}
    assert [entry["at"] for entry in entries] == sorted((entry["at"] for entry in entries), reverse=True)
    assert len({entry["id"] for entry in entries}) == 3
    assert "secret" not in str(entries)


def test_events_of_a_span_of_time_are_listed(client: TestClient, add: Add):
    for text in ("one", "two", "three"):
        add(text)
    newest, middle, oldest = audited(client)
    assert audited(client, since=middle["at"]) == [newest, middle]
    assert audited(client, until=middle["at"]) == [middle, oldest]
    assert audited(client, since=middle["at"], until=middle["at"]) == [middle]
    assert audited(client, since=newest["at"][:10], until=newest["at"][:10])[0] == newest
    assert client.get("/audit", params={"since": "soon"}).status_code == 422


def test_changes_of_every_namespace_are_shown(client: TestClient):
    client.post("/memory/add", json={"text": "red", "source": "s"}, headers={"X-Namespace": "ann"})
    [entry] = audited(client)
    assert (entry["action"], entry["namespace"]) == ("memory.add", "ann")


def test_a_page_is_newest_first_with_has_more(client: TestClient, add: Add):
    ids = [str(add(text)) for text in ("one", "two", "three")]
    first = client.get("/audit", params={"limit": 2}).json()
    assert [entry["resource_id"] for entry in first["entries"]] == [ids[2], ids[1]]
    assert first["has_more"] is True
    second = client.get("/audit", params={"limit": 2, "offset": 2}).json()
    assert [entry["resource_id"] for entry in second["entries"]] == [ids[0]]
    assert second["has_more"] is False


@pytest.mark.parametrize("resource_id", ["0", "007", "-1", "9" * 30, "١", "nothing"])
def test_an_invalid_memory_id_finds_nothing(client: TestClient, add: Add, resource_id):
    add("red")
    assert audited(client, resource_id=resource_id) == []


# --- acts ----------------------------------------------------------------------------------------------------------


@pytest.mark.sqlite_only(reason="backs up and restores")
def test_backups_and_restores_are_acts_and_a_restore_does_not_take_them_back(client: TestClient, add: Add):
    add("red")
    client.post("/backup?prefix=mine")
    name = client.post("/snapshots").json()["snapshot"]
    assert client.post("/restore", json={"backup_name": name}).status_code == 200
    assert client.post(f"/snapshots/{name}/restore").status_code == 200
    created = audited(client, action="backup.create")
    assert [entry["resource_id"].rsplit("_", 3)[0] for entry in created] == ["snapshot", "mine"]
    assert actions(client, resource_id=name) == ["backup.restore", "backup.restore", "backup.create"]


def test_an_export_is_an_act_and_an_import_is_long_work(client: TestClient, add: Add):
    add("red")
    exported = client.get("/export")
    assert (
        client.post("/import", content=exported.content, headers={"Content-Type": "application/x-ndjson"}).status_code
        == 200
    )
    assert [entry["detail"] for entry in audited(client, action="job.submit")] == ["import"]
    [entry] = audited(client, action="export")
    assert (entry["actor"], entry["namespace"]) == ("anonymous", "default")


def test_a_job_is_audited_for_its_submitter(client: TestClient):
    assert client.post("/maintenance/reembed").status_code == 200
    [entry] = audited(client, action="job.submit")
    assert (entry["actor"], entry["namespace"], entry["detail"]) == ("anonymous", "default", "reembed")
    assert client.get(f"/jobs/{entry['resource_id']}").status_code == 200


def test_changes_of_a_key_are_audited_for_their_actor(start: Start):
    client = start(api_key=KEY)
    client.headers["X-API-Key"] = KEY
    body = {"name": "reader", "role": "read-only", "prefixes": ["a"]}
    made = client.post("/api/keys", json=body).json()
    client.patch(f"/api/keys/{made['id']}", json={"name": "other"})
    rotated = client.post(f"/api/keys/{made['id']}/rotate").json()
    client.delete(f"/api/keys/{made['id']}")
    entries = audited(client, resource_id=made["id"])
    assert [entry["action"] for entry in entries] == ["key.revoke", "key.rotate", "key.update", "key.create"]
    assert {entry["actor"] for entry in entries} == {"api-key"}
    for secret in (made["key"], rotated["key"], KEY):
        assert secret not in client.get("/audit").text


def test_actions_of_a_key_are_found_by_its_id(start: Start):
    client = start(api_key=KEY)
    body = {"name": "writer", "role": "read-write", "prefixes": ["a"]}
    made = client.post("/api/keys", json=body, headers=ADMIN).json()
    writer = {"X-API-Key": made["key"]}
    assert client.post("/memory/add", json={"text": "red", "source": "a"}, headers=writer).status_code == 200
    assert client.post("/memory/add", json={"text": "red", "source": "b"}, headers=writer).status_code == 403
    assert client.get("/audit", headers=writer).status_code == 403
    found = audited(client, ADMIN, key_id=made["id"])
    assert [(entry["action"], entry["route"]) for entry in found] == [
        (DENIED, "/audit"),
        (DENIED, "/memory/add"),
        ("memory.add", None),
    ]
    assert found == audited(client, ADMIN, key_id=f"key:{made['id']}")


# --- denials -------------------------------------------------------------------------------------------------------


def test_a_denied_request_is_audited_with_route_address_and_code_only(start: Start):
    client = start(api_key=KEY)
    for key in ("wrong-secret", "wrong-secret", "other-secret"):
        client.get("/memory/77?source=secret", headers={"X-API-Key": key, "X-Namespace": "secret"})
    client.post("/search", json={"query": "secret"})
    without, wrong = audited(client, ADMIN)
    assert (without["method"], without["route"], without["count"]) == ("POST", "/search", 1)
    assert (wrong["method"], wrong["route"], wrong["count"]) == ("GET", "/memory/{memory_id}", 3)
    for entry in (without, wrong):
        assert (entry["action"], entry["status"], entry["detail"]) == (DENIED, 401, "unauthorized")
        assert (entry["actor"], entry["address"], entry["namespace"]) == ("unknown", "testclient", None)
    assert "secret" not in str([without, wrong])


def test_rate_limited_keys_are_denials_and_overload_is_not(start: Start):
    client = start(api_key=KEY, auth_rate_limit=1)
    for _ in range(3):
        client.get("/stats", headers={"X-API-Key": "wrong"})
    client.get("/nowhere")
    found = audited(start_again(client))
    assert [(entry["status"], entry["detail"], entry["count"]) for entry in found] == [
        (429, "too_many_attempts", 2),
        (401, "unauthorized", 1),
    ]


def start_again(client: TestClient) -> TestClient:
    """The same service, as an admin from an address that sent no wrong key."""
    return TestClient(client.app, base_url=str(client.base_url), headers=ADMIN, client=("192.0.2.1", 1))


def test_denials_are_there_after_a_restart(start: Start):
    first = start(api_key=KEY)
    first.get("/stats")
    first.__exit__(None, None, None)
    [entry] = audited(start(api_key=KEY), ADMIN)
    assert (entry["action"], entry["route"]) == (DENIED, "/stats")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[MemoryEngine]:
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path), FakeEmbedder())) as engine:
        yield engine


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def denial(number: int) -> Denial:
    return Denial("unknown", None, "GET", "/stats", 401, f"192.0.2.{number}", "unauthorized")


def test_a_flood_of_denials_becomes_few_rows_that_count_all_of_them(engine: MemoryEngine):
    clock = Clock()
    audit = AuditLog(engine, retention_days=90, clock=clock)
    for number in range(1000):
        audit.deny(denial(number))
    found = audit.page(AuditFilter(), limit=500, offset=0)
    assert len(found) == BURST + 1
    assert sum(entry.event.count for entry in found) == 1000
    assert found[0].event.actor == SEVERAL
    clock.now_s += 30
    for number in range(1000):
        audit.deny(denial(number))
    assert len(audit.page(AuditFilter(), limit=500, offset=0)) == BURST + 1 + 3 + 1
    audit.close()


def test_equal_denials_are_one_row_and_use_one_place(engine: MemoryEngine):
    audit = AuditLog(engine, retention_days=90, clock=Clock())
    for _ in range(1000):
        audit.deny(denial(1))
    audit.close()
    [entry] = audit.page(AuditFilter(), limit=500, offset=0)
    assert entry.event.count == 1000


# --- retention -----------------------------------------------------------------------------------------------------


def remember(engine: MemoryEngine, *, days: float, count: int = 1) -> None:
    event = AuditEvent(utc_now() - timedelta(days=days), "backup.create", "ann", "default", f"{days} days old")
    engine.write_rows(lambda connection: record(connection, [event] * count))


def test_a_purge_deletes_older_events_keeps_the_history_and_is_an_act_itself(client: TestClient, add: Add):
    add("red")
    engine: MemoryEngine = client.app.state.service.engine  # type: ignore[attr-defined]
    engine.write_rows(lambda connection: connection.execute("UPDATE history SET at = 0"))
    remember(engine, days=91, count=6_000)
    remember(engine, days=89)
    assert client.post("/audit/purge").json() == {"deleted": 6_000, "retention_days": 90}
    assert actions(client) == ["audit.purge", "backup.create", "memory.add"]
    assert client.post("/audit/purge?retention_days=7").json()["deleted"] == 1
    assert actions(client) == ["audit.purge", "audit.purge", "memory.add"]


def test_expired_audit_entries_are_deleted_automatically_unless_the_date_jumped(engine: MemoryEngine):
    """A date that was a year ahead for half an hour expires nothing."""
    remember(engine, days=8)
    remember(engine, days=6)
    clock, now = Clock(), utc_now()
    audit = AuditLog(engine, retention_days=7, clock=clock)
    kept = []
    for ahead in (timedelta(days=365), timedelta(), timedelta(), timedelta()):
        audit.sweep_if_due(now + ahead + timedelta(seconds=clock.now_s))
        kept.append([entry.event.resource_id for entry in audit.page(AuditFilter(), limit=9, offset=0)])
        clock.now_s += SWEEP_INTERVAL_S / 2
    assert kept == [["6 days old", "8 days old"]] * 3 + [["6 days old"]]
    audit.close()
