"""What a job's decisions do to memories, links and ledger, in the one transaction of `souvenir.extraction.applying`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

import apsw

from souvenir.decisions import DecidedBy, FactRow, FactStage, Phase, Verdict
from souvenir.extraction.commits import committed_by, passed_over
from souvenir.extraction.guards import Reason, Step, Terms, World, is_forgotten, plan, stale
from souvenir.extraction.reach import source_of
from souvenir.jobs.running import RunningJob
from souvenir.moments import to_us
from souvenir.notes import without_notes
from souvenir.passages import PreparedPassage
from souvenir.store import extractions, learned, reads
from souvenir.store.extractions import Extraction
from souvenir.store.reads import CONFLICTS_WITH, Namespace
from souvenir.store.transaction import Transaction
from souvenir.types import JsonObject, LinkType, Memory, MemoryDraft, least_trusted

MAX_RELATED = 3
"""Links to related memories that a new one gets, at most."""

RETRACTED = "retracted"
"""What the history says of a memory that a job deleted."""

FALLBACK_ADD = "fallback_add"
"""The action, and the mode, of what was added without a model's decision."""

RELATED, UNDO, APPROVED = "related", "undo", "approved"
"""Keys: of an outcome, related memories as [id, cosine], nearest first, and what undoing needs; of options, what was
approved."""


class Changed(Exception):
    """Memories are not what the model saw; nothing was written."""

    def __init__(self, rows: Sequence[FactRow]) -> None:
        super().__init__(f"{len(rows)} decisions are out of date")
        self.rows = rows


class Unapproved(Exception):
    """More would be removed than a job may by itself, or other things than were approved; nothing was written.

    :param removing: Facts that would remove something, by ordinal.
    """

    def __init__(self, removing: Sequence[int]) -> None:
        super().__init__(f"{len(removing)} memories would be removed")
        self.removing = tuple(removing)


@dataclass(frozen=True, slots=True)
class Text:
    """A text as it is stored, with its metadata.

    :param refused: Why it cannot be stored, if it cannot.
    """

    text: str
    metadata: JsonObject = field(default_factory=dict)
    passages: Sequence[PreparedPassage] = ()
    refused: str | None = None


class Texts(NamedTuple):
    """What may be stored for a fact: beside its memory, and in its place."""

    beside: Text
    update: Text


