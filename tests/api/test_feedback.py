"""Feedback on search results, and its effect on ranking."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.core.types import Fusion, Scope
from tests.api.conftest import KEY, Add, Start, loaded

ADMIN = {"X-API-Key": KEY}


def judge(client: TestClient, memory_id: int, signal: str = "useful", query: str = "red", **headers: str) -> Any:
    body = {"memory_id": memory_id, "query": query, "signal": signal, "search_id": "s-1"}
    return client.post("/search/feedback", json=body, headers=headers)


def entries(client: TestClient, memory_id: int, **query: Any) -> list[dict[str, Any]]:
    answer = client.get("/search/feedback/history", params={"memory_id": memory_id, **query}).json()
    assert answer.keys() == {"entries", "count"}
    assert answer["count"] == len(answer["entries"])
    found: list[dict[str, Any]] = answer["entries"]
    return found


def found(client: TestClient, weight: float, query: str = "red fruit", **fields: Any) -> dict[int, float]:
    """The ids and raw scores of a search, best first."""
    body = {"query": query, "feedback_weight": weight, **fields}
    answer = client.post("/search/explain", json=body)
    assert answer.status_code == 200, answer.text
    scores = [one["score"] for one in answer.json()["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    return {one["id"]: one["explanation"]["raw_score"] for one in answer.json()["results"]}


def test_judgements_are_listed_newest_first_and_retracted(client: TestClient, add: Add):
    one, other = add("red apple"), add("green pear")
    assert judge(client, one).json() == {"status": "recorded"}
    judge(client, one, "not_useful", "fruit")
    judge(client, other)
    [latest, first] = entries(client, one)
    assert first.keys() == {"id", "ts", "memory_id", "query", "signal", "search_id"}
    assert [(of["memory_id"], of["query"], of["signal"], of["search_id"]) for of in (latest, first)] == [
        (one, "fruit", "not_useful", "s-1"),
        (one, "red", "useful", "s-1"),
    ]
    assert entries(client, one, limit=1) == [latest]
    assert client.delete(f"/search/feedback/{latest['id']}").json() == {"status": "retracted", "id": latest["id"]}
    assert entries(client, one) == [first]
    again = client.delete(f"/search/feedback/{latest['id']}")
    assert (again.status_code, again.json()["code"]) == (404, "feedback_not_found")
    [event] = [one for one in client.get("/audit").json()["entries"] if one["action"] == "feedback.retract"]
    assert (event["resource_id"], event["detail"]) == (str(one), f"feedback {latest['id']}")


def test_feedback_on_an_unknown_memory_is_404_and_a_wrong_signal_422(client: TestClient, add: Add):
    one = add("red apple")
    assert judge(client, 99).json()["code"] == "memory_not_found"
    assert client.get("/search/feedback/history", params={"memory_id": 99}).status_code == 404
    assert judge(client, one, "nice").status_code == 422
    assert client.post("/search/feedback", json={"memory_id": one}).status_code == 422
    assert client.post("/search/feedback", json={"memory_id": one, "signal": "useful"}).status_code == 200
    for limit in (0, 201):
        assert client.get("/search/feedback/history", params={"memory_id": one, "limit": limit}).status_code == 422


def test_feedback_changes_no_memory(client: TestClient, add: Add):
    one = add("red apple")
    before, history = (client.get(path).json() for path in (f"/memory/{one}", f"/memory/{one}/history"))
    judge(client, one)
    assert (client.get(f"/memory/{one}").json(), client.get(f"/memory/{one}/history").json()) == (before, history)


def test_only_writers_judge_and_only_admins_retract_in_their_own_namespace(start: Start):
    client = start(api_key=KEY)
    body = {"text": "red apple", "source": "s"}
    one = client.post("/memory/add", json=body, headers=ADMIN).json()["id"]
    keys = {
        role: {
            "X-API-Key": client.post("/api/keys", json={"name": "n", "role": role, **of}, headers=ADMIN).json()["key"]
        }
        for role, of in (("read-only", {"prefixes": ["s"]}), ("read-write", {"prefixes": ["s"]}))
    }
    assert judge(client, one, **keys["read-only"]).status_code == 403
    assert judge(client, one, **keys["read-write"]).status_code == 200
    history = client.get("/search/feedback/history", params={"memory_id": one}, headers=keys["read-only"])
    [entry] = history.json()["entries"]
    path = f"/search/feedback/{entry['id']}"
    assert client.delete(path, headers=keys["read-write"]).status_code == 403
    assert client.delete(path, headers={**ADMIN, "X-Namespace": "other"}).status_code == 404
    assert judge(client, one, **ADMIN, **{"X-Namespace": "other"}).status_code == 404
    assert client.delete(path, headers=ADMIN).status_code == 200


def test_personal_data_in_a_judged_query_is_redacted_and_the_query_goes_with_the_memory(client: TestClient, add: Add):
    one = add("red apple")
    judge(client, one, query="who is ghp_" + "a1B2" * 9)
    [entry] = entries(client, one)
    assert "ghp_" not in entry["query"]
    client.delete(f"/memory/{one}")
    engine = client.app.state.service.engine  # type: ignore[attr-defined]
    with engine.namespace(Scope()) as (connection, _):
        assert connection.execute("SELECT count(*) FROM feedback").get == 0
    assert list(engine.check()) == []


@pytest.mark.parametrize("fusion", list(Fusion))
def test_a_useful_memory_rises_and_one_that_is_not_sinks(start: Start, fusion: Fusion):
    client = loaded(start(search_fusion=fusion))
    ids = [
        client.post("/memory/add", json={"text": f"red fruit {name}", "source": "s"}).json()["id"]
        for name in ("apple", "cherry", "plum")
    ]
    before = found(client, 1.0)
    first, _, last = before
    assert set(before) == set(ids)
    judge(client, first, "not_useful")
    judge(client, last, "useful")
    after = found(client, 1.0)
    assert next(iter(after)) == last
    assert list(after)[-1] == first
    # One vote is a third of full agreement.
    assert after[last] == pytest.approx(before[last] * 4 / 3)
    assert after[first] == pytest.approx(before[first] * 2 / 3)
    assert found(client, 0.3)[last] == pytest.approx(before[last] * 1.1)
    assert found(client, 0.0) == before
    body = {"query": "red fruit", "feedback_weight": 1.0}
    explained = client.post("/search/explain", json=body).json()
    parts = {one["id"]: one["explanation"]["parts"] for one in explained["results"]}
    assert (parts[last]["feedback"] > 0, parts[first]["feedback"] < 0) == (True, True)
    assert explained["explain"]["scoring_weights"]["feedback"] == 1.0


def test_feedback_is_off_by_default_and_elsewhere_changes_nothing(client: TestClient, add: Add):
    loaded(client)
    one, other = add("red apple"), add("red pear")

    def searched(**fields: Any) -> Any:
        return client.post("/search", json={"query": "red", **fields}).json()

    before = searched(feedback_weight=1.0)
    assert before == searched()
    judge(client, before["results"][-1]["id"])
    assert searched() == before
    assert searched(feedback_weight=1.0) != before
    assert searched(feedback_weight=1.0, hybrid=False) == searched(hybrid=False)
    client.delete(f"/search/feedback/{(entries(client, one) + entries(client, other))[0]['id']}")
    assert searched(feedback_weight=1.0) == before


def test_many_judgements_of_one_caller_are_one_vote_which_is_the_latest(start: Start):
    client = loaded(start(api_key=KEY))
    one = client.post("/memory/add", json={"text": "red fruit", "source": "s"}, headers=ADMIN).json()["id"]
    names = ("ann", "ben", "cleo")
    keys = [
        {
            "X-API-Key": client.post(
                "/api/keys", json={"name": name, "role": "read-write", "namespace": "default"}, headers=ADMIN
            ).json()["key"]
        }
        for name in names
    ]
    client.headers.update(ADMIN)
    before = found(client, 1.0)[one]
    for _ in range(100):
        judge(client, one, "not_useful", **keys[0])
    assert found(client, 1.0)[one] == pytest.approx(before * (1 - 1 / 3))
    assert len(entries(client, one, limit=200)) == 50
    for key in keys[1:]:
        judge(client, one, "useful", **key)
    assert found(client, 1.0)[one] == pytest.approx(before * (1 + 1 / 5))
    judge(client, one, "useful", **keys[0])
    assert found(client, 1.0)[one] == pytest.approx(before * (1 + 3 / 5))


# --- missed memories -----------------------------------------------------------------------------------------------


def missed(client: TestClient, text: str, source: str = "notes", **fields: Any) -> Any:
    return client.post("/memory/missed", json={"text": text, "source": source, **fields})


def test_a_missed_memory_is_stored_once_for_each_source_and_counted(client: TestClient, add: Add):
    known = add("red apple")
    assert missed(client, "red apple").json() == {"id": known, "source": "notes", "missed_count": 1}
    assert missed(client, "red apple", context="fruit?").json()["missed_count"] == 2
    new = missed(client, "green pear").json()
    assert new["missed_count"] == 1
    assert client.get(f"/memory/{new['id']}").json()["text"] == "green pear"
    other = missed(client, "red apple", "elsewhere").json()
    assert (other["id"] not in (known, new["id"]), other["missed_count"]) == (True, 1)
    assert client.get("/memories/count").json() == {"count": 3}
    client.patch(f"/memory/{known}", json={"archived": True})
    again = missed(client, "red apple").json()
    assert (again["id"] != known, again["missed_count"]) == (True, 1)


def test_reports_of_missed_memories_are_validated_redacted_and_deleted_with_the_memory(client: TestClient):
    assert missed(client, "").status_code == 422
    assert missed(client, "x", context="c" * 10_001).status_code == 422
    one = missed(client, "red apple", context="who is ghp_" + "a1B2" * 9).json()["id"]
    engine = client.app.state.service.engine  # type: ignore[attr-defined]

    def contexts() -> list[str]:
        with engine.namespace(Scope()) as (connection, _):
            return [context for (context,) in connection.execute("SELECT context FROM missed_memories")]

    [context] = contexts()
    assert "ghp_" not in context
    client.delete(f"/memory/{one}")
    assert contexts() == []
    assert list(engine.check()) == []
