"""Backups of the whole database, under both route names."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import Add

pytestmark = pytest.mark.sqlite_only(reason="backs up and restores")


def test_a_backup_can_be_listed_and_restored(client: TestClient, add: Add):
    kept = add("red apple")
    client.post("/memory/add", json={"text": "blue", "source": "s"}, headers={"X-Namespace": "team"}).raise_for_status()
    begin = time.time()
    made = client.post("/backup").json()
    end = time.time()
    name = made["backup_path"].rsplit("/", 1)[-1]
    assert made["success"] is True
    assert re.fullmatch(r"manual_\d{8}_\d{6}_\d{6}", name)
    [listed] = client.get("/backups").json()["backups"]
    assert (listed["name"], listed["reason"], listed["memories"]) == (name, "manual", 2)
    assert int(begin) <= listed["created"] <= end
    client.delete(f"/memory/{kept}")
    later = add("green pear")
    body = client.post("/restore", json={"backup_name": name}).json()
    assert (body["success"], body["restored_from"], body["total_memories"]) == (True, name, 2)
    assert client.get(f"/memory/{kept}").json()["text"] == "red apple"
    assert client.get(f"/memory/{later}").status_code == 404
    assert [hit["id"] for hit in client.post("/search", json={"query": "apple"}).json()["results"]] == [kept]
    assert add("blue plum") > later


def test_the_state_before_a_restore_can_be_restored(client: TestClient, add: Add):
    name = client.post("/snapshots").json()["snapshot"]
    stored = add("red apple")
    message = client.post("/restore", json={"backup_name": name}).json()["message"]
    assert client.get(f"/memory/{stored}").status_code == 404
    replaced = message.rsplit(" ", 1)[-1]
    assert client.post("/restore", json={"backup_name": replaced}).status_code == 200
    assert client.get(f"/memory/{stored}").status_code == 200


@pytest.mark.parametrize(
    ("options", "prefix"),
    [
        ({"json": {"prefix": "before-upgrade"}}, "before-upgrade"),
        ({"params": {"prefix": "nightly"}}, "nightly"),
        ({"params": {"prefix": "query"}, "json": {"prefix": "body"}}, "query"),
        ({"json": {}}, "manual"),
        ({"json": {"prefix": None}}, "manual"),
        ({"params": {"prefix": ""}}, "manual"),
    ],
)
def test_the_prefix_is_read_from_the_query_or_the_body(client: TestClient, options, prefix):
    assert f"/{prefix}_" in client.post("/backup", **options).json()["backup_path"]


def test_backups_made_at_once_have_names_of_their_own(client: TestClient):
    names = {client.post("/snapshots").json()["snapshot"] for _ in range(3)}
    assert len(names) == client.get("/snapshots").json()["count"] == 3


def test_a_snapshot_is_a_backup_by_another_name(client: TestClient, add: Add):
    stored = add("red apple")
    name = client.post("/snapshots").json()["snapshot"]
    [listed] = client.get("/snapshots").json()["snapshots"]
    assert listed == {"name": name, "reason": "snapshot", "timestamp": listed["timestamp"], "point_count": 1}
    assert client.get("/backups").json()["backups"][0]["name"] == name
    client.delete(f"/memory/{stored}")
    assert client.post(f"/snapshots/{name}/restore").json() == {"success": True, "restored": name}
    assert client.get(f"/memory/{stored}").status_code == 200


@pytest.mark.parametrize("name", ["nothing", "..", "../data", ".hidden", "a" * 200])
def test_a_backup_that_does_not_exist_is_404(client: TestClient, name):
    response = client.post("/restore", json={"backup_name": name})
    assert (response.status_code, response.json()["code"]) == (404, "backup_not_found")


@pytest.mark.parametrize("name", ["nothing", "..%2Fdata", "%2e%2e"])
def test_a_snapshot_that_does_not_exist_is_404(client: TestClient, name):
    assert client.post(f"/snapshots/{name}/restore").status_code == 404


def test_a_damaged_backup_is_refused_and_changes_nothing(client: TestClient, add: Add, tmp_path: Path):
    stored = add("red apple")
    name = client.post("/snapshots").json()["snapshot"]
    database = tmp_path / "data" / "backups" / name / "souvenir.db"
    whole = database.read_bytes()
    database.write_bytes(whole[:4096] + b"\xff" * 100 + whole[4196:])
    response = client.post("/restore", json={"backup_name": name})
    assert (response.status_code, response.json()["code"]) == (503, "backup_damaged")
    assert client.get(f"/memory/{stored}").status_code == 200


@pytest.mark.parametrize("prefix", ["täglich", "日々", "٣", "ｂackup", "e\u0301", "a b", "a/b", ".", "x" * 51])
def test_a_prefix_of_other_than_ascii_letters_and_digits_is_refused(client: TestClient, prefix: str):
    answer = client.post("/backup", json={"prefix": prefix})
    assert answer.status_code in {400, 422}, answer.text
    assert client.get("/backups").json()["count"] == 0


@pytest.mark.parametrize("linked", ["folder", "souvenir.db", "manifest.json"])
def test_symbolic_links_are_neither_listed_nor_restored(client: TestClient, add: Add, tmp_path: Path, linked: str):
    add("red apple")
    name = client.post("/backup").json()["backup_path"].rpartition("/")[2]
    folder, outside = tmp_path / "data" / "backups" / name, tmp_path / "outside"
    made = folder if linked == "folder" else folder / linked
    made.rename(outside)
    made.symlink_to(outside)
    add("green pear")
    listed = [one["name"] for one in client.get("/backups").json()["backups"]]
    assert listed == ([name] if linked == "souvenir.db" else [])
    for answer in (
        client.post("/restore", json={"backup_name": name}),
        client.post(f"/snapshots/{name}/restore"),
    ):
        assert answer.json()["code"] in {"backup_not_found", "backup_damaged"}, answer.text
    assert client.get("/memories/count").json() == {"count": 2}
