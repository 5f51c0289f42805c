"""The official client, in both eras of the protocol."""

from __future__ import annotations

import anyio
import pytest
from mcp import Client

from tests.client.running import RunningService
from tests.mcp.conftest import Asking


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_the_official_client_lists_and_calls_tools(service: RunningService, ask: Asking, mode):
    stored = ask.http.post("/memory/add", json={"text": f"Zoe lives in Oslo ({mode})", "source": "notes"})
    assert stored.status_code == 200

    async def use() -> None:
        async with Client(f"{service.url}/mcp", mode=mode) as client:
            tools = (await client.list_tools()).tools
            assert {"search_memory", "get_context"} <= {tool.name for tool in tools}
            found = await client.call_tool("search_memory", {"query": f"Where does Zoe live? {mode}"})
            assert f"Zoe lives in Oslo ({mode})" in [one["memory"] for one in found.structured_content["memories"]]
            missing = await client.call_tool("get_memory", {"memory_id": "nothing!"})
            assert missing.is_error

    anyio.run(use)
