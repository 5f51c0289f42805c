"""What the ledger of an extraction holds: facts that were proposed, what was decided about them, what came of it.

Values only; who proposes, decides and applies is said in `souvenir.extraction`, how they are stored in
`souvenir.store.extractions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from souvenir.types import JsonObject, OriginClass


class Phase(StrEnum):
    """How far an extraction is. What is decided and not applied waits: for a commit, or for an approval."""

    PROPOSING = "proposing"
    DECIDING = "deciding"
    DECIDED = "decided"
    APPLIED = "applied"
    UNDONE = "undone"


class FactStage(StrEnum):
    """How far a fact is; the last four are where it ends."""

    PROPOSED = "proposed"
    DECIDED = "decided"
    APPLIED = "applied"
    SKIPPED = "skipped"
    FAILED = "failed"
    UNDONE = "undone"


class Category(StrEnum):
    """What kind of statement a fact is."""

    DECISION = "DECISION"
    LEARNING = "LEARNING"
    DETAIL = "DETAIL"


class Verdict(StrEnum):
    """What shall become of a fact."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NOOP = "NOOP"
    CONFLICT = "CONFLICT"


class DecidedBy(StrEnum):
    """Who decided: the model, the novelty gate, a rule that overruled it, or the fallback for want of one."""

    MODEL = "model"
    NOVELTY = "novelty"
    RULE = "rule"
    FALLBACK = "fallback"


@dataclass(frozen=True, slots=True)
class Span:
    """Characters of the kept transcript, `end` not included."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement that was found in a transcript.

    :param origin_class: Of the turn in which its quote stands; `inferred` if it stands nowhere.
    :param event_at: When what it says happened; None: not known.
    :param span: Where its quote stands.
    """

    text: str
    category: Category
    origin_class: OriginClass
    span: Span | None = None
    speaker: str | None = None
    event_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """A memory as the model saw it: `version` is the id of its last row in the history."""

    memory_id: int
    version: int


@dataclass(frozen=True, slots=True)
class Decision:
    """:param target: The memory that is updated, deleted, said again or contradicted; None of an ADD.

    :param text: The new text of an UPDATE, if it is not the fact's own.
    :param reason: Why, in a sentence.
    :param candidates: Every memory that was shown beside the fact.
    :param prompt: Name and version of the prompt, such as `decide@1`; None where no model was asked.
    :param similarity: Cosine to the nearest memory, where the novelty gate looked.
    :param asked: How often it was decided: again each time that a memory changed meanwhile.
    """

    verdict: Verdict
    by: DecidedBy
    reason: str
    target: Seen | None = None
    text: str | None = None
    candidates: tuple[Seen, ...] = ()
    prompt: str | None = None
    model: str | None = None
    similarity: float | None = None
    asked: int = 1


@dataclass(frozen=True, slots=True)
class FactRow:
    """A row of the ledger. `fact` and `decision` are None once they are forgotten.

    :param outcome: What came of it, as clients see it, and what undoing it needs.
    """

    ordinal: int
    stage: FactStage
    fact: Fact | None
    decision: Decision | None = None
    outcome: JsonObject = field(default_factory=dict)
    memory_id: int | None = None


def fact_json(fact: Fact) -> dict[str, Any]:
    return {
        "text": fact.text,
        "category": fact.category.value,
        "origin_class": fact.origin_class.value,
        "span": None if fact.span is None else [fact.span.start, fact.span.end],
        "speaker": fact.speaker,
        "event_at": None if fact.event_at is None else fact.event_at.isoformat(),
    }


def fact_of(value: JsonObject) -> Fact:
    """The reverse of `fact_json`."""
    span, event_at = value["span"], value["event_at"]
    return Fact(
        text=value["text"],
        category=Category(value["category"]),
        origin_class=OriginClass(value["origin_class"]),
        span=None if span is None else Span(*span),
        speaker=value["speaker"],
        event_at=None if event_at is None else datetime.fromisoformat(event_at),
    )


def decision_json(decision: Decision) -> dict[str, Any]:
    return {
        "verdict": decision.verdict.value,
        "by": decision.by.value,
        "reason": decision.reason,
        "target": None if decision.target is None else _seen_json(decision.target),
        "text": decision.text,
        "candidates": [_seen_json(one) for one in decision.candidates],
        "prompt": decision.prompt,
        "model": decision.model,
        "similarity": decision.similarity,
        "asked": decision.asked,
    }


def decision_of(value: JsonObject) -> Decision:
    """The reverse of `decision_json`."""
    return Decision(
        verdict=Verdict(value["verdict"]),
        by=DecidedBy(value["by"]),
        reason=value["reason"],
        target=None if value["target"] is None else _seen_of(value["target"]),
        text=value["text"],
        candidates=tuple(map(_seen_of, value["candidates"])),
        prompt=value["prompt"],
        model=value["model"],
        similarity=value["similarity"],
        asked=value["asked"],
    )


def _seen_json(seen: Seen) -> list[int]:
    return [seen.memory_id, seen.version]


def _seen_of(value: Sequence[int]) -> Seen:
    return Seen(*value)
