"""Keys over HTTP: created, shown once, used, changed, rotated and revoked; the last admin cannot be locked out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest
from starlette.testclient import TestClient

from souvenir.core.types import Scope
from tests.api.conftest import KEY, Start, loaded

ENV = {"X-API-Key": KEY}
READER = {"name": "reader", "role": "read-only", "prefixes": ["proj/a"]}
ADMIN = {"name": "Ana Admin", "role": "admin"}


def make(client: TestClient, body: dict[str, Any], headers: dict[str, str] | None = None) -> dict[str, Any]:
    response = client.post("/api/keys", json=body, headers=headers)
    assert response.status_code == 200, response.text
    made: dict[str, Any] = response.json()
    return made


def bearing(made: dict[str, Any]) -> dict[str, str]:
    return {"X-API-Key": made["key"]}


@pytest.fixture
def guarded(start: Start) -> TestClient:
    return loaded(start(api_key=KEY))


def listed(client: TestClient, key_id: str) -> dict[str, Any]:
    found = {key["id"]: key for key in client.get("/api/keys", headers=ENV).json()["keys"]}
    key: dict[str, Any] = found[key_id]
    return key


@pytest.mark.sqlite_only(reason="reads the file")
def test_a_key_is_random_shown_once_and_stored_as_its_hash_only(start: Start, tmp_path: Path):
    client = start(api_key=KEY)
    made = make(client, READER, ENV)
    assert re.fullmatch(r"mem_[0-9a-f]{32}", made["key"])
    assert made["key_prefix"] == made["key"][:8]
    assert make(client, READER, ENV)["key"] != made["key"]
    assert made["key"] not in client.get("/api/keys", headers=ENV).text
    assert made["key"] not in client.get("/api/keys/me", headers=bearing(made)).text
    files = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert made["key"].encode() not in files
    assert made["id"].encode() in files


def test_a_key_that_is_revoked_while_the_body_arrives_does_nothing_any_more(guarded: TestClient):
    made = make(guarded, ADMIN, ENV)
    service = guarded.app.state.service  # type: ignore[attr-defined]  # an application

    def body() -> Iterator[bytes]:
        yield b'{"name": "backdoor", '
        service.keys.revoke(made["id"], by=Scope())
        yield b'"role": "admin"}'

    headers = {**bearing(made), "Content-Type": "application/json"}
    assert guarded.post("/api/keys", content=body(), headers=headers).status_code == 401
    assert "backdoor" not in guarded.get("/api/keys", headers=ENV).text


def test_a_key_shows_its_own_permissions(guarded: TestClient):
    made = make(guarded, {**READER, "prefixes": ["proj/a/*", "team/"]}, ENV)
    assert guarded.get("/api/keys/me", headers=bearing(made)).json() == {
        "type": "managed",
        "role": "read-only",
        "id": made["id"],
        "name": "reader",
        "principal_id": "reader",
        "namespace": "default",
        "prefixes": ["proj/a", "team"],
    }
    assert guarded.get("/api/keys/me", headers=ENV).json() == {"type": "env", "role": "admin"}


def test_without_any_key_everybody_is_an_admin(client: TestClient):
    assert client.get("/api/keys/me").json() == {"type": "none", "role": "admin"}


@pytest.mark.parametrize(
    ("name", "given", "principal"),
    [("ana", None, "ana"), ("Ana", None, None), ("ana", "team-1", "team-1"), ("ana\n", None, None), ("-a", None, None)],
)
def test_the_principal_is_the_name_if_that_is_a_slug(guarded: TestClient, name, given, principal):
    made = make(guarded, {**READER, "name": name, "principal_id": given}, ENV)
    assert made["principal_id"] == principal
    me = guarded.get("/api/keys/me", headers=bearing(made)).json()
    assert me["principal_id"] == principal


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"prefixes": []}, 400),
        ({"role": "admin"}, 400),
        ({"role": "admin", "prefixes": [], "namespace": "team"}, 400),
        ({"role": "owner"}, 422),
        ({"principal_id": "Not A Slug"}, 422),
        ({"principal_id": "slug\n"}, 422),
        ({"name": ""}, 422),
        ({"name": "x" * 201}, 422),
        ({"prefixes": ["/"]}, 422),
        ({"prefixes": ["a\0b"]}, 422),
        ({"prefixes": ["a"] * 101}, 422),
        ({"namespace": "a/b"}, 422),
        ({"namespace": ""}, 422),
    ],
)
def test_a_key_that_makes_no_sense_is_refused_and_not_made(guarded: TestClient, change, status):
    response = guarded.post("/api/keys", json={**READER, **change}, headers=ENV)
    assert response.status_code == status
    assert response.json()["detail"]
    assert guarded.get("/api/keys", headers=ENV).json() == {"keys": [], "count": 0}


def test_a_change_is_true_from_the_next_request_on(guarded: TestClient):
    made = make(guarded, READER, ENV)
    key = bearing(made)
    add = {"text": "red", "source": "proj/b"}
    assert guarded.post("/memory/add", json=add, headers=key).json()["code"] == "forbidden"
    change = {"role": "read-write", "prefixes": ["proj/b"], "name": "writer", "principal_id": "w"}
    answer = guarded.patch(f"/api/keys/{made['id']}", json=change, headers=ENV)
    assert answer.json() == {"success": True, "id": made["id"]}
    assert guarded.post("/memory/add", json=add, headers=key).status_code == 200
    me = guarded.get("/api/keys/me", headers=key).json()
    assert (me["role"], me["prefixes"], me["name"], me["principal_id"]) == ("read-write", ["proj/b"], "writer", "w")
    guarded.patch(f"/api/keys/{made['id']}", json={"namespace": "team"}, headers=ENV)
    assert guarded.get("/memories/count", headers=key).json() == {"count": 0}


def test_a_key_that_becomes_an_admin_sees_all_and_one_that_stops_being_one_needs_prefixes(guarded: TestClient):
    made = make(guarded, {**READER, "namespace": "team"}, ENV)
    path = f"/api/keys/{made['id']}"
    assert guarded.patch(path, json={"role": "admin", "prefixes": ["x"]}, headers=ENV).status_code == 400
    assert guarded.patch(path, json={"role": "admin"}, headers=ENV).status_code == 200
    me = guarded.get("/api/keys/me", headers=bearing(made)).json()
    assert (me["role"], me["prefixes"], me["namespace"]) == ("admin", [], None)
    assert guarded.patch(path, json={"role": "read-only"}, headers=ENV).status_code == 400
    assert guarded.patch(path, json={"role": "read-only", "prefixes": ["x"]}, headers=ENV).status_code == 200
    assert guarded.get("/api/keys/me", headers=bearing(made)).json()["namespace"] == "default"


def test_a_change_of_nothing_is_400_and_one_of_no_key_404(guarded: TestClient):
    made = make(guarded, READER, ENV)
    assert guarded.patch(f"/api/keys/{made['id']}", json={}, headers=ENV).status_code == 400
    assert guarded.patch("/api/keys/nobody", json={"name": "x"}, headers=ENV).json()["code"] == "key_not_found"
    assert guarded.patch(f"/api/keys/{made['id']}", json={"principal_id": "X Y"}, headers=ENV).status_code == 422


def test_a_new_secret_stops_the_old_one_and_keeps_the_rest(guarded: TestClient):
    made = make(guarded, READER, ENV)
    rotated = guarded.post(f"/api/keys/{made['id']}/rotate", headers=ENV).json()
    assert rotated["key"] != made["key"]
    assert {**rotated, "key": "", "key_prefix": ""} == {**made, "key": "", "key_prefix": ""}
    assert guarded.get("/memories", headers=bearing(made)).status_code == 401
    assert guarded.get("/memories", headers=bearing(rotated)).status_code == 200
    assert guarded.post("/api/keys/nobody/rotate", headers=ENV).status_code == 404


def test_a_revoked_key_stops_at_once_stays_listed_and_cannot_come_back(guarded: TestClient):
    made = make(guarded, READER, ENV)
    path = f"/api/keys/{made['id']}"
    assert guarded.delete(path, headers=ENV).json() == {"id": made["id"], "revoked": True}
    assert guarded.get("/memories", headers=bearing(made)).status_code == 401
    assert listed(guarded, made["id"])["revoked"] == 1
    for attempt in (
        guarded.delete(path, headers=ENV),
        guarded.patch(path, json={"name": "x"}, headers=ENV),
        guarded.post(f"{path}/rotate", headers=ENV),
    ):
        assert (attempt.status_code, attempt.json()["code"]) == (404, "key_not_found")


def test_keys_are_managed_by_admins_only(guarded: TestClient):
    made = make(guarded, {**READER, "role": "read-write"}, ENV)
    key = bearing(made)
    for method, path in (
        ("GET", "/api/keys"),
        ("POST", "/api/keys"),
        ("PATCH", f"/api/keys/{made['id']}"),
        ("DELETE", f"/api/keys/{made['id']}"),
        ("POST", f"/api/keys/{made['id']}/rotate"),
    ):
        response = guarded.request(method, path, json=ADMIN, headers=key)
        assert (response.status_code, response.json()["code"]) == (403, "forbidden")


def test_an_admin_key_has_the_permissions_of_the_configured_key(guarded: TestClient):
    key = bearing(make(guarded, ADMIN, ENV))
    guarded.post("/memory/add", json={"text": "red", "source": "anywhere"}, headers={**key, "X-Namespace": "team"})
    assert guarded.get("/stats", headers={**key, "X-Namespace": "team"}).json()["total_memories"] == 1
    assert guarded.post("/api/keys", json=ADMIN, headers=key).status_code == 200


# --- nobody locks everybody out ------------------------------------------------------------------------------------


def test_on_an_open_service_the_first_key_must_be_an_admin(client: TestClient):
    refused = client.post("/api/keys", json=READER)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "admin" in refused.json()["detail"]
    assert client.get("/api/keys").json() == {"keys": [], "count": 0}
    admin = bearing(make(client, ADMIN))
    assert client.get("/memories").status_code == 401
    assert client.post("/api/keys", json=READER).status_code == 401
    assert client.post("/api/keys", json=READER, headers=admin).status_code == 200


def test_the_last_admin_cannot_be_revoked_or_made_less(client: TestClient):
    first = make(client, ADMIN)
    path = f"/api/keys/{first['id']}"
    assert client.delete(path, headers=bearing(first)).status_code == 409
    less = {"role": "read-only", "prefixes": ["a"]}
    assert client.patch(path, json=less, headers=bearing(first)).status_code == 409
    second = make(client, ADMIN, bearing(first))
    assert client.delete(path, headers=bearing(second)).status_code == 200
    assert client.delete(f"/api/keys/{second['id']}", headers=bearing(second)).status_code == 409
    assert client.get("/api/keys/me", headers=bearing(second)).json()["role"] == "admin"


def test_concurrent_mutual_revocation_leaves_one_admin(start: Start):
    client = start()
    one = make(client, ADMIN)
    two = make(client, ADMIN, bearing(one))
    with ThreadPoolExecutor(2) as pool:
        answers = list(
            pool.map(
                lambda pair: client.delete(f"/api/keys/{pair[1]['id']}", headers=bearing(pair[0])).status_code,
                [(one, two), (two, one)],
            )
        )
    assert sorted(answers) in ([200, 401], [200, 409])


def test_the_configured_key_restores_access_after_a_lost_key(start: Start):
    client = start()
    made = make(client, ADMIN)
    client.__exit__(None, None, None)
    rescued = start(api_key=KEY)
    assert rescued.get("/api/keys", headers=ENV).json()["count"] == 1
    assert rescued.delete(f"/api/keys/{made['id']}", headers=ENV).status_code == 200
    assert rescued.get("/api/keys/me", headers=bearing(made)).status_code == 401


def test_a_revoked_key_still_closes_the_service_to_those_without_one(start: Start):
    client = start(api_key=KEY)
    made = make(client, READER, ENV)
    client.delete(f"/api/keys/{made['id']}", headers=ENV)
    client.__exit__(None, None, None)
    assert start().get("/memories").status_code == 401


# --- use -----------------------------------------------------------------------------------------------------------


@pytest.mark.sqlite_only(reason="reads the file")
def test_use_is_counted_without_a_write_and_written_down_at_the_end(start: Start, tmp_path: Path):
    client = start(api_key=KEY)
    made = make(client, READER, ENV)
    assert (listed(client, made["id"])["usage_count"], listed(client, made["id"])["last_used_at"]) == (0, None)
    for _ in range(3):
        client.get("/memories", headers=bearing(made))
    client.post("/memory/get-batch", json={"ids": [1]}, headers=bearing(made))
    assert listed(client, made["id"])["usage_count"] == 4
    assert stored_use(tmp_path) == 0
    client.__exit__(None, None, None)
    assert stored_use(tmp_path) == 4
    again = start(api_key=KEY)
    assert again.get("/memories", headers=bearing(made)).status_code == 200
    assert listed(again, made["id"])["usage_count"] == 5
    assert listed(again, made["id"])["last_used_at"].endswith("+00:00")


def stored_use(tmp_path: Path) -> int:
    connection = apsw.Connection(str(tmp_path / "data" / "souvenir.db"), flags=apsw.SQLITE_OPEN_READONLY)
    return int(connection.execute("SELECT sum(usage_count) FROM api_keys").get)


@pytest.mark.sqlite_only(reason="reads the file")
def test_history_names_the_key_that_changed_something_and_holds_no_secret(start: Start, tmp_path: Path):
    client = start(api_key=KEY)
    made = make(client, {**READER, "role": "read-write"}, ENV)
    client.post("/memory/add", json={"text": "red", "source": "proj/a"}, headers=bearing(made))
    connection = apsw.Connection(str(tmp_path / "data" / "souvenir.db"), flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.execute("SELECT actor FROM history").get == f"key:{made['id']}"


def test_health_reports_contents_to_admins_only(guarded: TestClient):
    guarded.post("/memory/add", json={"text": "red", "source": "proj/a"}, headers=ENV)
    reader, admin = bearing(make(guarded, READER, ENV)), bearing(make(guarded, ADMIN, ENV))
    for headers in ({}, reader, {"X-API-Key": "wrong"}):
        assert guarded.get("/health", headers=headers).json().keys() == {"status", "service", "version"}
        ready = guarded.get("/health/ready", headers=headers).json()
        assert (ready["ready"], ready["status"]) == (True, "ready")
        assert ready["index_count"] is ready["record_count"] is ready["qdrant_count"] is ready["metadata_count"] is None
    for headers in (ENV, admin):
        assert guarded.get("/health", headers=headers).json()["total_memories"] == 1
        assert guarded.get("/health/ready", headers=headers).json()["record_count"] == 1
