"""The memory of AutoGen against the real service, next to AutoGen's own `ListMemory`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from autogen_core.memory import ListMemory, Memory, MemoryContent, MemoryMimeType
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import SystemMessage, UserMessage

from souvenir_client import AsyncSouvenir, Souvenir
from souvenir_client.adapters.autogen import SouvenirMemory
from souvenir_client.errors import InvalidRequest
from tests.client.running import RunningService

CONTENTS = [
    MemoryContent(content="Alice drinks green tea", mime_type=MemoryMimeType.TEXT, metadata={"from": "chat"}),
    MemoryContent(content="# The car is in the garage", mime_type="text/markdown"),
    MemoryContent(content={"city": "Nice", "n": 10**20, "list": [1.5, None]}, mime_type=MemoryMimeType.JSON),
]


def with_memory(service: RunningService, agent: str, use: Callable[[SouvenirMemory], Awaitable[Any]], **options: Any):
    async def run() -> Any:
        async with AsyncSouvenir(service.url) as souvenir:
            return await use(SouvenirMemory(souvenir, agent=agent, **options))

    return asyncio.run(run())


async def add_all(memory: Memory) -> None:
    for content in CONTENTS:
        await memory.add(content)


def test_a_blank_query_returns_what_a_list_memory_returns_newest_first(service: RunningService):
    async def use(memory: SouvenirMemory) -> None:
        reference = ListMemory()
        for one in (memory, reference):
            await add_all(one)
        ours, theirs = (await memory.query("")).results, (await reference.query("")).results
        assert [plain(one) for one in ours] == [plain(one) for one in theirs[::-1]]
        assert [(one.metadata or {})["source"] for one in ours] == ["autogen"] * 3
        assert (ours[2].metadata or {})["from"] == "chat"
        await memory.clear()
        await memory.close()
        assert (await memory.query("")).results == []

    with_memory(service, "list", use)


def plain(content: MemoryContent) -> tuple[Any, str]:
    kind = content.mime_type
    return content.content, kind.value if isinstance(kind, MemoryMimeType) else kind


def test_a_query_returns_the_best_first_with_scores(service: RunningService):
    async def use(memory: SouvenirMemory) -> None:
        await add_all(memory)
        for query in ("who drinks tea?", CONTENTS[0]):
            found = (await memory.query(query)).results
            assert found[0].content == "Alice drinks green tea"
            assert (found[0].metadata or {})["score"] > (found[1].metadata or {})["score"]
        assert (await memory.query("Nice")).results[0].content == CONTENTS[2].content

    with_memory(service, "query", use)


def test_the_context_gets_the_memories_for_its_last_message(service: RunningService):
    async def use(memory: SouvenirMemory) -> None:
        context = UnboundedChatCompletionContext()
        assert (await memory.update_context(context)).memories.results == []
        await context.add_message(UserMessage(content="who drinks tea?", source="user"))
        assert (await memory.update_context(context)).memories.results == []
        await add_all(memory)
        assert len((await memory.update_context(context)).memories.results) == 1
        [_, added] = await context.get_messages()
        assert isinstance(added, SystemMessage)
        assert added.content == "\nRelevant memory content (best first):\n1. Alice drinks green tea\n"

    with_memory(service, "context", use, k=1)


def test_clear_deletes_the_memories_of_its_source_only(service: RunningService):
    with Souvenir(service.url, namespace="clear") as souvenir:
        souvenir.memories.add(text="Another program's note", source="autogenous")
        pinned = souvenir.memories.add(text="Pinned", source="autogen").id
        souvenir.memories.update(pinned or 0, pinned=True)
        with_memory(service, "clear", add_all)
        with_memory(service, "clear", lambda memory: memory.clear())
        assert [one.text for one in souvenir.memories.list().memories] == ["Another program's note", "Pinned"]


@pytest.mark.parametrize(
    ("content", "mime_type"), [(b"\0", MemoryMimeType.BINARY), ("x", MemoryMimeType.IMAGE), ("x", "application/json")]
)
def test_other_kinds_of_content_are_refused(service: RunningService, content: Any, mime_type: Any):
    with pytest.raises(ValueError, match="Souvenir stores texts and JSON objects"):
        with_memory(service, "kinds", lambda memory: memory.add(MemoryContent(content=content, mime_type=mime_type)))


def test_a_blank_text_is_refused_by_the_service(service: RunningService):
    with pytest.raises(InvalidRequest, match="the text is blank"):
        with_memory(service, "blank", lambda memory: memory.add(MemoryContent(content=" ", mime_type="text/plain")))
