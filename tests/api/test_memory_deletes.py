"""Permanent deletion of memories."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import Add, keeps_backups


def ids_left(client: TestClient) -> list[int]:
    return [memory["id"] for memory in client.get("/memories").json()["memories"]]


def backup_count(client: TestClient) -> int:
    return int(client.get("/backups").json()["count"])


def test_a_deleted_memory_is_gone_from_everywhere(client: TestClient, add: Add):
    stored = add("red apple " + "x" * 200)
    body = client.delete(f"/memory/{stored}").json()
    assert body == {"success": True, "deleted_id": stored, "deleted_text": ("red apple " + "x" * 200)[:100]}
    assert client.get(f"/memory/{stored}").status_code == 404
    assert client.post("/search", json={"query": "apple"}).json()["count"] == 0
    assert client.delete(f"/memory/{stored}").status_code == 404


def test_an_id_is_never_used_twice(client: TestClient, add: Add):
    stored = add("red")
    client.delete(f"/memory/{stored}")
    assert add("red") > stored


def test_delete_of_a_missing_id_is_404_and_changes_nothing(client: TestClient, add: Add):
    stored = add("red")
    assert client.delete("/memory/99").status_code == 404
    assert ids_left(client) == [stored]


def test_a_pinned_memory_is_deleted_only_by_force(client: TestClient, add: Add):
    stored = add("red", pinned=True)
    response = client.delete(f"/memory/{stored}")
    assert (response.status_code, response.json()["code"]) == (409, "memory_pinned")
    assert client.delete(f"/memory/{stored}?force=true").status_code == 200
    assert ids_left(client) == []


def test_a_batch_delete_reports_what_was_not_deleted(client: TestClient, add: Add):
    first, pinned, third = add("red"), add("green", pinned=True), add("blue")
    body = client.post("/memory/delete-batch", json={"ids": [first, 99, pinned]}).json()
    assert body == {
        "success": True,
        "deleted_count": 1,
        "deleted_ids": [first],
        "missing_ids": [99],
        "skipped_pinned": [pinned],
    }
    assert ids_left(client) == [pinned, third]
    assert "skipped_pinned" not in client.post("/memory/delete-batch", json={"ids": [third]}).json()


CASES = [
    ("/memory/delete-by-source", "source_pattern", "a/b", {"proj/a/b", "a/b"}),
    ("/memory/delete-by-source", "source_pattern", "proj", {"proj/a/b", "proj/ab", "my/proj"}),
    ("/memory/delete-by-prefix", "source_prefix", "proj/a", {"proj/a/b", "proj/ab"}),
    ("/memory/delete-by-prefix", "source_prefix", "a", {"a/b"}),
    ("/memory/delete-by-prefix", "source_prefix", "%", set()),
]


@pytest.mark.parametrize(("path", "field", "pattern", "matching"), CASES)
def test_deleting_a_source_does_what_its_dry_run_reported(client: TestClient, add: Add, path, field, pattern, matching):
    ids = {source: add(f"text of {source}", source) for source in ("proj/a/b", "proj/ab", "my/proj", "a/b")}
    pinned = add("text that stays", "proj/ab", pinned=True)
    expected = sorted(ids[source] for source in matching)
    assert client.post(path, json={field: pattern, "dry_run": True}).json() == {
        "success": True,
        "count": len(expected),
        "would_delete": expected,
    }
    assert len(ids_left(client)) == 5
    assert client.post(path, json={field: pattern}).json() == {"success": True, "deleted_count": len(expected)}
    assert ids_left(client) == sorted({*ids.values(), pinned} - set(expected))


def test_a_backup_is_made_before_a_source_is_deleted_unless_it_is_skipped(client: TestClient, add: Add):
    add("red", "one")
    add("green", "two")
    client.post("/memory/delete-by-prefix", json={"source_prefix": "one", "skip_snapshot": True})
    assert backup_count(client) == 0
    client.post("/memory/delete-by-prefix", json={"source_prefix": "two"})
    assert backup_count(client) == int(keeps_backups(client))


def test_delete_memories_takes_the_beginning_of_a_source(client: TestClient, add: Add):
    add("red", "proj/a")
    add("green", "proj/ab")
    other = add("blue", "my/proj/a")
    assert client.delete("/memories", params={"source": "proj/a"}).json() == {"count": 2}
    assert ids_left(client) == [other]
    assert backup_count(client) == int(keeps_backups(client))


@pytest.mark.parametrize("query", ["", "?source="])
def test_delete_memories_without_a_source_is_422_and_deletes_nothing(client: TestClient, add: Add, query):
    stored = add("red")
    assert client.delete(f"/memories{query}").status_code == 422
    assert ids_left(client) == [stored]
