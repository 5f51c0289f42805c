"""Detection of duplicate texts over HTTP."""

from __future__ import annotations

from starlette.testclient import TestClient

from tests.api.conftest import Add
from tests.api.test_memory_writes import NEARLY, TEXT


def test_in_an_empty_namespace_everything_is_new(client: TestClient):
    assert client.post("/memory/is-novel", json={"text": TEXT}).json() == {
        "is_novel": True,
        "threshold": 0.88,
        "most_similar": None,
    }


def test_a_near_duplicate_is_not_novel_and_names_the_similar_memory(client: TestClient, add: Add):
    stored = add(TEXT, "s", category="x")
    body = client.post("/memory/is-novel", json={"text": NEARLY}).json()
    assert body["is_novel"] is False
    similar = body["most_similar"]
    assert (similar["id"], similar["similarity"], similar["category"]) == (stored, 0.95, "x")
    assert client.post("/memory/is-novel", json={"text": NEARLY, "threshold": 0.96}).json()["is_novel"] is True


def test_the_most_similar_is_shown_for_a_new_text_too(client: TestClient, add: Add):
    add(TEXT)
    body = client.post("/memory/is-novel", json={"text": "word0 and much else that nobody said"}).json()
    assert body["is_novel"] is True
    assert 0 < body["most_similar"]["similarity"] < 0.88


def test_deduplication_does_what_its_dry_run_reported(client: TestClient, add: Add):
    kept, duplicate = add(TEXT, "s"), add(NEARLY, "s")
    other = add(TEXT, "elsewhere")
    assert client.post("/memory/deduplicate", json={}).json() == {
        "duplicate_pairs": 1,
        "would_remove": 1,
        "dry_run": True,
        "pairs": [
            {"id_a": kept, "id_b": duplicate, "source": "s", "similarity": 0.95, "text_a": TEXT, "text_b": NEARLY}
        ],
    }
    assert client.get("/memories/count").json() == {"count": 3}
    done = client.post("/memory/deduplicate", json={"dry_run": False}).json()
    assert done == {"duplicate_pairs": 1, "removed": 1, "remaining": 2, "dry_run": False}
    assert [memory["id"] for memory in client.get("/memories").json()["memories"]] == [kept, other]
    assert client.get("/backups").json()["count"] == 1


def test_deduplicate_shows_at_most_twenty_pairs(client: TestClient):
    memories = [{"text": TEXT, "source": "s"}] * 30
    client.post("/memory/add-batch", json={"memories": memories})
    body = client.post("/memory/deduplicate", json={}).json()
    assert (body["duplicate_pairs"], body["would_remove"], len(body["pairs"])) == (29, 29, 20)
