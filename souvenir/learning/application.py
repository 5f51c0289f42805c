"""Apply a job's decisions to memories, links and ledger in the transaction that saves the job's progress.

Texts are embedded before the transaction. Inside it, each memory to be changed is compared with what the model saw. If
one differs, the transaction is rolled back and those facts are decided again, at most `MAX_ROUNDS` times. A fact that
still has no valid decision is stored as an additional memory and flagged, if it is novel. An approved job applies only
the decisions that were approved: a new decision needs another approval. The rules are in `souvenir.learning.guards`.
Nothing is removed: a memory that a job deletes is archived, and the deletion can be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from souvenir.core.errors import PersonalDataRejected
from souvenir.core.labels import JOB_ID, SPAN, without_notes, without_origin
from souvenir.core.ledger import DecidedBy, Decision, FactRow, FactStage, LedgerFact, Phase, Verdict
from souvenir.core.passages import PreparedPassage
from souvenir.core.settings import Settings
from souvenir.core.timestamps import to_us
from souvenir.core.types import JsonObject, LinkType, Memory, MemoryDraft, Scope, least_trusted
from souvenir.jobs.handler import JobCancelled, RunningJob
from souvenir.learning.guards import (
    PlannedStep,
    Reason,
    Terms,
    World,
    committed_by,
    is_forgotten,
    job_scope,
    new_text,
    plan,
    skipped_as_committed,
    source_of,
    stale,
    with_commit_mark,
)
from souvenir.learning.novelty import MAX_RELATED, RELATED, prepared
from souvenir.learning.quoted_turns import message_metadata
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.similarity import NOVELTY_SIMILARITY
from souvenir.privacy.screening import AppliedPolicy
from souvenir.store.learning import extractions
from souvenir.store.learning.extractions import ExtractionRecord
from souvenir.store.memories import reads
from souvenir.store.memories.reads import CONFLICTS_WITH
from souvenir.store.namespaces import Namespace
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction

RETRACTED = "retracted"
"""History action of a memory that a job deleted."""

FALLBACK_ADD = "fallback_add"
"""Action and mode of a fact that was added without a model's decision."""

UNDO, APPROVED = "undo", "approved"
"""Keys. Of an outcome: the data that undo needs. Of options: the approved decisions."""


class Changed(Exception):
    """Raised if memories differ from what the model saw; nothing was written."""

    def __init__(self, rows: Sequence[FactRow]) -> None:
        super().__init__(f"{len(rows)} decisions are out of date")
        self.rows = rows


class Unapproved(Exception):
    """Raised if a job needs (another) approval; nothing was written.

    Either it would remove more than a job may without approval, or its decisions are not those that were approved.

    :param removing: Ordinals of the facts that would remove something.
    """

    def __init__(self, removing: Sequence[int]) -> None:
        super().__init__(f"{len(removing)} memories would be removed")
        self.removing = tuple(removing)


@dataclass(frozen=True, slots=True)
class Text:
    """A text as it is stored, with its metadata.

    :param refused: The reason why it cannot be stored, or None.
    """

    text: str
    metadata: JsonObject = field(default_factory=dict)
    passages: Sequence[PreparedPassage] = ()
    refused: str | None = None


class Texts(NamedTuple):
    """The texts that may be stored for a fact: as an additional memory, and as a replacement of its memory."""

    addition: Text
    update: Text


