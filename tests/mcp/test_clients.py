"""The official client, in both versions of the protocol: it validates each answer against the tool's schema."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.client.running import RunningService
from tests.mcp.test_access_table import ARGUMENTS, about

ERAS = ["legacy", "auto"]
"""The handshake, and since 2026-07-28 none."""


@pytest.fixture(params=ERAS)
def connected(request: pytest.FixtureRequest, service: RunningService) -> Callable[[], Any]:
    """A client of one era, for an agent of the test's own."""
    agent = f"{request.node.originalname}-{request.param}"

    @asynccontextmanager
    async def client() -> AsyncIterator[Client]:
        async with Client(f"{service.url}/mcp/{agent}", mode=request.param) as client:
            yield client

    return client


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    anyio.run(work)


def test_every_tool_answers_as_its_schema_says(connected):
    async def use() -> None:
        async with connected() as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == set(ARGUMENTS)
            for name, arguments in ARGUMENTS.items():
                stored = await client.call_tool("add_memory", {"text": f"For {name}. Twice.", "tags": ["a"]})
                await client.call_tool("write_block", {"label": "human", "value": "Ann"})
                if "create_entities" in tools:
                    kept = {"name": "Kept", "entityType": "thing", "observations": []}
                    await client.call_tool("create_entities", {"entities": [kept]})
                named = about(name, stored.structured_content["memory_id"])
                answer = await client.call_tool(name, {**arguments, **named})
                assert not answer.is_error, answer
                assert answer.structured_content is not None

    run(use)


def test_annotations_describe_the_effects_of_a_tool(connected):
    async def use() -> None:
        async with connected() as client:
            tools = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
            assert tools["search_memory"].read_only_hint
            assert not tools["search_memory"].destructive_hint
            assert not tools["add_memory"].read_only_hint
            assert not tools["add_memory"].destructive_hint
            assert tools["delete_all_memories"].destructive_hint
            assert all(one.title and one.open_world_hint is False for one in tools.values())

    run(use)


def test_progress_of_a_call_is_reported(connected):
    told: list[str | None] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async def use() -> None:
        async with connected() as client:
            answer = await client.call_tool("add_memory", {"text": "Slowly."}, progress_callback=progress)
            assert not answer.is_error

    run(use)
    assert told == ["Splitting the text into facts"]


def test_a_failure_is_a_result_or_a_protocol_error(connected):
    async def use() -> None:
        async with connected() as client:
            missing = await client.call_tool("get_memory", {"memory_id": "nothing!"})
            assert missing.is_error
            assert "search_memory" in missing.content[0].text
            with pytest.raises(MCPError, match="There is no tool"):
                await client.call_tool("forget_it", {})
            with pytest.raises(MCPError, match="There is no resource"):
                await client.read_resource("souvenir://agents/x/memories/AAAAAAAA")

    run(use)


def test_resources_and_prompts_are_there(connected):
    async def use() -> None:
        async with connected() as client:
            await client.call_tool("add_memory", {"text": "Zoe lives in Oslo."})
            [resource] = (await client.list_resources()).resources
            [content] = (await client.read_resource(resource.uri)).contents
            assert content.text == "Zoe lives in Oslo."
            got = await client.get_prompt("recall", {"query": "Where does Zoe live?"})
            assert "Zoe lives in Oslo." in got.messages[0].content.text

    run(use)
