"""Tier 3, long-term memory: memories under a key in a category; preferences are one of the categories.

A keyed memory is a memory of the engine with the source `long-term/<category>` and the text `key: value`, so that
search finds it by either. A key identifies one memory within a category.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from souvenir.conversations.agents import ensure_agent
from souvenir.core.errors import InvalidRequest, MemoryNotFound, PreferenceNotFound
from souvenir.core.telemetry import MemoryOperation, Tracing, traced
from souvenir.core.types import (
    EvidenceLevel,
    Filters,
    JsonObject,
    Memory,
    MemoryDraft,
    Scope,
    SearchQuery,
    SourceFilter,
    SourceMatch,
    UpsertOutcome,
)
from souvenir.memories.engine import MemoryEngine
from souvenir.store.idempotency import Once, do_once
from souvenir.store.memories import reads
from souvenir.store.transaction import Transaction

ROOT = "long-term"
GENERAL, PREFERENCE = "general", "preference"
MAX_KEY_CHARS = 500
_CREATED = "created"


@dataclass(frozen=True, slots=True)
class KeyedMemory:
    """A memory with its key. A memory of a category without a key has the key None and its text as value."""

    id: int
    key: str | None
    value: str
    category: str
    created_at: datetime
    updated_at: datetime
    metadata: JsonObject

    @classmethod
    def of(cls, memory: Memory) -> KeyedMemory:
        return cls(
            id=memory.id,
            key=memory.key,
            value=memory.text if memory.key is None else memory.text.removeprefix(_text(memory.key, "")),
            category=memory.source.removeprefix(f"{ROOT}/"),
            created_at=memory.created_at,
            updated_at=memory.updated_at,
            metadata=memory.metadata,
        )


@dataclass(frozen=True, slots=True)
class LongTermMatch:
    """A search result. `text` is the searched text: key and value; `score` is how likely it answers, in [0, 1]."""

    memory: KeyedMemory
    text: str
    score: float
    similarity: float


@dataclass(frozen=True, slots=True)
class LongTermMatches:
    """`relevance` and `evidence` as in `SearchResult`. :param degraded: The arms of the search that could not run."""

    hits: Sequence[LongTermMatch]
    degraded: Sequence[str] = ()
    relevance: float = 0.0
    evidence: EvidenceLevel = EvidenceLevel.NONE


class LongTermStore:
    """The scope's namespace is the agent, which a write creates if necessary.

    Categories are `general`, `preference`, and those that the privacy rules name.
    """

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self.categories = tuple(dict.fromkeys((GENERAL, PREFERENCE, *engine.screening.rules.categories)))

    @property
    def tracing(self) -> Tracing:
        return self._engine.tracing

    @traced(MemoryOperation.UPSERT, records=lambda _: 1)
    def remember(
        self, scope: Scope, key: str, value: str, category: str = GENERAL, *, once: Once | None = None
    ) -> tuple[KeyedMemory, bool]:
        """Store a value under a key, replacing the previous one; the second result is True if the key is new.

        :raises InvalidRequest: If the key is empty or too long, or the category is unknown.
        """
        if not 1 <= len(key) <= MAX_KEY_CHARS:
            raise InvalidRequest(f"A key has 1 to {MAX_KEY_CHARS} characters; this one has {len(key)}")
        if self._engine.screening.text(scope, key) != key:
            raise InvalidRequest(
                "The key contains data that the agent's policy redacts; choose a key that only names the value"
            )
        draft = MemoryDraft(_text(key, value), self._source(category), key=key)
        draft = self._engine.screening.draft(scope, draft)
        [passages] = self._engine.prepare([draft.text])

        def work(tx: Transaction) -> UpsertOutcome:
            ensure_agent(tx)
            return do_once(
                tx,
                once,
                lambda: tx.upsert(draft, passages),
                ids=lambda outcome: [str(outcome.id), *([_CREATED] if outcome.created else [])],
                again=lambda ids: UpsertOutcome(int(ids[0]), created=_CREATED in ids),
            )

        stored = self._engine.write(scope, work)
        memory = self._engine.get(scope, [stored.id]).get(stored.id)
        if memory is None:
            # It was deleted concurrently.
            raise MemoryNotFound(stored.id)
        return KeyedMemory.of(memory), stored.created

    def search(
        self,
        scope: Scope,
        query: str,
        *,
        categories: Sequence[str] = (),
        limit: int = 10,
        min_score: float | None = None,
        without_topics: Collection[str] = (),
    ) -> LongTermMatches:
        """Return the best answers to a query, in some categories or all.

        :param min_score: As in `SearchQuery`.
        :param without_topics: Exclude memories that are flagged with one of these sensitive topics.
        :raises InvalidRequest: If a category is unknown.
        """
        paths = [self._source(category) for category in categories] or [ROOT]
        if limit < 1:
            return LongTermMatches(())
        sources = tuple(SourceFilter(path, SourceMatch.PATH) for path in paths)
        filters = Filters(sources=sources, without=self._engine.screening.flagged_memories(scope, without_topics))
        result = self._engine.search(scope, SearchQuery(query, top_k=limit, filters=filters, min_score=min_score))
        hits = [
            LongTermMatch(KeyedMemory.of(hit.memory), hit.memory.text, hit.score, hit.parts.similarity)
            for hit in result.hits
        ]
        return LongTermMatches(hits, result.degraded, result.relevance, result.evidence)

    def forget(self, scope: Scope, key: str, category: str = GENERAL) -> bool:
        """Delete the values of a key, current and previous; returns True if there were any.

        :raises MemoryPinned: If it is pinned.
        """
        source = self._source(category)

        def work(tx: Transaction) -> bool:
            ids = reads.keyed_ids(tx.connection, tx.namespace_id, source, key)
            for memory_id in ids:
                tx.unpinned_memory(memory_id, hint="unpin it before forgetting it")
            tx.delete(ids)
            return bool(ids)

        with self._engine.namespace(scope) as (connection, namespace):
            known = namespace is not None and reads.keyed_ids(connection, namespace.id, source, key)
        return self._engine.write(scope, work) if known else False

    def preference(self, scope: Scope, key: str) -> KeyedMemory:
        """:raises PreferenceNotFound: If there is no such preference."""
        with self._engine.namespace(scope) as (connection, namespace):
            found = (
                None if namespace is None else reads.keyed_memory(connection, namespace, self._source(PREFERENCE), key)
            )
        if found is None:
            raise PreferenceNotFound(key)
        return KeyedMemory.of(found)

    def preferences(
        self, scope: Scope, *, offset: int = 0, limit: int | None = None
    ) -> tuple[Sequence[KeyedMemory], int]:
        """Return a page of preferences ordered by key, and their total number.

        :param limit: Maximum number; None for all.
        """
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return (), 0
            found, total = reads.keyed_page(connection, namespace, self._source(PREFERENCE), offset=offset, limit=limit)
        return [KeyedMemory.of(memory) for memory in found], total

    def preference_values(self, scope: Scope, *, without_topics: Collection[str] = ()) -> dict[str, str]:
        """Return the values of all preferences by key, ordered by key.

        :param without_topics: Exclude those that are flagged with one of these sensitive topics.
        """
        found, _ = self.preferences(scope)
        hidden = self._engine.screening.flagged_memories(scope, without_topics)
        return {one.key: one.value for one in found if one.key is not None and one.id not in hidden}

    def forget_preference(self, scope: Scope, key: str) -> None:
        """:raises PreferenceNotFound: If there is no such preference."""
        if not self.forget(scope, key, PREFERENCE):
            raise PreferenceNotFound(key)

    def _source(self, category: str) -> str:
        if category not in self.categories:
            known = ", ".join(self.categories)
            raise InvalidRequest(f"Unknown category {category!r}; use one of {known}")
        return f"{ROOT}/{category}"


def _text(key: str, value: str) -> str:
    """Return the text that is stored, embedded and searched."""
    return f"{key}: {value}"
