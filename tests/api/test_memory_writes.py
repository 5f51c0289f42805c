"""Storing and changing memories."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.api.memories import MemoryRecord
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Scope
from tests.api.conftest import Add

WORDS = [f"word{number}" for number in range(20)]
TEXT = " ".join(WORDS)
NEARLY = " ".join([*WORDS[:-1], "another"])
"""19 of 20 words shared: cosine 0.95, between the thresholds for a duplicate and for the identical."""


def record(client: TestClient, memory_id: int) -> dict[str, Any]:
    response = client.get(f"/memory/{memory_id}")
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def test_an_added_memory_can_be_read_and_found(client: TestClient):
    response = client.post("/memory/add", json={"text": "red apple", "source": "fruit/apple"})
    assert response.json() == {"success": True, "id": 1, "message": "Memory added successfully"}
    stored = record(client, 1)
    assert (stored["text"], stored["source"]) == ("red apple", "fruit/apple")
    assert client.post("/search", json={"query": "apple"}).json()["count"] == 1


@pytest.mark.parametrize("path", ["/memory/add", "/memory/add-batch"])
def test_the_same_request_under_one_key_stores_one_memory(client: TestClient, path: str):
    memory = {"text": "red apple", "source": "fruit/apple"}
    body = memory if path == "/memory/add" else {"memories": [memory, {**memory, "text": "green apple"}]}
    first, again = (client.post(path, json=body, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert (again.status_code, again.json()) == (200, first.json())
    assert [answer.headers.get("Idempotency-Replayed") for answer in (first, again)] == [None, "true"]
    other = {**body, "text": "blue apple"} if path == "/memory/add" else {"memories": [memory]}
    assert client.post(path, json=other, headers={"Idempotency-Key": "k"}).json()["code"] == "idempotency_key_reused"
    stored = client.get("/memories/count").json()["count"]
    assert stored == (1 if path == "/memory/add" else 2)
    assert client.post(path, json=body, headers={"Idempotency-Key": "k2"}).status_code == 200
    assert client.get("/memories/count").json()["count"] == 2 * stored


def test_a_record_has_its_times_in_utc_with_microseconds(client: TestClient, add: Add):
    stored = record(client, add("red apple"))
    for name in ("created_at", "updated_at", "timestamp"):
        assert len(stored[name]) == len("2025-04-02T09:30:00.000000+00:00")
        assert datetime.fromisoformat(stored[name]).utcoffset() == timedelta(0)
    assert stored["timestamp"] == stored["created_at"] == stored["updated_at"]
    assert stored["confidence"] == 1.0
    assert (stored["pinned"], stored["archived"]) == (False, False)


def test_a_record_omits_fields_that_do_not_apply(client: TestClient, add: Add):
    absent = {"document_at", "entity_key", "links", "supersedes", "superseded_by", "previous_text", "is_latest"}
    assert not absent & set(record(client, add("red apple")))


def test_metadata_is_on_the_top_level_of_the_record(client: TestClient, add: Add):
    stored = record(client, add("red apple", category="fruit", nested={"a": [1, None, 1.5]}, nothing=None))
    assert (stored["category"], stored["nested"], stored["nothing"]) == ("fruit", {"a": [1, None, 1.5]}, None)


def test_a_caller_cannot_set_reserved_fields(client: TestClient, add: Add):
    reserved = dict.fromkeys(
        ["id", "source", "timestamp", "created_at", "updated_at", "author", "contributors", "promotion"], "forged"
    )
    more = {"source_memory_ids": [9], "links": [1], "supersedes": 9, "superseded_by": 9, "is_latest": True}
    response = client.post(
        "/memory/add", json={"text": "red", "source": "s", "metadata": {**reserved, **more, "text": "forged", "own": 1}}
    )
    stored = record(client, response.json()["id"])
    assert stored["own"] == 1
    assert "forged" not in stored.values()
    assert not set(more) & set(stored)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("Claude Code", "claude-code"),
        ("codex", "codex"),
        ("claude_code", "claude-code"),
        ("vim", "other"),
        (7, "other"),
    ],
)
def test_the_origin_client_is_one_of_a_few(client: TestClient, add: Add, sent, kept):
    assert record(client, add("red apple", origin_client=sent))["origin_client"] == kept


def test_metadata_can_date_pin_archive_and_name_a_memory(client: TestClient, add: Add):
    stored = record(client, add("red", document_at="2023-05-08T17:30:00+02:00", pinned=True, entity_key="apple"))
    assert stored["document_at"] == "2023-05-08T15:30:00.000000+00:00"
    assert (stored["pinned"], stored["archived"], stored["entity_key"]) == (True, False, "apple")
    assert record(client, add("old", archived=True))["archived"] is True


@pytest.mark.parametrize(
    "metadata",
    [
        {"document_at": "soon"},
        {"document_at": 20230508},
        {"pinned": "yes"},
        {"archived": 1},
        {"entity_key": ""},
        {"entity_key": 5},
        ["not", "an", "object"],
        "text",
    ],
)
def test_metadata_that_cannot_be_used_is_422(shared_client: TestClient, metadata):
    response = shared_client.post("/memory/add", json={"text": "t", "source": "s", "metadata": metadata})
    assert response.status_code == 422


@pytest.mark.parametrize("text", ["x", " x\n\t", "🍎" * 1000, "a" * 50_000, "…", "\u202ex\ufeff", "word " * 9_999])
def test_any_text_within_the_limits_is_stored_verbatim(client: TestClient, add: Add, text):
    assert record(client, add(text))["text"] == text


def test_an_integer_of_any_size_survives_in_metadata(client: TestClient, add: Add):
    assert record(client, add("red", big=10**40, small=-(2**63)))["big"] == 10**40


def test_an_added_key_that_is_taken_is_409_and_stores_nothing(client: TestClient, add: Add):
    add("red", "s", entity_key="k")
    response = client.post("/memory/add", json={"text": "blue", "source": "s", "metadata": {"entity_key": "k"}})
    assert (response.status_code, response.json()["code"]) == (409, "key_taken")
    assert client.get("/memories/count").json() == {"count": 1}


def test_deduplicate_skips_near_duplicates(client: TestClient, add: Add):
    stored = add(TEXT)
    body = client.post("/memory/add", json={"text": NEARLY, "source": "other", "deduplicate": True}).json()
    assert body == {
        "success": True,
        "id": None,
        "message": "Duplicate skipped",
        "blocked_by": stored,
        "blocked_similarity": 0.95,
        "hint": body["hint"],
    }
    assert "on_duplicate" in body["hint"]
    assert client.get("/memories/count").json() == {"count": 1}


def test_without_deduplicate_the_same_text_is_stored_twice(client: TestClient, add: Add):
    assert add(TEXT) != add(TEXT)


def test_on_duplicate_add_stores_it_anyway(client: TestClient, add: Add):
    add(TEXT)
    body = client.post("/memory/add", json={"text": TEXT, "source": "s", "on_duplicate": "add"}).json()
    assert body == {"success": True, "action": "added", "id": 2}


def test_on_duplicate_skip_names_the_blocking_memory(client: TestClient, add: Add):
    stored = add(TEXT)
    body = client.post("/memory/add", json={"text": NEARLY, "source": "s", "on_duplicate": "skip"}).json()
    assert body == {
        "success": True,
        "action": "skipped",
        "reason": "duplicate",
        "blocked_by": stored,
        "similarity": 0.95,
        "hint": body["hint"],
    }


def test_on_duplicate_supersede_replaces_a_near_duplicate(client: TestClient, add: Add):
    stored = add(TEXT)
    body = client.post("/memory/add", json={"text": NEARLY, "source": "s", "on_duplicate": "supersede"}).json()
    assert body == {
        "success": True,
        "action": "superseded",
        "id": 2,
        "superseded": stored,
        "similarity": 0.95,
        "previous_text": TEXT,
    }
    assert record(client, stored)["superseded_by"] == 2


@pytest.mark.parametrize("on_duplicate", ["skip", "supersede"])
def test_the_identical_is_skipped_even_where_it_would_supersede(client: TestClient, add: Add, on_duplicate):
    stored = add(TEXT)
    body = client.post("/memory/add", json={"text": TEXT, "source": "s", "on_duplicate": on_duplicate}).json()
    assert (body["action"], body["reason"], body["blocked_by"]) == ("skipped", "identical", stored)


def test_a_pinned_memory_is_not_superseded_by_an_add(client: TestClient, add: Add):
    stored = add(TEXT, pinned=True)
    body = client.post("/memory/add", json={"text": NEARLY, "source": "s", "on_duplicate": "supersede"}).json()
    assert (body["action"], body["reason"], body["blocked_by"]) == ("skipped", "pinned_blocker", stored)


@pytest.mark.parametrize("on_duplicate", ["skip", "supersede", "add"])
def test_on_duplicate_stores_a_novel_text(client: TestClient, on_duplicate):
    body = client.post("/memory/add", json={"text": TEXT, "source": "s", "on_duplicate": on_duplicate}).json()
    assert body == {"success": True, "action": "added", "id": 1}


def test_a_batch_is_stored_in_order_though_only_some_have_metadata(client: TestClient):
    memories = [{"text": f"text {n}", "source": "s", **({"metadata": {"n": n}} if n % 2 else {})} for n in range(4)]
    body = client.post("/memory/add-batch", json={"memories": memories}).json()
    assert body == {"success": True, "ids": [1, 2, 3, 4], "count": 4, "message": "Added 4 memories"}
    assert record(client, 4)["n"] == 3


def test_a_batch_skips_duplicates_of_stored_texts_but_not_of_its_own(client: TestClient, add: Add):
    add(TEXT)
    memories = [{"text": text, "source": "s"} for text in (NEARLY, "quite new here", "quite new here")]
    body = client.post("/memory/add-batch", json={"memories": memories, "deduplicate": True}).json()
    assert (body["ids"], body["count"]) == ([2, 3], 2)


def test_a_batch_with_one_taken_key_stores_nothing(client: TestClient, add: Add):
    add("red", "s", entity_key="k")
    memories = [{"text": "one", "source": "s"}, {"text": "two", "source": "s", "metadata": {"entity_key": "k"}}]
    assert client.post("/memory/add-batch", json={"memories": memories}).status_code == 409
    assert client.get("/memories/count").json() == {"count": 1}


def test_upsert_creates_and_then_changes_the_memory_of_its_source_and_key(client: TestClient):
    body = {"text": "ana is on call", "source": "team", "key": "on-call", "metadata": {"a": 1}}
    assert client.post("/memory/upsert", json=body).json() == {"success": True, "id": 1, "action": "created"}
    changed = {**body, "text": "ben is on call", "metadata": {"b": 2}}
    assert client.post("/memory/upsert", json=changed).json() == {"success": True, "id": 1, "action": "updated"}
    stored = record(client, 1)
    assert (stored["text"], stored["entity_key"], stored["b"]) == ("ben is on call", "on-call", 2)
    assert stored["updated_at"] > stored["created_at"]
    other = {**body, "source": "other team"}
    assert client.post("/memory/upsert", json=other).json() == {"success": True, "id": 2, "action": "created"}


def test_a_batch_of_upserts_counts_its_outcomes(client: TestClient):
    memories = [{"text": f"text {n}", "source": "s", "key": f"k{n % 2}"} for n in range(3)]
    assert client.post("/memory/upsert-batch", json={"memories": memories}).json() == {
        "success": True,
        "created": 2,
        "updated": 1,
        "errors": 0,
        "results": [
            {"success": True, "id": 1, "action": "created"},
            {"success": True, "id": 2, "action": "created"},
            {"success": True, "id": 1, "action": "updated"},
        ],
    }


def test_a_patch_changes_only_its_fields(client: TestClient, add: Add):
    stored = add("red apple", "fruit", a=1, b=2)
    body = {"text": "green apple", "source": "tree", "metadata_patch": {"a": None, "c": 3}, "pinned": True}
    assert client.patch(f"/memory/{stored}", json=body).json() == {
        "id": stored,
        "updated_fields": ["text", "source", "metadata", "pinned"],
    }
    changed = record(client, stored)
    assert (changed["text"], changed["source"], changed["b"], changed["c"]) == ("green apple", "tree", 2, 3)
    assert changed["pinned"] is True
    assert "a" not in changed
    assert client.post("/search", json={"query": "green"}).json()["results"][0]["id"] == stored


def test_a_patch_can_archive_and_bring_back(client: TestClient, add: Add):
    stored = add("red apple")
    assert client.patch(f"/memory/{stored}", json={"archived": True}).json()["updated_fields"] == ["archived"]
    assert client.post("/search", json={"query": "apple"}).json()["count"] == 0
    client.patch(f"/memory/{stored}", json={"metadata_patch": {"archived": False}})
    assert client.post("/search", json={"query": "apple"}).json()["count"] == 1


def test_a_patch_can_date_a_memory_and_take_the_date_away(client: TestClient, add: Add):
    stored = add("red apple")
    client.patch(f"/memory/{stored}", json={"metadata_patch": {"document_at": "2023-05-08"}})
    assert record(client, stored)["document_at"] == "2023-05-08T00:00:00.000000+00:00"
    body = client.patch(f"/memory/{stored}", json={"metadata_patch": {"document_at": None}}).json()
    assert body["updated_fields"] == ["metadata"]
    assert "document_at" not in record(client, stored)


def test_a_patch_cannot_set_reserved_fields(client: TestClient, add: Add):
    stored = add("red apple")
    patch = {"entity_key": "k", "_policy_archived_at": "x", "created_at": "x", "own": 1}
    client.patch(f"/memory/{stored}", json={"metadata_patch": patch})
    changed = record(client, stored)
    assert changed["own"] == 1
    assert "entity_key" not in changed
    assert "_policy_archived_at" not in changed


@pytest.mark.parametrize("body", [{}, {"text": None}, {"metadata_patch": {}}, {"metadata_patch": {"id": 1}}])
def test_a_patch_of_nothing_is_400(client: TestClient, add: Add, body):
    response = client.patch(f"/memory/{add('red')}", json=body)
    assert (response.status_code, response.json()["code"]) == (400, "nothing_to_do")


def test_a_patch_of_a_missing_memory_is_404(client: TestClient):
    assert client.patch("/memory/7", json={"pinned": True}).status_code == 404


def test_a_caller_says_where_a_text_comes_from_and_cannot_make_it_more_trusted(client: TestClient):
    def stored_class(memory_id: int) -> str:
        found: str = client.get(f"/memory/{memory_id}").json()["origin_class"]
        return found

    body = {"text": "the disk is full", "source": "ci", "metadata": {"origin_class": "tool"}}
    told = client.post("/memory/add", json=body).json()["id"]
    assert (stored_class(told), client.get(f"/memory/{told}").json().get("metadata")) == ("tool", None)
    client.patch(f"/memory/{told}", json={"text": "the disk is empty", "metadata_patch": {"origin_class": "user"}})
    assert stored_class(told) == "tool"
    changed = client.patch(f"/memory/{told}", json={"metadata_patch": {"origin_class": "inferred"}})
    assert (changed.json()["updated_fields"], stored_class(told)) == (["metadata"], "inferred")
    new = client.post(f"/memory/{told}/supersede", json={"text": "x", "metadata": {"origin_class": "user"}}).json()
    assert stored_class(new["new_id"]) == "inferred"
    assert stored_class(client.post("/memory/add", json={"text": "y", "source": "ci"}).json()["id"]) == "user"


def test_an_unknown_origin_class_is_422(client: TestClient):
    for unknown in ("God", 3, ["user"]):
        body = {"text": "t", "source": "s", "metadata": {"origin_class": unknown}}
        assert client.post("/memory/add", json=body).status_code == 422


def test_a_patch_with_the_etag_of_an_earlier_state_is_412_and_changes_nothing(client: TestClient, add: Add):
    stored = add("red apple")
    read = client.get(f"/memory/{stored}")
    first = client.patch(f"/memory/{stored}", json={"text": "green apple"}, headers={"If-Match": read.headers["ETag"]})
    assert first.status_code == 200
    for tag, status in ((read.headers["ETag"], 412), ('"never"', 412), ("red", 422), ("*", 200)):
        response = client.patch(f"/memory/{stored}", json={"text": f"apple {tag}"}, headers={"If-Match": tag})
        assert response.status_code == status, response.text
        assert record(client, stored)["text"] == ("apple *" if status == 200 else "green apple")
    assert client.patch("/memory/7", json={"pinned": True}, headers={"If-Match": '"x"'}).status_code == 404


def test_the_etag_changes_with_every_change_of_the_record_and_only_then(client: TestClient, add: Add):
    text = "The apple is red. The pear is green."
    stored, twin, other = add(text), add(text), add("blue plum")
    for memory_id, tag in ((stored, "one"), (twin, "two")):
        client.patch(f"/memory/{memory_id}", json={"add_tags": [tag]})
    path, flag = f"/memory/{stored}", f"/memory/{stored}/conflict/{other}"
    first = client.get(path)
    memory = client.app.state.service.engine.memory(Scope(), stored)  # type: ignore[attr-defined]
    now, later = (MemoryRecord.of(memory, utc_now() + timedelta(days=days), facts=True) for days in (0, 30))
    assert first.headers["ETag"] == client.get(path).headers["ETag"] == f'"{now.tag}"' == f'"{later.tag}"'
    assert now.confidence != later.confidence
    seen = [first.headers["ETag"]]
    for change in (
        lambda: client.put(flag),
        lambda: client.delete(flag),
        lambda: client.post(f"{path}/link", json={"to_id": other, "type": "related_to"}),
        lambda: client.post("/memory/deduplicate", json={"dry_run": False}),
        lambda: client.put(f"{path}/facts"),
    ):
        assert change().status_code == 200
        assert client.patch(path, json={"tags": []}, headers={"If-Match": seen[-1]}).status_code == 412
        seen.append(client.get(path).headers["ETag"])
    changed = record(client, stored)
    assert (changed["tags"], changed["updated_at"]) == (["one", "two"], first.json()["updated_at"])
    assert client.get(f"/memory/{twin}").status_code == 404
    assert client.patch(path, json={"tags": []}, headers={"If-Match": seen[-1]}).status_code == 200


def test_a_batch_changes_labels_and_states_and_names_what_it_changed(client: TestClient, add: Add):
    one, two, three = (add(text, "fruit") for text in ("red apple", "green pear", "blue plum"))
    client.patch(f"/memory/{one}", json={"add_tags": ["Ripe"], "pinned": True})

    def change(**fields: object) -> list[int]:
        answer = client.post("/memory/update-batch", json={"ids": [one, two, 99, two], **fields}).json()
        assert (answer["missing_ids"], answer["refused"]) == ([99], [])
        return list(answer["updated_ids"])

    assert change(add_tags=["ripe"]) == [two]
    assert change(remove_tags=["RIPE"]) == [one, two]
    assert change(pinned=True) == [two]
    assert change(source="tree/fruit") == [one, two]
    assert change(archived=True) == [one, two]
    assert change(archived=True) == []
    assert client.get("/memories").json()["total"] == 1
    assert client.get("/folders").json()["folders"] == [{"name": "fruit", "count": 1}]
    assert change(archived=False, pinned=False) == [one, two]
    assert record(client, three)["source"] == "fruit"
    assert [entry["action"] for entry in client.get(f"/memory/{two}/history").json()["changes"]] == ["add"] + 6 * [
        "update"
    ]
    assert client.app.state.service.engine.check() == []  # type: ignore[attr-defined]


def test_a_batch_reports_memories_that_cannot_be_changed(client: TestClient):
    def keyed(source: str) -> int:
        return int(
            client.post("/memory/upsert", json={"text": f"on call: {source}", "source": source, "key": "k"}).json()[
                "id"
            ]
        )

    moved, taken = keyed("a"), keyed("b")
    answer = client.post("/memory/update-batch", json={"ids": [moved, taken], "source": "b"}).json()
    assert (answer["updated_ids"], [one["id"] for one in answer["refused"]]) == ([], [moved])
    assert "already has the key" in answer["refused"][0]["detail"]
    assert client.post("/memory/update-batch", json={"ids": [moved]}).json()["code"] == "nothing_to_do"
