"""Imports in which a language model decides about texts that are similar to stored ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import Start
from tests.vendors.llm import LLMRequest, LLMVendor, fails

WORDS = [f"word{number}" for number in range(10)]
HELD = " ".join(WORDS)
SIMILAR = " ".join([*WORDS[:-1], "another"])
"""9 of 10 words shared: cosine 0.9, between the thresholds."""


@pytest.fixture
def vendor() -> Iterator[LLMVendor]:
    model = LLMVendor()
    model.start()
    yield model
    model.stop()


@pytest.fixture
def client(start: Start, vendor: LLMVendor) -> TestClient:
    client = start(**vendor.settings("openai"))
    client.post("/memory/add", json={"text": HELD, "source": "s"}).raise_for_status()
    return client


def imported(client: TestClient, strategy: str, **line: Any) -> Any:
    body = json.dumps({"text": SIMILAR, "source": "s", "created_at": "2020-01-01", **line})
    answer = client.post(f"/import?strategy={strategy}", content=body, headers={"Content-Type": "application/x-ndjson"})
    assert answer.status_code == 200, answer.text
    report = answer.json()
    return report["imported"], report["updated"], report["skipped"], report["error_count"]


@pytest.mark.parametrize("strategy", ["smart+extract", "smart%2Bextract", "smart%20extract"])
@pytest.mark.parametrize(
    ("relation", "counts"), [("SAME", (0, 0, 1, 0)), ("UPDATE", (0, 1, 0, 0)), ("OTHER", (1, 0, 0, 0))]
)
def test_the_model_decides_about_a_similar_text(client: TestClient, vendor: LLMVendor, strategy, relation, counts):
    vendor.replies.append({"relation": relation, "reason": "So it is."})
    assert imported(client, strategy) == counts
    [request] = vendor.requests
    asked = json.loads(request.user)
    assert (asked["stored"]["statement"], asked["imported"]) == (HELD, {"date": "2020-01-01", "statement": SIMILAR})


def test_the_model_is_asked_only_where_the_similarity_does_not_decide(client: TestClient, vendor: LLMVendor):
    assert imported(client, "smart+extract", text=HELD) == (0, 0, 1, 0)
    assert imported(client, "smart+extract", text="nothing of the kind") == (1, 0, 0, 0)
    assert imported(client, "smart") == (0, 0, 1, 0)
    assert not vendor.requests


def test_a_pinned_memory_is_not_updated(client: TestClient, vendor: LLMVendor):
    client.patch("/memory/1", json={"pinned": True}).raise_for_status()
    vendor.replies.append({"relation": "UPDATE", "reason": "It changed."})
    assert imported(client, "smart+extract") == (0, 0, 1, 0)


def test_a_line_that_the_model_cannot_compare_is_reported_and_not_stored(client: TestClient, vendor: LLMVendor):
    def refuses(_: LLMRequest) -> Any:
        return fails(400)

    vendor.script(refuses)
    assert imported(client, "smart+extract") == (0, 0, 0, 1)
    assert client.get("/memories/count").json()["count"] == 1
