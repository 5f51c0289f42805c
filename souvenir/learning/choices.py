"""Decisions that somebody chose: taken from a dry run, changed, or made up, for a job that applies them.

What comes from a dry run keeps its origin, and holds as long as its memory is what the dry run saw. What somebody makes
up is about memories as they are now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import apsw

from souvenir.core.errors import Conflict, InvalidRequest, MemoryNotFound
from souvenir.core.ledger import Category, DecidedBy, Decision, FactRow, FactStage, LedgerFact, Phase, Seen, Verdict
from souvenir.core.types import OriginClass, Scope
from souvenir.learning.application import RELATED
from souvenir.learning.guards import CHANGING
from souvenir.learning.outcomes import committed_by, noted
from souvenir.store import namespaces
from souvenir.store.learning import extractions

CHOSEN = "It was chosen by the caller"


@dataclass(frozen=True, slots=True)
class ChosenAction:
    """:param text: The new text of an update, else what is stored; None takes that of the dry run.

    :param target_id: The memory that it is about.
    :param job_id: The dry run that it comes from, with the fact's place in its ledger; None: it was made up.
    """

    verdict: Verdict
    text: str | None = None
    target_id: int | None = None
    category: Category | None = None
    job_id: str | None = None
    ordinal: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """:param rows: A ledger to apply. :param taken: The facts that it takes, by their dry runs."""

    rows: tuple[FactRow, ...]
    taken: Mapping[str, Sequence[FactRow]]


def chosen(connection: apsw.Connection, scope: Scope, source: str, actions: Sequence[ChosenAction]) -> Choice:
    """:param scope: What the new job may see.

    :raises MemoryNotFound: If an action is about a memory that it cannot see.
    :raises InvalidRequest: If an action lacks what it needs.
    :raises Conflict: If a fact cannot be taken: of another source, forgotten, not decided, or taken before.
    """
    rows: list[FactRow] = []
    dry_runs: dict[str, _DryRun] = {}
    taken: dict[str, dict[int, FactRow]] = {}
    for number, action in enumerate(actions):
        origin = None
        if action.job_id is not None:
            if action.job_id not in dry_runs:
                dry_runs[action.job_id] = _DryRun.read(connection, action.job_id, source)
            origin = dry_runs[action.job_id].fact(connection, action.ordinal)
            of_job = taken.setdefault(action.job_id, {})
            if origin.ordinal in of_job:
                raise Conflict(f"Fact {origin.ordinal} of job {action.job_id!r} is chosen twice; choose it once")
            of_job[origin.ordinal] = origin
        rows.append(_row(connection, scope, number, action, origin))
    return Choice(tuple(rows), {job_id: tuple(of_job.values()) for job_id, of_job in taken.items()})


def note_taken(connection: apsw.Connection, choice: Choice, job_id: str) -> None:
    """Say in the dry runs which job applies what was taken from them."""
    for dry_run, rows in choice.taken.items():
        extractions.save_facts(connection, dry_run, [noted(row, job_id) for row in rows])


@dataclass(frozen=True, slots=True)
class _DryRun:
    """A job whose facts may be taken, with its ledger by ordinal: read once, however many are taken."""

    job_id: str
    waits: bool
    rows: Mapping[int, FactRow]

    @classmethod
    def read(cls, connection: apsw.Connection, job_id: str, source: str) -> _DryRun:
        """:raises Conflict: If it is gone, or of another source."""
        found = extractions.find(connection, job_id)
        if found is None:
            raise Conflict(f"Job {job_id!r} is not there any more; run it again")
        if found.source != source:
            raise Conflict(f"Job {job_id!r} is of the source {found.source!r}; commit it there")
        ledger = extractions.facts(connection, job_id)
        return cls(job_id, found.phase is Phase.DECIDED, {row.ordinal: row for row in ledger})

    def fact(self, connection: apsw.Connection, ordinal: int | None) -> FactRow:
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


def _row(
    connection: apsw.Connection, scope: Scope, number: int, action: ChosenAction, origin: FactRow | None
) -> FactRow:
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


def _seen(connection: apsw.Connection, scope: Scope, memory_id: int, was: Decision | None) -> Seen:
    """A memory as the dry run saw it, if it did; else as it is."""
    shown: Iterable[Seen] = () if was is None else (*((was.target,) if was.target else ()), *was.candidates)
    known = next((one for one in shown if one.memory_id == memory_id), None)
    if known is not None:
        return known
    namespace = namespaces.named(connection, scope.namespace, scope.sources)
    versions = {} if namespace is None else extractions.versions(connection, namespace, [memory_id])
    if memory_id not in versions:
        raise MemoryNotFound(memory_id)
    return Seen(memory_id, versions[memory_id])
