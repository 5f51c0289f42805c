"""Search answers: modes, filters, scores, explanations."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import Add, Start

GRAPH_FIELDS = {"base_rrf_score", "match_type", "graph_support", "graph_via"}


def found(client: TestClient, query: str, **options: Any) -> list[str]:
    response = client.post("/search", json={"query": query, **options})
    assert response.status_code == 200, response.text
    body = response.json()
    assert body["count"] == len(body["results"])
    return [result["text"] for result in body["results"]]


def test_an_empty_namespace_answers_an_empty_list(client: TestClient):
    assert client.post("/search", json={"query": "anything"}).json() == {
        "query": "anything",
        "results": [],
        "count": 0,
        "relevance": 0.0,
        "evidence": "none",
        "degraded": [],
    }


def test_a_hybrid_result_has_the_record_and_the_hybrid_scores(client: TestClient, add: Add):
    stored = add("billing runs on postgres", "team/billing", category="decision")
    [result] = client.post("/search", json={"query": "postgres billing"}).json()["results"]
    assert (result["id"], result["text"], result["source"]) == (stored, "billing runs on postgres", "team/billing")
    assert result["category"] == "decision"
    assert result["relative_score"] == 1.0
    assert result["score"] > 0
    assert result["rrf_score"] == pytest.approx(1 / 61, abs=1e-6)
    assert result["base_rrf_score"] == result["rrf_score"]
    assert (result["match_type"], result["graph_support"], result["graph_via"]) == ("direct", 0.0, [])
    assert "similarity" not in result


def test_without_a_graph_weight_the_graph_fields_are_left_out(client: TestClient, add: Add):
    add("billing runs on postgres")
    [result] = client.post("/search", json={"query": "billing", "graph_weight": 0}).json()["results"]
    assert not GRAPH_FIELDS & set(result)
    assert {"score", "rrf_score", "relative_score"} <= set(result)


def test_a_vector_result_has_a_cosine_and_no_hybrid_scores(client: TestClient, add: Add):
    add("red green blue cyan")
    add("red violet black white")
    results = client.post("/search", json={"query": "red green", "hybrid": False}).json()["results"]
    assert [result["similarity"] for result in results] == [0.707107, 0.353553]
    assert [result["relative_score"] for result in results] == [1.0, 0.5]
    assert [0 < result["score"] < 1 for result in results] == [True, True]
    assert not {"rrf_score", *GRAPH_FIELDS} & set(results[0])


def test_relative_scores_divide_by_the_best_and_are_never_negative(client: TestClient, add: Add):
    for text in ("red green blue", "red cyan teal", "grey black white"):
        add(text)
    results = client.post("/search/explain", json={"query": "red green blue"}).json()["results"]
    assert results[0]["relative_score"] == 1.0
    raw = [result["explanation"]["raw_score"] for result in results]
    for result, score in zip(results, raw, strict=True):
        assert result["relative_score"] == pytest.approx(max(0.0, score / raw[0]), abs=1e-4)


@pytest.mark.parametrize("mode", [{}, {"hybrid": False}, {"recency_weight": 1.0}])
def test_scores_are_probabilities_that_never_rise_and_have_a_minimum(
    client: TestClient, add: Add, mode: dict[str, object]
):
    for text in ("red green blue", "red cyan teal", "grey black white", "red green pink"):
        add(text)
    body = {"query": "red green blue", **mode}
    results = client.post("/search", json=body).json()["results"]
    scores = [result["score"] for result in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    above = client.post("/search", json={**body, "min_score": scores[1]}).json()["results"]
    assert [result["id"] for result in above] == [result["id"] for result in results if result["score"] >= scores[1]]
    nothing = client.post("/search", json={**body, "min_score": 1.0}).json()
    assert (nothing["results"], nothing["relevance"], nothing["evidence"]) == ([], 0.0, "none")


def test_k_bounds_the_results(client: TestClient, add: Add):
    for number in range(8):
        add(f"red item number{number}")
    assert len(found(client, "red")) == 5
    assert len(found(client, "red", k=2)) == 2
    assert len(found(client, "red", k=100)) == 8


def test_a_threshold_excludes_less_similar_memories(client: TestClient, add: Add):
    add("red green blue cyan")
    add("red violet black white")
    assert found(client, "red green", hybrid=False, threshold=0.5) == ["red green blue cyan"]


def test_archived_memories_are_found_on_request_only(client: TestClient, add: Add):
    add("red old", archived=True)
    add("red new")
    assert found(client, "red") == ["red new"]
    assert set(found(client, "red", include_archived=True)) == {"red old", "red new"}


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ({}, {"red a", "red ab", "red abc", "red other"}),
        ({"source_prefix": ""}, {"red a", "red ab", "red abc", "red other"}),
        ({"source_prefix": "proj/a"}, {"red a", "red ab", "red abc"}),
        ({"source_prefix": "proj/a", "source_boundary": True}, {"red a", "red ab"}),
        ({"source_prefix": "proj/a/", "source_boundary": True}, {"red a", "red ab"}),
        ({"source_prefix": "proj/a/*", "source_boundary": True}, {"red a", "red ab"}),
        ({"source_prefix": "proj/a/"}, {"red ab"}),
        ({"source_prefixes": ["proj/a"]}, {"red a", "red ab"}),
        ({"source_prefixes": ["proj/a/b/*", "other/"]}, {"red ab", "red other"}),
        ({"source_prefixes": ["nobody"]}, set()),
        ({"source": "proj/a"}, {"red a", "red ab", "red abc", "red other"}),
    ],
)
def test_sources_are_filtered(client: TestClient, add: Add, options, texts):
    add("red a", "proj/a")
    add("red ab", "proj/a/b")
    add("red abc", "proj/abc")
    add("red other", "other")
    assert set(found(client, "red", k=10, **options)) == texts


@pytest.mark.parametrize(
    "options",
    [
        {"source_prefix": "a", "source_prefixes": ["b"]},
        {"source_prefixes": []},
        {"source_prefixes": [""]},
        {"source_prefixes": ["/*"]},
        {"source_prefixes": ["s" * 501]},
        {"source_prefix": "/", "source_boundary": True},
        {"since": "yesterday"},
        {"until": "2023-13-01"},
        {"since": "2023-05-08T25:00:00Z"},
        {"since": 20230508},
        {"since": "0001-01-01T00:00:00+14:00"},
        {"reference_date": "someday"},
        {"metadata": {"a": "x" * 70_000}},
        {"metadata": {str(number): 1 for number in range(21)}},
    ],
)
def test_a_filter_that_cannot_be_read_is_422(shared_client: TestClient, options):
    assert shared_client.post("/search", json={"query": "red", **options}).status_code == 422


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ({"since": "2023-05-08"}, {"red may", "red june"}),
        ({"since": "2023-05-08T17:30:00Z"}, {"red may", "red june"}),
        ({"since": "2023-05-08t17:30:00.000001z"}, {"red june"}),
        ({"since": "2023-05-08T19:30:00+02:00"}, {"red may", "red june"}),
        ({"until": "2023-05-08"}, {"red april", "red may"}),
        ({"until": "2023-05-08T17:29:59"}, {"red april"}),
        ({"until": "20230508"}, {"red april", "red may"}),
        ({"since": "2023-05-01", "until": "2023-05-31"}, {"red may"}),
        ({"until": "9999-12-31"}, {"red april", "red may", "red june"}),
    ],
)
def test_times_are_filtered_in_utc_and_a_day_counts_whole(client: TestClient, add: Add, options, texts):
    add("red april", document_at="2023-04-30T23:59:59+00:00")
    add("red may", document_at="2023-05-08T17:30:00")
    add("red june", document_at="2023-06-01")
    assert set(found(client, "red", **options)) == texts


def test_an_undated_memory_has_the_time_of_its_storing(client: TestClient, add: Add):
    add("red now")
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    assert found(client, "red", since=yesterday) == ["red now"]
    assert found(client, "red", until=yesterday) == []


@pytest.mark.parametrize(
    ("wanted", "texts"),
    [
        ({"kind": "a"}, {"red one", "red two"}),
        ({"kind": "a", "n": 1}, {"red one"}),
        ({"n": 1}, {"red one"}),
        ({"n": "1"}, {"red two"}),
        ({"kind": "b"}, set()),
        ({"missing": None}, set()),
        ({}, {"red one", "red two"}),
    ],
)
def test_metadata_is_filtered_by_exact_values(client: TestClient, add: Add, wanted, texts):
    add("red one", kind="a", n=1)
    add("red two", kind="a", n="1")
    assert set(found(client, "red", metadata=wanted)) == texts


def test_filters_come_before_the_choice_of_k(client: TestClient, add: Add):
    for number in range(30):
        add(f"red red red {number}", "loud")
    add("red among other quiet words", "quiet")
    assert found(client, "red", k=1, source_prefix="quiet") == ["red among other quiet words"]


def test_recency_weighs_as_of_the_reference_date(client: TestClient, add: Add):
    add("red apple", document_at="2023-01-01")
    add("red apple pie", document_at="2023-06-01")
    assert found(client, "red apple")[0] == "red apple"
    recent = {"recency_weight": 1.0, "recency_half_life_days": 10, "reference_date": "2023-06-02"}
    assert found(client, "red apple", **recent)[0] == "red apple pie"


def test_parts_that_do_nothing_yet_are_accepted(client: TestClient, add: Add):
    add("red apple")
    assert found(client, "red last week", auto_intent=False, feedback_weight=1.0, unknown_field=7) == ["red apple"]


def test_an_explanation_adds_up(client: TestClient, add: Add):
    ids = [add("red green blue"), add("red cyan teal")]
    for colour in ("pink", "grey", "white"):
        add(colour)
    body = client.post("/search/explain", json={"query": "red green", "k": 2}).json()
    assert [result["id"] for result in body["results"]] == ids
    for result in body["results"]:
        explanation = result["explanation"]
        assert sum(explanation["parts"].values()) == pytest.approx(explanation["raw_score"])
        assert explanation["rrf_score"] == pytest.approx(result["rrf_score"], abs=1e-6)
        assert explanation["profile"] == "fact"
        assert {"passage_id", "similarity", "dense", "vector_rank", "lexical", "lexical_rank"} <= set(explanation)
    terms = {term["term"]: term for term in body["results"][0]["explanation"]["terms"]}
    assert set(terms) == {"red", "green"}
    assert terms["green"]["idf"] > terms["red"]["idf"]


def test_an_explanation_shows_the_results_of_each_arm(client: TestClient, add: Add):
    ids = [add("red " + "green " * 60), add("red cyan teal")]
    explain = client.post("/search/explain", json={"query": "red green"}).json()["explain"]
    assert [candidate["id"] for candidate in explain["bm25_candidates"]] == ids
    assert all(len(candidate["text"]) <= 200 for candidate in explain["bm25_candidates"])
    assert {candidate["id"] for candidate in explain["vector_candidates"]} <= set(ids)
    assert (explain["rrf_k"], explain["fusion"], explain["filtered_by_auth"]) == (60, "sum", 0)
    assert explain["scoring_weights"]["vector"] == pytest.approx(0.7)
    assert (explain["graph"]["enabled"], explain["graph"]["seeds"]) == (True, ids)
    assert explain["unheard"] == 0.0
    some = client.post("/search/explain", json={"query": "red zzyzx"}).json()["explain"]
    assert 0.0 < some["unheard"] < 1.0


def test_an_answer_has_its_relevance(client: TestClient, add: Add):
    add("billing runs on postgres")
    ask = {"query": "billing postgres"}, {"query": "violin lessons"}, {"query": "billing postgres", "hybrid": False}
    said, other, by_meaning = (client.post("/search", json=one).json() for one in ask)
    assert (said["evidence"], other["evidence"], by_meaning["evidence"]) == ("strong", "none", "strong")
    assert 0.0 <= other["relevance"] < 0.25 < 0.6 <= said["relevance"] <= 1.0
    batch = client.post("/search/batch", json={"queries": list(ask)}).json()["results"]
    assert [one["relevance"] for one in batch] == [one["relevance"] for one in (said, other, by_meaning)]
    assert [one["evidence"] for one in batch] == ["strong", "none", "strong"]
    explained = client.post("/search/explain", json=ask[0]).json()
    assert (explained["relevance"], explained["evidence"]) == (said["relevance"], "strong")
    assert explained["explain"]["relevance_signals"] == pytest.approx(
        {"hit": 2 / math.sqrt(8), "unknown": 0.0, "covered": 1.0, "other_name": 0.0}, abs=1e-6
    )


def test_an_explanation_names_the_repaired_words(client: TestClient, add: Add):
    add("the postgres migration is planned")
    explain = client.post("/search/explain", json={"query": "postgers migration"}).json()["explain"]
    assert list(explain["repairs"]) == ["postger"] or list(explain["repairs"]) == ["postgers"]


def test_the_fusion_that_the_settings_name_orders_the_results(start: Start):
    client = start(search_fusion="rrf")
    client.post("/memory/add", json={"text": "red green", "source": "s"})
    body = client.post("/search/explain", json={"query": "red"}).json()
    assert body["explain"]["fusion"] == "rrf"
    assert body["results"][0]["explanation"]["raw_score"] == pytest.approx(body["results"][0]["rrf_score"], abs=1e-6)
    assert 0 < body["results"][0]["score"] < 1


def test_a_batch_answers_in_the_order_of_its_queries(client: TestClient, add: Add):
    add("red apple")
    add("green pear")
    queries = [{"query": "green", "k": 1}, {"query": "red", "k": 1, "hybrid": False}]
    body = client.post("/search/batch", json={"queries": queries}).json()
    assert body["count"] == 2
    assert [answer["query"] for answer in body["results"]] == ["green", "red"]
    assert [answer["results"][0]["text"] for answer in body["results"]] == ["green pear", "red apple"]
    assert "similarity" in body["results"][1]["results"][0]


def test_a_search_changes_nothing_that_can_be_read(client: TestClient, add: Add):
    stored = add("red apple")
    before = client.get(f"/memory/{stored}").json()
    found(client, "red apple")
    assert client.get(f"/memory/{stored}").json() == before


@pytest.mark.parametrize("request_fields", [{}, {"hybrid": False}, {"graph_weight": 0}])
def test_metadata_that_is_named_like_a_score_neither_breaks_a_search_nor_pretends_to_be_one(
    client: TestClient, request_fields: dict[str, object]
):
    names = ("similarity", "score", "rrf_score", "base_rrf_score", "match_type", "graph_support", "graph_via")
    metadata = {name: {"not": "a score"} for name in (*names, "relative_score", "explanation")}
    memory = {"text": "Revenue grew in the third quarter", "source": "s", "metadata": metadata}
    stored = client.post("/memory/add", json=memory).json()["id"]
    for path in ("/search", "/search/explain"):
        response = client.post(path, json={"query": "revenue", **request_fields})
        assert response.status_code == 200
        assert {"not": "a score"} not in response.json()["results"][0].values()
    assert client.get(f"/memory/{stored}").json()["similarity"] == {"not": "a score"}
