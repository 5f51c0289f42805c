"""The memory block of LlamaIndex in LlamaIndex's own `Memory`, against the real service."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory

from souvenir_client import Souvenir
from souvenir_client.adapters.llamaindex import SouvenirMemoryBlock
from souvenir_client.errors import NotFound
from tests.client.running import RunningService

# LlamaIndex never closes the database of its short-term memory.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
FILLER = "The weather was as it always is. " * 40


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture
def souvenir(service: RunningService) -> Iterator[Souvenir]:
    with Souvenir(service.url) as souvenir:
        yield souvenir


def memory_of(souvenir: Souvenir, agent: str, session_id: str = "chat", **options: Any) -> Memory:
    """A memory of 200 tokens, so that most messages leave it at once."""
    return Memory.from_defaults(
        session_id=session_id,
        token_limit=3000,
        chat_history_token_ratio=0.05,
        token_flush_size=50,
        memory_blocks=[SouvenirMemoryBlock(souvenir, agent=agent, **options)],
    )


def test_messages_that_leave_the_short_term_memory_are_recalled(souvenir: Souvenir):
    async def use() -> str:
        memory = memory_of(souvenir, "recalled", user="alice")
        said = [
            ChatMessage(role="user", content="My dog is called Rex"),
            ChatMessage(role="assistant", content="Noted"),
            ChatMessage(role="tool", content="A result"),
            *[ChatMessage(role=role, content=FILLER) for role in ("user", "assistant") * 3],
        ]
        await memory.aput_messages(said)
        question = ChatMessage(role="user", content="What is my dog called?")
        return "\n".join(str(one.content) for one in await memory.aget(input=str(question.content)))

    assert "My dog is called Rex" in asyncio.run(use())
    stored = souvenir.sessions.messages("recalled", "chat")
    assert [(str(one.role), one.content, one.user) for one in stored][:3] == [
        ("user", "My dog is called Rex", "alice"),
        ("assistant", "Noted", "alice"),
        ("assistant", "A result", "alice"),
    ]


def test_the_block_returns_the_context_for_the_last_message_of_the_user(souvenir: Souvenir):
    souvenir.in_namespace("context").memories.add(text="Alice leads billing", source="notes")
    block = SouvenirMemoryBlock(souvenir, agent="context", name="long_term", priority=2)
    messages = [ChatMessage(role="user", content="Who leads billing?"), ChatMessage(role="assistant", content="Hm")]
    text = asyncio.run(block.aget(messages))
    assert "Alice leads billing" in text
    assert (block.name, block.priority) == ("long_term", 2)
    for none in ([], None, [ChatMessage(role="assistant", content="x")], [ChatMessage(role="user", content=" ")]):
        assert asyncio.run(block.aget(none)) == ""


def test_an_agent_without_memory_has_an_empty_context(souvenir: Souvenir):
    block = SouvenirMemoryBlock(souvenir, agent="nobody yet")
    assert asyncio.run(block.aget([ChatMessage(role="user", content="Who am I?")])) == ""


def test_the_memory_shows_the_context_to_the_model(souvenir: Souvenir):
    souvenir.in_namespace("shown").memories.add(text="Alice leads billing", source="notes")
    memory = memory_of(souvenir, "shown")
    shown = asyncio.run(memory.aget(input="Who leads billing?"))
    assert "Alice leads billing" in str(shown[0].content)


def test_the_synchronous_methods_work_again_and_again(souvenir: Souvenir):
    souvenir.in_namespace("again").memories.add(text="Alice leads billing", source="notes")
    memory = memory_of(souvenir, "again")
    for _ in range(3):
        memory.put(ChatMessage(role="user", content=FILLER))
        assert "Alice leads billing" in str(memory.get(input="Who leads billing?")[0].content)


def test_messages_without_text_are_not_stored(souvenir: Souvenir):
    block = SouvenirMemoryBlock(souvenir, agent="blank")
    asyncio.run(block.aput([ChatMessage(role="user", content=one) for one in ("", "\u200b")], session_id="s"))
    with pytest.raises(NotFound):
        souvenir.sessions.messages("blank", "s")
    asyncio.run(block.aput([ChatMessage(role="user", content="Hello")], session_id="s"))
    assert [one.content for one in souvenir.sessions.messages("blank", "s")] == ["Hello"]


def test_characters_that_cannot_be_stored_are_replaced_and_long_questions_truncated(souvenir: Souvenir):
    souvenir.in_namespace("odd").memories.add(text="Alice leads billing", source="notes")
    block = SouvenirMemoryBlock(souvenir, agent="odd")
    odd = ChatMessage(role="user", content="Who leads\0billing\ud800?")
    asyncio.run(block.aput([odd], session_id="s"))
    assert [one.content for one in souvenir.sessions.messages("odd", "s")] == ["Who leads\ufffdbilling\ufffd?"]
    for question in (odd, ChatMessage(role="user", content="Who leads billing? " * 4000)):
        assert "Alice leads billing" in asyncio.run(block.aget([question]))
