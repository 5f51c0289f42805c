"""The cross-encoder over HTTP: where it reorders results, and where the answer reports that it did not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import app as program
from souvenir.api.message_search import DEGRADED_HEADER
from tests.api.conftest import Start
from tests.models.reranking.models import write_cross_encoder

AGENT = "my_agent"
ONCE, TWICE = "the red fox", "a fox a fox a fox"
"""The first ranking of `red fox` begins with the one, the cross-encoder's with the other."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_cross_encoder(tmp_path / "cross-encoder")


def add(client: TestClient, *texts: str) -> None:
    for text in texts:
        assert client.post("/memory/add", json={"text": text, "source": "notes"}).status_code == 200


def say(client: TestClient, *texts: str, name: str | None = None) -> None:
    for text in texts:
        message = {"agent_name": AGENT, "role": "user", "content": text, "name": name}
        assert client.post("/messages", json=message).status_code == 200


def post(client: TestClient, path: str, body: dict[str, Any]) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer


def test_an_explained_search_shows_the_cross_encoder_scores(start: Start, folder: Path):
    client = start(rerank_model=str(folder), rerank_deadline_ms=60_000)
    add(client, ONCE, TWICE)
    plain, explained = (post(client, path, {"query": "red fox"}).json() for path in ("/search", "/search/explain"))
    assert [hit["text"] for hit in plain["results"]] == [TWICE, ONCE]
    assert plain["results"] == [
        {name: value for name, value in hit.items() if name != "explanation"} for hit in explained["results"]
    ]
    first, second = (hit["explanation"] for hit in explained["results"])
    assert (first["rerank_score"], second["rerank_score"]) == (1.0, 0.0)
    assert sum(first["parts"].values()) == pytest.approx(first["raw_score"])
    assert plain["degraded"] == []


def test_without_a_cross_encoder_its_fields_are_absent(client: TestClient):
    add(client, ONCE, TWICE)
    explained = post(client, "/search/explain", {"query": "red fox"}).json()
    assert [hit["text"] for hit in explained["results"]] == [ONCE, TWICE]
    assert [hit["explanation"]["rerank_score"] for hit in explained["results"]] == [None, None]
    assert all("rerank" not in hit["explanation"]["parts"] for hit in explained["results"])


def test_messages_are_ranked_by_content_and_speaker(start: Start, folder: Path):
    client = start(rerank_model=str(folder), rerank_deadline_ms=60_000)
    say(client, "fox", name="ann")
    say(client, "a fox a fox")
    answer = post(client, "/messages/search", {"agent_name": AGENT, "query": "ann : fox"})
    # `ann: fox` has three words of the question, the other message two: raw scores of 1 and 0.
    scores = [(hit["name"], hit["score"]) for hit in answer.json()]
    assert scores == [("ann", pytest.approx(0.731059)), (None, pytest.approx(0.5))]
    assert DEGRADED_HEADER not in answer.headers
    context = post(client, f"/context/{AGENT}", {"query": "ann : fox"}).json()
    assert [hit["name"] for hit in context["relevant_messages"]] == ["ann", None]
    assert context["degraded"] == []


def test_every_answer_without_the_cross_encoder_says_so(start: Start, folder: Path):
    client = start(rerank_model=str(folder), rerank_deadline_ms=50)
    add(client, ONCE, TWICE, "slow red fox")
    say(client, ONCE, TWICE, "slow red fox")
    assert post(client, "/search", {"query": "red fox"}).json()["degraded"] == ["rerank"]
    found = post(client, "/messages/search", {"agent_name": AGENT, "query": "red fox"})
    assert found.headers[DEGRADED_HEADER] == "rerank"
    assert {ONCE, TWICE} < {hit["content"] for hit in found.json()}
    context = post(client, f"/context/{AGENT}", {"query": "red fox"}).json()
    assert context["degraded"] == ["rerank"]
    assert len(context["relevant_messages"]) == 3


def test_a_cross_encoder_that_cannot_be_used_stops_the_start_with_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("RERANK_MODEL", str(tmp_path / "nowhere"))
    assert program.main([]) == 1
    assert "is neither a folder nor a Hugging Face id; correct RERANK_MODEL" in capsys.readouterr().err