@dataclass(slots=True)
class Attempt:
    """One try to apply all of a ledger, on the writer's thread."""

    job: RunningJob
    extraction: Extraction
    rows: Sequence[FactRow]
    texts: Mapping[int, Texts]
    beside: Mapping[int, bool]
    max_deletes: int
    terms: Terms
    made: dict[int, int] = field(default_factory=dict)

    def run(self, tx: Transaction) -> tuple[FactRow, ...]:
        """The ledger as it stands afterwards.

        :raises Changed: If memories are not what the model saw. :raises Unapproved: If an approval is wanted.
        """
        connection, job_id = tx.connection, self.job.id
        tx.job_id = job_id
        self.job.save(connection, done=len(self.rows), total=len(self.rows), state=self.job.state)
        self.made.clear()
        rows, ended, forgotten = self._present(tx)
        committed = self._committed(tx)
        rows, ended = ([row for row in some if row.ordinal not in committed] for some in (rows, ended))
        world = world_of(tx.connection, tx.namespace, rows, self.beside)
        if changed := stale(rows, world):
            raise Changed(changed)
        forgotten += [row for row in rows if is_forgotten(row, world)]
        steps = plan(rows, world, terms=self.terms)
        self._require_approved([*rows, *ended], steps)
        done = [self._done(tx, step) for step in steps]
        extractions.save_facts(connection, job_id, [*ended, *done, *committed.values(), *map(_blank, forgotten)])
        extractions.set_phase(connection, job_id, Phase.APPLIED)
        return tuple(extractions.facts(connection, job_id))

    def _present(self, tx: Transaction) -> tuple[list[FactRow], list[FactRow], list[FactRow]]:
        """Decided rows, those that ended otherwise, and those that were blanked since they were read."""
        blanked = {row.ordinal for row in extractions.facts(tx.connection, self.job.id) if row.fact is None}
        known = [row for row in self.rows if row.ordinal not in blanked and row.fact is not None]
        decided = [row for row in known if row.stage is FactStage.DECIDED]
        ended = [row for row in known if row.stage is not FactStage.DECIDED]
        return decided, ended, [row for row in self.rows if row not in known]

    def _committed(self, tx: Transaction) -> dict[int, FactRow]:
        """The facts that a commit applied or applies, by ordinal, as they end here."""
        found = [row for row in extractions.facts(tx.connection, self.job.id) if row.stage is FactStage.DECIDED]
        by = {row.ordinal: committed_by(tx.connection, row) for row in found if row.fact is not None}
        return {row.ordinal: passed_over(row, job_id) for row in found if (job_id := by.get(row.ordinal)) is not None}

    def _require_approved(self, rows: Sequence[FactRow], steps: Sequence[Step]) -> None:
        """Whoever approved a job saw its decisions, and means those and no others.

        :raises Unapproved: If more would be removed than a job may by itself, or others were approved.
        """
        removing = removing_of(steps)
        approved = self.extraction.options.get(APPROVED)
        if approved is None:
            may = len(removing) <= self.max_deletes
        else:
            may = {approval_of(row) for row in rows} <= {tuple(one) for one in approved}
        if not may:
            raise Unapproved(removing)

    def _done(self, tx: Transaction, step: Step) -> FactRow:
        chosen = self.texts[step.row.ordinal]
        match step:
            case Step(verdict=None):
                return _ended(step, FactStage.SKIPPED, {"action": "skipped", "text": step.text})
            case Step(verdict=Verdict.NOOP):
                return _ended(step, FactStage.APPLIED, {"action": "noop", "text": step.text})
            case Step(verdict=Verdict.DELETE, target=Memory() as old):
                tx.archive(old, action=RETRACTED, valid_to=self._moment_of(step) or tx.now)
                return _ended(step, FactStage.APPLIED, {"action": "delete", UNDO: _before(old)})
            case Step(verdict=Verdict.UPDATE, target=Memory() as old):
                return self._update(tx, step, old, chosen.update)
            case _:
                return self._add(tx, step, chosen.beside)

    def _update(self, tx: Transaction, step: Step, old: Memory, text: Text) -> FactRow:
        if text.refused is not None:
            return _refused(step, text.refused)
        draft = replace(
            self._draft(step, text),
            source=old.source,
            metadata={**without_notes(old.metadata), **text.metadata},
            key=old.key,
            origin_class=least_trusted((step.fact.origin_class, old.origin_class)),
        )
        new = tx.supersede(old, draft, text.passages)
        outcome = {"action": "update", "text": text.text, "new_id": new.id, UNDO: _before(old)}
        return self._stored(tx, step, new, outcome)

    def _add(self, tx: Transaction, step: Step, text: Text) -> FactRow:
        """Store a fact by itself, or flagged beside the memory that it contradicts."""
        if text.refused is not None:
            return _refused(step, text.refused)
        new = tx.insert(self._draft(step, text), text.passages)
        action = FALLBACK_ADD if step.decision.by is DecidedBy.FALLBACK else "add"
        outcome = {"action": action, "text": text.text, "id": new.id}
        if step.target is not None:
            against = step.target.id if step.after is None else self.made.get(step.after, step.target.id)
            tx.link(new.id, against, CONFLICTS_WITH)
            outcome |= {"action": "conflict", "conflicts_with": against}
        return self._stored(tx, step, new, outcome)

    def _draft(self, step: Step, text: Text) -> MemoryDraft:
        return MemoryDraft(
            text.text,
            source_of(self.extraction),
            text.metadata,
            document_at=self._moment_of(step),
            origin_class=step.fact.origin_class,
        )

    def _moment_of(self, step: Step) -> datetime | None:
        """When what a fact says happened; when it was said, if that is not known."""
        return step.fact.event_at or self.extraction.document_at

    def _stored(self, tx: Transaction, step: Step, new: Memory, outcome: dict[str, Any]) -> FactRow:
        """Note whom a new memory was learned with, and link it to the living ones that it is related to."""
        self.made[step.row.ordinal] = new.id
        learned.note(tx.connection, new.id, self.extraction.learned_with)
        linked = {new.id, outcome.get("conflicts_with"), None if step.target is None else step.target.id}
        wanted = [one for one, _ in step.row.outcome.get(RELATED, ()) if one not in linked]
        found = reads.as_stored(tx.connection, tx.namespace, wanted)
        related = [one for one in wanted if one in found and not found[one].archived][:MAX_RELATED]
        for one in related:
            tx.link(new.id, one, LinkType.RELATED_TO)
        return _ended(step, FactStage.APPLIED, {**outcome, "links": related}, memory_id=new.id)


def world_of(
    connection: apsw.Connection, namespace: Namespace, rows: Sequence[FactRow], beside: Mapping[int, bool]
) -> World:
    """What the decisions of these rows meet."""
    targets = {row.decision.target.memory_id for row in rows if row.decision and row.decision.target}
    return World(
        reads.as_stored(connection, namespace, targets),
        extractions.versions(connection, namespace, targets),
        extractions.gone(connection, targets),
        beside,
    )


def removing_of(steps: Sequence[Step]) -> list[int]:
    """Facts that remove something, by ordinal."""
    return [step.row.ordinal for step in steps if step.removes]


def approval_of(row: FactRow) -> tuple[int, int]:
    """What an approval of a decision is noted as: it does not hold for another decision about the same fact."""
    return row.ordinal, 0 if row.decision is None else row.decision.asked


def _ended(step: Step, stage: FactStage, outcome: dict[str, Any], *, memory_id: int | None = None) -> FactRow:
    seen = step.decision.target
    if seen is not None and "conflicts_with" not in outcome:
        outcome["existing_id" if step.verdict is Verdict.NOOP else "old_id"] = seen.memory_id
    if step.reason is not None:
        outcome["reason"] = step.reason.value
    return replace(step.row, stage=stage, outcome=outcome, memory_id=memory_id)


def _refused(step: Step, why: str) -> FactRow:
    return _ended(step, FactStage.FAILED, {"action": "error", "error": why})


def _blank(row: FactRow) -> FactRow:
    """Nothing is kept of a fact about a memory that was deleted."""
    outcome = {"action": "skipped", "reason": Reason.FORGOTTEN.value}
    return FactRow(row.ordinal, FactStage.SKIPPED, None, outcome=outcome)


def _before(memory: Memory) -> JsonObject:
    """What an archiving takes away, for taking it back."""
    return {
        "updated_at": to_us(memory.updated_at),
        "valid_to": None if memory.valid_to is None else to_us(memory.valid_to),
    }
