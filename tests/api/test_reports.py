"""The reports on the quality of searches and extractions."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.core.types import Scope
from tests.api.conftest import KEY, Add, Start, loaded

PERIODS = ("search-quality", "extraction-quality", "quality-summary", "graph-search", "temporal-search")
LISTS = {"failures": "failures", "problem-queries": "queries", "stale-memories": "memories"}
JOB_TIMEOUT_S = 30


def report(client: TestClient, name: str, **query: Any) -> dict[str, Any]:
    answer = client.get(f"/metrics/{name}", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def judge(client: TestClient, memory_id: int, signal: str, query: str = "red", **headers: str) -> None:
    body = {"memory_id": memory_id, "query": query, "signal": signal}
    client.post("/search/feedback", json=body, headers=headers).raise_for_status()


def retrievals(client: TestClient) -> dict[int, int]:
    service = client.app.state.service  # type: ignore[attr-defined]
    service.searches.flush()
    with service.engine.namespace(Scope()) as (connection, _):
        return dict(connection.execute("SELECT memory_id, count FROM retrievals"))


@pytest.mark.parametrize("name", PERIODS)
def test_a_report_of_a_period_answers_for_an_empty_store_and_names_its_period(client: TestClient, name: str):
    for period in ("today", "7d", "30d", "all"):
        assert report(client, name, period=period)["period"] == period
    assert report(client, name)["period"] == "7d"
    assert client.get(f"/metrics/{name}", params={"period": "1y"}).status_code == 422


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_empty_in_an_empty_store_and_has_a_limit(client: TestClient, name: str):
    assert (report(client, name)[LISTS[name]], report(client, name)["count"]) == ([], 0)
    for limit in (0, 101):
        assert client.get(f"/metrics/{name}", params={"limit": limit}).status_code == 422


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("failures", {"type": "other"}),
        ("problem-queries", {"min_feedback": 0}),
        ("stale-memories", {"min_retrievals": 0}),
        ("search-quality", {"source_prefix": "s" * 501}),
    ],
)
def test_other_parameters_are_validated(client: TestClient, name: str, query: dict[str, Any]):
    assert client.get(f"/metrics/{name}", params=query).status_code == 422


def test_searches_are_counted_by_evidence_results_and_time(client: TestClient, add: Add):
    loaded(client)
    add("red apple pie")
    add("green pear")
    for body in (
        {"query": "red apple pie"},
        {"query": "green", "since": "2020-01-01"},
        {"query": "x", "min_score": 1.0},
    ):
        client.post("/search", json=body).raise_for_status()
    client.post("/search/batch", json={"queries": [{"query": "red apple"}]}).raise_for_status()
    client.post("/search/evidence", json={"query": "red in May 2023"}).raise_for_status()
    client.post("/search/explain", json={"query": "red"}).raise_for_status()
    found = report(client, "search-quality")
    searches = found["searches"]
    assert (searches["total"], searches["without_results"], searches["with_time"]) == (5, 1, 2)
    assert searches["mean_results"] == pytest.approx(8 / 5)
    assert sum(searches["evidence"].values()) == 5
    [day] = found["by_day"]
    assert {name: day[name] for name in searches} == searches
    temporal = report(client, "temporal-search", period="today")
    assert (temporal["searches"], temporal["with_time"], temporal["with_time_share"]) == (5, 2, 0.4)
    assert report(client, "graph-search")["searches"] == 5


def test_searches_with_a_result_that_only_a_link_brought_are_counted(client: TestClient, add: Add):
    loaded(client)
    one, other = add("red green blue"), add("violin harbour")
    # So many have a word of the query that the other memory is found by its link alone.
    others = [{"text": f"red item{number} word{number} text{number}", "source": "s"} for number in range(300)]
    client.post("/memory/add-batch", json={"memories": others}).raise_for_status()
    client.post(f"/memory/{one}/link", json={"to_id": other, "type": "related_to"}).raise_for_status()
    for weight in (0.0, 1.0):
        client.post("/search", json={"query": "red green blue", "graph_weight": weight, "k": 3}).raise_for_status()
    found = report(client, "graph-search")
    assert (found["user_links"], found["searches"]) == (1, 2)
    assert (found["with_linked_results"], found["with_linked_results_share"]) == (1, 0.5)


def test_retrievals_are_written_at_close_and_change_no_later_search(start: Start):
    first = loaded(start())
    for text in ("red apple", "red pear", "blue sea"):
        first.post("/memory/add", json={"text": text, "source": "s"}).raise_for_status()
    before = first.post("/search", json={"query": "red", "k": 2}).json()
    assert first.post("/search", json={"query": "red", "k": 2}).json() == before
    ids = {one["id"] for one in before["results"]}
    assert retrievals(first) == dict.fromkeys(ids, 2)
    first.post("/search", json={"query": "red", "k": 2}).raise_for_status()
    service = first.app.state.service  # type: ignore[attr-defined]
    service.searches.close()
    with service.engine.namespace(Scope()) as (connection, _):
        assert dict(connection.execute("SELECT memory_id, count FROM retrievals")) == dict.fromkeys(ids, 3)
    first.delete(f"/memory/{min(ids)}").raise_for_status()
    assert min(ids) not in retrievals(first)
    assert list(service.engine.check()) == []


def test_a_memory_that_was_deleted_before_its_retrieval_is_written_is_left_out(client: TestClient, add: Add):
    loaded(client)
    one, other = add("red apple"), add("red pear")
    client.post("/search", json={"query": "red"}).raise_for_status()
    client.delete(f"/memory/{one}").raise_for_status()
    assert retrievals(client).keys() <= {other}


def test_feedback_failures_and_problem_queries_come_from_the_rows(client: TestClient, add: Add):
    one, other = add("red apple", "fruit/a"), add("green pear", "garden")
    judge(client, one, "not_useful", "red")
    judge(client, other, "not_useful", "red")
    judge(client, one, "useful", "apple")
    judge(client, other, "not_useful", "apple")
    judge(client, other, "not_useful", "alone")
    missed = {"text": "red apple", "source": "fruit/a", "context": "which fruit"}
    client.post("/memory/missed", json=missed).raise_for_status()
    feedback = report(client, "search-quality")["feedback"]
    assert feedback == {"useful": 1, "not_useful": 4, "useful_share": 0.2, "memories": 2, "missed": 1}
    part = report(client, "search-quality", source_prefix="fruit/")
    assert part["feedback"] == {"useful": 1, "not_useful": 1, "useful_share": 0.5, "memories": 1, "missed": 1}
    assert (part["source_prefix"], part["searches"], part["by_day"]) == ("fruit/", None, None)
    failures = report(client, "failures", type="retrieval", limit=3)["failures"]
    assert [(of["kind"], of["memory_id"], of["text"], of["source"]) for of in failures] == [
        ("missed", one, "which fruit", "fruit/a"),
        ("not_useful", other, "alone", "garden"),
        ("not_useful", other, "apple", "garden"),
    ]
    queries = report(client, "problem-queries")["queries"]
    assert [(of["query"], of["votes"], of["not_useful"], of["memories"]) for of in queries] == [
        ("red", 2, 2, 2),
        ("apple", 2, 1, 2),
    ]
    assert len(report(client, "problem-queries", min_feedback=1)["queries"]) == 3


def test_repeated_judgements_are_one_vote_in_problem_queries(client: TestClient, add: Add):
    one = add("red apple")
    for _ in range(5):
        judge(client, one, "not_useful", "red")
    assert report(client, "problem-queries")["queries"] == []
    [found] = report(client, "problem-queries", min_feedback=1)["queries"]
    assert (found["votes"], found["not_useful_share"]) == (1, 1.0)


def test_stale_memories_are_returned_often_and_useful_to_nobody(client: TestClient, add: Add):
    loaded(client)
    useful, useless, unjudged, archived = (add(f"red fruit {name}") for name in ("apple", "pear", "plum", "fig"))
    for _ in range(3):
        client.post("/search", json={"query": "red fruit"}).raise_for_status()
    judge(client, useful, "useful")
    judge(client, useless, "not_useful")
    client.patch(f"/memory/{archived}", json={"archived": True}).raise_for_status()
    found = report(client, "stale-memories")["memories"]
    assert [(of["id"], of["retrievals"], of["not_useful"]) for of in found] == [(useless, 3, 1), (unjudged, 3, 0)]
    assert report(client, "stale-memories", min_retrievals=4)["memories"] == []
    memories = report(client, "quality-summary")["memories"]
    assert memories == {"active": 3, "archived": 1, "retrieved": 3, "never_retrieved": 0, "dated": 0}


def test_extractions_are_counted_by_status_stage_and_verdict(start: Start):
    client = loaded(start(extract_fallback_add=True))
    body = {"messages": "User: We decided to use Redis for the queue.", "source": "chat"}
    job_id = client.post("/memory/extract", json=body).raise_for_status().json()["job_id"]
    service = client.app.state.service  # type: ignore[attr-defined]
    assert service.extraction.jobs.wait(job_id, JOB_TIMEOUT_S).finished
    found = report(client, "extraction-quality")
    assert (found["jobs"]["completed"], found["jobs"]["failed"], found["success_share"]) == (1, 0, 1.0)
    assert sum(found["facts"].values()) == sum(found["verdicts"].values()) >= 1
    assert report(client, "quality-summary")["extraction"] == {
        name: found[name] for name in ("jobs", "success_share", "facts", "verdicts")
    }
    service.engine.write_rows(
        lambda connection: connection.execute("UPDATE jobs SET status = 'failed', error = 'no model'")
    )
    [failure] = report(client, "failures", type="extraction")["failures"]
    assert (failure["job_id"], failure["error"], failure["source"]) == (job_id, "no model", "chat")
    assert report(client, "extraction-quality")["success_share"] == 0.0


def test_a_key_for_some_sources_sees_its_own_feedback_only_and_no_other_report(start: Start):
    client = loaded(start(api_key=KEY))
    admin = {"X-API-Key": KEY}
    ids = [
        client.post("/memory/add", json={"text": text, "source": text}, headers=admin).json()["id"]
        for text in ("mine", "theirs")
    ]
    for memory_id in ids:
        judge(client, memory_id, "useful", **admin)
    body = {"name": "n", "role": "read-only", "prefixes": ["mine"]}
    key = {"X-API-Key": client.post("/api/keys", json=body, headers=admin).json()["key"]}
    found = client.get("/metrics/search-quality", headers=key).json()
    assert (found["feedback"]["useful"], found["searches"], found["by_day"]) == (1, None, None)
    assert client.get("/metrics/search-quality", headers=admin).json()["feedback"]["useful"] == 2
    other = client.get("/metrics/search-quality", headers={**admin, "X-Namespace": "other"}).json()
    assert other["feedback"]["useful"] == 0
    for name in (*PERIODS[1:], *LISTS):
        assert client.get(f"/metrics/{name}", headers=key).status_code == 403


def test_without_usage_tracking_searches_are_null_and_retrievals_counted(start: Start):
    client = loaded(start(usage_tracking=False))
    one = client.post("/memory/add", json={"text": "red apple", "source": "s"}).json()["id"]
    client.post("/search", json={"query": "red"}).raise_for_status()
    assert report(client, "search-quality")["searches"] is None
    assert report(client, "temporal-search")["with_time"] is None
    assert retrievals(client) == {one: 1}
