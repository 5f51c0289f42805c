"""The search as clients of the Memories family expect it: scores to sort by, the threshold, and warnings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import Add, Start
from tests.models.reranking.models import write_cross_encoder
from tests.thoroughness import sampled

COLOURS = ("red", "green", "blue", "cyan", "teal", "pink", "grey", "fox", "violin", "harbour")
NEVER_RISING = ("score", "rrf_score", "base_rrf_score", "relative_score")
QUERIES = ("red green fox", "violin", "what was said about the harbour in May 2023", "latest teal fox", "unknown words")
OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "without the graph": {"graph_weight": 0},
    "by meaning": {"hybrid": False},
    "recent first": {"recency_weight": 0.7, "recency_half_life_days": 10, "reference_date": "2023-06-02"},
    "confident first": {"confidence_weight": 1.0},
    "words first": {"vector_weight": 0.0},
    "meaning first": {"vector_weight": 1.0},
    "tags": {"tags": ["b"]},
    "threshold": {"threshold": 0.4},
    "minimum": {"min_score": 0.05},
    "without feedback": {"feedback_weight": 0.0, "auto_intent": False},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cross_encoder(tmp_path_factory.mktemp("model") / "cross-encoder")


def store(client: TestClient, seed: int) -> None:
    """Short and long memories of several sources and times, some with tags."""
    chance = Random(seed)
    for number in range(24):
        words = chance.choices(COLOURS, k=chance.choice([2, 4, 6, 90]))
        memory = {
            "text": f"{' '.join(words)} {number}",
            "source": chance.choice(["a", "a/b", "c"]),
            "metadata": {"document_at": f"2023-0{chance.randint(1, 6)}-1{chance.randint(0, 9)}"},
            "tags": chance.choice([[], ["b"], ["violin"]]),
        }
        client.post("/memory/add", json=memory).raise_for_status()


def answers(client: TestClient, options: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The results of each query from every route that searches."""
    for query in QUERIES:
        body = {"query": query, "k": 12, **options}
        yield client.post("/search", json=body).raise_for_status().json()["results"]
        yield client.post("/search/explain", json=body).raise_for_status().json()["results"]
    queries = [{"query": query, **options} for query in QUERIES]
    for part in client.post("/search/batch", json={"queries": queries}).raise_for_status().json()["results"]:
        yield part["results"]


@pytest.mark.parametrize("seed", range(1, 1 + sampled(1, 2)))
@pytest.mark.parametrize("service", ["sum", "rrf", "rerank"])
def test_no_score_rises_from_one_result_to_the_next(start: Start, folder: Path, service: str, seed: int):
    settings = {"rerank_model": str(folder), "rerank_deadline_ms": 60_000} if service == "rerank" else {}
    client = start(**settings, search_fusion="rrf" if service == "rrf" else "sum")
    store(client, seed)
    seen = 0
    for name, options in OPTIONS.items():
        for results in answers(client, options):
            seen += len(results)
            for field in NEVER_RISING:
                values = [result[field] for result in results if field in result]
                assert all(one >= other for one, other in pairwise(values)), (name, field, values)
                assert len(values) in (0, len(results))
            assert all(0 <= result["score"] <= 1 for result in results)
            assert all(0 <= result["rrf_score"] <= 1 / 60 for result in results if "rrf_score" in result)
            assert all(("similarity" in result) is (options.get("hybrid") is False) for result in results)
            assert all("raw_score" not in result for result in results)
    assert seen > 500


def found(client: TestClient, query: str, **options: Any) -> set[str]:
    results = client.post("/search", json={"query": query, **options}).raise_for_status().json()["results"]
    return {result["text"] for result in results}


def test_a_threshold_does_not_bound_results_that_the_words_found(client: TestClient, add: Add):
    near, far, other = "red green", "red violet black white cyan teal", "grey pink"
    for text in (near, far, other):
        add(text)
    assert found(client, "red green") == {near, far, other}
    assert found(client, "red green", threshold=0.5) == {near, far}
    assert found(client, "red green", threshold=0.5, hybrid=False) == {near}
    assert found(client, "red green", threshold=1.0, min_score=0.3) == {near}


def test_stop_words_do_not_pass_a_threshold(client: TestClient, add: Add):
    add("the fox is in the harbour and what of it")
    assert found(client, "what is the violin of the red teacher", threshold=0.9) == set()
    assert len(found(client, "what is the violin of the red fox", threshold=0.9)) == 1


def test_a_threshold_bounds_meaning_where_a_query_has_no_words(client: TestClient, add: Add):
    add("red green")
    assert found(client, "the of and", threshold=0.9) == set()
    assert found(client, "the of and") == {"red green"}


def test_unknown_fields_are_named_in_warnings(client: TestClient, add: Add):
    add("red green")
    body = {"query": "red", "topk": 3, "grahp_weight": 0, "to_query": 1, "zzyzx": {"a": 1}}
    expected = [
        "Unknown field `topk` was ignored; did you mean `k`?",
        "Unknown field `grahp_weight` was ignored; did you mean `graph_weight`?",
        "Unknown field `to_query` was ignored; did you mean `query`?",
        "Unknown field `zzyzx` was ignored; GET /openapi.json lists the known ones",
    ]
    for path in ("/search", "/search/explain"):
        answer = client.post(path, json=body).raise_for_status().json()
        assert (answer["warnings"], answer["count"]) == (expected, 1)
    batch = client.post("/search/batch", json={"queries": [body, {"query": "red"}], "k": 3}).raise_for_status().json()
    assert batch["warnings"] == ["Unknown field `k` was ignored; GET /openapi.json lists the known ones"]
    assert [part.get("warnings") for part in batch["results"]] == [expected, None]


def test_a_search_without_unknown_fields_has_no_warnings(client: TestClient):
    for path in ("/search", "/search/explain"):
        assert "warnings" not in client.post(path, json={"query": "red", "k": 3}).json()
    assert "warnings" not in client.post("/search/batch", json={"queries": [{"query": "red"}]}).json()


def test_warnings_are_bounded(client: TestClient):
    body = {"query": "red", **{f"{'x' * 200}{number}": number for number in range(100)}}
    warnings = client.post("/search", json=body).raise_for_status().json()["warnings"]
    assert len(warnings) == 20
    assert max(map(len, warnings)) < 200


@pytest.mark.parametrize("path", ["/search", "/search/explain", "/search/evidence"])
def test_empty_times_are_missing(client: TestClient, add: Add, path: str):
    add("red fox")
    times = {"since": "", "until": "", "reference_date": ""}
    answer = client.post(path, json={"query": "red fox", **times})
    assert answer.status_code == 200, answer.text
    assert [one["text"] for one in answer.json()["results"]] == ["red fox"]
    assert client.post(path, json={"query": "red fox", "since": "someday"}).status_code == 422
