"""learning() around the real OpenAI SDK and a real, small language model, plain and streaming."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from openai import OpenAI

from souvenir_client import Souvenir, learning
from tests.client.running import RunningService
from tests.small_model import NAME, small_model

pytestmark = pytest.mark.slow

AGENT = "small"
SAID = "My name is Alice and I live in Lisbon."
ASKED = "What is my name?"


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAI]:
    with small_model() as base_url, OpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
        yield client


def told(model: OpenAI) -> str:
    answer = model.chat.completions.create(
        model=NAME, max_tokens=40, temperature=0, messages=[{"role": "user", "content": SAID}]
    )
    return answer.choices[0].message.content or ""


def asked(model: OpenAI) -> tuple[str, int]:
    """What it says, and how many tokens it was shown."""
    parts, tokens = [], 0
    with model.chat.completions.create(
        model=NAME,
        max_tokens=40,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
        messages=[{"role": "user", "content": ASKED}],
    ) as stream:
        for chunk in stream:
            parts += [choice.delta.content or "" for choice in chunk.choices]
            tokens = chunk.usage.prompt_tokens if chunk.usage else tokens
    return "".join(parts), tokens


def test_a_real_model_gets_context_and_both_sides_are_stored(model: OpenAI, service: RunningService):
    _, bare_tokens = asked(model)
    with learning(agent=AGENT, server_url=service.url, timeout_s=10.0):
        said = told(model)
    with learning(agent=AGENT, server_url=service.url, timeout_s=10.0):
        answered, tokens = asked(model)
    with Souvenir(service.url) as client:
        kept = [(one.role, one.content) for one in reversed(client.messages.list(AGENT))]
    assert kept == [("user", SAID), ("assistant", said), ("user", ASKED), ("assistant", answered)]
    assert said.strip()
    assert answered.strip()
    assert tokens > bare_tokens + 20, "the context of what was said before"
