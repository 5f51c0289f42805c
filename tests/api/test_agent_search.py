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
    say(service, "the choir is blue", session_id="s1", user="ann", created_at="2023-05-08")
    say(service, "one harbour, seven hens and a choir", role="assistant", session_id="s2", created_at="2023-06-08")
    note(service, "blue: a choir", metadata={"document_at": "2023-05-09"})
    note(service, "eight hens, nine crabs and a choir", metadata={"document_at": "2023-06-09"})
    return service


def test_all_kinds_are_in_one_ranking_with_record_and_score(colours: TestClient):
    found = items(colours, "blue choir")
    assert set(texts(found)[:2]) == {"the choir is blue", "blue: a choir"}
    scores = [one["score"] for one in found]
    assert scores == sorted(scores, reverse=True)
    assert sorted(texts(found)[2:]) == ["eight hens, nine crabs and a choir", "one harbour, seven hens and a choir"]
    messages = colours.post("/messages/search", json={"agent_name": AGENT, "query": "blue choir"}, headers=ENV).json()
    assert [one["message"] for one in found if one["kind"] == "message"] == messages
    assert [one["score"] for one in found if one["kind"] == "message"] == [one["score"] for one in messages]
    memories = colours.post("/search", json={"query": "blue choir"}, headers={"X-Namespace": AGENT, **ENV}).json()
    ours = [one for one in found if one["kind"] == "memory"]
    assert [(one["memory"]["id"], one["score"]) for one in ours] == [
        (one["id"], one["score"]) for one in memories["results"]
    ]
    assert all((one["message"] is None) != (one["memory"] is None) for one in found)


def test_weak_results_of_one_kind_do_not_displace_strong_ones_of_another(service: TestClient):
    for number in range(4):
        say(service, f"the blue choir of harbour {number}")
    for number in range(4):
        note(service, f"nine crabs, eight hens and some choir number {number} among many other things")
    assert [one["kind"] for one in items(service, "blue choir of the harbour", limit=4)] == ["message"] * 4


def test_kinds_can_be_chosen_and_the_limit_counts_them_together(colours: TestClient):
    assert {one["kind"] for one in items(colours, "choir", kinds=["memory"])} == {"memory"}
    assert {one["kind"] for one in items(colours, "choir", kinds=["message"])} == {"message"}
    assert set(texts(items(colours, "blue choir", limit=2))) == {"the choir is blue", "blue: a choir"}
    refused = answer(colours, "choir", limit=21)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
    assert answer(colours, "choir", kinds=[]).status_code == 422
    assert answer(colours, "choir", kinds=["block"]).status_code == 422


def test_times_narrow_both_kinds_and_who_and_where_the_messages_only(colours: TestClient):
    both_of_june = {"one harbour, seven hens and a choir", "eight hens, nine crabs and a choir"}
    memories = {"blue: a choir", "eight hens, nine crabs and a choir"}
    assert set(texts(items(colours, "choir", since="2023-06-01"))) == both_of_june
    assert set(texts(items(colours, "choir", until="2023-05-09"))) == {"the choir is blue", "blue: a choir"}
    ours = {"the choir is blue", *memories}
    for narrowed in ({"user": "ann"}, {"role": "user"}, {"session_id": "s1"}, {"exclude_session_id": "s2"}):
        assert set(texts(items(colours, "choir", **narrowed))) == ours
    for nobody in ({"user": "ben"}, {"session_id": "s3"}):
        assert set(texts(items(colours, "choir", **nobody))) == memories


def test_a_time_in_the_question_counts_for_both_kinds_unless_it_is_not_to_be_read(colours: TestClient):
    question, asked = "which choir did I tell you of last week", {"reference_date": "2023-06-13T12:00:00Z"}
    of_that_week = {"one harbour, seven hens and a choir", "eight hens, nine crabs and a choir"}
    assert set(texts(items(colours, question, **asked))) == of_that_week
    assert len(items(colours, question, auto_intent=False, **asked)) == 4


def test_data_of_other_agents_is_never_found(colours: TestClient):
    say(colours, "the blue choir of another", agent="other")
    note(colours, "another choir", agent="other")
    assert len(items(colours, "blue choir", limit=20)) == 4
    assert set(texts(items(colours, "blue choir", agent="other"))) == {
        "the blue choir of another",
        "another choir",
    }


