"""The scope and guidance of a job, the rules for its decisions regardless of the model, and outcomes of skipped facts.

The rules are pure functions from decisions and their memories to one step for each fact. No rule loses a fact: a fact
that may not replace a memory is stored as an additional memory. The only exception is a fact about a deleted memory,
which is not stored, because the deletion was a request to forget it. A fact that a caller committed separately is
marked, so that its own job does not apply it again. Guidance is fixed when an extraction is submitted: a later change
of settings or profile does not affect a running job.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from souvenir.core.errors import SourceReserved
from souvenir.core.labels import PROJECT, PROTECTED, belongs_to_another, lies_in
from souvenir.core.ledger import Decision, FactRow, FactStage, LedgerFact, Phase, Verdict
from souvenir.core.settings import Settings
from souvenir.core.stored_json import StoredJson
from souvenir.core.types import JsonObject, Memory, Scope
from souvenir.store.admin import jobs
from souvenir.store.admin.jobs import JobStatus
from souvenir.store.learning import extractions
from souvenir.store.learning.extractions import ExtractionRecord
from souvenir.store.learning.profiles import ExtractionMode, ExtractionProfile
from souvenir.store.sql import Connection
from souvenir.store.transaction import require_writable

KEPT_SHARE = 0.5
"""Share of the terms of a memory.

An update that keeps fewer removes more than it corrects, and counts as a deletion.
"""

CHANGING = (Verdict.UPDATE, Verdict.DELETE, Verdict.CONFLICT)
"""Verdicts that are valid only while their memory is unchanged since the model saw it."""


class Reason(StrEnum):
    """Why the executed step differs from the decision.

    The memory may not be changed by this fact, was changed by another fact of the job, differs from what the model saw,
    is
    archived, or was deleted; or the fact says nothing new.
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
    """The step planned for a fact.

    :param verdict: None if nothing is done.
    :param reason: Why the step differs from the decision, or None.
    :param removes: True if a memory loses most of its content.
    :param after: The fact whose result is the target, if it replaced the memory that the decision was about.
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
        """The text to store, if the step stores any."""
        return new_text(self.fact, self.decision, self.verdict)


@dataclass(frozen=True, slots=True)
class World:
    """The state that decisions are checked against.

    :param scope: Of the job.
    :param memories: The target memories that are visible to it, by id.
    :param versions: Their versions, by id.
    :param gone: Targets that were deleted.
    :param novelty: Facts that are not decided again, by ordinal; True if the fact is novel.
    """

    scope: Scope
    memories: Mapping[int, Memory]
    versions: Mapping[int, int]
    gone: Collection[int]
    novelty: Mapping[int, bool] = field(default_factory=dict)


def new_text(fact: LedgerFact, decision: Decision, verdict: Verdict | None) -> str:
    """Return the text to store. An update may keep more of the memory than the fact says; otherwise it is the fact."""
    return decision.text or fact.text if verdict is Verdict.UPDATE else fact.text


def is_forgotten(row: FactRow, world: World) -> bool:
    """Return True if the fact is about a memory that was deleted in the meantime, and must not restore it."""
    target = None if row.decision is None else row.decision.target
    return row.fact is None or row.decision is None or (target is not None and target.memory_id in world.gone)


def stale(rows: Sequence[FactRow], world: World) -> list[FactRow]:
    """Return the rows whose memory changed since the model saw it, and that can be decided again."""
    return [
        row
        for row in rows
        if row.ordinal not in world.novelty and not is_forgotten(row, world) and _is_stale(row, world)
    ]


def plan(rows: Sequence[FactRow], world: World, *, terms: Terms) -> list[PlannedStep]:
    """Return a step for each fact that is not forgotten, in order.

    If two facts change one memory, the first one does. The second one, which was decided without knowing of the first,
    is
    stored in addition to its result.

    :param terms: Returns the terms of a text.
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
        if not world.novelty.get(row.ordinal, True):
            return step(None, Reason.NOTHING_NEW)
        is_living = memory is not None and not memory.archived
        return step(Verdict.CONFLICT if is_living else Verdict.ADD, Reason.CHANGED_MEANWHILE)
    if memory is None or memory.archived:
        return step(None if deletes else Verdict.ADD, Reason.NOT_LIVING)
    if decision.verdict is not Verdict.CONFLICT and not may_change(fact, memory, world.scope):
        return step(None if deletes else Verdict.CONFLICT, Reason.PROTECTED)
    return step(decision.verdict)


def _is_stale(row: FactRow, world: World) -> bool:
    decision = row.decision
    if decision is None or decision.target is None or decision.verdict not in CHANGING:
        return False
    return world.versions.get(decision.target.memory_id) != decision.target.version


def may_change(fact: LedgerFact, memory: Memory, scope: Scope) -> bool:
    """Return True if the fact may replace or remove the memory.

    It may not be pinned, protected, more trusted, or in a source that the job's principal does not learn into.
    """
    is_protected = memory.pinned or bool(memory.metadata.get(PROTECTED)) or _is_closed(memory.source, scope)
    return not is_protected and fact.origin_class.trust >= memory.origin_class.trust


