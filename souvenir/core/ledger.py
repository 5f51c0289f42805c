"""The ledger of an extraction: proposed facts, the decisions about them, and their outcomes.

Values only; `souvenir.learning` proposes, decides and applies them, and `souvenir.store.learning.extractions` stores
them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from souvenir.core.stored_json import IsoTime, StoredJson
from souvenir.core.types import JsonObject, OriginClass


class Phase(StrEnum):
    """The phase of an extraction. A decided extraction waits for a commit or an approval before it is applied."""

    PROPOSING = "proposing"
    DECIDING = "deciding"
    DECIDED = "decided"
    APPLIED = "applied"
    UNDONE = "undone"


class FactStage(StrEnum):
    """The stage of a fact; the last four are final."""

    PROPOSED = "proposed"
    DECIDED = "decided"
    APPLIED = "applied"
    SKIPPED = "skipped"
    FAILED = "failed"
    UNDONE = "undone"


class Category(StrEnum):
    """The category of a fact."""

    DECISION = "DECISION"
    LEARNING = "LEARNING"
    DETAIL = "DETAIL"


class Verdict(StrEnum):
    """The decision about a fact."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NOOP = "NOOP"
    CONFLICT = "CONFLICT"


class DecidedBy(StrEnum):
    """The origin of a decision: the model, the novelty gate, an overriding rule, or the fallback without a model."""

    MODEL = "model"
    NOVELTY = "novelty"
    RULE = "rule"
    FALLBACK = "fallback"


class TextSpan(NamedTuple):
    """Characters of the stored transcript, `end` excluded."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class LedgerFact:
    """A statement found in a transcript.

    :param origin_class: Of the message that contains its quote; `inferred` if none does.
    :param event_at: The time of the described event; None if unknown.
    :param span: The position of its quote.
    """

    text: str
    category: Category
    origin_class: OriginClass
    span: TextSpan | None = None
    speaker: str | None = None
    event_at: IsoTime | None = None


class Seen(NamedTuple):
    """A memory as the model saw it: `version` is the id of its last history row."""

    memory_id: int
    version: int


@dataclass(frozen=True, slots=True)
class Decision:
    """:param target: The memory that is updated, deleted, restated or contradicted; None for an ADD.

    :param text: The new text of an UPDATE, if it differs from the fact.
    :param reason: One sentence.
    :param candidates: Every memory that was shown with the fact.
    :param prompt: Name and version of the prompt, such as `decide@1`; None if no model was called.
    :param similarity: Cosine to the nearest memory, if the novelty gate computed it.
    :param asked: Number of decisions: a change of a memory in the meantime requires a new one.
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

    :param outcome: The outcome as shown to clients, and the data for undoing it.
    """

    ordinal: int
    stage: FactStage
    fact: LedgerFact | None
    decision: Decision | None = None
    outcome: JsonObject = field(default_factory=dict)
    memory_id: int | None = None


FACT_JSON = StoredJson(LedgerFact, unknown="ignore")
DECISION_JSON = StoredJson(Decision, unknown="ignore")
