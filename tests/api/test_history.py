"""The history of a memory and point-in-time reads of the store over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from starlette.testclient import TestClient

from souvenir.core.types import Scope
from tests.api.conftest import KEY, Add, Start

ADMIN = {"X-API-Key": KEY}


def history(client: TestClient, memory_id: int, **headers):
    return client.get(f"/memory/{memory_id}/history", headers=headers)


def key_for(client: TestClient, *prefixes: str) -> dict[str, str]:
    body = {"name": "n", "role": "read-write", "prefixes": prefixes}
    return {"X-API-Key": client.post("/api/keys", json=body, headers=ADMIN).json()["key"]}


def test_a_history_has_every_change_oldest_first(client: TestClient, add: Add):
    memory_id = add("red apple", "fruit", category="food")
    client.patch(f"/memory/{memory_id}", json={"text": "green apple"})
    new = client.post(f"/memory/{memory_id}/supersede", json={"text": "a pear"}).json()["new_id"]
    body = history(client, memory_id).json()
    changes = body.pop("changes")
    assert body == {"memory_id": memory_id, "deleted": False, "supersedes": [], "superseded_by": new, "count": 3}
    assert [change["action"] for change in changes] == ["add", "update", "superseded"]
    assert [change["job_id"] for change in changes] == [None] * 3
    assert changes[0]["before"] is None
    assert changes[0]["after"]["metadata"] == {"category": "food"}
    assert [change["after"]["text"] for change in changes] == ["red apple", "green apple", "green apple"]
    assert [change["before"] for change in changes[1:]] == [change["after"] for change in changes[:2]]
    assert changes[2]["after"]["valid_to"] == client.get(f"/memory/{memory_id}").json()["valid_to"]
    assert changes == sorted(changes, key=lambda change: change["at"])
    assert history(client, new).json()["supersedes"] == [memory_id]


def test_a_change_of_a_job_names_it(client: TestClient, add: Add):
    memory_id = add("red apple")

    def work(tx):
        tx.job_id = "j1"
        tx.archive(tx.memory(memory_id))

    client.app.state.service.engine.write(Scope(), work)  # type: ignore[attr-defined]
    assert [change["job_id"] for change in history(client, memory_id).json()["changes"]] == [None, "j1"]


def test_the_history_of_a_deleted_memory_keeps_actors_and_times_for_full_keys(start: Start):
    client = start(api_key=KEY)
    key = key_for(client, "fruit")
    memory_id = client.post("/memory/add", json={"text": "red apple", "source": "fruit"}, headers=key).json()["id"]
    assert history(client, memory_id, **key).json()["count"] == 1
    client.delete(f"/memory/{memory_id}", headers=key)
    body = history(client, memory_id, **ADMIN).json()
    assert (body["deleted"], [change["action"] for change in body["changes"]]) == (True, ["add", "delete"])
    assert "apple" not in str(body)
    assert {change["actor"] for change in body["changes"]} != {None}
    for answer in (history(client, memory_id, **key), history(client, 999, **ADMIN)):
        assert (answer.status_code, answer.json()["code"]) == (404, "memory_not_found")


def test_a_limited_key_does_not_see_versions_in_other_sources(start: Start):
    client = start(api_key=KEY)
    key = key_for(client, "fruit")
    memory_id = client.post("/memory/add", json={"text": "secret apple", "source": "hr"}, headers=ADMIN).json()["id"]
    assert history(client, memory_id, **key).status_code == 404
    moved = {"text": "red apple", "source": "fruit"}
    before = datetime.now(UTC).isoformat()
    client.patch(f"/memory/{memory_id}", json=moved, headers=ADMIN)
    answer = history(client, memory_id, **key)
    assert "secret" not in answer.text
    assert [(change["before"], change["after"] is None) for change in answer.json()["changes"]] == [
        (None, True),
        (None, False),
    ]
    assert client.get(f"/memory/{memory_id}", params={"as_of": before}, headers=key).status_code == 404
    assert client.get(f"/memory/{memory_id}", params={"as_of": before}, headers=ADMIN).json()["source"] == "hr"


def test_a_list_and_a_memory_of_the_past_are_as_they_were(client: TestClient, add: Add):
    first, second = add("red apple", "fruit"), add("blue plum", "fruit")
    records = client.get("/memories").json()["memories"]
    at = datetime.now(UTC)
    client.patch(f"/memory/{first}", json={"text": "green apple", "pinned": True})
    client.post("/memory/archive-batch", json={"ids": [second]})
    add("a pear", "fruit")

    def then(moment: datetime | str, **query):
        asked = moment if isinstance(moment, str) else moment.isoformat()
        return client.get("/memories", params={"as_of": asked, **query}).json()

    # The confidence is that of the moment.
    same = [{**one, "confidence": 1.0} for one in records]
    assert then(at) == {"memories": same, "total": 2, "offset": 0, "limit": 20}
    assert then(at.replace(tzinfo=None))["memories"] == same
    assert [one["id"] for one in then(at, offset=1, limit=1)["memories"]] == [second]
    assert then(at, pinned=True)["total"] == 0
    assert then(at, source="nut")["total"] == 0
    assert client.get(f"/memory/{first}", params={"as_of": at.isoformat()}).json() == same[0]
    present = client.get("/memories").json()
    assert then(at + timedelta(days=9))["memories"] == present["memories"]
    assert then("2001-01-01")["total"] == 0


@pytest.mark.parametrize("path", ["/memories", "/memory/1"])
def test_an_invalid_time_is_422(client: TestClient, path: str):
    assert client.get(path, params={"as_of": "yesterday"}).status_code == 422


def test_a_search_of_the_past_answers_as_it_was_then(client: TestClient, add: Add):
    memory_id = add("red apple", "fruit")
    add("blue plum", "fruit")
    at = datetime.now(UTC).isoformat()
    client.patch(f"/memory/{memory_id}", json={"text": "a green pear"})
    asked = {"query": "apple", "threshold": 0.1}
    then = {**asked, "as_of": at}
    assert client.post("/search", json=asked).json()["count"] == 0
    [hit] = client.post("/search", json=then).json()["results"]
    assert (hit["id"], hit["text"], hit["confidence"]) == (memory_id, "red apple", 1.0)
    batch = client.post("/search/batch", json={"queries": [then, asked]}).json()["results"]
    assert [[one["text"] for one in answer["results"]] for answer in batch] == [["red apple"], []]
    explained = client.post("/search/explain", json=then).json()
    [shown] = explained["results"]
    assert shown["text"] == "red apple"
    assert sum(shown["explanation"]["parts"].values()) == pytest.approx(shown["explanation"]["raw_score"])
    assert [term["term"] for term in shown["explanation"]["terms"]] == ["appl"]
    assert explained["explain"]["bm25_candidates"][0]["text"] == "red apple"
    assert client.post("/search", json={**asked, "as_of": "then"}).status_code == 422


def test_a_limited_key_does_not_find_memories_that_were_in_other_sources(start: Start):
    client = start(api_key=KEY)
    key = key_for(client, "fruit")
    memory_id = client.post("/memory/add", json={"text": "secret apple", "source": "hr"}, headers=ADMIN).json()["id"]
    at = datetime.now(UTC).isoformat()
    client.patch(f"/memory/{memory_id}", json={"text": "red apple", "source": "fruit"}, headers=ADMIN)
    body = {"query": "secret apple", "as_of": at}
    assert client.post("/search", json=body, headers=key).json()["results"] == []
    assert client.post("/search", json=body, headers=ADMIN).json()["count"] == 1
