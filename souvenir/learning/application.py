"""Applies a job's decisions to memories, links and ledger: all in one transaction with the job's progress, or nothing.

Texts are embedded before. In the transaction each memory to be changed is compared with what the model saw; if one
differs, nothing is written and those facts are decided again, `MAX_ROUNDS` times at most. A fact that has no valid
decision after that is stored in addition to its memory and flagged, if it says anything new. Of an approved job only
what was shown is applied: a new decision waits for another approval. What may be done is defined in
`souvenir.learning.guards`. Nothing is removed: what a job deletes is archived, and can be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

import apsw

from souvenir.core.errors import PersonalDataRejected
from souvenir.core.labels import without_notes
from souvenir.core.ledger import DecidedBy, Decision, FactRow, FactStage, LedgerFact, Phase, Verdict
from souvenir.core.passages import PreparedPassage
from souvenir.core.settings import Settings
from souvenir.core.timestamps import to_us
from souvenir.core.types import JsonObject, LinkType, Memory, MemoryDraft, Scope, least_trusted
from souvenir.jobs.handler import JobCancelled, RunningJob
from souvenir.learning.candidates import prepared
from souvenir.learning.guards import (
    PlannedStep,
    Reason,
    Terms,
    World,
    is_forgotten,
    new_text,
    plan,
    reach_of,
    source_of,
    stale,
)
from souvenir.learning.outcomes import committed_by, noted_as, passed_over
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.similarity import NOVELTY_SIMILARITY
from souvenir.privacy.screening import AppliedPolicy
from souvenir.store.learning import extractions
from souvenir.store.learning import extractions as provenance
from souvenir.store.learning.extractions import ExtractionRecord
from souvenir.store.memories import reads
from souvenir.store.memories.reads import CONFLICTS_WITH
from souvenir.store.namespaces import Namespace
from souvenir.store.transaction import Transaction

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
    """What may be stored for a fact: in addition to its memory, and as a replacement of it."""

    beside: Text
    update: Text


@dataclass(slots=True)
class Attempt:
    """One try to apply all of a ledger, on the writer's thread."""

    job: RunningJob
    extraction: ExtractionRecord
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

    def _require_approved(self, rows: Sequence[FactRow], steps: Sequence[PlannedStep]) -> None:
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

    def _done(self, tx: Transaction, step: PlannedStep) -> FactRow:
        chosen = self.texts[step.row.ordinal]
        match step:
            case PlannedStep(verdict=None):
                return _ended(step, FactStage.SKIPPED, {"action": "skipped", "text": step.text})
            case PlannedStep(verdict=Verdict.NOOP):
                return _ended(step, FactStage.APPLIED, {"action": "noop", "text": step.text})
            case PlannedStep(verdict=Verdict.DELETE, target=Memory() as old):
                tx.archive(old, action=RETRACTED, valid_to=self._moment_of(step) or tx.now)
                return _ended(step, FactStage.APPLIED, {"action": "delete", UNDO: _before(old)})
            case PlannedStep(verdict=Verdict.UPDATE, target=Memory() as old):
                return self._update(tx, step, old, chosen.update)
            case _:
                return self._add(tx, step, chosen.beside)

    def _update(self, tx: Transaction, step: PlannedStep, old: Memory, text: Text) -> FactRow:
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

    def _add(self, tx: Transaction, step: PlannedStep, text: Text) -> FactRow:
        """Store a fact as a memory of its own, flagged if it contradicts another one."""
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

    def _draft(self, step: PlannedStep, text: Text) -> MemoryDraft:
        return MemoryDraft(
            text.text,
            source_of(self.extraction),
            text.metadata,
            document_at=self._moment_of(step),
            origin_class=step.fact.origin_class,
        )

    def _moment_of(self, step: PlannedStep) -> datetime | None:
        """When what a fact says happened; when it was said, if that is not known."""
        return step.fact.event_at or self.extraction.document_at

    def _stored(self, tx: Transaction, step: PlannedStep, new: Memory, outcome: dict[str, Any]) -> FactRow:
        """Note whom a new memory was learned with, and link it to the living ones that it is related to."""
        self.made[step.row.ordinal] = new.id
        provenance.note(tx.connection, new.id, self.extraction.learned_with)
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


def removing_of(steps: Sequence[PlannedStep]) -> list[int]:
    """Facts that remove something, by ordinal."""
    return [step.row.ordinal for step in steps if step.removes]


def approval_of(row: FactRow) -> tuple[int, int]:
    """What an approval of a decision is noted as: it does not hold for another decision about the same fact."""
    return row.ordinal, 0 if row.decision is None else row.decision.asked


def _ended(step: PlannedStep, stage: FactStage, outcome: dict[str, Any], *, memory_id: int | None = None) -> FactRow:
    seen = step.decision.target
    if seen is not None and "conflicts_with" not in outcome:
        outcome["existing_id" if step.verdict is Verdict.NOOP else "old_id"] = seen.memory_id
    if step.reason is not None:
        outcome["reason"] = step.reason.value
    return replace(step.row, stage=stage, outcome=outcome, memory_id=memory_id)


def _refused(step: PlannedStep, why: str) -> FactRow:
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


# --- application -----------------------------------------------------------------------------------------------------


MAX_ROUNDS = 3
"""How often decisions are asked for again because their memories changed; somebody who writes all the time must not
keep a job, and the model's bill, going for good."""

APPROVAL_REQUIRED = "required"

Redecide = Callable[[Sequence[FactRow]], Sequence[FactRow]]


