"""Tools of Pydantic AI over the memories of an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import FunctionToolset, ToolFailed

from souvenir_client.aio.client import AsyncSouvenir
from souvenir_client.errors import SouvenirError

MOST_RECALLED = 20
INSTRUCTIONS = (
    "You have a long-term memory. Recall before you answer a question about the user, earlier work or decisions. "
    "Remember facts that will matter in later conversations, one statement each. Forget a memory that turns out wrong."
)


class AsyncSouvenirToolset(FunctionToolset[Any]):
    """The tools `remember`, `recall` and `forget`.

    A failure of the service is a result that the model reads, with one sentence, and the run goes on.

    :param souvenir: The client; it is not closed.
    :param agent: The agent whose memories they are.
    :param source: The source of what is remembered; only memories of it and below it can be forgotten.
    :param read_only: Only `recall`.
    :param options: Those of `FunctionToolset`, such as `id` and `instructions`, which replace the default ones.
    """

    def __init__(
        self,
        souvenir: AsyncSouvenir,
        *,
        agent: str,
        source: str = "pydantic-ai",
        read_only: bool = False,
        **options: Any,
    ) -> None:
        self._memories = souvenir.in_namespace(agent).memories
        self._source = source
        tools: list[Callable[..., Any]] = [self.recall] if read_only else [self.remember, self.recall, self.forget]
        super().__init__(tools, **{"instructions": None if read_only else INSTRUCTIONS, **options})

    async def remember(self, text: str) -> str:
        """Store one statement in the long-term memory.

        Args:
            text: A statement that can be understood by itself, with names instead of pronouns.
        """
        async with _told():
            added = await self._memories.add(text=text, source=self._source, metadata={"origin_class": "assistant"})
        return f"Stored as memory {added.id}"

    async def recall(self, query: str, limit: int = 5) -> list[dict[str, Any]]:
        """Search the long-term memory by meaning and by words; the best memories come first.

        Args:
            query: What to look for, in any words.
            limit: Maximum number of memories, up to 20.
        """
        async with _told():
            answer = await self._memories.search(query=query, k=max(1, min(limit, MOST_RECALLED)))
        return [
            {"id": one.id, "text": one.text, "source": one.source, "created_at": one.created_at}
            for one in answer.results
        ]

    async def forget(self, memory_id: int) -> str:
        """Delete a memory for good.

        Args:
            memory_id: The id of a memory, as recall returns it.
        """
        async with _told():
            memory = await self._memories.get(memory_id)
            if not f"{memory.source}/".startswith(f"{self._source}/"):
                raise ToolFailed(f"Memory {memory_id} was not stored with this tool, so it cannot be forgotten with it")
            await self._memories.delete(memory_id)
        return f"Memory {memory_id} is deleted"


@asynccontextmanager
async def _told() -> AsyncIterator[None]:
    """Failures of the service as results that the model reads."""
    try:
        yield
    except SouvenirError as error:
        raise ToolFailed(str(error)) from error
