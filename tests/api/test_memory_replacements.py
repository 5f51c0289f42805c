"""Replacing one memory with others."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import Add


def supersede(client: TestClient, memory_id: int, **body):
    return client.post(f"/memory/{memory_id}/supersede", json=body)


def test_supersede_archives_the_old_and_links_the_new(client: TestClient, add: Add):
    old = add("red apple", "fruit", category="food")
    body = supersede(client, old, text="green apple").json()
    new = body["new_id"]
    assert body == {
        "success": True,
        "old_id": old,
        "new_id": new,
        "previous_text": "red apple",
        "archived_old": True,
    }
    record = client.get(f"/memory/{new}").json()
    assert (record["text"], record["source"], record["category"]) == ("green apple", "fruit", "food")
    assert (record["supersedes"], record["previous_text"], record["is_latest"]) == (old, "red apple", True)
    assert [(link["to_id"], link["type"]) for link in record["links"]] == [(old, "supersedes")]
    replaced = client.get(f"/memory/{old}").json()
    assert (replaced["archived"], replaced["superseded_by"], replaced["is_latest"]) == (True, new, False)
    assert [hit["id"] for hit in client.post("/search", json={"query": "apple"}).json()["results"]] == [new]


def test_supersede_takes_a_source_metadata_and_a_date(client: TestClient, add: Add):
    old = add("red apple", "fruit", a=1)
    metadata = {"b": 2, "document_at": "2023-05-08", "created_at": "forged"}
    new = supersede(client, old, text="green apple", source="tree", metadata=metadata).json()["new_id"]
    record = client.get(f"/memory/{new}").json()
    assert (record["source"], record["a"], record["b"]) == ("tree", 1, 2)
    assert record["document_at"] == "2023-05-08T00:00:00.000000+00:00"
    assert record["created_at"] != "forged"


@pytest.mark.parametrize("name", ["text", "new_text"])
def test_both_spellings_of_the_new_text_are_read_on_both_routes(client: TestClient, add: Add, name):
    first = supersede(client, add("red"), **{name: "green"})
    assert first.json()["previous_text"] == "red"
    second = client.post("/memory/supersede", json={"old_id": add("blue"), name: "cyan", "source": ""})
    assert second.json()["previous_text"] == "blue"


def test_the_two_routes_answer_the_same_shape(client: TestClient, add: Add):
    first = supersede(client, add("red"), text="green").json()
    second = client.post("/memory/supersede", json={"old_id": add("blue"), "new_text": "cyan"}).json()
    assert set(first) == set(second)


def test_supersede_of_a_missing_memory_is_404(client: TestClient):
    assert supersede(client, 7, text="t").status_code == 404
    assert client.post("/memory/supersede", json={"old_id": 7, "new_text": "t"}).status_code == 404


def test_supersede_of_a_pinned_or_archived_memory_is_409(client: TestClient, add: Add):
    assert supersede(client, add("red", pinned=True), text="t").json()["code"] == "memory_pinned"
    assert supersede(client, add("red", archived=True), text="t").json()["code"] == "memory_archived"


def test_merge_archives_its_sources(client: TestClient, add: Add):
    ids = [add("red apple"), add("green apple")]
    body = client.post("/memory/merge", json={"ids": ids, "merged_text": "apples", "source": "fruit"}).json()
    assert body["archived"] == ids
    merged = client.get(f"/memory/{body['id']}").json()
    assert (merged["text"], merged["source"], merged["is_latest"]) == ("apples", "fruit", True)
    assert [link["to_id"] for link in merged["links"]] == ids
    assert all(memory["archived"] for memory in client.get("/memories").json()["memories"] if memory["id"] in ids)


@pytest.mark.parametrize(("ids", "status"), [([1, 99], 404), ([1, 1], 400), ([1, 2], 409)])
def test_a_merge_that_cannot_be_changes_nothing(client: TestClient, add: Add, ids, status):
    add("red")
    add("green", pinned=True)
    response = client.post("/memory/merge", json={"ids": ids, "merged_text": "t", "source": "s"})
    assert response.status_code == status
    memories = client.get("/memories").json()["memories"]
    assert [memory["archived"] for memory in memories] == [False, False]


def test_archive_batch_skips_missing_and_archived_memories(client: TestClient, add: Add):
    ids = [add("red"), add("green", archived=True)]
    assert client.post("/memory/archive-batch", json={"ids": [*ids, 99]}).json() == {"archived_count": 1}
    assert client.post("/search", json={"query": "red green"}).json()["count"] == 0
