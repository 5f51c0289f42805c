"""Every form of call with the real SDKs: context is injected, and both sides are stored."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from souvenir_client import learning, session
from souvenir_client.wording import PREFACE
from tests.client import models
from tests.client.call_shapes import ANSWER, SHAPES
from tests.client.models import Memory, shown
from tests.client.running import RunningService
from tests.vendors.llm import LLMVendor

QUESTION = "What is my favourite colour?"
BLOCK = "Likes teal."
TAUGHT = "My favourite colour changes."
ALL = {shape.name: True for shape in SHAPES}


@pytest.fixture(scope="module")
def vendor() -> Iterator[LLMVendor]:
    vendor = LLMVendor()
    vendor.script(lambda _: ANSWER)
    vendor.start()
    yield vendor
    vendor.stop()


@pytest.fixture(scope="module")
def memory(service: RunningService) -> Iterator[Memory]:
    memory = Memory(service)
    for agent in ("sync", "async"):
        memory.client.blocks.create(agent_name=agent, label="human", value=BLOCK)
        memory.teach(agent, TAUGHT)
    yield memory
    memory.close()


def was_shown(vendor: LLMVendor) -> bool:
    """Whether the last call had the stable part, with the block, and the tail, with what was said before."""
    body = shown(vendor.requests[-1].body)
    return body.count(PREFACE) == 2 and BLOCK in body and "## Relevant Past Conversations" in body


def stored(memory: Memory, agent: str) -> dict[str, bool]:
    expected = [("user", QUESTION), ("assistant", ANSWER)]
    return {shape.name: memory.said(agent, shape.name) == expected for shape in SHAPES}


def test_every_form_of_call_gets_context_and_stores_both_sides(service, vendor, memory):
    saw: dict[str, Any] = {}
    with models.openai_client(vendor) as openai, models.anthropic_client(vendor) as anthropic:
        clients: dict[str, Any] = {"openai": openai, "anthropic": anthropic}
        with learning("sync", service.url):
            for shape in SHAPES:
                with session(shape.name):
                    # The answer has the type that its caller reads, else this fails.
                    answered = "cit" in shape.ask(clients[shape.resource.sdk], QUESTION)
                saw[shape.name] = answered and was_shown(vendor)
    assert saw == ALL
    assert stored(memory, "sync") == ALL


async def each_shape_async(service: RunningService, vendor: LLMVendor) -> dict[str, bool]:
    saw = {}
    async with models.async_openai_client(vendor) as openai, models.async_anthropic_client(vendor) as anthropic:
        clients = {"openai": openai, "anthropic": anthropic}
        async with learning("async", service.url):
            for shape in SHAPES:
                with session(shape.name):
                    answered = "cit" in await shape.ask_async(clients[shape.resource.sdk], QUESTION)
                saw[shape.name] = answered and was_shown(vendor)
    return saw


def test_every_asynchronous_form_of_call_gets_context_and_stores_both_sides(service, vendor, memory):
    assert asyncio.run(each_shape_async(service, vendor)) == ALL
    assert stored(memory, "async") == ALL
