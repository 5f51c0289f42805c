"""The evidence packet of a search: the current answer, its support, and what is older."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.core.types import Scope
from souvenir.models.embedding.onnx_embedder import OnnxEmbedder
from souvenir.store.memories.reads import CONFLICTS_WITH
from tests.api.conftest import KEY, Add, Start, loaded

ITEM = {"id", "source", "date", "text", "relation", "score", "is_latest", "archived"}


def searched(client: TestClient, query: Any, **fields: Any) -> dict[str, Any]:
    answer = client.post("/search/evidence", json={"query": query, **fields})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert {"query", "results", "count", "evidence_packet"} <= found.keys()
    return found


def packet(client: TestClient, query: str, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = searched(client, query, **fields)["evidence_packet"]
    assert found.keys() == {
        "current_answer",
        "supporting_memories",
        "older_evidence",
        "older_conflicting_memories",
        "source_date_trail",
        "confidence",
        "follow_up_queries",
    }
    assert found["older_evidence"] == found["older_conflicting_memories"]
    assert found["confidence"].keys() == {"level", "reasons"}
    assert found["confidence"]["reasons"]
    dates = [item["date"] for item in found["source_date_trail"]]
    assert dates == sorted(dates, reverse=True)
    assert all(item.keys() == ITEM for item in found["source_date_trail"])
    return found


def relations(found: dict[str, Any]) -> dict[int, str]:
    return {item["id"]: item["relation"] for item in found["source_date_trail"]}


@pytest.fixture(scope="module")
def embedder() -> Iterator[OnnxEmbedder]:
    embedder = OnnxEmbedder()
    embedder.load()
    yield embedder
    embedder.close()


@pytest.fixture
def client(start: Start, embedder: OnnxEmbedder) -> TestClient:
    """A service with the real model, whose scores the levels are about."""
    client = loaded(start(embedder=embedder))
    for text in (
        "The canteen closes at half past two on Fridays.",
        "Ben's bicycle is locked behind the gym.",
        "The printer on the third floor needs toner.",
        "Quarterly reviews are written in the first week of April.",
        "The fire drill takes place every autumn.",
    ):
        client.post("/memory/add", json={"text": text, "source": "notes"}).raise_for_status()
    return client


@pytest.fixture
def told(client: TestClient, add: Add) -> dict[str, int]:
    """Memories about two databases, of which one was superseded."""
    old = add("The billing database is MySQL 5.7.", document_at="2023-01-01")
    body = {"text": "The billing database is PostgreSQL 16.", "metadata": {"document_at": "2025-01-01"}}
    new = client.post(f"/memory/{old}/supersede", json=body).json()["new_id"]
    support = add("The billing database runs in Frankfurt.", document_at="2024-06-01")
    return {"old": old, "new": new, "support": support}


def test_a_superseded_memory_is_older_evidence_and_only_there(client: TestClient, told: dict[str, int]):
    query = "Is the billing database PostgreSQL?"
    answer = searched(client, query, k=4)
    assert told["old"] not in [one["id"] for one in answer["results"]]
    found = packet(client, query, k=4)
    current = found["current_answer"]
    assert (current["id"], current["relation"], current["is_latest"], current["archived"]) == (
        told["new"],
        "current",
        True,
        False,
    )
    assert current["date"].startswith("2025-01-01")
    [older] = found["older_evidence"]
    assert (older["id"], older["relation"], older["is_latest"], older["archived"]) == (
        told["old"],
        "older",
        False,
        True,
    )
    assert f"It supersedes memory {told['old']}." in found["confidence"]["reasons"]
    assert found["follow_up_queries"] == [f"latest {query}"]


def test_other_relevant_memories_support_and_unrelated_results_are_only_in_the_trail(
    client: TestClient, told: dict[str, int]
):
    found = packet(client, "What is the billing database?", k=7)
    assert {found["current_answer"]["id"], *(item["id"] for item in found["supporting_memories"])} == {
        told["new"],
        told["support"],
    }
    assert {relation for id_, relation in relations(found).items() if id_ not in told.values()} == {"dated_unranked"}
    assert len(relations(found)) == 8


def test_the_results_are_those_of_a_plain_search(client: TestClient, told: dict[str, int]):
    body = {"query": "billing database", "k": 3}
    plain = client.post("/search", json=body).json()
    answer = searched(client, body["query"], k=3)
    del answer["evidence_packet"]
    assert answer == plain


def test_a_query_for_the_latest_takes_the_newest_relevant_memory_first(client: TestClient, add: Add):
    oldest = add("The deploy day of the shop is Monday.", document_at="2023-01-01")
    newest = add("The deploy day of the shop is Friday.", document_at="2025-01-01")
    by_score = packet(client, "Is the deploy day of the shop Monday?")
    assert by_score["current_answer"]["id"] == oldest
    assert by_score["older_evidence"] == []
    by_date = packet(client, "Is Monday now the deploy day of the shop?")
    assert by_date["current_answer"]["id"] == newest
    assert [item["id"] for item in by_date["older_evidence"]] == [oldest]


def test_a_newer_memory_that_contradicts_the_best_one_is_the_current_answer(client: TestClient, add: Add):
    old = add("Ann lives in Rome.", document_at="2023-01-01")
    new = add("Ann lives in Oslo.", document_at="2025-01-01")
    client.app.state.service.engine.write(Scope(), lambda tx: tx.link(new, old, CONFLICTS_WITH))  # type: ignore[attr-defined]
    found = packet(client, "Does Ann live in Rome?")
    assert found["current_answer"]["id"] == new
    assert [(item["id"], item["relation"]) for item in found["older_evidence"]] == [(old, "older")]
    assert f"Memory {old} contradicts it." in found["confidence"]["reasons"]
    assert found["confidence"]["level"] != "high"


def test_without_evidence_there_is_no_answer_and_the_level_is_missing(client: TestClient, told: dict[str, int]):
    found = packet(client, "Which violin concerto did Clara practise?")
    assert (found["current_answer"], found["supporting_memories"], found["older_evidence"]) == (None, [], [])
    assert found["confidence"] == {"level": "missing", "reasons": ["No memory seems to answer."]}
    assert set(relations(found).values()) <= {"dated_unranked"}


def test_an_archived_memory_alone_is_no_current_answer(client: TestClient, told: dict[str, int], add: Add):
    one = add("The vault code of the museum is purple.")
    client.patch(f"/memory/{one}", json={"archived": True})
    for include in (False, True):
        found = packet(client, "What is the vault code of the museum?", include_archived=include)
        assert found["current_answer"] is None
        assert [(item["id"], item["relation"]) for item in found["older_evidence"]] == [(one, "archived")]
        assert found["confidence"]["level"] == "missing"
        assert found["confidence"]["reasons"] == ["Only archived or superseded memories seem to answer."]


def test_a_clear_answer_has_high_confidence_and_a_vague_one_less(client: TestClient, told: dict[str, int]):
    clear = packet(client, "Where is Ben's bicycle?")
    assert clear["confidence"]["level"] == "high"
    assert clear["current_answer"]["score"] >= 0.5
    assert packet(client, "Which colour has the bicycle of Clara?")["confidence"]["level"] == "low"


def test_a_time_that_nothing_matches_is_left_out_of_a_follow_up_query(client: TestClient):
    found = packet(client, "Which violin concerto did Clara practise in May 2019?")
    assert found["follow_up_queries"] == ["Which violin concerto did Clara practise ?"]


def test_a_key_for_some_sources_gets_no_evidence_of_others(start: Start):
    client = loaded(start(api_key=KEY))
    admin = {"X-API-Key": KEY}
    old = client.post("/memory/add", json={"text": "the vault is blue", "source": "a"}, headers=admin).json()["id"]
    client.post(f"/memory/{old}/supersede", json={"text": "the vault is red", "source": "b"}, headers=admin)
    body = {"name": "n", "role": "read-only", "prefixes": ["b"]}
    key = {"X-API-Key": client.post("/api/keys", json=body, headers=admin).json()["key"]}
    answer = client.post("/search/evidence", json={"query": "vault"}, headers=key)
    assert (answer.json()["count"], "blue" in answer.text) == (1, False)
