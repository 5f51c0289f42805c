"""Claude's memory tool `memory_20250818` over the documents of an agent; needs `souvenir-client[anthropic]`.

tool = SouvenirMemoryTool(souvenir, agent="my_agent")
client.beta.messages.tool_runner(..., tools=[tool])
"""

from __future__ import annotations

from souvenir_client.aio.adapters.anthropic_memory import AsyncSouvenirMemoryTool
from souvenir_client.sync.adapters.anthropic_memory import SouvenirMemoryTool

__all__ = ["AsyncSouvenirMemoryTool", "SouvenirMemoryTool"]
