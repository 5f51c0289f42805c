"""Times in questions over HTTP: their effect on scores and filters, and their explanation."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import Add

NOW = "2023-06-15T12:00:00Z"
AGENT = "ann"


@pytest.fixture
def fruit(add: Add) -> None:
    """The plain apple answers a question for red apples best, unless the time says otherwise."""
    add("red apple", document_at="2023-04-10")
    add("red apple pie", document_at="2023-05-08")
    add("red apple tart", document_at="2023-06-14T09:00:00")


@pytest.fixture
def talk(client: TestClient) -> None:
    for content, at in (("the red door", "2023-04-10"), ("the red door is far away", "2023-06-14T09:00:00Z")):
        body = {"agent_name": AGENT, "role": "user", "name": "Ann", "content": content, "created_at": at}
        assert client.post("/messages", json=body).status_code == 200


def explained(client: TestClient, query: str, **options: Any) -> dict[str, Any]:
    response = client.post("/search/explain", json={"query": query, "reference_date": NOW, **options})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def found(client: TestClient, query: str, **options: Any) -> list[str]:
    return [result["text"] for result in explained(client, query, **options)["results"]]


def parts(body: dict[str, Any]) -> list[dict[str, float]]:
    return [
        {name: round(value, 4) for name, value in result["explanation"]["parts"].items() if name in ("period", "day")}
        for result in body["results"]
    ]


def messages(client: TestClient, query: str, **options: Any) -> list[str]:
    body = {"agent_name": AGENT, "query": query, "reference_date": NOW, **options}
    response = client.post("/messages/search", json=body)
    assert response.status_code == 200, response.text
    return [message["content"] for message in response.json()]


@pytest.mark.usefixtures("fruit")
def test_a_named_month_boosts_its_results_and_is_explained(client: TestClient):
    body = explained(client, "red apple in May 2023")
    assert body["results"][0]["text"] == "red apple pie"
    assert [one.get("period", 0.0) for one in parts(body)] == [0.4, 0.0, 0.0]
    for result in body["results"]:
        explanation = result["explanation"]
        assert sum(explanation["parts"].values()) == pytest.approx(explanation["raw_score"])
    assert body["explain"]["time"] == {
        "phrases": ["May 2023"],
        "boosted": [
            {
                "since": "2023-05-01T00:00:00.000000+00:00",
                "until": "2023-05-31T23:59:59.999999+00:00",
                "month": None,
                "day": None,
            }
        ],
        "near": [],
        "filtered": None,
        "recency_weight": None,
    }


@pytest.mark.usefixtures("fruit")
def test_a_day_that_is_named_counts_less_the_farther_away_it_is(client: TestClient):
    body = explained(client, "red apple on 6 May")
    assert body["results"][0]["text"] == "red apple pie"
    assert parts(body)[0] == {"period": 0.4, "day": pytest.approx(0.05 * 0.6065, abs=1e-4)}
    assert body["explain"]["time"]["near"] == [{"since": None, "until": None, "month": 5, "day": 6}]


@pytest.mark.usefixtures("fruit")
def test_a_relative_time_counts_from_the_reference_date(client: TestClient):
    assert found(client, "red apple eaten yesterday")[0] == "red apple tart"
    assert found(client, "red apple eaten yesterday", reference_date="2023-04-11")[0] == "red apple"


@pytest.mark.usefixtures("fruit")
def test_without_auto_intent_no_time_is_read(client: TestClient):
    body = explained(client, "red apple in May 2023", auto_intent=False)
    assert body["results"][0]["text"] == "red apple"
    assert parts(body) == [{}, {}, {}]
    assert body["explain"]["time"] is None
    assert len(found(client, "what did I tell you about yesterday", auto_intent=False)) == 3


@pytest.mark.usefixtures("fruit")
def test_asking_when_something_was_said_searches_those_days_only(client: TestClient):
    body = explained(client, "what did I tell you yesterday about the red apple")
    assert [result["text"] for result in body["results"]] == ["red apple tart"]
    assert body["explain"]["time"]["filtered"] == {
        "since": "2023-06-14T00:00:00.000000+00:00",
        "until": "2023-06-14T23:59:59.999999+00:00",
        "month": None,
        "day": None,
    }
    by_meaning = explained(client, "what did I tell you yesterday about the red apple", hybrid=False)
    assert [result["text"] for result in by_meaning["results"]] == ["red apple tart"]
    assert (by_meaning["explain"]["time"]["boosted"], by_meaning["explain"]["time"]["near"]) == ([], [])


@pytest.mark.usefixtures("fruit")
@pytest.mark.parametrize(
    ("own", "texts"),
    [
        ({"since": "2023-05-01"}, {"red apple pie", "red apple tart"}),
        ({"until": "2023-05-31"}, {"red apple pie", "red apple"}),
    ],
)
def test_the_caller_s_limits_win_over_the_question_s(client: TestClient, own: dict[str, str], texts: set[str]):
    assert set(found(client, "what did I tell you yesterday about the red apple", **own)) == texts


def test_asking_for_the_latest_weighs_recency_where_the_caller_does_not(client: TestClient, add: Add):
    add("red apple pie", document_at="2023-04-10")
    add("red apple tart", document_at="2023-06-14")
    assert found(client, "the latest red apple", auto_intent=False) == ["red apple pie", "red apple tart"]
    body = explained(client, "the latest red apple")
    assert [result["text"] for result in body["results"]] == ["red apple tart", "red apple pie"]
    assert body["explain"]["time"]["recency_weight"] == 0.2
    assert body["explain"]["scoring_weights"]["recency"] == pytest.approx(0.2)
    own = explained(client, "the latest red apple", recency_weight=0.5)
    assert own["explain"]["time"]["recency_weight"] is None
    assert own["explain"]["scoring_weights"]["recency"] == pytest.approx(0.5)


def test_a_question_that_says_nothing_of_when_shows_none(client: TestClient, add: Add):
    add("red apple")
    assert explained(client, "red apple, which may march")["explain"]["time"] is None


@pytest.mark.usefixtures("talk")
def test_times_in_a_search_of_messages_add_to_scores_and_filter_too(client: TestClient):
    assert messages(client, "the red door")[0] == "the red door"
    assert messages(client, "the red door last week")[0] == "the red door is far away"
    assert messages(client, "the red door last week", auto_intent=False)[0] == "the red door"
    assert messages(client, "what did I tell you yesterday") == ["the red door is far away"]
    assert len(messages(client, "what did I tell you yesterday", auto_intent=False)) == 2
    assert len(messages(client, "what did I tell you yesterday", since="2023-01-01")) == 2


def test_a_chat_and_a_long_text_score_higher_in_their_time_too(client: TestClient, add: Add):
    for at in ("2023-04-10", "2023-05-08"):
        said = {"agent_name": AGENT, "role": "user", "content": f"the red door of {at[:7]}", "created_at": at}
        assert client.post("/messages", json=said).status_code == 200
        add("a long report of a red door " * 20 + at[:7], document_at=at)
    assert messages(client, "the red door in May")[0] == "the red door of 2023-05"
    body = explained(client, "the red door in May")
    assert {result["explanation"]["profile"] for result in body["results"]} == {"doc"}
    assert [one.get("period", 0.0) for one in parts(body)] == [0.4, 0.0]


def test_words_that_count_from_now_are_not_looked_for(client: TestClient, add: Add):
    add("last week the red apple was late, what a week", document_at="2023-02-10")
    add("the apple was red", document_at="2023-06-07T09:00:00")
    assert found(client, "where was the red apple last week")[0] == "the apple was red"


@pytest.mark.usefixtures("talk")
def test_a_question_with_only_a_time_returns_results_of_that_time(client: TestClient):
    evidences = {}
    for query in (
        "what did I tell you yesterday",
        "what did I tell you about Lisbon yesterday",
        "what did I say in July 2021",
    ):
        body = {"agent_name": AGENT, "query": query, "reference_date": NOW}
        evidences[query] = client.post("/messages/search", json=body).headers["X-Search-Evidence"]
    assert list(evidences.values()) == ["strong", "none", "none"]


def test_only_the_beginning_of_a_very_long_question_is_analysed(client: TestClient, add: Add):
    add("the red apple")
    add("a pear")
    body = explained(client, "red apple " + "x" * 5_000 + " pear")
    terms = [{term["term"] for term in result["explanation"]["terms"]} for result in body["results"]]
    assert [(len(of), "pear" in of) for of in terms] == [(3, False), (3, False)]
