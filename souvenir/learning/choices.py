"""Decisions that a caller chose for a job to apply: taken from a dry run, edited, or written by the caller.

A decision of a dry run keeps its origin, and is valid while its memory is unchanged since the dry run. A decision that
the caller wrote refers to the current version of its memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from souvenir.core.errors import Conflict, InvalidRequest, MemoryNotFound
from souvenir.core.ledger import Category, DecidedBy, Decision, FactRow, FactStage, LedgerFact, Phase, Seen, Verdict
from souvenir.core.types import OriginClass, Scope
from souvenir.learning.guards import CHANGING, committed_by, marked_committed
from souvenir.learning.novelty import RELATED
from souvenir.store import namespaces
from souvenir.store.learning import extractions
from souvenir.store.sql import Connection

CHOSEN = "It was chosen by the caller"


@dataclass(frozen=True, slots=True)
class ChosenAction:
    """:param text: The new text of an update, otherwise the text to store; None uses that of the dry run.

    :param target_id: The memory that the action refers to.
    :param job_id: The dry run that it comes from, with the fact's ordinal in its ledger; None if the caller wrote it.
    """

    verdict: Verdict
    text: str | None = None
    target_id: int | None = None
    category: Category | None = None
    job_id: str | None = None
    ordinal: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """:param rows: The ledger to apply. :param taken: The facts taken from each dry run, by job id."""

    rows: tuple[FactRow, ...]
    taken: Mapping[str, Sequence[FactRow]]


def chosen(connection: Connection, scope: Scope, source: str, actions: Sequence[ChosenAction]) -> Choice:
    """Build a ledger from the chosen actions.

    :param scope: The scope of the new job.
    :raises MemoryNotFound: If an action refers to a memory outside the scope.
    :raises InvalidRequest: If an action lacks a required field.
    :raises Conflict: If a fact cannot be taken: of another source, forgotten, not decided, or committed before.
    """
    rows: list[FactRow] = []
    dry_runs: dict[str, _DryRun] = {}
    taken: dict[str, dict[int, FactRow]] = {}
    for number, action in enumerate(actions):
        origin = None
        if action.job_id is not None:
            if action.job_id not in dry_runs:
                dry_runs[action.job_id] = _DryRun.read(connection, scope, action.job_id, source)
            origin = dry_runs[action.job_id].fact(connection, action.ordinal)
            of_job = taken.setdefault(action.job_id, {})
            if origin.ordinal in of_job:
                raise Conflict(f"Fact {origin.ordinal} of job {action.job_id!r} is chosen twice; choose it once")
            of_job[origin.ordinal] = origin
        rows.append(_row(connection, scope, number, action, origin))
    return Choice(tuple(rows), {job_id: tuple(of_job.values()) for job_id, of_job in taken.items()})


def note_taken(connection: Connection, choice: Choice, job_id: str) -> None:
    """Record in the dry runs which job applies the facts that were taken from them."""
    for dry_run, rows in choice.taken.items():
        extractions.save_facts(connection, dry_run, [marked_committed(row, job_id) for row in rows])


@dataclass(frozen=True, slots=True)
class _DryRun:
    """A job whose facts may be taken, with its ledger by ordinal; read once for all facts taken from it."""

    job_id: str
    waits: bool
    rows: Mapping[int, FactRow]

    @classmethod
    def read(cls, connection: Connection, scope: Scope, job_id: str, source: str) -> _DryRun:
        """A job without a source is taken from by callers of all sources.

        :raises Conflict: If the job no longer exists, or has another source.
        """
        found = extractions.find(connection, job_id)
        if found is None:
            raise Conflict(f"Job {job_id!r} is not there any more; run it again")
        if found.source != source and (found.source or scope.sources is not None):
            raise Conflict(f"Job {job_id!r} is of the source {found.source!r}; commit it there")
        ledger = extractions.facts(connection, job_id)
        return cls(job_id, found.phase is Phase.DECIDED, {row.ordinal: row for row in ledger})

    def fact(self, connection: Connection, ordinal: int | None) -> FactRow:
        """:raises Conflict: If the fact cannot be taken."""
        row = None if ordinal is None else self.rows.get(ordinal)
        named = f"Fact {ordinal} of job {self.job_id!r}"
        if row is None:
            raise Conflict(f"{named} is not there any more; run it again")
        if not self.waits or row.stage is not FactStage.DECIDED:
            raise Conflict(f"{named} does not wait for a commit; run it again")
        if row.fact is None or row.decision is None:
            raise Conflict(f"{named} is forgotten, since a memory that it was about was deleted; leave it out")
        if (by := committed_by(connection, row)) is not None:
            raise Conflict(f"{named} was committed by job {by!r}; undo that first")
        return row


def _row(connection: Connection, scope: Scope, number: int, action: ChosenAction, origin: FactRow | None) -> FactRow:
    was, fact = None if origin is None else origin.decision, None if origin is None else origin.fact
    target_id = action.target_id
    if was is not None and target_id is None and was.target is not None and action.verdict is was.verdict:
        target_id = was.target.memory_id
    if target_id is None and action.verdict in CHANGING:
        raise InvalidRequest(f"Approved action {number} changes a memory; name it by its id")
    if fact is None:
        if not (action.text or "").strip() and action.verdict not in (Verdict.DELETE, Verdict.NOOP):
            raise InvalidRequest(f"Approved action {number} stores something; give its text")
        fact = LedgerFact(action.text or "", action.category or Category.DETAIL, OriginClass.USER)
    elif action.text is not None and action.verdict is not Verdict.UPDATE:
        fact = replace(fact, text=action.text)
    decision = Decision(
        action.verdict,
        DecidedBy.RULE,
        CHOSEN,
        None if target_id is None else _seen(connection, scope, target_id, was),
        (action.text or (None if was is None else was.text)) if action.verdict is Verdict.UPDATE else None,
    )
    if was is not None and (was.verdict, was.target, was.text) == (decision.verdict, decision.target, decision.text):
        decision = was
    related = {} if origin is None or RELATED not in origin.outcome else {RELATED: origin.outcome[RELATED]}
    return FactRow(number, FactStage.DECIDED, fact, decision, related)


def _seen(connection: Connection, scope: Scope, memory_id: int, was: Decision | None) -> Seen:
    """Return the version of the memory that the dry run saw, or the current version if it did not see it."""
    shown: Iterable[Seen] = () if was is None else (*((was.target,) if was.target else ()), *was.candidates)
    known = next((one for one in shown if one.memory_id == memory_id), None)
    if known is not None:
        return known
    namespace = namespaces.named(connection, scope.namespace, scope.sources)
    versions = {} if namespace is None else extractions.versions(connection, namespace, [memory_id])
    if memory_id not in versions:
        raise MemoryNotFound(memory_id)
    return Seen(memory_id, versions[memory_id])
