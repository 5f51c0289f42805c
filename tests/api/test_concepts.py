"""Concepts of an agent over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import indexed, loaded

AGENT = "my_agent"


@pytest.fixture
def told(client: TestClient) -> TestClient:
    """A service whose agent was told something, and has read it."""
    loaded(client)
    texts = (
        "I met Boris in Lisbon",
        "My sister Clara is with Boris",
        "I met Dora",
        "I met Emil",
        "I met Boris and Clara",
    )
    for number, text in enumerate(texts):
        tell(client, text, created_at=f"2024-0{1 + number}-01")
    client.post("/memory/add", json={"text": "We saw Boris", "source": "notes"}, headers={"X-Namespace": AGENT})
    return indexed(client)


def tell(client: TestClient, text: str, **more: Any) -> Any:
    body = {"agent_name": AGENT, "role": "user", "content": text, "session_id": "s", "user": "ann", **more}
    return client.post("/messages", json=body).json()


def get(client: TestClient, path: str, **query: Any) -> Any:
    response = client.get(f"/agents/{AGENT}/{path}", params=query)
    assert response.status_code == 200, response.text
    return response.json()


def test_concepts_are_listed_in_pages_and_shown_with_where_they_are_mentioned(told: TestClient):
    first = get(told, "concepts", limit=1)
    assert (first["concepts"][0]["name"], first["concepts"][0]["mentions"]) == ("Boris", 4)
    everything = get(told, "concepts")
    assert first["total"] == everything["total"] == len(everything["concepts"])
    assert {"Boris", "Clara", "Dora", "Emil", "Lisbon"} <= {one["name"] for one in everything["concepts"]}
    boris = get(told, f"concepts/{first['concepts'][0]['id']}")
    latest_first = ["I met Boris and Clara", "My sister Clara is with Boris", "I met Boris in Lisbon"]
    assert [one["content"] for one in boris["messages"]] == latest_first
    assert [one["text"] for one in boris["memories"]] == ["We saw Boris"]
    latest = get(told, f"concepts/{first['concepts'][0]['id']}", mentions=1)
    assert len(latest["messages"]) + len(latest["memories"]) == 1
    clara = get(told, "concept", name="CLARA")
    assert (clara["description"], clara["described_by"]) == ("My sister Clara is with Boris", "texts")
    assert [clara[name][:10] for name in ("first_at", "last_at")] == ["2024-02-01", "2024-05-01"]


def test_a_short_name_is_separated_from_the_long_one(told: TestClient):
    tell(told, "Melanie called", created_at="2024-08-01")
    tell(told, "I had lunch with Mel", created_at="2024-08-02")
    indexed(told)
    melanie = get(told, "concept", name="mel")
    assert (melanie["name"], melanie["aliases"], melanie["mentions"]) == ("Melanie", ["Mel"], 2)
    path = f"/agents/{AGENT}/concepts/{melanie['id']}/aliases"
    assert told.delete(path, params={"name": "Melanie"}).status_code == 409
    assert told.delete(path, params={"name": "Boris"}).status_code == 404
    assert told.delete(path, params={"name": "Mel"}).json()["name"] == "Mel"
    indexed(told)
    assert get(told, "concept", name="mel")["id"] != melanie["id"]
    assert get(told, "concept", name="melanie")["aliases"] == []


def test_a_text_with_two_spellings_of_a_concept_counts_once(told: TestClient):
    tell(told, "Heron and Dmitri came")
    tell(told, "Dmitri called")
    indexed(told)
    path = f"/agents/{AGENT}/concepts/{get(told, 'concept', name='dmitri')['id']}"
    told.patch(path, json={"aliases": ["Heron"]})
    indexed(told)
    merged = get(told, "concept", name="heron")
    assert (merged["name"], merged["mentions"], len(merged["messages"])) == ("Dmitri", 2, 2)


def test_statements_without_letters_and_co_occurrences_are_refused(told: TestClient):
    relation = {"from_key": "clara", "to_key": "boris", "relationship_type": "co occurs"}
    refused = told.post(f"/agents/{AGENT}/graph", json={"relations": [relation]})
    assert (refused.status_code, "counted in the texts" in refused.json()["detail"]) == (422, True)
    for concept in ({"name": "  "}, {"aliases": [" "]}, {"description": " "}, {"kind": "!!!"}):
        stated = told.post(f"/agents/{AGENT}/graph", json={"concepts": [{"key": "clara", **concept}]})
        assert stated.status_code == 422


@pytest.mark.parametrize("blank", ["\u200b", " \u2060\ufeff", "\u3164", "\u0301"])
def test_texts_that_look_blank_are_refused_like_blank_ones(told: TestClient, blank: str):
    path = f"/agents/{AGENT}/concepts/{get(told, 'concept', name='clara')['id']}"
    before = told.get(path).json()
    for body in ({"name": blank}, {"description": blank}, {"aliases": ["Clare", blank]}):
        stated = {"key": "clara", **body}
        answers = (told.patch(path, json=body), told.post(f"/agents/{AGENT}/graph", json={"concepts": [stated]}))
        assert [answer.status_code for answer in answers] == [422, 422]
        assert "is blank" in answers[0].json()["detail"]
    assert told.get(path).json() == before
    entity = told.post("/knowledge-graph", json={"entities": [{"name": blank}]})
    assert (entity.status_code, "is blank" in entity.json()["detail"]) == (422, True)


@pytest.mark.parametrize("field", ["name", "description", "kind"])
def test_blanks_are_refused_and_remove_nothing_and_an_empty_text_removes(told: TestClient, field: str):
    path = f"/agents/{AGENT}/concepts/{get(told, 'concept', name='clara')['id']}"
    before = told.get(path).json()
    stated = told.patch(path, json={field: " guru "}).json()
    assert stated[field] == "guru" != before[field]
    refused = told.patch(path, json={field: " \n\t"})
    assert refused.status_code == 422
    assert refused.json()["detail"] == f"The {field} is blank; give at least one visible character"
    assert told.get(path).json()[field] == "guru"
    assert told.patch(path, json={field: ""}).json()[field] == before[field]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("\u200b Kla\u200bra\u2060 \t Lee", "Klara Lee"),
        ("Kla\u200dra", "Klara"),
        ("می\u200cروم", "می\u200cروم"),
        ("👩\u200d💻", "👩\u200d💻"),
    ],
)
def test_names_are_stored_without_format_characters_that_no_script_needs(told: TestClient, given: str, name: str):
    path = f"/agents/{AGENT}/concepts/{get(told, 'concept', name='clara')['id']}"
    assert told.patch(path, json={"name": given, "aliases": [f"{given} Smith"]}).json()["name"] == name
    assert told.get(path).json()["aliases"][0] == f"{name} Smith"
    assert told.patch(path, json={"name": "", "aliases": []}).json()["name"] == "Clara"
    told.post(f"/agents/{AGENT}/graph", json={"concepts": [{"key": "clara", "name": given}]})
    assert told.get(path).json()["name"] == name


def test_a_concept_is_changed_and_deleted(told: TestClient):
    clara = get(told, "concept", name="clara")["id"]
    path = f"/agents/{AGENT}/concepts/{clara}"
    changed = told.patch(path, json={"name": "Dr. Clara", "aliases": ["Dora"], "kind": "person"}).json()
    assert (changed["name"], changed["kind"], changed["aliases"]) == ("Dr. Clara", "person", ["Dora", "Clara"])
    indexed(told)
    assert get(told, "concept", name="dora")["id"] == clara
    assert told.patch(path, json={}).json()["code"] == "nothing_to_do"
    assert told.delete(path).json()["id"] == clara
    assert told.get(path).json()["code"] == told.delete(path).json()["code"] == "concept_not_found"
    tell(told, "I met Clara again")
    indexed(told)
    assert told.get(f"/agents/{AGENT}/concept?name=clara").status_code == 404
    assert told.app.state.service.engine.check() == []  # type: ignore[attr-defined]


def test_a_summary_has_counts_latest_messages_and_top_concepts(told: TestClient):
    summary = get(told, "summary")
    total = get(told, "concepts")["total"]
    assert summary["statistics"] == {
        "messages": 5, "sessions": 1, "users": 1, "memories": 1, "concepts": total, "waiting": 0
    }  # fmt: skip
    assert summary["recent_messages"][0]["content"] == "I met Boris and Clara"
    assert [one["session_id"] for one in summary["recent_sessions"]] == ["s"]
    # Her description says who she is; he is mentioned more often.
    assert [one["name"] for one in summary["top_concepts"]][:2] == ["Clara", "Boris"]


def test_an_unknown_concept_is_404(client: TestClient):
    for path in ("summary", "concepts", "concepts/1", "concept?name=x", "concepts/1/related"):
        assert client.get(f"/agents/{AGENT}/{path}").json()["code"] == "agent_not_found"
    assert client.post(f"/agents/{AGENT}/graph/describe").json()["code"] == "agent_not_found"
    tell(client, "hello")
    for path in ("concepts/99", "concept?name=x", "concepts/99/related"):
        assert client.get(f"/agents/{AGENT}/{path}").json()["code"] == "concept_not_found"
