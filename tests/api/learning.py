"""Services with extraction whose scripted model returns every sentence of its input as a fact."""

from __future__ import annotations

import re
from typing import Any

from starlette.testclient import TestClient

from souvenir.jobs.worker import Jobs
from tests.vendors.llm import LLMRequest

PATIENCE_S = 30.0

_TURN = re.compile(r"^\[\d+\] \([^)]*\): (.*?)(?=^\[\d+\] \(|^</transcript>)", re.MULTILINE | re.DOTALL)
_FACT = re.compile(r"^\[(\d+)\] \(", re.MULTILINE)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")


def takes_everything(request: LLMRequest) -> Any:
    """A model that follows no instruction: each sentence is a fact, and each fact is to be added."""
    if request.prompt == "decide":
        facts = request.user.partition("</facts>")[0]
        numbers = [int(number) for number in _FACT.findall(facts)]
        return {"decisions": [{"fact": number, "verdict": "ADD", "reason": "It is new."} for number in numbers]}
    said = [sentence.strip() for turn in _TURN.findall(request.user) for sentence in _SENTENCE.findall(turn)]
    return {"facts": [{"category": "DETAIL", "text": one, "quote": one, "when": None} for one in said if one]}


def lane_of(client: TestClient) -> Jobs:
    jobs: Jobs = client.app.state.service.extraction.jobs  # type: ignore[attr-defined]  # an application
    return jobs


def learned(client: TestClient, messages: str, *, headers: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """The extraction of a transcript, when it has ended."""
    taken = client.post("/memory/extract", json={"messages": messages, **more}, headers=headers)
    assert taken.status_code == 202, taken.text
    return ended(client, taken.json()["job_id"], headers=headers)


def ended(client: TestClient, job_id: str, *, headers: dict[str, str] | None = None) -> dict[str, Any]:
    assert lane_of(client).wait(job_id, PATIENCE_S).finished
    shown = client.get(f"/memory/extract/{job_id}", headers=headers)
    assert shown.status_code == 200, shown.text
    extraction: dict[str, Any] = shown.json()
    return extraction
