"""A store of LangGraph over the memories of an agent; needs `souvenir-client[langgraph]`.

store = SouvenirStore(souvenir, agent="my_agent")
graph = builder.compile(store=store)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from langgraph.store.base import BaseStore, Op, Result, TTLConfig

from souvenir_client.adapters.langgraph_items import StoreConfig
from souvenir_client.aio.adapters.langgraph import AsyncStoreOperations
from souvenir_client.aio.client import AsyncSouvenir
from souvenir_client.sync.adapters.langgraph import StoreOperations
from souvenir_client.sync.client import Souvenir

__all__ = ["AsyncSouvenirStore", "SouvenirStore"]

DEFAULT_PATH = "langgraph"


class SouvenirStore(BaseStore):
    """A LangGraph store over `Souvenir`; its asynchronous methods run in a thread.

    :param souvenir: The client; it is not closed.
    :param agent: The agent whose memories the items are.
    :param path: The source below which the items lie; stores with different paths share nothing.
    :param fields: Paths of the values to search by, as in LangGraph's `IndexConfig`; `$` is the whole value.
    :param ttl: LangGraph's `TTLConfig`; `sweep_ttl` deletes expired items, and nothing does so in the background.
    """

    supports_ttl = True
    __slots__ = ("_operations", "ttl_config")

    def __init__(
        self,
        souvenir: Souvenir,
        *,
        agent: str,
        path: str = DEFAULT_PATH,
        fields: Sequence[str] = ("$",),
        ttl: TTLConfig | None = None,
    ) -> None:
        self.ttl_config = ttl
        self._operations = StoreOperations(souvenir.in_namespace(agent), StoreConfig(path, fields, ttl or TTLConfig()))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self._operations.run(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self._operations.run, list(ops))

    def sweep_ttl(self) -> int:
        """Delete the expired items and return their number."""
        return self._operations.sweep()


class AsyncSouvenirStore(BaseStore):
    """A LangGraph store over `AsyncSouvenir`; the parameters are those of `SouvenirStore`."""

    supports_ttl = True
    __slots__ = ("_operations", "ttl_config")

    def __init__(
        self,
        souvenir: AsyncSouvenir,
        *,
        agent: str,
        path: str = DEFAULT_PATH,
        fields: Sequence[str] = ("$",),
        ttl: TTLConfig | None = None,
    ) -> None:
        self.ttl_config = ttl
        config = StoreConfig(path, fields, ttl or TTLConfig())
        self._operations = AsyncStoreOperations(souvenir.in_namespace(agent), config)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """:raises NotImplementedError: Always; use the asynchronous methods."""
        raise NotImplementedError("AsyncSouvenirStore has asynchronous methods only; use aget, aput or SouvenirStore")

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await self._operations.run(ops)

    async def asweep_ttl(self) -> int:
        """Delete the expired items and return their number."""
        return await self._operations.sweep()
