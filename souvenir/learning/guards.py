"""The scope of a job, and the rules its decisions must obey, whoever decided and however they were talked into it.

The rules are pure: decisions and the memories they are about go in, a step for each fact comes out. No rule loses a
fact: what may not replace a memory is stored in addition to it. Only a fact about a deleted memory is not stored at
all, since the deletion was a request to forget it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from souvenir.core.ledger import Decision, FactRow, LedgerFact, Verdict
from souvenir.core.types import Memory, Scope
from souvenir.store.learning.extractions import ExtractionRecord
from souvenir.store.transaction import require_writable

PROTECTED = "protected"
"""The metadata key of a memory that no job changes."""

KEPT_SHARE = 0.5
"""Of the terms of a memory: an update that keeps fewer removes more than it corrects, and counts as a deletion."""

CHANGING = (Verdict.UPDATE, Verdict.DELETE, Verdict.CONFLICT)
"""Verdicts that hold only while their memory is what the model saw."""


class Reason(StrEnum):
    """Why something else was done than what was decided.

    Its memory may not be changed by this fact, was changed by another fact of the job, is not what the model saw, does
    not live any more, was deleted; or the fact says nothing new.
    """

    PROTECTED = "protected"
    CHANGED_FIRST = "changed_first"
    CHANGED_MEANWHILE = "changed_meanwhile"
    NOT_LIVING = "not_living"
    FORGOTTEN = "forgotten"
    NOTHING_NEW = "nothing_new"


Terms = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """What is done about a fact.

    :param verdict: None: nothing.
    :param reason: Why it is not done as it was decided.
    :param removes: Whether a memory loses most of what it says.
    :param after: The fact whose result is the target, if that took the place of the one which was decided about.
    """

    row: FactRow
    fact: LedgerFact
    decision: Decision
    verdict: Verdict | None
    target: Memory | None = None
    reason: Reason | None = None
    removes: bool = False
    after: int | None = None

    @property
    def text(self) -> str:
        """What is stored, if anything is."""
        return new_text(self.fact, self.decision, self.verdict)


@dataclass(frozen=True, slots=True)
class World:
    """What the decisions meet.

    :param memories: Those of the targets that the job may see, by id.
    :param versions: Their versions, by id.
    :param gone: Targets that were deleted.
    :param beside: Facts that are not asked about again, by ordinal, and whether they say anything new.
    """

    memories: Mapping[int, Memory]
    versions: Mapping[int, int]
    gone: Collection[int]
    beside: Mapping[int, bool] = field(default_factory=dict)


def new_text(fact: LedgerFact, decision: Decision, verdict: Verdict | None) -> str:
    """An update may say more than its fact does: what it keeps of the memory. Beside a memory, the fact is enough."""
    return decision.text or fact.text if verdict is Verdict.UPDATE else fact.text


def is_forgotten(row: FactRow, world: World) -> bool:
    """Whether a fact is about a memory that was deleted meanwhile: it must not bring that back."""
    target = None if row.decision is None else row.decision.target
    return row.fact is None or row.decision is None or (target is not None and target.memory_id in world.gone)


def stale(rows: Sequence[FactRow], world: World) -> list[FactRow]:
    """Those whose memory is not what the model saw, and that can be asked about again."""
    return [
        row
        for row in rows
        if row.ordinal not in world.beside and not is_forgotten(row, world) and _is_stale(row, world)
    ]


def plan(rows: Sequence[FactRow], world: World, *, terms: Terms) -> list[PlannedStep]:
    """A step for each fact that is not forgotten, in their order.

    Of two facts that change one memory the first does, and the second stands beside what came of that: it was decided
    without knowing of the first.

    :param terms: What a text says.
    """
    steps: list[PlannedStep] = []
    changed: dict[int, PlannedStep] = {}
    for row in rows:
        if row.fact is None or row.decision is None or is_forgotten(row, world):
            continue
        step = _step(row, row.fact, row.decision, world, changed)
        target = step.target
        if target is not None and step.verdict in (Verdict.UPDATE, Verdict.DELETE):
            step = replace(step, removes=_removes(target.text, step.text, step.verdict, terms))
            changed[target.id] = step
        steps.append(step)
    return steps


def _step(
    row: FactRow, fact: LedgerFact, decision: Decision, world: World, changed: Mapping[int, PlannedStep]
) -> PlannedStep:
    def step(verdict: Verdict | None, reason: Reason | None = None, *, after: int | None = None) -> PlannedStep:
        return PlannedStep(row, fact, decision, verdict, memory if verdict in CHANGING else None, reason, after=after)

    memory = None if decision.target is None else world.memories.get(decision.target.memory_id)
    earlier = None if memory is None else changed.get(memory.id)
    deletes = decision.verdict is Verdict.DELETE
    if decision.verdict not in CHANGING:
        return step(decision.verdict)
    if earlier is not None:
        if deletes:
            return step(None, Reason.CHANGED_FIRST)
        if earlier.verdict is Verdict.DELETE:
            return step(Verdict.ADD, Reason.CHANGED_FIRST)
        return step(Verdict.CONFLICT, Reason.CHANGED_FIRST, after=earlier.row.ordinal)
    if _is_stale(row, world):
        if not world.beside.get(row.ordinal, True):
            return step(None, Reason.NOTHING_NEW)
        is_living = memory is not None and not memory.archived
        return step(Verdict.CONFLICT if is_living else Verdict.ADD, Reason.CHANGED_MEANWHILE)
    if memory is None or memory.archived:
        return step(None if deletes else Verdict.ADD, Reason.NOT_LIVING)
    if decision.verdict is not Verdict.CONFLICT and not may_change(fact, memory):
        return step(None if deletes else Verdict.CONFLICT, Reason.PROTECTED)
    return step(decision.verdict)


def _is_stale(row: FactRow, world: World) -> bool:
    decision = row.decision
    if decision is None or decision.target is None or decision.verdict not in CHANGING:
        return False
    return world.versions.get(decision.target.memory_id) != decision.target.version


def may_change(fact: LedgerFact, memory: Memory) -> bool:
    """Whether a fact may take a memory's place or remove it: not of one that is pinned, protected or more trusted."""
    is_protected = memory.pinned or bool(memory.metadata.get(PROTECTED))
    return not is_protected and fact.origin_class.trust >= memory.origin_class.trust


def _removes(old: str, new: str, verdict: Verdict, terms: Terms) -> bool:
    """Whether most of what a memory says is gone afterwards: a deletion may call itself an update."""
    if verdict is Verdict.DELETE:
        return True
    said = set(terms(old))
    return len(said & set(terms(new))) < KEPT_SHARE * len(said)


# --- the scope of a job ----------------------------------------------------------------------------------------------


NO_SOURCE = "extract"
"""Where facts are stored that were learned without a source."""


def source_of(extraction: ExtractionRecord) -> str:
    """Where its new memories are stored."""
    return extraction.source or NO_SOURCE


def reach_of(scope: Scope, extraction: ExtractionRecord) -> Scope:
    """A caller's scope, narrowed to what the job is about.

    :raises SourceForbidden: If the caller may not write to its source.
    """
    require_writable(scope, source_of(extraction))
    return replace(scope, sources=(extraction.source,)) if extraction.source else scope


def serial_key(namespace: str, source: str) -> str:
    """Jobs of one source run one after another, so that each sees what the one before has learned."""
    return f"{namespace}\n{source}"
