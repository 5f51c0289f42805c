"""Namespaces are isolated on every route."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import JSON

A, B = {"X-Namespace": "agent a"}, {"X-Namespace": "agent-b"}


def test_no_data_of_one_namespace_is_visible_in_another(client: TestClient):
    body = {"text": "red apple", "source": "s", "metadata": {"entity_key": "k"}}
    stored = client.post("/memory/add", json=body, headers=A).json()["id"]
    for headers in (B, {}):
        assert client.get(f"/memory/{stored}", headers=headers).status_code == 404
        assert client.post("/memory/get-batch", json={"ids": [stored]}, headers=headers).json()["count"] == 0
        assert client.get("/memories", headers=headers).json()["total"] == 0
        assert client.get("/memories/count", headers=headers).json() == {"count": 0}
        assert client.get("/stats", headers=headers).json()["total_memories"] == 0
        assert client.get("/metrics", headers={**headers, **JSON}).json()["memory"]["current_total"] == 0
        for hybrid in (True, False):
            search = {"query": "red apple", "hybrid": hybrid}
            assert client.post("/search", json=search, headers=headers).json()["count"] == 0
            explained = client.post("/search/explain", json=search, headers=headers).json()["explain"]
            assert explained["vector_candidates"] == explained["bm25_candidates"] == []
        novel = client.post("/memory/is-novel", json={"text": "red apple"}, headers=headers).json()
        assert novel["most_similar"] is None


def test_no_data_of_one_namespace_can_be_changed_from_another(client: TestClient):
    body = {"text": "red apple", "source": "s", "key": "k"}
    stored = client.post("/memory/upsert", json=body, headers=A).json()["id"]
    before = client.get(f"/memory/{stored}", headers=A).json()
    assert client.patch(f"/memory/{stored}", json={"text": "t"}, headers=B).status_code == 404
    assert client.delete(f"/memory/{stored}?force=true", headers=B).status_code == 404
    assert client.post(f"/memory/{stored}/supersede", json={"text": "t"}, headers=B).status_code == 404
    merge = {"ids": [stored, stored + 1], "merged_text": "t", "source": "s"}
    assert client.post("/memory/merge", json=merge, headers=B).status_code == 404
    batch = {"ids": [stored]}
    assert client.post("/memory/delete-batch", json=batch, headers=B).json()["missing_ids"] == [stored]
    assert client.post("/memory/archive-batch", json=batch, headers=B).json() == {"archived_count": 0}
    assert client.delete("/memories?source=s", headers=B).json() == {"count": 0}
    by_source = {"source_pattern": "s"}
    assert client.post("/memory/delete-by-source", json=by_source, headers=B).json()["deleted_count"] == 0
    assert client.post("/memory/upsert", json=body, headers=B).json()["action"] == "created"
    add = {"text": "red apple", "source": "s", "deduplicate": True}
    assert client.post("/memory/add", json=add).json()["message"] == "Memory added successfully"
    assert client.get(f"/memory/{stored}", headers=A).json() == before


def test_without_the_header_the_namespace_is_default(client: TestClient):
    client.post("/memory/add", json={"text": "red", "source": "s"})
    assert client.get("/memories/count", headers={"X-Namespace": "default"}).json() == {"count": 1}
    assert client.get("/memories/count", headers={"X-Namespace": "Default"}).json() == {"count": 0}


@pytest.mark.parametrize("name", ["a", "team-a", "agent 7", "Ünïcödé 鍵", "x" * 200, "鍵" * 200, "a:b.c_d@e"])
def test_a_namespace_is_named_by_printable_characters(client: TestClient, name):
    headers = [(b"X-Namespace", name.encode())]
    client.post("/memory/add", json={"text": "red", "source": "s"}, headers=headers)
    assert client.get("/memories/count", headers=headers).json() == {"count": 1}
    assert client.get("/memories/count").json() == {"count": 0}


@pytest.mark.parametrize(
    "name",
    [b"", b" ", b"a/b", b"/", b"x" * 201, b"a\tb", b"a\x7fb", "a\u200bb".encode(), "a\u2028b".encode()],
)
def test_a_name_that_cannot_be_one_is_422(shared_client: TestClient, name):
    response = shared_client.get("/memories", headers=[(b"X-Namespace", name)])
    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")
