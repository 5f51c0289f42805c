"""Memories and their facts: stored, changed and split again.

A memory gets its facts from its caller, or is split: by the language model within FACTS_TIMEOUT_S, else by sentences
for now, and by the model later. No transaction is open while a model is asked, and no more than half of the places of
writes wait for one; what finds them taken is split by sentences for now. Memory, tags, facts and passages are written
in one transaction.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import BoundedSemaphore
from typing import TypeVar

from llm_provider import LLMProvider
from memory_engine import MemoryEngine
from souvenir.deadlines import deadline, time_left
from souvenir.errors import Conflict, MemoryNotFound
from souvenir.facts.later import SplitLater
from souvenir.facts.splitting import Split, by_sentences, given, needs_no_model, split
from souvenir.facts.writing import allowed, write_facts
from souvenir.moments import utc_now
from souvenir.settings import Settings
from souvenir.store import fact_pages, unsplit
from souvenir.store import facts as rows
from souvenir.store.idempotency import Once, made_before
from souvenir.store.transaction import Transaction, require_writable
from souvenir.types import (
    AddOutcome,
    Fact,
    FactsBy,
    Memory,
    MemoryDraft,
    MemoryPatch,
    OnDuplicate,
    Scope,
    UpsertOutcome,
)

T = TypeVar("T")

SHARE_OF_TIME = 0.5
"""Of what is left of a request's time: the model may have so much, and the write the rest."""

ATTEMPTS = 3
"""At a memory that somebody else changes at the same time."""

IN_THE_BACKGROUND = "The language model is asked in the background"

