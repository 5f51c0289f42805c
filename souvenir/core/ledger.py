"""The ledger of an extraction: proposed facts, the decisions about them, and their outcomes.

Values only; who proposes, decides and applies is said in `souvenir.learning`, how they are stored in
`souvenir.store.learning.extractions`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from souvenir.core.stored_json import IsoTime, StoredJson
from souvenir.core.types import JsonObject, OriginClass


class Phase(StrEnum):
    """The phase of an extraction. What is decided and not applied waits for a commit or an approval."""

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
    """What is decided about a fact."""

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


class TextSpan(NamedTuple):
    """Characters of the kept transcript, `end` not included."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class LedgerFact:
    """A statement that was found in a transcript.

    :param origin_class: Of the turn in which its quote stands; `inferred` if it stands nowhere.
    :param event_at: When what it says happened; None: not known.
    :param span: Where its quote stands.
    """

    text: str
    category: Category
    origin_class: OriginClass
    span: TextSpan | None = None
    speaker: str | None = None
    event_at: IsoTime | None = None


class Seen(NamedTuple):
    """A memory as the model saw it: `version` is the id of its last row in the history."""

    memory_id: int
    version: int


@dataclass(frozen=True, slots=True)
class Decision:
    """:param target: The memory that is updated, deleted, said again or contradicted; None of an ADD.

    :param text: The new text of an UPDATE, if it is not the fact's own.
    :param reason: Why, in a sentence.
    :param candidates: Every memory that was shown with the fact.
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
    fact: LedgerFact | None
    decision: Decision | None = None
    outcome: JsonObject = field(default_factory=dict)
    memory_id: int | None = None


FACT_JSON = StoredJson(LedgerFact, unknown="ignore")
DECISION_JSON = StoredJson(Decision, unknown="ignore")
