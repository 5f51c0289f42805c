"""The decision of a smart import per line: skip a duplicate, update a similar older memory, or add it.

Between the two thresholds the newer text wins, or a language model compares the two texts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum, auto
from pathlib import Path

from pydantic import BaseModel

from souvenir.core.labels import joined
from souvenir.core.passages import PreparedPassage
from souvenir.core.stored_json import same_json
from souvenir.core.types import Memory, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.prompts import prompt_of
from souvenir.models.llm.provider import LLMProvider
from souvenir.store.memories import reads
from souvenir.store.transaction import Transaction
from souvenir.transfer.lines import ImportLine

SAME_SIMILARITY = 0.95
"""Minimum cosine at which a line is a duplicate."""

OTHER_SIMILARITY = 0.80
"""Cosine below which a line is about another subject."""

MAX_COMPARED_CHARS = 6_000
"""Of each text that a model compares."""

_PROMPTS = Path(__file__).with_name("prompts")


class Decision(Enum):
    ADD = auto()
    SKIP = auto()
    UPDATE = auto()


@dataclass(frozen=True, slots=True)
class Verdict:
    """`memory_id` is the memory that represents the line if it is not added."""

    decision: Decision
    memory_id: int | None = None


class Relation(StrEnum):
    """What an imported text is to a similar stored one."""

    SAME = "SAME"
    UPDATE = "UPDATE"
    OTHER = "OTHER"


class ComparisonAnswer(BaseModel):
    """The output of the model."""

    relation: Relation
    reason: str


def decide(
    engine: MemoryEngine,
    scope: Scope,
    line: ImportLine,
    passages: Sequence[PreparedPassage],
    provider: LLMProvider | None = None,
) -> Verdict:
    """Decide by the nearest stored text.

    An archived line never updates a memory: it is added, unless an archived memory duplicates it.

    :param provider: Compares the texts where their similarity does not decide; without it, the newer one wins.
    :raises LLMError: If it gives no usable answer.
    """
    archived = line.draft.archived
    nearest = engine.nearest_text_of(scope, passages, include_archived=archived)
    if nearest is None:
        return Verdict(Decision.ADD)
    memory, similarity = nearest
    if similarity < OTHER_SIMILARITY:
        return Verdict(Decision.ADD)
    if archived and not (memory.archived and similarity >= SAME_SIMILARITY):
        return Verdict(Decision.ADD)
    if similarity >= SAME_SIMILARITY:
        return Verdict(Decision.SKIP, memory.id)
    if provider is None:
        updates = line.origin.created_at > memory.created_at
    else:
        relation = _relation(provider, line, memory)
        if relation is Relation.OTHER:
            return Verdict(Decision.ADD)
        updates = relation is Relation.UPDATE
    return Verdict(Decision.UPDATE if updates and not memory.pinned else Decision.SKIP, memory.id)


def _relation(provider: LLMProvider, line: ImportLine, memory: Memory) -> Relation:
    """:raises LLMError: If the model gives no usable answer."""
    compared = {
        "stored": _said(memory.text, memory.occurred_at),
        "imported": _said(line.draft.text, line.draft.document_at or line.origin.created_at),
    }
    asked = prompt_of(_PROMPTS, "compare", json.dumps(compared, ensure_ascii=False))
    return provider.generate(asked, ComparisonAnswer).value.relation


def _said(text: str, at: datetime) -> dict[str, str]:
    return {"date": at.date().isoformat(), "statement": text[:MAX_COMPARED_CHARS]}


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
