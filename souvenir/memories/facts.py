"""The facts of memories: split from their texts, listed, and split again.

A text is split by the language model within FACTS_TIMEOUT_S, or else by sentences at first, and by the model in the
background. No transaction is open during a call of the model, and at most half of the concurrent writes wait for one;
the others are split by sentences at first.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import BoundedSemaphore

from souvenir.core.concurrency import deadline, time_left
from souvenir.core.errors import Conflict, MemoryNotFound
from souvenir.core.settings import Settings
from souvenir.core.types import Fact, FactsOutcome, Memory, Scope
from souvenir.memories.fact_splitting import Split, by_sentences, needs_no_model, split
from souvenir.memories.fact_writes import allowed, write_facts
from souvenir.memories.indexed_store import IndexedStore
from souvenir.memories.split_queue import SplitQueue
from souvenir.models.llm.provider import LLMProvider
from souvenir.store.memories import facts, reads
from souvenir.store.memories import facts as rows
from souvenir.store.transaction import Transaction, require_writable

SHARE_OF_TIME = 0.5
"""Share of the remaining request time that the model gets; the rest is for the write."""

ATTEMPTS = 3
"""Attempts at a memory that other requests change at the same time."""

IN_THE_BACKGROUND = "The language model is asked in the background"

NO_DEADLINE_S = 3_600.0


@dataclass(frozen=True, slots=True)
class FactPage:
    """:param facts: Each with the id of its memory. :param total: The number on all pages."""

    facts: Sequence[tuple[int, Fact]]
    total: int


class Facts:
    """Thread-safe. The background queue waits until `start`."""

    def __init__(self, store: IndexedStore, provider: LLMProvider | None, settings: Settings) -> None:
        """:param provider: Closed by its owner before this object."""
        self._store = store
        self._provider = provider
        self._timeout_s = settings.facts_timeout_s
        self._slots = BoundedSemaphore(max(1, (settings.max_writes or os.cpu_count() or 1) // 2))
        self.queue = SplitQueue(store, provider, settings)

    def start(self) -> None:
        self.queue.start()

    def close(self) -> None:
        self.queue.close()

    def split(self, scope: Scope, text: str, *, wait: bool = True) -> Split:
        """Split a screened text into facts that the policy of the scope's namespace allows.

        :param wait: True if the model may be called now; otherwise it is called in the background.
        """
        return allowed(self._store, scope, self._split_in_time(text, wait=wait))

    def split_again(self, scope: Scope, memory_id: int) -> FactsOutcome:
        """Split the current text of a memory again. While the model is unavailable, current facts are kept.

        :raises MemoryNotFound: If the scope sees no such memory.
        :raises Conflict: If other requests keep changing it.
        """
        for _ in range(ATTEMPTS):
            memory = self._memory(scope, memory_id)
            require_writable(scope, memory.source)
            found = self.split(scope, memory.text)
            if found.later and memory.facts:
                self._enqueue(scope, memory_id)
                return FactsOutcome(memory, pending=True, failure=found.failure)
            written = write_facts(self._store, scope, memory, found)
            if written is not None:
                self.queue.wake()
                return FactsOutcome(written, found.later, found.failure)
        raise Conflict(f"Memory ID {memory_id} was changed by others again and again; try again in a moment")

    def is_pending(self, memory_id: int) -> bool:
        """Return True if a memory is in the background queue."""
        with self._store.namespace(Scope()) as (connection, _):
            return facts.is_queued(connection, memory_id)

    def outcome(self, scope: Scope, memory_id: int, failure: str | None = None) -> FactsOutcome | None:
        """Return a memory with the state of its facts, or None if the scope sees no such memory.

        :param failure: Why no model split it just now.
        """
        pending = self.is_pending(memory_id)
        with suppress(MemoryNotFound):
            return FactsOutcome(self._memory(scope, memory_id), pending, failure)
        return None

    def page(self, scope: Scope, memory_id: int | None = None, *, offset: int, limit: int) -> FactPage:
        """List the facts of a memory, or of all that the scope sees, in the order of the memories.

        :raises MemoryNotFound: If the scope sees no such memory.
        """
        if memory_id is not None:
            self._memory(scope, memory_id)
        with self._store.namespace(scope) as (connection, namespace):
            if namespace is None:
                return FactPage((), 0)
            return FactPage(*facts.page(connection, namespace, memory_id=memory_id, offset=offset, limit=limit))

    def _split_in_time(self, text: str, *, wait: bool) -> Split:
        if self._provider is None or needs_no_model(text):
            return by_sentences(text)
        may_wait = wait and self._timeout_s > 0 and self._slots.acquire(blocking=False)
        if not may_wait:
            return replace(by_sentences(text), failure=IN_THE_BACKGROUND, later=True)
        try:
            with deadline(min(self._timeout_s, SHARE_OF_TIME * time_left(NO_DEADLINE_S))):
                return split(text, self._provider, self._store.analyser.terms)
        finally:
            self._slots.release()

    def _memory(self, scope: Scope, memory_id: int) -> Memory:
        with self._store.namespace(scope) as (connection, namespace):
            if namespace is None:
                raise MemoryNotFound(memory_id)
            return reads.required(connection, namespace, reads.memories(connection, namespace, [memory_id]), memory_id)

    def _enqueue(self, scope: Scope, memory_id: int) -> None:
        def work(tx: Transaction) -> None:
            rows.enqueue(tx.connection, tx.namespace_id, memory_id, tx.now)

        self._store.write(scope, work)
        self.queue.wake()
