"""Recalled text is never extracted, even after ten rounds of recall, prompt, repetition and extraction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import Start
from tests.api.learning import learned, takes_everything
from tests.vendors.llm import LLMVendor

ROUNDS = 10
SOURCE = "chat"
KNOWN = (
    "Ann lives in Bern.",
    "Ann drinks green tea in the morning.",
    "Billing runs on Postgres 17.",
    "The staging service listens on port 8900.",
)
QUESTIONS = ("Where does Ann live?", "What does Ann drink?", "What does billing run on?", "Which port is staging on?")
NEW = "Ann moved her office to Basel."

Talk = Callable[[TestClient, str, str], str]
"""The transcript of a question with what was recalled for it, and of its answer."""


@pytest.fixture
def client(start: Start) -> Iterator[TestClient]:
    """A service that knows some things, and whose model takes every sentence that it is shown for a new fact."""
    vendor = LLMVendor()
    vendor.start()
    vendor.script(takes_everything)
    service = start(**vendor.settings("openai"))
    memories = [{"text": text, "source": SOURCE} for text in KNOWN]
    service.post("/memory/add-batch", json={"memories": memories})
    service.post("/agents", json={"name": "default"})
    service.post("/memory-blocks", json={"agent_name": "default", "label": "human", "value": "Her name is Ann."})
    service.post("/sessions", json={"agent_name": "default", "session_id": "s1"})
    yield service
    vendor.stop()


def with_context(client: TestClient, question: str, answer: str) -> str:
    """As a text in front of what the user says."""
    recalled = client.post("/context/default", json={"query": question}).json()["text"]
    assert any(text in recalled for text in KNOWN)
    return f"User: {recalled}\n{question}\nAssistant: {answer}"


def with_context_as_system(client: TestClient, question: str, answer: str) -> str:
    """As a system message of a chat in JSON."""
    recalled = client.post("/context/default", json={"query": question}).json()["text"]
    return json.dumps(
        [
            {"role": "system", "content": recalled},
            {"role": "user", "content": question},
            {"role": "assistant", "content": answer},
        ]
    )


def with_search(client: TestClient, question: str, answer: str) -> str:
    """As hooks of editors print what a search finds."""
    found = client.post("/search", json={"query": question}).json()["results"]
    lines = "\n".join(f"- {one['text']}" for one in found)
    return f"User: <relevant-memories>\n{lines}\n</relevant-memories>\n{question}\nAssistant: {answer}"


def with_tiers(client: TestClient, question: str, answer: str) -> str:
    """As a list that a client writes of the tiers' context."""
    context = client.post("/sessions/default/s1/context", json={"query": question}).json()
    lines = "\n".join(f"- {json.dumps(one)}" for one in context["relevant_memories"])
    return f"User: Relevant memories:\n{lines}\n\n{question}\nAssistant: {answer}"


def with_tool(client: TestClient, question: str, answer: str) -> str:
    """As the result of a tool that the assistant called."""
    found = client.post("/search", json={"query": question}).text
    call: Mapping[str, Any] = {"id": "1", "function": {"name": "memory_search", "arguments": "{}"}}
    return json.dumps(
        [
            {"role": "user", "content": question},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": found},
            {"role": "assistant", "content": answer},
        ]
    )


WAYS: tuple[Talk, ...] = (with_context, with_context_as_system, with_search, with_tiers, with_tool)


def stored(client: TestClient) -> list[str]:
    return [memory["text"] for memory in client.get("/memories").json()["memories"]]


@pytest.mark.parametrize("talk", WAYS, ids=lambda talk: talk.__name__)
def test_ten_rounds_of_recalling_and_learning_add_nothing(client: TestClient, talk: Talk):
    for number in range(ROUNDS):
        question = QUESTIONS[number % len(QUESTIONS)]
        # An answer says again what was recalled, word for word, and what earlier answers said.
        answer = " ".join(KNOWN[: number % len(KNOWN) + 1])
        result = learned(client, talk(client, question, answer), source=SOURCE, store_messages=True)["result"]
        changes = [one for one in result["actions"] if one["action"] not in ("noop", "skipped")]
        assert [one["text"] for one in changes if one["text"] != question] == []
        assert set(stored(client)) <= {*KNOWN, *QUESTIONS}
        said = client.get("/messages/default?role=user&limit=1000").json()
        assert {one["content"] for one in said} <= set(QUESTIONS), "what was recalled is not what the user said"


@pytest.mark.parametrize("talk", WAYS, ids=lambda talk: talk.__name__)
def test_text_next_to_recalled_text_is_learned(client: TestClient, talk: Talk):
    transcript = talk(client, f"{NEW} {QUESTIONS[0]}", KNOWN[0])
    result = learned(client, transcript, source=SOURCE)["result"]
    assert [one["text"] for one in result["actions"] if one["action"] == "add"] == [NEW, QUESTIONS[0]]
