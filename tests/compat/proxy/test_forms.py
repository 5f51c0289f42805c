"""Every form of call of the real SDKs through the proxy: context is added, both sides are stored."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from souvenir_client.wording import PREFACE
from tests.client.call_shapes import ANSWER, SHAPES
from tests.client.models import shown
from tests.compat.proxy.conftest import Proxied

QUESTION = "What is my favourite colour?"
BLOCK = "Likes teal."
ALL = {shape.name: True for shape in SHAPES}


@pytest.fixture
def taught(proxied: Proxied) -> Proxied:
    proxied.vendor.script(lambda _: ANSWER)
    proxied.memory.client.blocks.create(agent_name=proxied.agent, label="human", value=BLOCK)
    proxied.memory.teach(proxied.agent, "My favourite colour changes.")
    return proxied


def was_shown(proxied: Proxied) -> bool:
    """Whether the last call had the block, and what was said before."""
    body = shown(proxied.vendor.requests[-1].body)
    return body.count(PREFACE) == 2 and BLOCK in body and "## Relevant Past Conversations" in body


def stored(proxied: Proxied) -> dict[str, bool]:
    expected = [("user", QUESTION), ("assistant", ANSWER)]
    return {shape.name: proxied.said(shape.name) == expected for shape in SHAPES}


def test_every_form_of_call_gets_context_and_stores_both_sides(taught: Proxied):
    saw: dict[str, Any] = {}
    with taught.openai() as openai, taught.anthropic() as anthropic:
        clients: dict[str, Any] = {"openai": openai, "anthropic": anthropic}
        for shape in SHAPES:
            named = clients[shape.resource.sdk].with_options(default_headers={"X-Souvenir-Session": shape.name})
            # The answer has the type that its caller reads, else this fails.
            saw[shape.name] = "cit" in shape.ask(named, QUESTION) and was_shown(taught)
    assert saw == ALL
    assert stored(taught) == ALL


async def each_shape_async(taught: Proxied) -> dict[str, bool]:
    saw = {}
    async with taught.async_openai() as openai, taught.async_anthropic() as anthropic:
        clients: dict[str, Any] = {"openai": openai, "anthropic": anthropic}
        for shape in SHAPES:
            named = clients[shape.resource.sdk].with_options(default_headers={"X-Souvenir-Session": shape.name})
            saw[shape.name] = "cit" in await shape.ask_async(named, QUESTION) and was_shown(taught)
    return saw


def test_every_asynchronous_form_of_call_gets_context_and_stores_both_sides(taught: Proxied):
    assert asyncio.run(each_shape_async(taught)) == ALL
    assert stored(taught) == ALL
