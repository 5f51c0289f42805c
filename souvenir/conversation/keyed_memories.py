"""Tier 3, for any agent: what is remembered under a key in a category, and preferences, which are one of them.

A key's memory is one of the engine's, with the source `long-term/<category>` and the text `key: value`, so that search
finds it by either. A key names one memory of a category; the same key in another category is another one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory_engine import MemoryEngine
from souvenir.conversation.agents import ensured
from souvenir.errors import InvalidRequest, MemoryNotFound, PreferenceNotFound
from souvenir.observation.tracing import MemoryOperation, Tracing, traced
from souvenir.store import keyed
from souvenir.store.flags import flagged
from souvenir.store.idempotency import Once, do_once
from souvenir.store.transaction import Transaction
from souvenir.types import (
    Filters,
    JsonObject,
    Memory,
    MemoryDraft,
    PassageKind,
    Scope,
    SearchQuery,
    SourceFilter,
    SourceMatch,
    UpsertOutcome,
)

ROOT = "long-term"
GENERAL, PREFERENCE = "general", "preference"
MAX_KEY_CHARS = 500
_CREATED = "created"


@dataclass(frozen=True, slots=True)
class KeyedMemory:
    """A memory as it was remembered. One that was stored there without a key has none, and its text is the value."""

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
class Remembered:
    """What a search found. `text` is what the search read: key and value."""

    memory: KeyedMemory
    text: str
    score: float
    similarity: float


@dataclass(frozen=True, slots=True)
class Recollection:
    """:param degraded: What of the search could not run."""

    hits: Sequence[Remembered]
    degraded: Sequence[str] = ()


class KeyedMemories:
    """The scope's namespace is the agent; whatever remembers for one that is not there makes it.

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
        """Store a value under a key, in the place of the one that it had; tells whether the key is new.

        :raises InvalidRequest: If the key is empty or too long, or nothing knows the category.
        """
        if not 1 <= len(key) <= MAX_KEY_CHARS:
            raise InvalidRequest(f"A key takes 1 to {MAX_KEY_CHARS} characters, and this one has {len(key)}")
        if self._engine.screening.text(scope, key) != key:
            raise InvalidRequest("This key holds what the agent's policy redacts; choose one that only names the value")
        draft = MemoryDraft(_text(key, value), self._source(category), key=key)
        draft = self._engine.screening.draft(scope, draft)
        [passages] = self._engine.prepare([draft.text])

        def work(tx: Transaction) -> UpsertOutcome:
            ensured(tx)
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
            # Somebody else forgot it in this very moment.
            raise MemoryNotFound(stored.id)
        return KeyedMemory.of(memory), stored.created

    def search(
        self,
        scope: Scope,
        query: str,
        *,
        categories: Sequence[str] = (),
        limit: int = 10,
        without_topics: Collection[str] = (),
    ) -> Recollection:
        """What answers a query best, of some categories or of all.

        :param without_topics: Memories that are flagged with one of these sensitive topics are not found.
        :raises InvalidRequest: If nothing knows a category.
        """
        paths = [self._source(category) for category in categories] or [ROOT]
        if limit < 1:
            return Recollection(())
        sources = tuple(SourceFilter(path, SourceMatch.PATH) for path in paths)
        filters = Filters(sources=sources, without=self._flagged(scope, without_topics))
        result = self._engine.search(scope, SearchQuery(query, top_k=limit, filters=filters))
        hits = [
            Remembered(KeyedMemory.of(hit.memory), hit.memory.text, hit.score, hit.parts.similarity)
            for hit in result.hits
        ]
        return Recollection(hits, result.degraded)

    def forget(self, scope: Scope, key: str, category: str = GENERAL) -> bool:
        """Forget what a key means, and what it meant before; tells whether there was anything.

        :raises MemoryPinned: If it is pinned.
        """
        source = self._source(category)

        def work(tx: Transaction) -> bool:
            ids = keyed.ids(tx.connection, tx.namespace_id, source, key)
            for memory_id in ids:
                tx.unpinned_memory(memory_id, hint="unpin it before forgetting it")
            tx.delete(ids)
            return bool(ids)

        with self._engine.namespace(scope) as (connection, namespace):
            known = namespace is not None and keyed.ids(connection, namespace.id, source, key)
        return self._engine.write(scope, work) if known else False

    def preference(self, scope: Scope, key: str) -> KeyedMemory:
        """:raises PreferenceNotFound: If there is none of that name."""
        with self._engine.namespace(scope) as (connection, namespace):
            found = None if namespace is None else keyed.find(connection, namespace, self._source(PREFERENCE), key)
        if found is None:
            raise PreferenceNotFound(key)
        return KeyedMemory.of(found)

    def preferences(
        self, scope: Scope, *, offset: int = 0, limit: int | None = None
    ) -> tuple[Sequence[KeyedMemory], int]:
        """In the order of their keys, and how many there are.

        :param limit: Of what is listed; None: all.
        """
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return (), 0
            found, total = keyed.page(connection, namespace, self._source(PREFERENCE), offset=offset, limit=limit)
        return [KeyedMemory.of(memory) for memory in found], total

    def preference_values(self, scope: Scope, *, without_topics: Collection[str] = ()) -> dict[str, str]:
        """Every preference's value by its key, in the order of the keys.

        :param without_topics: Those that are flagged with one of these sensitive topics are left out.
        """
        found, _ = self.preferences(scope)
        hidden = self._flagged(scope, without_topics)
        return {one.key: one.value for one in found if one.key is not None and one.id not in hidden}

    def forget_preference(self, scope: Scope, key: str) -> None:
        """:raises PreferenceNotFound: If there is none of that name."""
        if not self.forget(scope, key, PREFERENCE):
            raise PreferenceNotFound(key)

    def _flagged(self, scope: Scope, topics: Collection[str]) -> tuple[int, ...]:
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return ()
            return tuple(flagged(connection, PassageKind.MEMORY, namespace.id, topics))

    def _source(self, category: str) -> str:
        if category not in self.categories:
            known = ", ".join(self.categories)
            raise InvalidRequest(f"The category {category!r} is not known; give one of {known}")
        return f"{ROOT}/{category}"


def _text(key: str, value: str) -> str:
    """What is stored, embedded and searched."""
    return f"{key}: {value}"