def _removes(old: str, new: str, verdict: Verdict, terms: Terms) -> bool:
    """Return True if the memory loses most of its content: a deletion can be disguised as an update."""
    if verdict is Verdict.DELETE:
        return True
    said = set(terms(old))
    return len(said & set(terms(new))) < KEPT_SHARE * len(said)


# --- the scope of a job ----------------------------------------------------------------------------------------------


NO_SOURCE = "extract"
"""Source of facts that were learned without a source."""


def source_of(extraction: ExtractionRecord) -> str:
    """Return the source of the extraction's new memories."""
    return extraction.source or NO_SOURCE


def job_scope(scope: Scope, extraction: ExtractionRecord) -> Scope:
    """Narrow the caller's scope to the job's source.

    :raises SourceForbidden: If the caller may not write to that source.
    """
    require_writable(scope, source_of(extraction))
    return replace(scope, sources=(extraction.source,)) if extraction.source else scope


def require_learnable(scope: Scope, source: str) -> None:
    """:raises SourceReserved: If the caller's key has a principal and the source is in `project/`."""
    if scope.author is not None and lies_in(source, PROJECT):
        raise SourceReserved(
            source, "extract into another source, and add what is for the project with POST /memory/add"
        )


def _is_closed(source: str, scope: Scope) -> bool:
    return scope.author is not None and (lies_in(source, PROJECT) or belongs_to_another(source, scope.person))


def serial_key(namespace: str, source: str) -> str:
    """Return the key that serialises jobs of one source, so that each sees what the previous one learned."""
    return f"{namespace}\n{source}"


# --- outcomes --------------------------------------------------------------------------------------------------------


def skipped(reason: str, **more: Any) -> JsonObject:
    """Return the outcome of a fact that is not stored. :param reason: One word of a closed set."""
    return {"action": "skipped", "reason": reason, **more}


def error(reason: str) -> JsonObject:
    return {"action": "error", "error": reason}


COMMITTED = "committed"
"""Outcome key with the id of the job that applied another job's fact; also the reason why that other job skips it."""


def committed_by(connection: Connection, row: FactRow) -> str | None:
    """Return the id of the job that applies or has applied a fact; None if there is none, or if it was undone."""
    job_id = row.outcome.get(COMMITTED)
    if job_id is None:
        return None
    job, found = jobs.find(connection, job_id), extractions.find(connection, job_id)
    if job is None or found is None or found.phase is Phase.UNDONE:
        return None
    return None if job.status in (JobStatus.FAILED, JobStatus.CANCELLED) else str(job_id)


def marked_committed(row: FactRow, job_id: str) -> FactRow:
    """Return the row, marked as applied by the job."""
    return replace(row, outcome={**row.outcome, COMMITTED: job_id})


def with_commit_mark(row: FactRow, other: FactRow) -> FactRow:
    """Return the row with the commit mark of another state of it."""
    return marked_committed(row, other.outcome[COMMITTED]) if COMMITTED in other.outcome else row


def skipped_as_committed(row: FactRow, job_id: str) -> FactRow:
    """Return the row, skipped because the job applied it."""
    return replace(row, stage=FactStage.SKIPPED, outcome=skipped(COMMITTED, committed=job_id))


# --- guidance --------------------------------------------------------------------------------------------------------


PRE_COMPACT = "pre_compact"
"""The context of a request before a conversation is compacted: every fact is kept."""


@dataclass(frozen=True, slots=True)
class Guidance:
    """:param keep_all: True if the model is instructed to keep doubtful facts.

    :param max_facts: Limit for one window of a transcript.
    """

    max_facts: int
    max_fact_chars: int
    similar_text_chars: int
    fallback_max_facts: int
    keep_all: bool = False
    always_remember: tuple[str, ...] = ()
    never_remember: tuple[str, ...] = ()
    custom_instructions: str = ""

    @classmethod
    def of(cls, settings: Settings, profile: ExtractionProfile, context: str) -> Guidance:
        return cls(
            profile.max_facts or settings.extract_max_facts,
            profile.max_fact_chars or settings.extract_max_fact_chars,
            settings.extract_similar_text_chars,
            settings.extract_fallback_max_facts,
            keep_all=context == PRE_COMPACT or profile.mode is ExtractionMode.AGGRESSIVE,
            always_remember=profile.rules.always_remember,
            never_remember=profile.rules.never_remember,
            custom_instructions=profile.rules.custom_instructions,
        )

    def for_facts(self) -> str:
        """Return the instructions that are appended to the prompt."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"Write at most {self.max_facts} facts, each in at most {self.max_fact_chars} characters."
        if self.always_remember:
            yield "\nWhat is always kept here:"
            yield from (f"- {rule}" for rule in self.always_remember)
        if self.never_remember:
            yield "\nWhat is never kept here, whatever else is said:"
            yield from (f"- {rule}" for rule in self.never_remember)
        if self.custom_instructions:
            yield f"\n{self.custom_instructions}"


GUIDANCE_JSON = StoredJson(Guidance)
