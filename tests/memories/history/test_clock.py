"""The clock goes back; the times of a memory do not, so that reads of an earlier time stay right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import pytest

from souvenir.core.types import HistoryEntry, Memory, MemoryDraft, MemoryPatch, Origin, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.memories import reads
from souvenir.store.transaction import Transaction
from tests.store.stored import NOW

SCOPE = Scope()
DAY = timedelta(days=1)


def at(engine: MemoryEngine, now: datetime, work: Callable[[Transaction], Memory | None]) -> Memory | None:
    """Write with the clock at a time."""
    return engine.models.write(SCOPE, now, work)


def stored_at(engine: MemoryEngine, now: datetime, text: str, **fields: object) -> int:
    draft = MemoryDraft(text, "notes", **fields)  # type: ignore[arg-type]
    [passages] = engine.prepare_drafts([draft])
    memory = at(engine, now, lambda tx: tx.insert(draft, passages))
    assert memory is not None
    return memory.id


def pinned_at(engine: MemoryEngine, now: datetime, memory_id: int, *, pinned: bool) -> Memory:
    changed = at(engine, now, lambda tx: tx.update(memory_id, MemoryPatch(pinned=pinned), ()))
    assert changed is not None
    return changed


def times_of(engine: MemoryEngine, memory_id: int) -> Sequence[datetime]:
    return [entry.at for entry in engine.history(SCOPE, memory_id).entries]


def test_changes_are_never_dated_before_the_one_before_them(engine: MemoryEngine):
    memory_id = stored_at(engine, NOW, "the plan")
    assert pinned_at(engine, NOW + DAY, memory_id, pinned=True).updated_at == NOW + DAY
    assert pinned_at(engine, NOW - DAY, memory_id, pinned=False).updated_at == NOW + DAY
    assert pinned_at(engine, NOW + 2 * DAY, memory_id, pinned=True).updated_at == NOW + 2 * DAY
    assert times_of(engine, memory_id) == [NOW, NOW + DAY, NOW + DAY, NOW + 2 * DAY]
    seen = [engine.memory(SCOPE, memory_id, NOW + day * DAY).pinned for day in (0, 1, 2)]
    assert seen == [False, False, True]


def test_a_deletion_is_dated_after_the_changes(engine: MemoryEngine):
    memory_id = stored_at(engine, NOW, "the plan")
    at(engine, NOW - DAY, lambda tx: tx.delete([memory_id]))
    assert times_of(engine, memory_id) == [NOW, NOW]


def test_the_clock_does_not_end_validity_before_it_begins(engine: MemoryEngine):
    memory_id = stored_at(engine, NOW, "the plan is A")
    draft = MemoryDraft("the plan is B", "notes")
    [passages] = engine.prepare_drafts([draft])
    new = at(engine, NOW - DAY, lambda tx: tx.supersede(tx.memory(memory_id), draft, passages))
    old = engine.memory(SCOPE, memory_id)
    assert (old.valid_to, old.updated_at) == (NOW, NOW)
    assert new is not None
    [link] = engine.memory(SCOPE, new.id).links
    assert (link.type, link.created_at) == (reads.SUPERSEDES, NOW)


def test_a_document_may_end_the_validity_of_a_memory_before_both_were_stored(engine: MemoryEngine):
    memory_id = stored_at(engine, NOW, "the plan is A")
    draft = MemoryDraft("the plan is B", "notes", document_at=NOW - 5 * DAY)
    [passages] = engine.prepare_drafts([draft])
    at(engine, NOW, lambda tx: tx.supersede(tx.memory(memory_id), draft, passages))
    assert engine.memory(SCOPE, memory_id).valid_to == NOW - 5 * DAY


@pytest.mark.parametrize("back", [DAY, 9 * DAY])
def test_imported_times_are_put_in_order(engine: MemoryEngine, back: timedelta):
    entries = tuple(HistoryEntry("update", "x", when, None, None) for when in (NOW, NOW - back, NOW + DAY))
    draft = MemoryDraft("imported", "notes")
    [passages] = engine.prepare_drafts([draft])
    origin = Origin(NOW, NOW - back, history=entries)
    memory = at(engine, NOW + DAY / 2, lambda tx: tx.insert(draft, passages, action="import", origin=origin))
    assert memory is not None
    found = engine.memory(SCOPE, memory.id)
    assert (found.created_at, found.updated_at) == (NOW, NOW)
    assert times_of(engine, memory.id) == [NOW, NOW, NOW + DAY / 2, NOW + DAY / 2]
