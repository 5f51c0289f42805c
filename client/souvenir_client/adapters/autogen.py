"""Memory of AutoGen over the memories of an agent; needs `souvenir-client[autogen]`.

memory = SouvenirMemory(souvenir, agent="my_agent")
AssistantAgent("helper", model_client=model, memory=[memory])
"""

from __future__ import annotations

import json
from typing import Any

from autogen_core import CancellationToken
from autogen_core.memory import Memory, MemoryContent, MemoryMimeType, MemoryQueryResult, UpdateContextResult
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import SystemMessage

from souvenir_client.adapters.texts import MAX_QUERY_CHARACTERS
from souvenir_client.aio.client import AsyncSouvenir
from souvenir_client.records.common import MemoryRecord, SearchHit

__all__ = ["SouvenirMemory"]

TEXTS = frozenset({MemoryMimeType.TEXT.value, MemoryMimeType.MARKDOWN.value})
MIME_TYPE, CONTENT, METADATA = "autogen_mime_type", "autogen_content", "autogen_metadata"
"""Fields of the metadata."""
PAGE_SIZE = 1000


class SouvenirMemory(Memory):
    """Texts and JSON objects as memories of an agent, found by meaning and by words.

    :param souvenir: The client; neither `close` nor anything else closes it.
    :param agent: The agent whose memories are searched.
    :param source: The source of what is added; `clear` deletes the memories of it and below it.
    :param k: Maximum number of results.
    :param min_score: Minimum score of a result; None for no minimum.
    """

    def __init__(
        self,
        souvenir: AsyncSouvenir,
        *,
        agent: str,
        source: str = "autogen",
        k: int = 5,
        min_score: float | None = None,
    ) -> None:
        self._memories = souvenir.in_namespace(agent).memories
        self._source = source
        self._k = k
        self._min_score = min_score

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Add the memories for the last message as a system message; nothing if there are none."""
        messages = await model_context.get_messages()
        found = await self.query(_text(messages[-1].content) if messages else "")
        if found.results and messages:
            lines = [f"{number}. {_text(one.content)}" for number, one in enumerate(found.results, 1)]
            text = "\nRelevant memory content (best first):\n" + "\n".join(lines) + "\n"
            await model_context.add_message(SystemMessage(content=text))
            return UpdateContextResult(memories=found)
        return UpdateContextResult(memories=MemoryQueryResult(results=[]))

    async def query(
        self, query: str | MemoryContent = "", cancellation_token: CancellationToken | None = None, **kwargs: Any
    ) -> MemoryQueryResult:
        """The best memories of the agent, or for a blank query the newest ones; `kwargs` are ignored."""
        words = _text(query.content if isinstance(query, MemoryContent) else query)[:MAX_QUERY_CHARACTERS]
        if not words.strip():
            page = await self._memories.list(limit=self._k, order="newest")
            return MemoryQueryResult(results=[_content(one, {}) for one in page.memories])
        answer = await self._memories.search(query=words, k=self._k, min_score=self._min_score)
        return MemoryQueryResult(results=[_content(one, {"score": one.score}) for one in answer.results])

    async def add(self, content: MemoryContent, cancellation_token: CancellationToken | None = None) -> None:
        """Store a text or a JSON object.

        :raises ValueError: If it is neither.
        """
        mime_type = _mime_type(content)
        metadata = {MIME_TYPE: mime_type, METADATA: content.metadata}
        if mime_type == MemoryMimeType.JSON.value and isinstance(content.content, dict):
            metadata[CONTENT] = content.content
        elif mime_type not in TEXTS or not isinstance(content.content, str):
            raise ValueError(f"Souvenir stores texts and JSON objects; {mime_type} with this content is neither")
        await self._memories.add(text=_text(content.content), source=self._source, metadata=metadata)

    async def clear(self) -> None:
        """Delete the memories of the source and below it, except pinned ones."""
        ids: list[int] = []
        while True:
            page = await self._memories.list(
                source=self._source, source_boundary=True, pinned=False, limit=PAGE_SIZE, offset=len(ids)
            )
            ids += [one.id for one in page.memories]
            if len(page.memories) < PAGE_SIZE:
                break
        for start in range(0, len(ids), PAGE_SIZE):
            await self._memories.delete_batch(ids=ids[start : start + PAGE_SIZE])

    async def close(self) -> None:
        """Do nothing: the client belongs to the caller."""


def _mime_type(content: MemoryContent) -> str:
    return content.mime_type.value if isinstance(content.mime_type, MemoryMimeType) else content.mime_type


def _text(content: Any) -> str:
    """The words of a content or a message; a list may also hold images and calls of tools."""
    if isinstance(content, list):
        return " ".join(part for part in content if isinstance(part, str))
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)


def _content(memory: MemoryRecord | SearchHit, scores: dict[str, Any]) -> MemoryContent:
    return MemoryContent(
        content=memory.extra.get(CONTENT, memory.text),
        mime_type=memory.extra.get(MIME_TYPE, MemoryMimeType.TEXT.value),
        metadata={
            **(memory.extra.get(METADATA) or {}),
            "id": memory.id,
            "source": memory.source,
            "created_at": memory.created_at,
            **scores,
        },
    )
