"""Write the facts of a stored memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from souvenir.core.errors import PersonalDataRejected
from souvenir.core.passages import PreparedPassage
from souvenir.core.types import Memory, MemoryPatch, Scope
from souvenir.memories.fact_splitting import Split
from souvenir.memories.indexed_store import IndexedStore
from souvenir.retrieval.preparation import write_patch
from souvenir.store.memories import reads
from souvenir.store.transaction import NewFacts, Transaction

AlsoWrite = Callable[[Transaction, Memory | None], None]
"""Writes more in the same transaction; gets the memory as written, or None if it was left unchanged."""


def _nothing(tx: Transaction, written: Memory | None) -> None:
    return None


def allowed(store: IndexedStore, scope: Scope, found: Split) -> Split:
    """Redact facts by the policy. A fact that it rejects is dropped, since the text itself was accepted."""
    policy, kept = store.screening.applied(scope), dict[str, None]()
    for fact in found.facts:
        with suppress(PersonalDataRejected):
            kept.setdefault(policy.text(fact))
    return replace(found, facts=tuple(kept))


def write_facts(
    store: IndexedStore,
    scope: Scope,
    memory: Memory,
    found: Split,
    *,
    job_id: str | None = None,
    also: AlsoWrite = _nothing,
) -> Memory | None:
    """Set the facts of a memory whose text and facts are still those given; otherwise change nothing and return None.

    The memory does not count as changed.

    :param found: Facts that are `allowed`.
    """
    new = NewFacts(found.facts, found.made_by, found.later)

    def write(passages: Sequence[PreparedPassage]) -> Memory | None:
        return store.write(scope, lambda tx: work(tx, passages))

    def work(tx: Transaction, passages: Sequence[PreparedPassage]) -> Memory | None:
        tx.job_id = job_id
        now = reads.memories(tx.connection, tx.namespace, [memory.id]).get(memory.id)
        written = None
        if now is not None and (now.text, now.facts) == (memory.text, memory.facts):
            written = tx.split(memory.id, new, passages)
        also(tx, written)
        return written

    return write_patch(store.prepare, MemoryPatch(facts=found.facts), memory, write)
