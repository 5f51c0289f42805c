"""The decision of a smart import per line: skip a duplicate, update a similar older memory, or add it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from souvenir.core.labels import joined
from souvenir.core.passages import PreparedPassage
from souvenir.core.stored_json import same_json
from souvenir.core.types import Memory, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.memories import reads
from souvenir.store.transaction import Transaction
from souvenir.transfer.lines import ImportLine

SAME_SIMILARITY = 0.95
"""Minimum cosine at which a line is a duplicate."""

OTHER_SIMILARITY = 0.80
"""Cosine below which a line is about another subject."""


class Decision(Enum):
    ADD = auto()
    SKIP = auto()
    UPDATE = auto()


@dataclass(frozen=True, slots=True)
class Verdict:
    """`memory_id` is the memory that represents the line if it is not added."""

    decision: Decision
    memory_id: int | None = None


def decide(engine: MemoryEngine, scope: Scope, line: ImportLine, passages: Sequence[PreparedPassage]) -> Verdict:
    """Decide by the nearest stored text.

    An archived line never updates a memory: it is added, unless an archived memory duplicates it.
    """
    archived = line.draft.archived
    nearest = engine.nearest_of(scope, passages, include_archived=archived)
    if nearest is None:
        return Verdict(Decision.ADD)
    memory, similarity = nearest
    if similarity < OTHER_SIMILARITY or (archived and not (memory.archived and similarity >= SAME_SIMILARITY)):
        return Verdict(Decision.ADD)
    newer = line.origin.created_at > memory.created_at and not memory.pinned
    return Verdict(Decision.UPDATE if newer and similarity < SAME_SIMILARITY else Decision.SKIP, memory.id)


def decide_in(tx: Transaction, line: ImportLine, found: Verdict) -> Verdict:
    """Revalidate the result of `decide` in the transaction; an active memory with the (source, key) has precedence."""
    draft = line.draft
    if draft.key is not None and not draft.archived:
        held = reads.keyed_memory_id(tx.connection, tx.namespace_id, draft.source, draft.key)
        if held is not None:
            return Verdict(Decision.SKIP if _equals(tx.memory(held), line) else Decision.UPDATE, held)
    if found.memory_id is None:
        return found
    memory = reads.memories(tx.connection, tx.namespace, [found.memory_id]).get(found.memory_id)
    return found if memory is not None and memory.archived == draft.archived else Verdict(Decision.ADD)


def _equals(memory: Memory, line: ImportLine) -> bool:
    """True if an update with the line would change nothing."""
    draft = line.draft
    facts = tuple(fact.text for fact in memory.facts)
    if joined(memory.tags, draft.tags) != memory.tags or draft.facts not in ((), facts):
        return False
    held = {name: value for name, value in memory.metadata.items() if name in draft.metadata}
    return (memory.text, memory.document_at) == (draft.text, draft.document_at) and same_json(
        held, dict(draft.metadata)
    )
