"""The operations of a LangGraph store over the memories of an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from langgraph.store.base import GetOp, Item, ListNamespacesOp, Op, PutOp, Result, SearchItem, SearchOp

from souvenir_client.adapters.batches import batches
from souvenir_client.adapters.langgraph_items import (
    Namespace,
    StoreConfig,
    Stored,
    is_expired,
    matches,
    namespaces_of,
    refreshed,
)
from souvenir_client.adapters.texts import MAX_QUERY_CHARACTERS
from souvenir_client.aio.client import AsyncSouvenir
from souvenir_client.errors import NotFound
from souvenir_client.records.common import MemoryRecord, SearchHit

PAGE_SIZE = 1000
MOST_RANKED = 100
"""Results of one search at most; further items follow without a score."""
DELETED_AT_ONCE = 1000
SAME_SOURCE = 20


class AsyncStoreOperations:
    """Reads first, in the order of the operations, and then writes, the last one of a key, as LangGraph's stores do.

    :param souvenir: The client, in the namespace of the agent.
    """

    def __init__(self, souvenir: AsyncSouvenir, config: StoreConfig) -> None:
        self._memories = souvenir.memories
        self._config = config

    async def run(self, ops: Iterable[Op]) -> list[Result]:
        results: list[Result] = []
        puts: dict[tuple[Namespace, str], PutOp] = {}
        for op in ops:
            match op:
                case PutOp():
                    puts[op.namespace, op.key] = op
                    results.append(None)
                case GetOp():
                    results.append(await self._get(op))
                case SearchOp():
                    results.append(await self._search(op))
                case ListNamespacesOp():
                    results.append(await self._namespaces(op))
        await self._put([op for op in puts.values() if op.value is not None])
        await self._delete([op for op in puts.values() if op.value is None])
        return results

    async def sweep(self) -> int:
        """Delete the expired items and return their number."""
        ids = [memory.id async for page in self._pages(()) for memory in page if is_expired(memory)]
        await self._delete_ids(ids)
        return len(ids)

    async def _get(self, op: GetOp) -> Item | None:
        memory = await self._find(op.namespace, op.key)
        found = None if memory is None else self._config.item(memory)
        if memory is None or found is None:
            return None
        await self._refresh([memory], op.refresh_ttl)
        return Item(
            value=found.value,
            key=found.key,
            namespace=found.namespace,
            created_at=found.created_at,
            updated_at=found.updated_at,
        )

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        end = op.offset + op.limit
        found: dict[int, tuple[Stored, SearchItem]] = {}
        if op.query and op.query.strip():
            for ranked in await self._ranked(op):
                self._keep(found, ranked, ranked.score, op)
        if len(found) < end:
            async for memories in self._pages(op.namespace_prefix):
                for memory in memories:
                    if memory.id not in found:
                        self._keep(found, memory, None, op)
                if len(found) >= end:
                    break
        page = list(found.values())[op.offset : end]
        await self._refresh([memory for memory, _ in page], op.refresh_ttl)
        return [item for _, item in page]

    async def _ranked(self, op: SearchOp) -> list[SearchHit]:
        """The best indexed items; a filter is applied to as many as one search can return."""
        wanted = MOST_RANKED if op.filter else min(MOST_RANKED, op.offset + op.limit)
        answer = await self._memories.search(
            query=(op.query or "")[:MAX_QUERY_CHARACTERS],
            k=max(wanted, 1),
            source_prefix=self._config.prefix(op.namespace_prefix),
            source_boundary=True,
            metadata={"indexed": True},
            auto_intent=False,
            graph_weight=0.0,
        )
        return answer.results

    def _keep(
        self,
        found: dict[int, tuple[Stored, SearchItem]],
        memory: Stored,
        score: float | None,
        op: SearchOp,
    ) -> None:
        item = self._config.item(memory, score)
        if item is not None and matches(item.value, op.filter):
            found[memory.id] = (memory, item)

    async def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        items = [self._config.item(memory) async for page in self._pages(()) for memory in page]
        found = {item.namespace for item in items if item is not None}
        return namespaces_of(found, op.match_conditions or (), op.max_depth)[op.offset : op.offset + op.limit]

    async def _put(self, ops: list[PutOp]) -> None:
        for batch in batches([self._config.memory(op) for op in ops], text="text"):
            await self._memories.upsert_batch(memories=batch)

    async def _delete(self, ops: list[PutOp]) -> None:
        found = [await self._find(op.namespace, op.key) for op in ops]
        await self._delete_ids([memory.id for memory in found if memory is not None])

    async def _delete_ids(self, ids: list[int]) -> None:
        for start in range(0, len(ids), DELETED_AT_ONCE):
            await self._memories.delete_batch(ids=ids[start : start + DELETED_AT_ONCE])

    async def _find(self, namespace: Namespace, key: str) -> MemoryRecord | None:
        source = self._config.source(namespace, key)
        page = await self._memories.list(source=source, source_boundary=True, limit=SAME_SOURCE)
        return next((one for one in page.memories if one.source == source and self._config.is_item(one)), None)

    async def _pages(self, namespace: Namespace) -> AsyncIterator[list[MemoryRecord]]:
        """The memories of a namespace and those below it, oldest first."""
        source, offset = self._config.prefix(namespace), 0
        while True:
            page = await self._memories.list(source=source, source_boundary=True, limit=PAGE_SIZE, offset=offset)
            yield page.memories
            offset += len(page.memories)
            if not page.memories or offset >= page.total:
                return

    async def _refresh(self, memories: list[Stored], refresh: bool | None) -> None:
        """Extend the lives of items that were read. An item that is deleted in the meantime stays deleted."""
        for memory in memories if refresh else ():
            minutes = memory.extra.get("ttl_minutes")
            if minutes is not None:
                try:
                    await self._memories.update(memory.id, metadata_patch=refreshed(memory, float(minutes)))
                except NotFound:
                    continue
