"""The verbs that memory SDKs share, in the shapes that their users know, over the groups of the HTTP API.

`agent_id` is a namespace of the service; `user_id` and `run_id` stand in a memory's metadata, and in its source, by
which all of a user's memories are found without a search. What is learned with a user is forgotten with them.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from souvenir_client.calls import NOT_SENT
from souvenir_client.errors import NotFound, ServerFailed
from souvenir_client.records import ExtractJob
from souvenir_client.shared import (
    Answer,
    Item,
    Owner,
    change_of,
    event_of,
    item_of,
    said_in,
    texts_of,
)
from souvenir_client.sync import groups

Messages: TypeAlias = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]

PAGE = 500


class Shapes(ABC):
    """add, search, get, get_all, update, delete, delete_all and history.

    Without `agent_id` they are about the client's own namespace.
    """

    extraction: groups.Extraction
    memories: groups.Memories

    @abstractmethod
    def in_namespace(self, namespace: str | None) -> Shapes:
        """The same client for another namespace."""

    def add(
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
        """Remember a text or a conversation, and say what became of it.

        With `infer` the service's language model decides what is worth keeping, and what it corrects. Where none is
        configured, or without `infer`, every message is kept as it was said.

        :param messages: A text, a message (`role`, `content`), or several.
        :param timeout_s: For the language model; it goes on after that.
        :return: `{"results": [{"id", "memory", "event"}]}`; events are ADD, UPDATE, DELETE and NONE.
        :raises TimedOut: If the model is not done by then.
        :raises ServerFailed: If the model failed; nothing was changed.
        """
        owner, said = Owner(user_id, run_id), said_in(messages)
        store = self._store(agent_id)
        if infer and (store.extraction.status()).provider is not None:
            return store._learn(said, owner, metadata or {}, timeout_s)
        drafts = [
            {"text": text, "source": owner.source, "metadata": {**(metadata or {}), **owner.labels, "role": role}}
            for role, text in texts_of(said)
        ]
        if not drafts:
            return {"results": []}
        added = store.memories.add_batch(memories=drafts)
        return {
            "results": [
                {"id": memory_id, "memory": str(draft["text"]), "event": "ADD"}
                for memory_id, draft in zip(added.ids, drafts, strict=True)
            ]
        }

    def search(
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
        """Find what answers a query best, by meaning and by words.

        :param filters: Metadata keys and the exact values they must have.
        :param threshold: Least cosine to the query.
        :return: `{"results": [{"id", "memory", "score", "metadata", ...}]}`, best first.
        """
        owner = Owner(user_id, run_id)
        found = self._store(agent_id).memories.search(
            query=query,
            k=limit,
            source_prefix=owner.source if user_id else NOT_SENT,
            source_boundary=True,
            metadata={**(filters or {}), **owner.labels} or NOT_SENT,
            threshold=NOT_SENT if threshold is None else threshold,
        )
        return {"results": [{**item_of(hit), "score": hit.score} for hit in found.results]}

    def get(self, memory_id: int | str, *, agent_id: str | None = None) -> Item | None:
        """A memory by its id; None if there is none."""
        try:
            return item_of(self._store(agent_id).memories.get(int(memory_id)))
        except NotFound:
            return None

    def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
    ) -> Answer:
        """All memories of a user, a run or an agent in the order in which they were stored, without archived ones."""
        owner, results, offset = Owner(user_id, run_id), list[Item](), 0
        memories = self._store(agent_id).memories
        while limit is None or len(results) < limit:
            page = memories.list(
                offset=offset, limit=PAGE, source=owner.source if user_id else NOT_SENT, source_boundary=True
            )
            results += [item_of(one) for one in page.memories if owner.has(one.extra) and not one.archived]
            offset += PAGE
            if offset >= page.total:
                break
        return {"results": results[:limit]}

    def update(
        self, memory_id: int | str, data: str, *, metadata: Mapping[str, Any] | None = None, agent_id: str | None = None
    ) -> dict[str, str]:
        """Give a memory another text; the old one stays in its history.

        :raises NotFound: If there is no such memory.
        """
        patch = NOT_SENT if metadata is None else metadata
        self._store(agent_id).memories.update(int(memory_id), text=data, metadata_patch=patch)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: int | str, *, agent_id: str | None = None) -> dict[str, str]:
        """Forget a memory.

        :raises NotFound: If there is no such memory.
        """
        self._store(agent_id).memories.delete(int(memory_id))
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Forget all memories of a user, a run or an agent; pinned ones stay.

        :raises ValueError: If none of them is named.
        """
        if user_id is None and agent_id is None and run_id is None:
            raise ValueError("Name whose memories are deleted: user_id, agent_id or run_id")
        owned = self.get_all(user_id=user_id, agent_id=agent_id, run_id=run_id)
        ids = [int(one["id"]) for one in owned["results"]]
        memories, deleted = self._store(agent_id).memories, 0
        for start in range(0, len(ids), PAGE):
            deleted += (memories.delete_batch(ids=ids[start : start + PAGE])).deleted_count
        return {"message": f"{deleted} memories deleted successfully!"}

    def history(self, memory_id: int | str, *, agent_id: str | None = None) -> list[Item]:
        """Every change of a memory, oldest first: `old_memory`, `new_memory`, `event` and when."""
        found = self._store(agent_id).memories.history(int(memory_id))
        return [change_of(found.memory_id, change) for change in found.changes]

    def _store(self, agent_id: str | None) -> Shapes:
        return self if agent_id is None else self.in_namespace(agent_id)

    def _learn(
        self, said: Sequence[Mapping[str, Any]], owner: Owner, metadata: Mapping[str, Any], timeout_s: float
    ) -> Answer:
        started = self.extraction.start(
            messages=json.dumps(list(said), ensure_ascii=False),
            source=owner.source,
            user=owner.user_id,
            session=owner.run_id,
        )
        job = self.extraction.wait(started.job_id, timeout_s=timeout_s)
        results = [event_of(action) for action in _actions(job)]
        for result in results:
            if result["event"] in ("ADD", "UPDATE") and (labels := {**metadata, **owner.labels}):
                self.memories.update(int(result["id"]), metadata_patch=labels)
        return {"results": results}


def _actions(job: ExtractJob) -> Sequence[Mapping[str, Any]]:
    """:raises ServerFailed: If nothing was learned because something failed."""
    result = job.result
    reason = job.error or (result and (result.error_message or result.error)) or job.status
    if result is None or result.error is not None or job.status != "completed":
        raise ServerFailed(503, "extraction_failed", f"Nothing was learned: {reason}; add it again later")
    return result.actions or ()
