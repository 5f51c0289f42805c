"""Reading memories by id and in pages."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from souvenir.core.types import MemoryDraft, Scope
from tests.api.conftest import Add


def test_get_batch_keeps_the_order_and_lists_missing_ids(client: TestClient, add: Add):
    first, second = add("red"), add("green")
    body = client.post("/memory/get-batch", json={"ids": [second, 99, first, second]}).json()
    assert [memory["id"] for memory in body["memories"]] == [second, first]
    assert (body["missing_ids"], body["count"]) == ([99], 2)


def test_a_list_is_in_the_order_of_storing_and_holds_archived_ones_only_on_request(client: TestClient, add: Add):
    ids = [add("red"), add("green", archived=True), add("blue")]
    for params, shown in (({}, [ids[0], ids[2]]), ({"include_archived": True}, ids)):
        body = client.get("/memories", params=params).json()
        assert [memory["id"] for memory in body["memories"]] == shown
        assert (body["total"], body["offset"], body["limit"]) == (len(shown), 0, 20)
        assert client.get("/memories/count", params=params).json() == {"count": len(shown)}


def test_pages_cover_everything_once(client: TestClient, add: Add):
    ids = [add(f"text {number}") for number in range(7)]
    pages = [client.get("/memories", params={"offset": offset, "limit": 3}).json() for offset in (0, 3, 6, 9)]
    assert [memory["id"] for page in pages for memory in page["memories"]] == ids
    assert {page["total"] for page in pages} == {7}


@pytest.mark.parametrize("as_of", [{}, {"as_of": "2100-01-01"}])
def test_pages_of_the_newest_stay_the_same_while_others_are_added(client: TestClient, add: Add, as_of):
    ids = [add(f"text {number}") for number in range(5)]
    pages, max_id = [], ids[-1]
    for number in range(3):
        params = {"order": "newest", "max_id": max_id, "limit": 2, **as_of}
        pages.append([memory["id"] for memory in client.get("/memories", params=params).json()["memories"]])
        add(f"a later text {number}")
        max_id = pages[-1][-1] - 1
    assert pages == [ids[:-3:-1], ids[2:0:-1], ids[:1]]
    second = client.get("/memories", params={"order": "newest", "max_id": ids[-1], "limit": 2, "offset": 2}).json()
    assert ([memory["id"] for memory in second["memories"]], second["total"]) == (pages[1], 5)


@pytest.mark.parametrize(
    ("params", "sources"),
    [
        ({}, ["proj/a", "proj/a/b", "proj/ab", "other"]),
        ({"source": ""}, ["proj/a", "proj/a/b", "proj/ab", "other"]),
        ({"source": "proj/a"}, ["proj/a", "proj/a/b", "proj/ab"]),
        ({"source": "proj/a", "source_boundary": True}, ["proj/a", "proj/a/b"]),
        ({"source": "proj/a/", "source_boundary": True}, ["proj/a", "proj/a/b"]),
        ({"source": "%"}, []),
    ],
)
def test_lists_and_counts_take_the_same_sources(client: TestClient, add: Add, params, sources):
    for source in ("proj/a", "proj/a/b", "proj/ab", "other"):
        add(f"red {source}", source)
    assert [memory["source"] for memory in client.get("/memories", params=params).json()["memories"]] == sources
    assert client.get("/memories/count", params=params).json() == {"count": len(sources)}


def test_a_list_can_hold_pinned_ones_only_or_the_others(client: TestClient, add: Add):
    pinned, other = add("red", pinned=True), add("green")
    assert [m["id"] for m in client.get("/memories?pinned=true").json()["memories"]] == [pinned]
    assert [m["id"] for m in client.get("/memories?pinned=false").json()["memories"]] == [other]


def test_metadata_of_an_earlier_version_with_names_of_own_fields_is_readable(client: TestClient):
    metadata = {"links": "x", "valid_to": 7, "document_at": 5, "entity_key": {}, "is_latest": "q", "mood": 1}
    engine = client.app.state.service.engine  # type: ignore[attr-defined]
    memory = engine.add(Scope(), MemoryDraft("red", "notes", metadata)).id
    record = client.get(f"/memory/{memory}").json()
    assert (record["mood"], record.keys() & metadata.keys()) == (1, {"mood"})
    assert client.post("/search", json={"query": "red"}).json()["count"] == 1
