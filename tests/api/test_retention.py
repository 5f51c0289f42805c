"""Maintenance of the store over HTTP: clusters, pruning, policies."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.api import maintenance as tending
from souvenir.core.types import MemoryDraft, Origin, Scope
from tests.api.conftest import Add, Start, keeps_backups
from tests.api.test_memory_writes import NEARLY, TEXT
from tests.vendors.llm import LLMVendor


@pytest.fixture
def llm_vendor() -> Iterator[LLMVendor]:
    vendor = LLMVendor()
    vendor.start()
    yield vendor
    vendor.stop()


def aged(client: TestClient, text: str, source: str, days: int, **fields: Any) -> int:
    """Store a memory that nobody changed for so long."""
    engine = client.app.state.service.engine  # type: ignore[attr-defined]
    at = datetime.now(UTC) - timedelta(days=days)
    [passages] = engine.prepare([text])
    stored = engine.write(
        Scope(), lambda tx: tx.insert(MemoryDraft(text, source, **fields), passages, origin=Origin(at, at))
    )
    return int(stored.id)


def test_clusters_are_shown_with_their_texts_and_nothing_is_changed(client: TestClient, add: Add):
    first, second = add(TEXT, "s"), add(NEARLY, "s")
    add(TEXT, "elsewhere")
    answer = client.post("/maintenance/compact", json={}).json()
    assert answer == {
        "threshold": 0.85,
        "cluster_count": 1,
        "memory_count": 2,
        "clusters": [
            {
                "source": "s",
                "count": 2,
                "similarity": 0.95,
                "memories": [{"id": first, "text": TEXT}, {"id": second, "text": NEARLY}],
            }
        ],
    }
    assert client.post("/maintenance/compact").json() == answer
    assert client.post("/maintenance/compact", json={"threshold": 0.96}).json()["clusters"] == []
    assert client.get("/memories/count?include_archived=true").json() == {"count": 3}
    assert client.get("/backups").json()["count"] == 0


def test_in_a_large_namespace_clusters_are_found_by_a_job(client: TestClient, add: Add, monkeypatch):
    monkeypatch.setattr(tending, "JOB_ABOVE_MEMORIES", 1)
    add(TEXT, "s"), add(NEARLY, "s")
    assert client.post("/maintenance/compact?wait_s=50").json()["cluster_count"] == 1
    [job] = client.get("/jobs").json()["jobs"]
    assert (job["kind"], job["status"]) == ("compact", "completed")
    assert TEXT not in client.get(f"/jobs/{job['id']}").text


def test_pruning_deletes_what_its_dry_run_reported(client: TestClient):
    old = aged(client, "old", "s", 100, archived=True)
    younger = aged(client, "younger", "s", 60, archived=True)
    living = aged(client, "living", "s", 100)
    assert client.post("/maintenance/prune").json() == {"candidates": 1, "pruned": 0, "dry_run": True}
    wider = client.post("/maintenance/prune?older_than_days=50").json()
    assert wider == {"candidates": 2, "pruned": 0, "dry_run": True}
    assert client.get("/memories/count?include_archived=true").json() == {"count": 3}
    done = client.post("/maintenance/prune?dry_run=false").json()
    assert done == {"candidates": 1, "pruned": 1, "dry_run": False}
    assert [one["id"] for one in client.get("/memories?include_archived=true").json()["memories"]] == [younger, living]
    assert client.get(f"/memory/{old}").status_code == 404
    assert client.get("/backups").json()["count"] == int(keeps_backups(client))


def test_policies_archive_what_their_dry_run_reported(client: TestClient):
    old = aged(client, "old", "wip/x", 40)
    aged(client, "pinned", "wip/x", 40, pinned=True)
    nothing = client.post("/maintenance/enforce-policies").json()
    assert (nothing["actions"], nothing["summary"]["candidates_scanned"]) == ([], 0)
    client.put("/extraction/profiles/wip/", json={"ttl_days": 30})
    dry = client.post("/maintenance/enforce-policies").json()
    [action] = dry["actions"]
    assert (action["memory_id"], action["rule"], action["limit"]) == (old, "ttl", 30)
    assert dry["summary"] == {
        "candidates_scanned": 2,
        "would_archive": 1,
        "by_rule": {"ttl": 1, "confidence": 0},
        "excluded_pinned": 1,
        "excluded_young": 0,
    }
    assert client.get(f"/memory/{old}").json()["archived"] is False
    done = client.post("/maintenance/enforce-policies?dry_run=false").json()
    assert done["summary"]["archived"] == 1
    assert "would_archive" not in done["summary"]
    record = client.get(f"/memory/{old}").json()
    assert (record["archived"], record["_policy_archived_rule"]) == (True, "ttl")
    client.patch(f"/memory/{old}", json={"archived": False, "metadata_patch": {"_policy_archived_rule": "mine"}})
    assert client.get(f"/memory/{old}").json()["_policy_archived_rule"] == "ttl"
    assert client.post("/maintenance/enforce-policies").json()["summary"]["would_archive"] == 0


@pytest.mark.parametrize(
    "request_of",
    [
        lambda client: client.post("/maintenance/compact", json={"threshold": 0.4}),
        lambda client: client.post("/maintenance/compact", json={"threshold": 1.1}),
        lambda client: client.post("/maintenance/prune?older_than_days=0"),
        lambda client: client.post("/maintenance/prune?dry_run=perhaps"),
        lambda client: client.post("/maintenance/enforce-policies?dry_run=perhaps"),
    ],
)
def test_an_out_of_range_value_is_422(client: TestClient, request_of):
    assert request_of(client).status_code == 422


def test_nothing_of_another_namespace_is_shown_or_touched(client: TestClient, add: Add):
    add(TEXT, "wip/x"), add(NEARLY, "wip/x")
    old = aged(client, "old", "wip/x", 200, archived=True)
    client.put("/extraction/profiles/wip/", json={"ttl_days": 0.0001})
    elsewhere = {"X-Namespace": "elsewhere"}
    assert client.post("/maintenance/compact", headers=elsewhere).json()["cluster_count"] == 0
    pruned = client.post("/maintenance/prune?dry_run=false", headers=elsewhere).json()
    assert pruned == {"candidates": 0, "pruned": 0, "dry_run": False}
    enforced = client.post("/maintenance/enforce-policies?dry_run=false", headers=elsewhere).json()
    assert enforced["summary"]["candidates_scanned"] == 0
    assert client.get(f"/memory/{old}").status_code == 200
    assert client.get("/memories/count?include_archived=true").json() == {"count": 3}


@pytest.mark.parametrize("query", ["", "?dry_run=false"])
def test_merging_without_a_model_is_503_and_makes_no_job(client: TestClient, add: Add, query: str):
    add(TEXT, "s"), add(NEARLY, "s")
    answer = client.post(f"/maintenance/consolidate{query}")
    assert (answer.status_code, answer.json()["code"]) == (503, "llm_rejected")
    assert "EXTRACT_PROVIDER" in answer.json()["detail"]
    assert client.get("/jobs").json()["total"] == 0


def test_near_memories_are_shown_merged_and_then_merged(start: Start, llm_vendor: LLMVendor):
    client = start(**llm_vendor.settings("openai"))
    memories = [{"text": text, "source": "s"} for text in (TEXT, NEARLY)]
    ids = client.post("/memory/add-batch", json={"memories": memories}).json()["ids"]
    llm_vendor.script(lambda request: {"merge": True, "text": f"{TEXT} {NEARLY}", "reason": "near"})
    shown = client.post("/maintenance/consolidate?source_prefix=s").json()
    assert shown["skipped"] == [{"ids": ids, "reason": "longer"}]
    llm_vendor.script(lambda request: {"merge": True, "text": TEXT, "reason": "near"})
    shown = client.post("/maintenance/consolidate").json()
    assert shown == {
        "dry_run": True,
        "merged": [{"id": None, "source": "s", "ids": ids, "text": TEXT}],
        "merged_count": 1,
        "archived_count": 0,
        "skipped": [],
        "has_more": False,
    }
    assert client.get("/jobs").json()["total"] == 0
    done = client.post("/maintenance/consolidate?dry_run=false&wait_s=50").json()
    [merged] = done["merged"]
    assert (merged["text"], merged["ids"], done["archived_count"]) == (TEXT, ids, 2)
    record = client.get(f"/memory/{merged['id']}").json()
    assert record["source_memory_ids"] == ids
    [job] = client.get("/jobs").json()["jobs"]
    assert (job["kind"], job["status"]) == ("consolidate", "completed")
    assert TEXT not in client.get(f"/jobs/{job['id']}").text