def test_a_key_of_another_namespace_or_of_some_sources_may_not_search_an_agent(colours: TestClient):
    path, body = f"/agents/{AGENT}/search", {"query": "choir"}
    for fields in ({"namespace": "other"}, {"namespace": AGENT, "prefixes": ["notes"]}):
        refused = colours.post(path, json=body, headers=key_for(colours, **fields))
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    own = colours.post(path, json=body, headers=key_for(colours, namespace=AGENT, role="read-only"))
    assert own.json()["count"] == 4


def test_a_namespace_that_is_no_agent_is_404(service: TestClient):
    note(service, "blue: a choir", agent="plain")
    for name in ("nobody", "plain"):
        for kinds in (["message"], ["memory"]):
            missing = answer(service, "choir", name, kinds=kinds)
            assert (missing.status_code, missing.json()["code"]) == (404, "agent_not_found")


def test_deleted_and_archived_memories_are_not_found(colours: TestClient):
    best = {one["kind"]: one for one in items(colours, "blue choir")[:2]}
    message, memory = best["message"]["message"]["id"], best["memory"]["memory"]["id"]
    assert colours.delete(f"/messages/{AGENT}/{message}", headers=ENV).status_code == 200
    archived = {"ids": [memory]}
    assert (
        colours.post("/memory/archive-batch", json=archived, headers={"X-Namespace": AGENT, **ENV}).status_code == 200
    )
    left = {"one harbour, seven hens and a choir", "eight hens, nine crabs and a choir"}
    assert set(texts(items(colours, "blue choir"))) == left
    assert colours.delete(f"/agents/{AGENT}", headers=ENV).status_code == 200
    assert answer(colours, "choir").status_code == 404


def test_a_search_without_one_arm_says_so_once_and_finds_both_kinds(colours: TestClient):
    class NoQueries(FakeEmbedder):
        def embed_query(self, text: str) -> FloatVector:
            raise EmbeddingUnavailable("The model is gone")

    running = loaded(colours).app.state.service  # type: ignore[attr-defined]
    assert running.engine.models.reload(NoQueries())
    body = answer(colours, "blue choir").json()
    assert body["degraded"] == ["vector"]
    assert set(texts(body["results"])[:2]) == {"the choir is blue", "blue: a choir"}
    assert [(one["message"] or one["memory"])["similarity"] for one in body["results"]] == [None] * 4


def test_the_relevance_is_the_higher_one_of_both_kinds(colours: TestClient):
    found = answer(colours, "blue choir").json()
    alone = [answer(colours, "blue choir", kinds=[kind]).json()["relevance"] for kind in ("message", "memory")]
    assert (found["relevance"], found["evidence"]) == (max(alone), "strong")
    nothing = answer(colours, "blue choir", kinds=["message"], session_id="s3").json()
    assert (nothing["relevance"], nothing["evidence"], nothing["results"]) == (0.0, "none", [])


def test_the_answer_names_strategies_and_concepts(colours: TestClient):
    colours.app.state.service.graph.indexer.catch_up()  # type: ignore[attr-defined]
    usual = answer(colours, "the blue choir").json()
    assert (usual["strategy"], usual["searched_by"]) == ("auto", ["semantic", "keyword"])
    assert "choir" in usual["concepts"]
    assert all("choir" in one["concepts"] for one in usual["results"])
    hens = answer(colours, "hens", strategy="concept", limit=20).json()
    assert set(texts(hens["results"])) == {
        "one harbour, seven hens and a choir",
        "eight hens, nine crabs and a choir",
    }
    words = answer(colours, "crabs", strategy="keyword").json()
    assert texts(words["results"]) == ["eight hens, nine crabs and a choir"]
    assert words["results"][0]["memory"]["similarity"] is None
    may = answer(colours, "what was said in May 2023?", strategy="time").json()
    assert texts(may["results"]) == ["blue: a choir", "the choir is blue"]
    assert answer(colours, "choirs", strategy="time").status_code == 422


@pytest.mark.parametrize("strategy", ["auto", "semantic", "concept", "time"])
def test_a_minimum_score_bounds_every_strategy(colours: TestClient, strategy: str):
    colours.app.state.service.graph.indexer.catch_up()  # type: ignore[attr-defined]
    query = "what was said on 8 May 2023" if strategy == "time" else "the blue choir"
    every = items(colours, query, strategy=strategy)
    least = every[0]["score"]
    assert items(colours, query, strategy=strategy, min_score=least) == [one for one in every if one["score"] >= least]
    nothing = answer(colours, query, strategy=strategy, min_score=1.0).json()
    assert all(one["score"] == 1.0 for one in nothing["results"])
