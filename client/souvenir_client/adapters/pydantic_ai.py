"""Tools of Pydantic AI over the memories of an agent; needs `souvenir-client[pydantic-ai]`.

toolset = AsyncSouvenirToolset(souvenir, agent="my_agent")
Agent("openai:gpt-4.1-mini", toolsets=[toolset])
"""

from __future__ import annotations

from souvenir_client.aio.adapters.pydantic_ai import AsyncSouvenirToolset
from souvenir_client.sync.adapters.pydantic_ai import SouvenirToolset

__all__ = ["AsyncSouvenirToolset", "SouvenirToolset"]
