"""Links that users made, in a search: what they add, what filters it, and that nothing changes without them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.api.fields import wire_time
from souvenir.core.timestamps import utc_now
from tests.api.conftest import Add, Start
from tests.api.test_search_wire import NEVER_RISING, QUERIES, store
from tests.models.reranking.models import write_cross_encoder

ALL: dict[str, Any] = {"graph_weight": 1.0, "k": 3}
"""A linked memory gets the score of the hit, and the two other hits leave it a place."""


def link(client: TestClient, from_id: int, to_id: int, type_: str = "related_to") -> None:
    client.post(f"/memory/{from_id}/link", json={"to_id": to_id, "type": type_}).raise_for_status()


def search(client: TestClient, query: str = "red green blue", **options: Any) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = (
        client.post("/search", json={"query": query, **options}).raise_for_status().json()["results"]
    )
    return results


def ids(results: list[dict[str, Any]]) -> list[int]:
    return [result["id"] for result in results]


@pytest.fixture
def hit(client: TestClient, add: Add) -> int:
    """The memory that answers; 300 others have one of its words, so what has none is no candidate of either arm."""
    found = add("red green blue")
    texts = [f"red item{number} word{number} more{number} text{number}" for number in range(300)]
    drafts = [{"text": text, "source": "notes"} for text in texts]
    client.post("/memory/add-batch", json={"memories": drafts}).raise_for_status()
    return found


@pytest.mark.parametrize(
    "type_",
    [
        "related_to",
        "caused_by",
        *(pytest.param(one, marks=pytest.mark.thorough) for one in ("blocked_by", "reinforces")),
    ],
)
@pytest.mark.parametrize("outgoing", [True, False])
def test_a_memory_that_a_user_linked_with_a_hit_is_a_result(
    client: TestClient, add: Add, hit: int, type_: str, outgoing: bool
):
    other = add("violin harbour")
    before = search(client, **ALL)
    assert other not in ids(before)
    link(client, *((hit, other) if outgoing else (other, hit)), type_)
    after = search(client, **ALL)
    assert ids(after) == [hit, other, ids(before)[1]]
    linked = after[1]
    assert (linked["match_type"], linked["graph_via"]) == ("graph", [hit])
    assert linked["graph_support"] == linked["score"] == before[0]["score"]
    assert (after[0]["match_type"], after[0]["score"]) == ("direct", before[0]["score"])
    assert (after[0]["graph_support"], after[0]["graph_via"]) == (0.0, [])
    for weight in (0.1, 0.5):
        [support] = [one["graph_support"] for one in search(client, graph_weight=weight, k=50) if one["id"] == other]
        assert support == pytest.approx(weight * before[0]["score"], abs=1e-6)


def test_links_are_not_followed_without_a_weight_or_words(client: TestClient, add: Add, hit: int):
    other = add("violin harbour")
    options: tuple[dict[str, Any], ...] = ({"graph_weight": 0, "k": 3}, {"hybrid": False, "k": 3})
    before = [search(client, **one) for one in options]
    link(client, hit, other)
    after = [search(client, **one) for one in options]
    assert [ids(one) for one in after] == [ids(one) for one in before]
    assert [[hit["score"] for hit in one] for one in after] == [[hit["score"] for hit in one] for one in before]
    assert not {"match_type", "graph_support", "graph_via"} & set(after[0][0])


def test_a_hit_that_is_linked_with_another_is_raised_by_it(client: TestClient, add: Add):
    first, second, third = add("red green blue"), add("red cyan teal pink"), add("red cyan grey pink")
    before = {one["id"]: one["score"] for one in search(client)}
    link(client, third, first)
    results = search(client)
    assert ids(results) == [first, third, second]
    assert [one["match_type"] for one in results] == ["direct+graph", "direct+graph", "direct"]
    assert [one["graph_via"] for one in results] == [[third], [first], []]
    for one in results:
        raised = 1 - (1 - before[one["id"]]) * (1 - one["graph_support"])
        assert one["score"] == pytest.approx(raised, abs=2e-6)


def test_a_hit_shares_what_it_passes_among_its_links(client: TestClient, add: Add, hit: int):
    others = [add(f"violin harbour{number}") for number in range(4)]
    for other in others:
        link(client, hit, other)
    link(client, others[0], hit, "caused_by")
    results = search(client, graph_weight=0.5, k=50)
    supports = {one["id"]: one["graph_support"] for one in results}
    for other in others:
        assert supports[other] == pytest.approx(0.5 * results[0]["score"] / 4, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "is_found"),
    [
        ({"source_prefix": "n"}, True),
        ({"source_prefix": "m"}, False),
        ({"source_prefixes": ["notes", "other"]}, True),
        ({"metadata": {"kind": "a"}}, False),
        ({"tags": ["a"]}, False),
        ({"since": "2023-01-01"}, True),
        ({"until": "2023-01-01"}, False),
        ({"threshold": 0.1}, False),
        ({"threshold": 0.0}, True),
        ({"min_score": 0.05}, True),
        ({"min_score": 0.99}, False),
    ],
)
def test_filters_hold_for_linked_memories(
    client: TestClient, add: Add, hit: int, options: dict[str, Any], is_found: bool
):
    other = add("violin harbour")
    marked = {"text": "red green blue note", "source": "mine", "tags": ["a"], "metadata": {"kind": "a"}}
    also = client.post("/memory/add", json={**marked, "metadata": {"kind": "a", "document_at": "2022-05-01"}}).json()
    for one in (hit, also["id"]):
        link(client, one, other)
    assert (other in ids(search(client, **{**ALL, "k": 5, **options}))) is is_found


def test_an_archived_memory_is_no_neighbour_unless_asked_for(client: TestClient, add: Add, hit: int):
    other = add("violin harbour")
    link(client, hit, other)
    client.patch(f"/memory/{other}", json={"archived": True}).raise_for_status()
    assert other not in ids(search(client, **ALL))
    assert other in ids(search(client, **ALL, include_archived=True))


def test_a_search_as_of_a_time_follows_the_links_of_then(client: TestClient, add: Add, hit: int):
    other = add("violin harbour")
    before = wire_time(utc_now())
    link(client, hit, other)
    after = wire_time(utc_now())
    assert other not in ids(search(client, **ALL, as_of=before))
    assert other in ids(search(client, **ALL, as_of=after))


def test_neither_deleted_links_nor_links_of_other_kinds_are_followed(client: TestClient, add: Add, hit: int):
    linked, superseded, deleted = add("violin harbour"), add("cello lake"), add("organ river")
    link(client, hit, linked)
    link(client, hit, superseded, "supersedes")
    link(client, hit, deleted)
    client.delete(f"/memory/{hit}/link/{linked}").raise_for_status()
    client.delete(f"/memory/{deleted}").raise_for_status()
    assert not {linked, superseded, deleted} & set(ids(search(client, graph_weight=1.0, k=100)))


def test_a_limited_key_does_not_see_linked_memories_of_other_sources(start: Start):
    client = start(api_key="k-4f9c2a7d6b1e")
    admin = {"X-API-Key": "k-4f9c2a7d6b1e"}
    body = {"name": "reader", "role": "read-only", "prefixes": ["mine"]}
    key = {"X-API-Key": client.post("/api/keys", json=body, headers=admin).raise_for_status().json()["key"]}

    def stored(text: str, source: str) -> int:
        memory = {"text": text, "source": source}
        return int(client.post("/memory/add", json=memory, headers=admin).raise_for_status().json()["id"])

    mine, theirs, also = stored("red green blue", "mine"), stored("violin", "minefield"), stored("cello", "mine/a")
    for other in (theirs, also):
        client.post(
            f"/memory/{mine}/link", json={"to_id": other, "type": "related_to"}, headers=admin
        ).raise_for_status()
    ask = {"query": "red green blue", "graph_weight": 1.0}
    found, everything = (client.post("/search", json=ask, headers=one).json()["results"] for one in (key, admin))
    assert (set(ids(found)), set(ids(everything))) == ({mine, also}, {mine, theirs, also})
    # What the result passes on is not shared with a memory that the key cannot see.
    alone = client.post("/search", json={**ask, "graph_weight": 0}, headers=key).json()["results"]
    [support] = [one["graph_support"] for one in found if one["id"] == also]
    assert support == alone[0]["score"]


def test_an_explanation_shows_the_links_that_were_followed(client: TestClient, add: Add, hit: int):
    near, far = add("violin harbour"), add("cello lake", "other")
    link(client, hit, near)
    link(client, far, hit)
    body = {"query": "red green blue", "source_prefix": "notes", **ALL}
    answer = client.post("/search/explain", json=body).raise_for_status().json()
    seeds = answer["explain"]["graph"].pop("seeds")
    assert (seeds[0], len(seeds)) == (hit, 3)
    assert answer["explain"]["graph"] == {
        "enabled": True,
        "graph_weight": 1.0,
        "neighbors_found": 2,
        "neighbors_filtered": 1,
        "neighbors_added": 1,
        "ppr_iterations": 1,
        "ppr_alpha": 1.0,
    }
    plain = client.post("/search", json=body).json()["results"]
    explained = [{name: value for name, value in one.items() if name != "explanation"} for one in answer["results"]]
    assert plain == explained
    assert answer["results"][1]["explanation"]["similarity"] == 0.0
    for off in ({"graph_weight": 0}, {"hybrid": False}):
        graph = client.post("/search/explain", json={**body, **off}).json()["explain"]["graph"]
        assert (graph["enabled"], graph["seeds"], graph["ppr_iterations"]) == (False, [], 0)


def test_without_links_every_weight_gives_the_same_answer(client: TestClient):
    store(client, 3)
    for query in QUERIES:
        answers = [search(client, query, graph_weight=weight, k=12) for weight in (0.1, 1.0)]
        assert answers[0] == answers[1]
        plain = search(client, query, graph_weight=0, k=12)
        assert [{name: one[name] for name in two} for one, two in zip(answers[0], plain, strict=True)] == plain


@pytest.mark.parametrize("service", ["sum", "rrf", "rerank"])
def test_scores_never_rise_and_the_list_is_not_longer_with_links(start: Start, tmp_path: Path, service: str):
    settings: dict[str, Any] = {"search_fusion": service} if service != "rerank" else {}
    if service == "rerank":
        settings = {"rerank_model": str(write_cross_encoder(tmp_path / "model")), "rerank_deadline_ms": 60_000}
    client, chance = start(**settings), Random(5)
    store(client, 4)
    stored = ids(client.get("/memories", params={"limit": 100}).json()["memories"])
    for _ in range(40):
        one, other = chance.sample(stored, 2)
        client.post(f"/memory/{one}/link", json={"to_id": other, "type": chance.choice(["related_to", "caused_by"])})
    seen = set()
    ways: tuple[dict[str, Any], ...] = (
        {},
        {"graph_weight": 1.0},
        {"recency_weight": 1.0, "graph_weight": 0.5},
        {"min_score": 0.02},
    )
    for query in QUERIES:
        for options in ways:
            results = search(client, query, k=4, **options)
            assert len(results) <= 4
            assert len({*ids(results)}) == len(results)
            for field in NEVER_RISING:
                assert all(one[field] >= other[field] for one, other in pairwise(results)), (query, options, field)
            assert all(0 <= one["score"] <= 1 for one in results)
            for result in results:
                seen.add(result["match_type"])
                assert (result["match_type"] == "direct") is (result["graph_via"] == [])
                assert result["graph_support"] <= options.get("graph_weight", 0.1)
            assert all(one["score"] >= options.get("min_score", 0) for one in results)
    assert seen == {"direct", "direct+graph", "graph"}


def test_a_memory_that_only_a_link_brought_does_not_precede_its_hit(client: TestClient, add: Add, hit: int):
    other = add("violin harbour")
    link(client, hit, other)
    results = search(client, graph_weight=1.0)
    assert ids(results)[:2] == [hit, other]
    assert results[1]["score"] <= results[0]["score"]
