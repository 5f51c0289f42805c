"""Search over all data of an agent over HTTP: order, filters, access, incomplete answers, deleted data."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.core.errors import EmbeddingUnavailable
from souvenir.core.types import FloatVector
from tests.api.conftest import KEY, Start, loaded
from tests.api.test_agents import key_for
from tests.fake_embedder import FakeEmbedder

ENV = {"X-API-Key": KEY}
AGENT = "my_agent"


def say(client: TestClient, content: str, agent: str = AGENT, **fields: Any) -> str:
    body = {"agent_name": agent, "role": "user", "content": content, **fields}
    stored = client.post("/messages", json=body, headers=ENV)
    assert stored.status_code == 200, stored.text
    return str(stored.json()["id"])


def note(client: TestClient, text: str, agent: str = AGENT, **fields: Any) -> int:
    body = {"text": text, "source": "notes", **fields}
    stored = client.post("/memory/add", json=body, headers={"X-Namespace": agent, **ENV})
    assert stored.status_code == 200, stored.text
    return int(stored.json()["id"])


def answer(client: TestClient, query: str, agent: str = AGENT, **fields: Any) -> Any:
    return client.post(f"/agents/{agent}/search", json={"query": query, **fields}, headers=ENV)


def items(client: TestClient, query: str, agent: str = AGENT, **fields: Any) -> list[dict[str, Any]]:
    found = answer(client, query, agent, **fields)
    assert found.status_code == 200, found.text
    body = found.json()
    results: list[dict[str, Any]] = body["results"]
    assert (body["query"], body["count"], body["degraded"]) == (query, len(results), [])
    assert [one["rank"] for one in results] == list(range(1, len(results) + 1))
    return results


def texts(found: list[dict[str, Any]]) -> list[str]:
    return [one["message"]["content"] if one["kind"] == "message" else one["memory"]["text"] for one in found]


@pytest.fixture
def service(start: Start) -> TestClient:
    return start(api_key=KEY)


@pytest.fixture
def colours(service: TestClient) -> TestClient:
    """One text that answers well of each kind, and one that hardly does."""
    say(service, "the rowing boat is blue", session_id="s1", user="ann", created_at="2023-05-08")
    say(service, "one harbour, seven sea gulls and a rowing boat", role="assistant", session_id="s2", created_at="2023-06-08")
    note(service, "a blue rowing boat", metadata={"document_at": "2023-05-09"})
    note(service, "eight sea gulls, nine crabs and a rowing boat", metadata={"document_at": "2023-06-09"})
    return service


def test_all_kinds_are_in_one_ranking_with_record_and_score(colours: TestClient):
    found = items(colours, "blue rowing boat")
    assert set(texts(found)[:2]) == {"the rowing boat is blue", "a blue rowing boat"}
    scores = [one["score"] for one in found]
    assert scores == sorted(scores, reverse=True)
    assert sorted(texts(found)[2:]) == ["eight sea gulls, nine crabs and a rowing boat", "one harbour, seven sea gulls and a rowing boat"]
    messages = colours.post("/messages/search", json={"agent_name": AGENT, "query": "blue rowing boat"}, headers=ENV).json()
    assert [one["message"] for one in found if one["kind"] == "message"] == messages
    assert [one["score"] for one in found if one["kind"] == "message"] == [one["score"] for one in messages]
    memories = colours.post("/search", json={"query": "blue rowing boat"}, headers={"X-Namespace": AGENT, **ENV}).json()
    ours = [one for one in found if one["kind"] == "memory"]
    assert [(one["memory"]["id"], one["score"]) for one in ours] == [
        (one["id"], one["score"]) for one in memories["results"]
    ]
    assert all((one["message"] is None) != (one["memory"] is None) for one in found)


def test_weak_results_of_one_kind_do_not_displace_strong_ones_of_another(service: TestClient):
    for number in range(4):
        say(service, f"the blue rowing boat of harbour {number}")
    for number in range(4):
        note(service, f"nine crabs, eight sea gulls and some rowing boat number {number} among many other things")
    assert [one["kind"] for one in items(service, "blue rowing boat of the harbour", limit=4)] == ["message"] * 4


def test_kinds_can_be_chosen_and_the_limit_counts_them_together(colours: TestClient):
    assert {one["kind"] for one in items(colours, "rowing boat", kinds=["memory"])} == {"memory"}
    assert {one["kind"] for one in items(colours, "rowing boat", kinds=["message"])} == {"message"}
    assert set(texts(items(colours, "blue rowing boat", limit=2))) == {"the rowing boat is blue", "a blue rowing boat"}
    refused = answer(colours, "rowing boat", limit=21)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
    assert answer(colours, "rowing boat", kinds=[]).status_code == 422
    assert answer(colours, "rowing boat", kinds=["block"]).status_code == 422


def test_times_narrow_both_kinds_and_who_and_where_the_messages_only(colours: TestClient):
    both_of_june = {"one harbour, seven sea gulls and a rowing boat", "eight sea gulls, nine crabs and a rowing boat"}
    memories = {"a blue rowing boat", "eight sea gulls, nine crabs and a rowing boat"}
    assert set(texts(items(colours, "rowing boat", since="2023-06-01"))) == both_of_june
    assert set(texts(items(colours, "rowing boat", until="2023-05-09"))) == {"the rowing boat is blue", "a blue rowing boat"}
    ours = {"the rowing boat is blue", *memories}
    for narrowed in ({"user": "ann"}, {"role": "user"}, {"session_id": "s1"}, {"exclude_session_id": "s2"}):
        assert set(texts(items(colours, "rowing boat", **narrowed))) == ours
    for nobody in ({"user": "ben"}, {"session_id": "s3"}):
        assert set(texts(items(colours, "rowing boat", **nobody))) == memories


def test_a_time_in_the_question_counts_for_both_kinds_unless_it_is_not_to_be_read(colours: TestClient):
    question, asked = "which rowing boat did I tell you of last week", {"reference_date": "2023-06-13T12:00:00Z"}
    of_that_week = {"one harbour, seven sea gulls and a rowing boat", "eight sea gulls, nine crabs and a rowing boat"}
    assert set(texts(items(colours, question, **asked))) == of_that_week
    assert len(items(colours, question, auto_intent=False, **asked)) == 4


def test_data_of_other_agents_is_never_found(colours: TestClient):
    say(colours, "the blue rowing boat of another", agent="other")
    note(colours, "another blue rowing boat", agent="other")
    assert len(items(colours, "blue rowing boat", limit=20)) == 4
    assert set(texts(items(colours, "blue rowing boat", agent="other"))) == {"the blue rowing boat of another", "another blue rowing boat"}


def test_a_key_of_another_namespace_or_of_some_sources_may_not_search_an_agent(colours: TestClient):
    path, body = f"/agents/{AGENT}/search", {"query": "rowing boat"}
    for fields in ({"namespace": "other"}, {"namespace": AGENT, "prefixes": ["notes"]}):
        refused = colours.post(path, json=body, headers=key_for(colours, **fields))
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    own = colours.post(path, json=body, headers=key_for(colours, namespace=AGENT, role="read-only"))
    assert own.json()["count"] == 4


def test_a_namespace_that_is_no_agent_is_404(service: TestClient):
    note(service, "a blue rowing boat", agent="plain")
    for name in ("nobody", "plain"):
        for kinds in (["message"], ["memory"]):
            missing = answer(service, "rowing boat", name, kinds=kinds)
            assert (missing.status_code, missing.json()["code"]) == (404, "agent_not_found")


def test_deleted_and_archived_memories_are_not_found(colours: TestClient):
    best = {one["kind"]: one for one in items(colours, "blue rowing boat")[:2]}
    message, memory = best["message"]["message"]["id"], best["memory"]["memory"]["id"]
    assert colours.delete(f"/messages/{AGENT}/{message}", headers=ENV).status_code == 200
    archived = {"ids": [memory]}
    assert (
        colours.post("/memory/archive-batch", json=archived, headers={"X-Namespace": AGENT, **ENV}).status_code == 200
    )
    left = {"one harbour, seven sea gulls and a rowing boat", "eight sea gulls, nine crabs and a rowing boat"}
    assert set(texts(items(colours, "blue rowing boat"))) == left
    assert colours.delete(f"/agents/{AGENT}", headers=ENV).status_code == 200
    assert answer(colours, "rowing boat").status_code == 404


def test_a_search_without_one_arm_says_so_once_and_finds_both_kinds(colours: TestClient):
    class NoQueries(FakeEmbedder):
        def embed_query(self, text: str) -> FloatVector:
            raise EmbeddingUnavailable("The model is gone")

    running = loaded(colours).app.state.service  # type: ignore[attr-defined]
    assert running.engine.models.reload(NoQueries())
    body = answer(colours, "blue rowing boat").json()
    assert body["degraded"] == ["vector"]
    assert set(texts(body["results"])[:2]) == {"the rowing boat is blue", "a blue rowing boat"}
    assert [(one["message"] or one["memory"])["similarity"] for one in body["results"]] == [None] * 4


def test_the_relevance_is_the_higher_one_of_both_kinds(colours: TestClient):
    found = answer(colours, "blue rowing boat").json()
    alone = [answer(colours, "blue rowing boat", kinds=[kind]).json()["relevance"] for kind in ("message", "memory")]
    assert (found["relevance"], found["evidence"]) == (max(alone), "strong")
    nothing = answer(colours, "blue rowing boat", kinds=["message"], session_id="s3").json()
    assert (nothing["relevance"], nothing["evidence"], nothing["results"]) == (0.0, "none", [])


def test_the_answer_names_strategies_and_concepts(colours: TestClient):
    colours.app.state.service.graph.indexer.catch_up()  # type: ignore[attr-defined]
    usual = answer(colours, "the blue rowing boat").json()
    assert (usual["strategy"], usual["searched_by"]) == ("auto", ["semantic", "keyword"])
    assert "rowing boat" in usual["concepts"]
    assert all("rowing boat" in one["concepts"] for one in usual["results"])
    sea gulls = answer(colours, "sea gulls", strategy="concept", limit=20).json()
    assert set(texts(sea gulls["results"])) == {
        "one harbour, seven sea gulls and a rowing boat",
        "eight sea gulls, nine crabs and a rowing boat",
    }
    words = answer(colours, "crabs", strategy="keyword").json()
    assert texts(words["results"]) == ["eight sea gulls, nine crabs and a rowing boat"]
    assert words["results"][0]["memory"]["similarity"] is None
    may = answer(colours, "what was said in May 2023?", strategy="time").json()
    assert texts(may["results"]) == ["a blue rowing boat", "the rowing boat is blue"]
    assert answer(colours, "rowing boats", strategy="time").status_code == 422


@pytest.mark.parametrize("strategy", ["auto", "semantic", "concept", "time"])
def test_a_minimum_score_bounds_every_strategy(colours: TestClient, strategy: str):
    colours.app.state.service.graph.indexer.catch_up()  # type: ignore[attr-defined]
    query = "what was said on 8 May 2023" if strategy == "time" else "the blue rowing boat"
    every = items(colours, query, strategy=strategy)
    least = every[0]["score"]
    assert items(colours, query, strategy=strategy, min_score=least) == [one for one in every if one["score"] >= least]
    nothing = answer(colours, query, strategy=strategy, min_score=1.0).json()
    assert all(one["score"] == 1.0 for one in nothing["results"])
