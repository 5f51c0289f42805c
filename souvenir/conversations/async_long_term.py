"""Tier 3 for Python: keyed facts and preferences. Blocking work runs in threads, never in the event loop."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Self

from souvenir.conversations.long_term import GENERAL, PREFERENCE, LongTermMatch, LongTermStore
from souvenir.conversations.tiers import AGENT, OLLAMA_HOST, EngineAccess, settings_of
from souvenir.core.errors import PreferenceNotFound
from souvenir.core.settings import DATABASE_NAME
from souvenir.memories.engine import MemoryEngine


class LongTermMemory:
    """One agent's long-term memory. Await `initialize` first and `close` last; safe for concurrent tasks."""

    def __init__(
        self,
        data_dir: str | Path = "data/mem0",
        ollama_host: str = OLLAMA_HOST,
        llm_model: str | None = None,
        embed_model: str | None = None,
        *,
        access: EngineAccess | None = None,
    ) -> None:
        """:param llm_model: Ignored: values are stored verbatim.

        :param embed_model: A model of the Ollama at `ollama_host`; None for the model in this process.
        :param access: Access to a shared engine, instead of all other parameters.
        """
        database = Path(data_dir) / DATABASE_NAME
        self._access = access or EngineAccess.to_folder(settings_of(database, embed_model, ollama_host=ollama_host))

    @classmethod
    def over(cls, engine: MemoryEngine, *, agent: str = AGENT) -> Self:
        """Create an agent's memory in a running engine, which its owner closes."""
        return cls(access=EngineAccess.to_engine(engine, agent))

    async def initialize(self) -> None:
        """Open the engine, if it is not open.

        :raises StoreUnusable: If the data folder cannot be opened. :raises EmbeddingUnavailable: Without a model.
        """
        await self._access.open()

    async def close(self) -> None:
        await self._access.close()

    async def remember(self, key: str, value: str, category: str = GENERAL) -> None:
        """Store a value under a key, replacing the previous one in this category.

        :raises InvalidRequest: If the category is unknown, or the key is empty or too long.
        """
        await asyncio.to_thread(self._memories.remember, self._access.scope, key, value, category)

    async def recall(self, query: str, limit: int = 5) -> list[str]:
        """Return the best answers to a query, each as `key: value`, best first."""
        found = await asyncio.to_thread(self._memories.search, self._access.scope, query, limit=limit)
        return [hit.text for hit in found.hits]

    async def forget(self, key: str, category: str = GENERAL) -> bool:
        """Delete the values of a key in a category, current and previous; returns True if there were any."""
        return await asyncio.to_thread(self._memories.forget, self._access.scope, key, category)

    async def get_user_preferences(self) -> dict[str, str]:
        """Return all preferences, ordered by key."""
        return await asyncio.to_thread(self._memories.preference_values, self._access.scope)

    async def set_preference(self, key: str, value: str) -> None:
        await self.remember(key, value, PREFERENCE)

    async def get_preference(self, key: str, default: str | None = None) -> str | None:
        try:
            return (await asyncio.to_thread(self._memories.preference, self._access.scope, key)).value
        except PreferenceNotFound:
            return default

    async def forget_preference(self, key: str) -> bool:
        """Delete it; returns whether it existed."""
        return await self.forget(key, PREFERENCE)

    async def search_memories(self, query: str, category: str | None = None, limit: int = 10) -> list[dict[str, Any]]:
        """Return the best answers to a query in one category or all, with `score` and `similarity`.

        `score` is the probability that the memory answers, and `similarity` the cosine.

        :raises InvalidRequest: If the category is unknown.
        """
        categories = () if category is None else (category,)
        found = await asyncio.to_thread(
            self._memories.search, self._access.scope, query, categories=categories, limit=limit
        )
        return [_as_dict(hit) for hit in found.hits]

    @property
    def _memories(self) -> LongTermStore:
        return self._access.tiers.long_term


def _as_dict(hit: LongTermMatch) -> dict[str, Any]:
    memory = hit.memory
    return {
        "id": memory.id,
        "key": memory.key,
        "value": memory.value,
        "category": memory.category,
        "memory": hit.text,
        "score": hit.score,
        "similarity": hit.similarity,
        "created_at": memory.created_at.timestamp(),
        "updated_at": memory.updated_at.timestamp(),
        "metadata": dict(memory.metadata),
    }