@dataclass(slots=True)
class Attempt:
    """One attempt to apply a whole ledger, on the writer's thread."""

    job: RunningJob
    extraction: ExtractionRecord
    rows: Sequence[FactRow]
    texts: Mapping[int, Texts]
    novelty: Mapping[int, bool]
    max_deletes: int
    terms: Terms
    made: dict[int, int] = field(default_factory=dict)

    def run(self, tx: Transaction) -> tuple[FactRow, ...]:
        """Return the ledger as it is after the attempt.

        :raises Changed: If memories differ from what the model saw. :raises Unapproved: If an approval is required.
        """
        connection, job_id = tx.connection, self.job.id
        tx.job_id = job_id
        self.job.save(connection, done=len(self.rows), total=len(self.rows), state=self.job.state)
        self.made.clear()
        rows, ended, forgotten = self._present(tx)
        committed = self._committed(tx)
        rows, ended = ([row for row in some if row.ordinal not in committed] for some in (rows, ended))
        world = world_of(tx.connection, tx.namespace, tx.scope, rows, self.novelty)
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
        """Return decided rows, rows that ended otherwise, and rows that were blanked since they were read."""
        blanked = {row.ordinal for row in extractions.facts(tx.connection, self.job.id) if row.fact is None}
        known = [row for row in self.rows if row.ordinal not in blanked and row.fact is not None]
        decided = [row for row in known if row.stage is FactStage.DECIDED]
        ended = [row for row in known if row.stage is not FactStage.DECIDED]
        return decided, ended, [row for row in self.rows if row not in known]

    def _committed(self, tx: Transaction) -> dict[int, FactRow]:
        """Return, by ordinal, the final rows of facts that a commit applied or applies."""
        found = [row for row in extractions.facts(tx.connection, self.job.id) if row.stage is FactStage.DECIDED]
        by = {row.ordinal: committed_by(tx.connection, row) for row in found if row.fact is not None}
        return {
            row.ordinal: skipped_as_committed(row, job_id)
            for row in found
            if (job_id := by.get(row.ordinal)) is not None
        }

    def _require_approved(self, rows: Sequence[FactRow], steps: Sequence[PlannedStep]) -> None:
        """Check the decisions against the approval: an approval covers the decisions that were shown and no others.

        :raises Unapproved: If more would be removed than a job may without approval, or other decisions were approved.
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
                tx.archive(old, action=RETRACTED, valid_to=self._event_time(step) or max(tx.now, old.created_at))
                return _ended(step, FactStage.APPLIED, {"action": "delete", UNDO: _before(old)})
            case PlannedStep(verdict=Verdict.UPDATE, target=Memory() as old):
                return self._update(tx, step, old, chosen.update)
            case _:
                return self._add(tx, step, chosen.addition)

    def _update(self, tx: Transaction, step: PlannedStep, old: Memory, text: Text) -> FactRow:
        if text.refused is not None:
            return _refused(step, text.refused)
        draft = replace(
            self._draft(step, text),
            source=old.source,
            metadata={**without_origin(without_notes(old.metadata)), **text.metadata},
            key=old.key,
            origin_class=least_trusted((step.fact.origin_class, old.origin_class)),
        )
        new = tx.supersede(old, draft, text.passages)
        outcome = {"action": "update", "text": text.text, "new_id": new.id, UNDO: _before(old)}
        return self._stored(tx, step, new, outcome)

    def _add(self, tx: Transaction, step: PlannedStep, text: Text) -> FactRow:
        """Store a fact as an additional memory, flagged if it contradicts another one."""
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
            document_at=self._event_time(step),
            origin_class=step.fact.origin_class,
        )

    def _event_time(self, step: PlannedStep) -> datetime | None:
        """Return when the event of a fact happened, or the time of the transcript if that is unknown."""
        return step.fact.event_at or self.extraction.document_at

    def _stored(self, tx: Transaction, step: PlannedStep, new: Memory, outcome: dict[str, Any]) -> FactRow:
        """Record the provenance of a new memory, and link it to related memories that are not archived."""
        self.made[step.row.ordinal] = new.id
        extractions.note(tx.connection, new.id, self.extraction.learned_with)
        linked = {new.id, outcome.get("conflicts_with"), None if step.target is None else step.target.id}
        wanted = [one for one, _ in step.row.outcome.get(RELATED, ()) if one not in linked]
        found = reads.as_stored(tx.connection, tx.namespace, wanted)
        related = [one for one in wanted if one in found and not found[one].archived][:MAX_RELATED]
        for one in related:
            tx.link(new.id, one, LinkType.RELATED_TO)
        return _ended(step, FactStage.APPLIED, {**outcome, "links": related}, memory_id=new.id)


def world_of(
    connection: Connection,
    namespace: Namespace,
    scope: Scope,
    rows: Sequence[FactRow],
    novelty: Mapping[int, bool],
) -> World:
    """Read the memories that the decisions of these rows refer to."""
    targets = {row.decision.target.memory_id for row in rows if row.decision and row.decision.target}
    return World(
        scope,
        reads.as_stored(connection, namespace, targets),
        extractions.versions(connection, namespace, targets),
        extractions.gone(connection, targets),
        novelty,
    )


def removing_of(steps: Sequence[PlannedStep]) -> list[int]:
    """Return the ordinals of the facts that remove something."""
    return [step.row.ordinal for step in steps if step.removes]


def approval_of(row: FactRow) -> tuple[int, int]:
    """Return the key of an approved decision; another decision about the same fact has another key."""
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
    """Return the row without its fact and decision, because the memory that it was about was deleted."""
    outcome = {"action": "skipped", "reason": Reason.FORGOTTEN.value}
    return FactRow(row.ordinal, FactStage.SKIPPED, None, outcome=outcome)


def _before(memory: Memory) -> JsonObject:
    """Return the values that archiving overwrites; undo restores them."""
    return {
        "updated_at": to_us(memory.updated_at),
        "valid_to": None if memory.valid_to is None else to_us(memory.valid_to),
    }


# --- application -----------------------------------------------------------------------------------------------------


MAX_ROUNDS = 3
"""How often decisions are requested again because their memories changed. Bounded, so that a client which writes all
the time cannot keep a job running and the model's bill growing.
"""

APPROVAL_REQUIRED = "required"

Redecide = Callable[[Sequence[FactRow]], Sequence[FactRow]]


@dataclass(frozen=True, slots=True)
class Applied:
    """:param rows: The ledger afterwards.

    :param approval: `APPROVAL_REQUIRED` if nothing was applied, because too much would be removed or the decisions
        differ from the approved ones.
    :param removing: In that case, the ordinals of the facts that would remove something.
    """

    rows: tuple[FactRow, ...]
    approval: str | None = None
    removing: tuple[int, ...] = ()


class Applying:
    """Thread-safe; serves concurrent jobs."""

    def __init__(self, engine: MemoryEngine, settings: Settings) -> None:
        self._engine = engine
        self._max_deletes = settings.extract_max_deletes

    def apply(self, job: RunningJob, rows: Sequence[FactRow], *, redecide: Redecide) -> Applied:
        """Apply the decided rows of a job; rows that ended earlier stay unchanged. Idempotent.

        :param redecide: Decides the facts of the given rows again, and returns the rows with their new decisions.
        :raises JobCancelled: If the job was cancelled; nothing was applied.
        """
        extraction = self._extraction(job)
        if extraction.phase in (Phase.APPLIED, Phase.UNDONE):
            return Applied(tuple(self._ledger(job)))
        scope, now = job_scope(job.scope, extraction), {row.ordinal: row for row in rows}
        novelty: dict[int, bool] = {}
        rounds = 0
        while True:
            texts = self._texts(scope, extraction, now.values())
            attempt = Attempt(
                job, extraction, list(now.values()), texts, novelty, self._max_deletes, self._engine.analyser.terms
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
                    novelty |= {row.ordinal: self._is_novel(scope, texts[row.ordinal]) for row in changed.rows}

    def excess(self, scope: Scope, rows: Sequence[FactRow]) -> list[int]:
        """Return the ordinals of removing facts if they exceed the limit without an approval, else an empty list."""
        decided = [row for row in rows if row.stage is FactStage.DECIDED]
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return []
            world = world_of(connection, namespace, scope, decided, {})
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
        """Return the texts that may be stored for each decided row, screened and embedded, by ordinal."""
        rows = list(rows)
        policy = self._engine.screening.applied(scope)
        with self._engine.namespace(scope) as (connection, namespace):
            cited = {} if namespace is None else message_metadata(connection, namespace.id, extraction, rows)
        screened: dict[int, Texts] = {}
        for row in rows:
            if row.stage is FactStage.DECIDED and row.fact is not None and row.decision is not None:
                metadata = {**_metadata(row.fact, row.decision, extraction), **cited.get(row.ordinal, {})}
                addition, update = (new_text(row.fact, row.decision, verdict) for verdict in (None, Verdict.UPDATE))
                screened[row.ordinal] = Texts(
                    _screened(policy, addition, metadata), _screened(policy, update, metadata)
                )
        different = list({one.text: None for both in screened.values() for one in both if one.refused is None})
        passages = dict(zip(different, prepared(self._engine, different), strict=True))
        return {
            ordinal: Texts._make(replace(one, passages=passages.get(one.text, ())) for one in both)
            for ordinal, both in screened.items()
        }

    def _is_novel(self, scope: Scope, texts: Texts) -> bool:
        nearest = self._engine.nearest_of(scope, texts.addition.passages) if texts.addition.passages else None
        return nearest is None or nearest[1] < NOVELTY_SIMILARITY

    def _waiting(self, job: RunningJob, rows: Sequence[FactRow], removing: tuple[int, ...]) -> Applied:
        """Store the decisions until they are approved."""

        def work(connection: Connection) -> tuple[FactRow, ...]:
            job.save(connection, done=len(rows), total=len(rows), state=job.state)
            stored = {row.ordinal: row for row in extractions.facts(connection, job.id) if row.fact is not None}
            kept = [row for row in rows if row.ordinal in stored]
            extractions.save_facts(connection, job.id, [with_commit_mark(row, stored[row.ordinal]) for row in kept])
            return tuple(extractions.facts(connection, job.id))

        return Applied(self._engine.write_rows(work), APPROVAL_REQUIRED, removing)


def _screened(policy: AppliedPolicy, text: str, metadata: JsonObject) -> Text:
    """Apply the namespace's privacy policy to a text and its metadata."""
    if not text.strip():
        return Text("", refused="there is no text in it")
    try:
        safe, noted = policy.content(text, metadata)
    except PersonalDataRejected as rejected:
        return Text("", refused=rejected.message)
    return Text(safe, noted or {})


def _metadata(fact: LedgerFact, decision: Decision, extraction: ExtractionRecord) -> JsonObject:
    """Return the provenance metadata of a new memory; `mode` marks facts that were added without a model."""
    return {
        "category": fact.category.value.lower(),
        **({} if fact.speaker is None else {"speaker": fact.speaker}),
        **({} if fact.span is None else {SPAN: {"start": fact.span.start, "end": fact.span.end}}),
        **({"mode": FALLBACK_ADD} if decision.by is DecidedBy.FALLBACK else {}),
        "extract_source": source_of(extraction),
        JOB_ID: extraction.job_id,
    }