@dataclass(frozen=True, slots=True)
class Applied:
    """:param rows: The ledger as it stands.

    :param approval: `APPROVAL_REQUIRED` if nothing was applied, since too much would be removed or what was approved
        is decided otherwise now.
    :param removing: Facts that would remove something then, by ordinal.
    """

    rows: tuple[FactRow, ...]
    approval: str | None = None
    removing: tuple[int, ...] = ()


class Applying:
    """Safe for many jobs at once."""

    def __init__(self, engine: MemoryEngine, settings: Settings) -> None:
        self._engine = engine
        self._max_deletes = settings.extract_max_deletes

    def apply(self, job: RunningJob, rows: Sequence[FactRow], *, redecide: Redecide) -> Applied:
        """Apply the decided ones of a job's rows; those that ended before stay as they are.

        What was applied before is not applied again.

        :param redecide: Asks again about the facts of these rows, and returns the rows with their new decisions.
        :raises JobCancelled: If the job shall not go on; nothing was applied.
        """
        extraction = self._extraction(job)
        if extraction.phase in (Phase.APPLIED, Phase.UNDONE):
            return Applied(tuple(self._ledger(job)))
        scope, now = reach_of(job.scope, extraction), {row.ordinal: row for row in rows}
        beside: dict[int, bool] = {}
        rounds = 0
        while True:
            texts = self._texts(scope, extraction, now.values())
            attempt = Attempt(
                job, extraction, list(now.values()), texts, beside, self._max_deletes, self._engine.analyser.terms
            )
            try:
                return Applied(self._engine.write(scope, attempt.run))
            except Unapproved as unapproved:
                return self._waiting(job, list(now.values()), unapproved.removing)
            except Changed as changed:
                if rounds < MAX_ROUNDS:
                    rounds += 1
                    now.update((row.ordinal, row) for row in redecide(changed.rows))
                else:
                    beside |= {row.ordinal: self._is_novel(scope, texts[row.ordinal]) for row in changed.rows}

    def excess(self, scope: Scope, rows: Sequence[FactRow]) -> list[int]:
        """Facts that would remove something, by ordinal, if they are more than may be without an approval."""
        decided = [row for row in rows if row.stage is FactStage.DECIDED]
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return []
            world = world_of(connection, namespace, decided, {})
        removing = removing_of(plan(decided, world, terms=self._engine.analyser.terms))
        return removing if len(removing) > self._max_deletes else []

    def _extraction(self, job: RunningJob) -> ExtractionRecord:
        with self._engine.namespace(job.scope) as (connection, _):
            found = extractions.find(connection, job.id)
        if found is None:
            raise JobCancelled
        return found

    def _ledger(self, job: RunningJob) -> Sequence[FactRow]:
        with self._engine.namespace(job.scope) as (connection, _):
            return extractions.facts(connection, job.id)

    def _texts(self, scope: Scope, extraction: ExtractionRecord, rows: Iterable[FactRow]) -> dict[int, Texts]:
        """What may have to be stored for each decided row, screened and embedded, by ordinal."""
        policy = self._engine.screening.applied(scope)
        screened: dict[int, Texts] = {}
        for row in rows:
            if row.stage is FactStage.DECIDED and row.fact is not None and row.decision is not None:
                metadata = _metadata(row.fact, row.decision, extraction)
                beside, update = (new_text(row.fact, row.decision, verdict) for verdict in (None, Verdict.UPDATE))
                screened[row.ordinal] = Texts(_screened(policy, beside, metadata), _screened(policy, update, metadata))
        different = list({one.text: None for both in screened.values() for one in both if one.refused is None})
        passages = dict(zip(different, prepared(self._engine, different), strict=True))
        return {
            ordinal: Texts._make(replace(one, passages=passages.get(one.text, ())) for one in both)
            for ordinal, both in screened.items()
        }

    def _is_novel(self, scope: Scope, texts: Texts) -> bool:
        nearest = self._engine.nearest_of(scope, texts.beside.passages) if texts.beside.passages else None
        return nearest is None or nearest[1] < NOVELTY_SIMILARITY

    def _waiting(self, job: RunningJob, rows: Sequence[FactRow], removing: tuple[int, ...]) -> Applied:
        """Keep the decisions until they are approved."""

        def work(connection: apsw.Connection) -> tuple[FactRow, ...]:
            job.save(connection, done=len(rows), total=len(rows), state=job.state)
            stored = {row.ordinal: row for row in extractions.facts(connection, job.id) if row.fact is not None}
            kept = [row for row in rows if row.ordinal in stored]
            extractions.save_facts(connection, job.id, [noted_as(row, stored[row.ordinal]) for row in kept])
            return tuple(extractions.facts(connection, job.id))

        return Applied(self._engine.write_rows(work), APPROVAL_REQUIRED, removing)


def _screened(policy: AppliedPolicy, text: str, metadata: JsonObject) -> Text:
    """A text as the namespace's privacy policy lets it in."""
    if not text.strip():
        return Text("", refused="there is no text in it")
    try:
        safe, noted = policy.content(text, metadata)
    except PersonalDataRejected as rejected:
        return Text("", refused=rejected.message)
    return Text(safe, noted or {})


def _metadata(fact: LedgerFact, decision: Decision, extraction: ExtractionRecord) -> JsonObject:
    """What a new memory says of where it comes from; `mode` marks what no model decided."""
    return {
        "category": fact.category.value,
        **({} if fact.speaker is None else {"speaker": fact.speaker}),
        **({} if fact.span is None else {"span": {"start": fact.span.start, "end": fact.span.end}}),
        **({"mode": FALLBACK_ADD} if decision.by is DecidedBy.FALLBACK else {}),
        "extract_source": extraction.context,
        "extraction_job_id": extraction.job_id,
    }
