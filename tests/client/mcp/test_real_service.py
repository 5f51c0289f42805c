"""Bridges to the real service: the official client over stdio in both protocol versions, and many clients at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client

from souvenir.mcp.registry import TIERS
from souvenir_client import Souvenir
from tests.client.cli.entry import COMMAND, environment
from tests.client.mcp.bridges import CommandProcess
from tests.client.running import RunningService

Use = Callable[[Client], Awaitable[None]]


def bridge_to(service: RunningService, agent: str) -> Any:
    """The transport of an official client that starts the bridge."""
    arguments = [*COMMAND[1:], "mcp", "--server", service.url, "--agent", agent]
    known = environment()
    variables = {name: known[name] for name in ("PYTHONPATH", "CONFIG_FILE")}
    return stdio_client(StdioServerParameters(command=str(COMMAND[0]), args=arguments, env=variables))


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_the_official_client_uses_every_memory_tool_over_stdio(service, mode):
    async def use() -> None:
        async with Client(bridge_to(service, f"tools-{mode}"), mode=mode) as client:

            async def call(tool: str, **arguments: Any) -> dict[str, Any]:
                result = await client.call_tool(tool, arguments)
                assert not result.is_error, result.content
                content: dict[str, Any] = result.structured_content
                return content

            offered = {tool.name for tool in (await client.list_tools()).tools}
            added = await call("add_memory", text="Zoe lives in Oslo.", context_tags=["people"])
            memory_id = added["memory_id"]
            found = await call("search_memory", query="Where does Zoe live?")
            assert [one["memory_id"] for one in found["memories"]] == [memory_id]
            await call("update_memory", memory_id=memory_id, text="Zoe lives in Bergen.")
            assert (await call("get_memory", memory_id=memory_id))["memory"] == "Zoe lives in Bergen."
            assert len((await call("list_memories"))["memories"]) == 1
            assert "people" in str(await call("get_context_tags"))
            await call("delete_memory", memory_id=memory_id)
            missing = await client.call_tool("get_memory", {"memory_id": memory_id})
            assert missing.is_error
            await call("delete_all_memories", confirm=True)
            used = {"add_memory", "search_memory", "update_memory", "get_memory", "list_memories", "get_context_tags"}
            assert offered == used | {"delete_memory", "delete_all_memories"}

    anyio.run(use)


def test_concurrent_clients_over_stdio_and_http_store_each_memory_once(service):
    async def add(client: Client, text: str) -> None:
        """Again and again while the service says that it has too much to do, and so did not do it."""
        while True:
            try:
                result = await client.call_tool("add_memory", {"text": text})
            except MCPError as error:
                if error.error.data["code"] != "overloaded":
                    raise
            else:
                assert not result.is_error, result.content
                return

    async def store(client: Client, name: str) -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(add, client, f"{name} said the number {number}.")

    async def use() -> None:
        async with AsyncExitStack() as stack:
            transports = [bridge_to(service, "crowd") for _ in range(3)] + [f"{service.url}/mcp/crowd"] * 2
            clients = [await stack.enter_async_context(Client(one)) for one in transports]
            async with anyio.create_task_group() as tasks:
                for place, client in enumerate(clients):
                    tasks.start_soon(store, client, f"client-{place}")

    anyio.run(use)
    wanted = sorted(f"client-{place} said the number {number}." for place in range(5) for number in range(8))
    with Souvenir(service.url, namespace="crowd") as souvenir:
        stored = [memory.text for memory in souvenir.memories.list(limit=100).memories]
    assert sorted(stored) == wanted


def test_a_refused_key_is_reported_to_the_client(own_service):
    with Souvenir(own_service.url) as souvenir:
        souvenir.keys.create(name="ana", role="admin")
    with CommandProcess("--server", own_service.url, "--api-key", "wrong") as bridge:
        error = bridge.ask("tools/list", 1)["error"]
    assert error["data"]["code"] == "unauthorized"
    assert error["message"]


def test_no_tool_requires_a_parameter_in_a_header():
    """The bridge makes none."""
    schemas = [tool.arguments.model_json_schema() for tools in TIERS.values() for tool in tools]
    assert schemas
    assert "x-mcp-header" not in str(schemas)
