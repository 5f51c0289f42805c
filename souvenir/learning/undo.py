"""Undo an applied job: memories, passages, vectors and links are restored byte for byte.

One transaction, or nothing: if newer changes depend on what the job wrote, the error names every such memory. The
ledger keeps its texts, and the history records who undid the job; undoing is not forgetting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from souvenir.core.errors import Conflict, JobNotFound, UndoBlocked
from souvenir.core.ledger import FactRow, FactStage, Phase
from souvenir.core.timestamps import from_us, to_us
from souvenir.core.types import JsonObject, Scope
from souvenir.jobs.worker import Jobs
from souvenir.learning.application import UNDO
from souvenir.learning.guards import job_scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import audit
from souvenir.store.admin import jobs as job_rows
from souvenir.store.admin.audit import AuditEvent
from souvenir.store.learning import extractions
from souvenir.store.learning import undo as undoing
from souvenir.store.learning.extractions import ExtractionRecord
from souvenir.store.transaction import UNDONE, Transaction

UNDONE_AT = "undone_at"
"""Option key with the time when a job was undone."""


@dataclass(frozen=True, slots=True)
class Undone:
    """:param removed: Memories that the job had stored. :param restored: Memories that it had archived."""

    job_id: str
    removed: tuple[int, ...]
    restored: tuple[int, ...]


def undo(engine: MemoryEngine, jobs: Jobs, scope: Scope, job_id: str, *, all_actors: bool = False) -> Undone:
    """Undo what a job applied.

    :param all_actors: If true, jobs of other actors in the namespace may be undone.
    :raises JobNotFound: If the scope may see no such extraction.
    :raises SourceForbidden: If the scope may not write to its source.
    :raises Conflict: If the job is not finished, applied nothing, or was undone before.
    :raises UndoBlocked: If newer changes depend on what it wrote.
    """
    jobs.get(scope, job_id, all_actors=all_actors)
    with engine.namespace(scope) as (connection, _):
        extraction = extractions.find(connection, job_id)
    if extraction is None:
        raise JobNotFound(job_id)
    return engine.write(job_scope(scope, extraction), lambda tx: _undo(tx, extraction))


def _undo(tx: Transaction, extraction: ExtractionRecord) -> Undone:
    connection, job_id = tx.connection, extraction.job_id
    _require_applied(tx, job_id)
    rows = extractions.facts(connection, job_id)
    before = dict(_archived(rows))
    _require_newest(tx, job_id, before)
    tx.job_id = job_id
    added = undoing.added_by(connection, job_id)
    tx.delete(added, action=UNDONE, forget=False)
    for memory_id, was in before.items():
        valid_to = None if was["valid_to"] is None else from_us(was["valid_to"])
        tx.unarchive(memory_id, updated_at=from_us(was["updated_at"]), valid_to=valid_to)
    done = [row for row in rows if row.stage is FactStage.APPLIED and row.fact is not None]
    extractions.save_facts(connection, job_id, [replace(row, stage=FactStage.UNDONE) for row in done])
    extractions.set_phase(connection, job_id, Phase.UNDONE)
    extractions.set_options(connection, job_id, {**extraction.options, UNDONE_AT: to_us(tx.now)})
    scope = tx.scope
    event = AuditEvent(tx.now, "job.undo", scope.actor, scope.namespace, resource_id=job_id, detail=job_rows.EXTRACT)
    audit.record(connection, [event])
    return Undone(job_id, tuple(added), tuple(before))


def _require_newest(tx: Transaction, job_id: str, before: Mapping[int, JsonObject]) -> None:
    """:raises UndoBlocked: If newer changes depend on what the job wrote, or the data that undo needs was forgotten."""
    forgotten = undoing.archived_by(tx.connection, job_id) - before.keys()
    blocking = [
        *undoing.newer(tx.connection, tx.namespace_id, job_id),
        *(undoing.Newer(memory_id, "forgotten in the ledger") for memory_id in sorted(forgotten)),
    ]
    if blocking:
        what = ", ".join(f"memory {one.memory_id} ({one.happened})" for one in blocking)
        raise UndoBlocked(
            f"Job {job_id!r} cannot be undone, since something newer stands on what it wrote: {what}; remove links and "
            "undo jobs that stand there first, and where another change does, correct the memories one by one"
        )


def _require_applied(tx: Transaction, job_id: str) -> None:
    job, extraction = job_rows.find(tx.connection, job_id), extractions.find(tx.connection, job_id)
    if job is None or extraction is None:
        raise JobNotFound(job_id)
    if extraction.phase is Phase.UNDONE:
        raise Conflict(f"Job {job_id!r} is undone already; there is nothing left of it to undo")
    if not job.finished:
        raise Conflict(f"Job {job_id!r} is {job.status}; undo it when it is finished")
    if extraction.phase is not Phase.APPLIED:
        raise Conflict(f"Job {job_id!r} applied nothing; there is nothing to undo")


def _archived(rows: Sequence[FactRow]) -> Iterator[tuple[int, JsonObject]]:
    """Return the memories that facts archived, with the values that archiving overwrote."""
    for row in rows:
        if UNDO in row.outcome and row.decision is not None and row.decision.target is not None:
            yield row.decision.target.memory_id, row.outcome[UNDO]
