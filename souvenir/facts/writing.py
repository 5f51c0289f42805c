"""Facts on their way into the store, where a memory says already what was split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from memory_engine import MemoryEngine
from souvenir.engine.drafts import write_patch
from souvenir.errors import PersonalDataRejected
from souvenir.facts.splitting import Split
from souvenir.passages import PreparedPassage
from souvenir.store import reads
from souvenir.store.transaction import NewFacts, Transaction
from souvenir.types import Memory, MemoryPatch, Scope

Beside = Callable[[Transaction, Memory | None], None]
"""Writes something in the same transaction, told of the memory as it is now, or None if it was not changed."""


def _nothing(tx: Transaction, written: Memory | None) -> None:
    return None


def allowed(engine: MemoryEngine, scope: Scope, found: Split) -> Split:
    """What was split as it may be stored. A fact that the policy rejects is left out: the text itself was let in."""
    policy, kept = engine.screening.applied(scope), dict[str, None]()
    for fact in found.facts:
        with suppress(PersonalDataRejected):
            kept.setdefault(policy.text(fact))
    return replace(found, facts=tuple(kept))


def write_facts(
    engine: MemoryEngine,
    scope: Scope,
    memory: Memory,
    found: Split,
    *,
    job_id: str | None = None,
    beside: Beside = _nothing,
) -> Memory | None:
    """Let a memory have these facts if it is what was split, with the facts that it had; else None.

    Facts that somebody gave meanwhile stay. It does not count as changed by it.

    :param found: Facts that are `allowed`.
    """
    new = NewFacts(found.facts, found.made_by, found.later)

    def write(passages: Sequence[PreparedPassage]) -> Memory | None:
        return engine.write(scope, lambda tx: work(tx, passages))

    def work(tx: Transaction, passages: Sequence[PreparedPassage]) -> Memory | None:
        tx.job_id = job_id
        now = reads.memories(tx.connection, tx.namespace, [memory.id]).get(memory.id)
        written = None
        if now is not None and (now.text, now.facts) == (memory.text, memory.facts):
            written = tx.split(memory.id, new, passages)
        beside(tx, written)
        return written

    return write_patch(engine.prepare, MemoryPatch(facts=found.facts), memory, write)
