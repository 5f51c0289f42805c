"""The methods that memory SDKs have in common, with the arguments and results that their users know.

`agent_id` is a namespace of the service. `user_id` and `run_id` are stored in the metadata of a memory and in its
source path, which lists the memories of a user without a search. Memories that are extracted from a user's
conversations are deleted with the user.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from souvenir_client.aio import groups
from souvenir_client.calls import NOT_SENT
from souvenir_client.errors import NotFound, ServerFailed
from souvenir_client.memory_methods import (
    Answer,
    Item,
    Owner,
    change_of,
    event_of,
    item_of,
    said_in,
    texts_of,
)
from souvenir_client.records import ExtractJob

Messages: TypeAlias = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]

PAGE = 500


class AsyncMemoryMethods(ABC):
    """add, search, get, get_all, update, delete, delete_all and history.

    Without `agent_id` they use the client's own namespace.
    """

    extraction: groups.AsyncExtraction
    memories: groups.AsyncMemories

    @abstractmethod
    def in_namespace(self, namespace: str | None) -> AsyncMemoryMethods:
        """The same client for another namespace."""

    async def add(
        self,
        messages: Messages,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        timeout_s: float = 120.0,
    ) -> Answer:
        """Store a text or a conversation, and return the resulting memories.

        With `infer` the language model of the service extracts memories and updates existing ones. Without `infer`, or
        if no model is configured, every message is stored unchanged.

        :param messages: A text, a message (`role`, `content`), or several.
        :param timeout_s: Limit of the wait for the language model. The extraction continues after it.
        :return: `{"results": [{"id", "memory", "event"}]}`; events are ADD, UPDATE, DELETE and NONE.
        :raises TimedOut: If the extraction is still running then.
        :raises ServerFailed: If the model failed; nothing was changed.
        """
        owner, said = Owner(user_id, run_id), said_in(messages)
        store = self._store(agent_id)
        if infer and (await store.extraction.status()).provider is not None:
            return await store._learn(said, owner, metadata or {}, timeout_s)
        drafts = [
            {"text": text, "source": owner.source, "metadata": {**(metadata or {}), **owner.labels, "role": role}}
            for role, text in texts_of(said)
        ]
        if not drafts:
            return {"results": []}
        added = await store.memories.add_batch(memories=drafts)
        return {
            "results": [
                {"id": memory_id, "memory": str(draft["text"]), "event": "ADD"}
                for memory_id, draft in zip(added.ids, drafts, strict=True)
            ]
        }

    async def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int = 10,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
    ) -> Answer:
        """Search memories by meaning and by words.

        :param filters: Metadata keys with the exact values to match.
        :param threshold: Minimum `score` of a result.
        :return: `{"results": [{"id", "memory", "score", "metadata", ...}]}`, best first.
        """
        owner = Owner(user_id, run_id)
        found = await self._store(agent_id).memories.search(
            query=query,
            k=limit,
            source_prefix=owner.source if user_id else NOT_SENT,
            source_boundary=True,
            metadata={**(filters or {}), **owner.labels} or NOT_SENT,
            min_score=NOT_SENT if threshold is None else threshold,
        )
        return {"results": [{**item_of(hit), "score": hit.score} for hit in found.results]}

    async def get(self, memory_id: int | str, *, agent_id: str | None = None) -> Item | None:
        """Get a memory by its id; None if it does not exist."""
        try:
            return item_of(await self._store(agent_id).memories.get(int(memory_id)))
        except NotFound:
            return None

    async def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
    ) -> Answer:
        """List the memories of a user, a run or an agent, oldest first, without archived ones."""
        owner, results, offset = Owner(user_id, run_id), list[Item](), 0
        memories = self._store(agent_id).memories
        while limit is None or len(results) < limit:
            page = await memories.list(
                offset=offset, limit=PAGE, source=owner.source if user_id else NOT_SENT, source_boundary=True
            )
            results += [item_of(one) for one in page.memories if owner.has(one.extra) and not one.archived]
            offset += PAGE
            if offset >= page.total:
                break
        return {"results": results[:limit]}

    async def update(
        self, memory_id: int | str, data: str, *, metadata: Mapping[str, Any] | None = None, agent_id: str | None = None
    ) -> dict[str, str]:
        """Replace the text of a memory; the old text stays in its history.

        :raises NotFound: If the memory does not exist.
        """
        patch = NOT_SENT if metadata is None else metadata
        await self._store(agent_id).memories.update(int(memory_id), text=data, metadata_patch=patch)
        return {"message": "Memory updated successfully!"}

    async def delete(self, memory_id: int | str, *, agent_id: str | None = None) -> dict[str, str]:
        """Delete a memory.

        :raises NotFound: If the memory does not exist.
        """
        await self._store(agent_id).memories.delete(int(memory_id))
        return {"message": "Memory deleted successfully!"}

    async def delete_all(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Delete all memories of a user, a run or an agent, except pinned ones.

        :raises ValueError: If none of them is given.
        """
        if user_id is None and agent_id is None and run_id is None:
            raise ValueError("Give user_id, agent_id or run_id: whose memories to delete")
        owned = await self.get_all(user_id=user_id, agent_id=agent_id, run_id=run_id)
        ids = [int(one["id"]) for one in owned["results"]]
        memories, deleted = self._store(agent_id).memories, 0
        for start in range(0, len(ids), PAGE):
            deleted += (await memories.delete_batch(ids=ids[start : start + PAGE])).deleted_count
        return {"message": f"{deleted} memories deleted successfully!"}

    async def history(self, memory_id: int | str, *, agent_id: str | None = None) -> list[Item]:
        """List the changes of a memory, oldest first: `old_memory`, `new_memory`, `event`, time, actor and `imported`.

        An imported entry is a claim of the file that brought it.
        """
        found = await self._store(agent_id).memories.history(int(memory_id))
        return [change_of(found.memory_id, change) for change in found.changes]

    def _store(self, agent_id: str | None) -> AsyncMemoryMethods:
        return self if agent_id is None else self.in_namespace(agent_id)

    async def _learn(
        self, said: Sequence[Mapping[str, Any]], owner: Owner, metadata: Mapping[str, Any], timeout_s: float
    ) -> Answer:
        started = await self.extraction.start(
            messages=json.dumps(list(said), ensure_ascii=False),
            source=owner.source,
            user=owner.user_id,
            session=owner.run_id,
        )
        job = await self.extraction.wait(started.job_id, timeout_s=timeout_s)
        results = [event_of(action) for action in _actions(job)]
        for result in results:
            if result["event"] in ("ADD", "UPDATE") and (labels := {**metadata, **owner.labels}):
                await self.memories.update(int(result["id"]), metadata_patch=labels)
        return {"results": results}


def _actions(job: ExtractJob) -> Sequence[Mapping[str, Any]]:
    """:raises ServerFailed: If the extraction failed."""
    result = job.result
    reason = job.error or (result and (result.error_message or result.error)) or job.status
    if result is None or result.error is not None or job.status != "completed":
        raise ServerFailed(503, "extraction_failed", f"The extraction failed: {reason}; retry later")
    return result.actions or ()