NO_DEADLINE_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which facts a memory shall have.

    :param given: The caller's own; they go before `split`. :param split: Whether it is to be split.
    """

    given: Sequence[str] | None = None
    split: bool = False


NONE_WANTED = Wanted()


@dataclass(frozen=True, slots=True)
class Stored:
    """A memory with its facts.

    :param pending: Whether it is split again in the background. :param failure: Why no model split it just now.
    """

    memory: Memory
    pending: bool
    failure: str | None = None

    @property
    def made_by(self) -> FactsBy | None:
        return self.memory.facts[0].made_by if self.memory.facts else None


@dataclass(frozen=True, slots=True)
class Added:
    """:param stored: None if nothing was, or no facts were wanted."""

    outcome: AddOutcome
    stored: Stored | None


@dataclass(frozen=True, slots=True)
class FactPage:
    """:param facts: Each with the id of its memory. :param total: How many there are on all pages."""

    facts: Sequence[tuple[int, Fact]]
    total: int


class Facts:
    """Safe for many threads. What is split later waits until `start`."""

    def __init__(self, engine: MemoryEngine, provider: LLMProvider | None, settings: Settings) -> None:
        """:param provider: Closed by its owner, before this is closed."""
        self._engine = engine
        self._provider = provider
        self._timeout_s = settings.facts_timeout_s
        self._places = BoundedSemaphore(max(1, (settings.max_writes or os.cpu_count() or 1) // 2))
        self.later = SplitLater(engine, provider, settings)

    def start(self) -> None:
        self.later.start()

    def close(self) -> None:
        self.later.close()

    # --- storing -----------------------------------------------------------------------------------------------

    def add(
        self,
        scope: Scope,
        draft: MemoryDraft,
        wanted: Wanted = NONE_WANTED,
        *,
        on_duplicate: OnDuplicate | None = None,
        once: Once | None = None,
    ) -> Added:
        """Store a memory with its facts.

        :raises InvalidRequest: If facts or tags cannot be used.
        """
        if wanted == NONE_WANTED:
            return Added(self._engine.add(scope, draft, on_duplicate=on_duplicate, once=once), None)
        failure = None
        if not self._is_repeated(scope, once):
            draft, failure = self._with_facts(scope, draft, wanted, wait=True)
        outcome = self._engine.add(scope, draft, on_duplicate=on_duplicate, once=once)
        if draft.split_later:
            self.later.wake()
        return Added(outcome, None if outcome.id is None else self._stored(scope, outcome.id, failure))

    def add_batch(
        self,
        scope: Scope,
        drafts: Sequence[tuple[MemoryDraft, Wanted]],
        *,
        deduplicate: bool = False,
        once: Once | None = None,
    ) -> list[int]:
        """As `add_batch` of the engine; the model is asked in the background."""
        return self._all(
            scope, drafts, lambda ready: self._engine.add_batch(scope, ready, deduplicate=deduplicate, once=once)
        )

    def upsert(self, scope: Scope, drafts: Sequence[tuple[MemoryDraft, Wanted]]) -> list[UpsertOutcome]:
        """As `upsert` of the engine; the model is asked in the background."""
        return self._all(scope, drafts, lambda ready: self._engine.upsert(scope, ready))

    def update(self, scope: Scope, memory_id: int, patch: MemoryPatch, wanted: Wanted = NONE_WANTED) -> Stored:
        """Change a memory. A new text without new facts takes the old facts away; with `split` it is split at once.

        :raises MemoryNotFound: If there is none of that id that the scope sees; then no model is asked.
        :raises NothingToDo: If nothing is to be changed.
        """
        failure = None
        if wanted.given is not None:
            patch = _with(patch, given(wanted.given))
        elif wanted.split and patch.text is not None:
            before = self._memory(scope, memory_id)
            patch = self._engine.screening.patch(scope, patch)
            if patch.text is not None and not (patch.text == before.text and before.facts):
                found = self._split(scope, patch.text)
                patch, failure = _with(patch, found), found.failure
        after = self._engine.patch(scope, memory_id, patch)
        pending = self._is_waiting(scope, memory_id)
        if pending:
            self.later.wake()
        return Stored(after, pending, failure)

    def split_again(self, scope: Scope, memory_id: int) -> Stored:
        """Split what a memory says now. While the model cannot be asked, facts that it has stay until then.

        :raises MemoryNotFound: If there is none of that id that the scope sees.
        :raises Conflict: If somebody changes it all the time.
        """
        for _ in range(ATTEMPTS):
            memory = self._memory(scope, memory_id)
            require_writable(scope, memory.source)
            found = self._split(scope, memory.text)
            if found.later and memory.facts:
                self._let_wait(scope, memory_id)
                return Stored(memory, pending=True, failure=found.failure)
            written = write_facts(self._engine, scope, memory, found)
            if written is not None:
                self.later.wake()
                return Stored(written, found.later, found.failure)
        raise Conflict(f"Memory ID {memory_id} was changed by others again and again; try again in a moment")

    def page(self, scope: Scope, memory_id: int | None = None, *, offset: int, limit: int) -> FactPage:
        """The facts of a memory, or of all that the scope sees, in the order of the memories.

        :raises MemoryNotFound: If there is none of that id that the scope sees.
        """
        if memory_id is not None:
            self._memory(scope, memory_id)
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return FactPage((), 0)
            return FactPage(*fact_pages.page(connection, namespace, memory_id=memory_id, offset=offset, limit=limit))

    # --- inside ------------------------------------------------------------------------------------------------

    def _all(
        self,
        scope: Scope,
        drafts: Sequence[tuple[MemoryDraft, Wanted]],
        store: Callable[[Sequence[MemoryDraft]], T],
    ) -> T:
        ready = [self._with_facts(scope, draft, wanted, wait=False)[0] for draft, wanted in drafts]
        stored = store(ready)
        if any(draft.split_later for draft in ready):
            self.later.wake()
        return stored

    def _with_facts(
        self, scope: Scope, draft: MemoryDraft, wanted: Wanted, *, wait: bool
    ) -> tuple[MemoryDraft, str | None]:
        """:return: The draft with its facts, and why no model split it."""
        if wanted.given is not None:
            found = given(wanted.given)
        elif wanted.split:
            require_writable(scope, draft.source)
            draft = self._engine.screening.draft(scope, draft)
            found = self._split(scope, draft.text, wait=wait)
        else:
            return draft, None
        return replace(draft, facts=found.facts, facts_by=found.made_by, split_later=found.later), found.failure

    def _split(self, scope: Scope, text: str, *, wait: bool = True) -> Split:
        return allowed(self._engine, scope, self._split_in_time(text, wait=wait))

    def _split_in_time(self, text: str, *, wait: bool) -> Split:
        if self._provider is None or needs_no_model(text):
            return by_sentences(text)
        may_wait = wait and self._timeout_s > 0 and self._places.acquire(blocking=False)
        if not may_wait:
            return replace(by_sentences(text), failure=IN_THE_BACKGROUND, later=True)
        try:
            with deadline(min(self._timeout_s, SHARE_OF_TIME * time_left(NO_DEADLINE_S))):
                return split(text, self._provider, self._engine.analyser.terms)
        finally:
            self._places.release()

    def _memory(self, scope: Scope, memory_id: int) -> Memory:
        memory = self._engine.get(scope, [memory_id]).get(memory_id)
        if memory is None:
            raise MemoryNotFound(memory_id)
        return memory

    def _stored(self, scope: Scope, memory_id: int, failure: str | None) -> Stored | None:
        """None if it was deleted meanwhile."""
        pending = self._is_waiting(scope, memory_id)
        memory = self._engine.get(scope, [memory_id]).get(memory_id)
        return None if memory is None else Stored(memory, pending, failure)

    def _is_waiting(self, scope: Scope, memory_id: int) -> bool:
        with self._engine.namespace(scope) as (connection, _):
            return unsplit.is_waiting(connection, memory_id)

    def _is_repeated(self, scope: Scope, once: Once | None) -> bool:
        """Whether the same request was done before, so that no model need be asked again."""
        if once is None:
            return False
        with self._engine.namespace(scope) as (connection, namespace):
            return namespace is not None and bool(made_before(connection, namespace.id, scope.actor, once, utc_now()))

    def _let_wait(self, scope: Scope, memory_id: int) -> None:
        def work(tx: Transaction) -> None:
            rows.wait(tx.connection, tx.namespace_id, memory_id, tx.now)

        self._engine.write(scope, work)
        self.later.wake()


def _with(patch: MemoryPatch, found: Split) -> MemoryPatch:
    return replace(patch, facts=found.facts, facts_by=found.made_by, split_later=found.later)
