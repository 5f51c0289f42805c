"""Hand-written ledgers and the handler that applies them, without a model.

A test states the decision for each fact; `Applier` is the job handler that applies them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from souvenir.core.ledger import Category, DecidedBy, Decision, FactRow, FactStage, LedgerFact, Phase, Seen, Verdict
from souvenir.core.settings import Settings
from souvenir.core.types import JsonObject, OriginClass, Scope
from souvenir.jobs.handler import RunningJob
from souvenir.jobs.worker import Jobs
from souvenir.learning.application import Applied, Applying
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin.jobs import EXTRACT, Job
from souvenir.store.learning import extractions
from souvenir.store.learning.extractions import ExtractionRecord
from souvenir.store.sql import Connection
from tests.memories.engine.verbs import stored

PATIENCE_S = 30.0
SOURCE = "proj/a"
ANN = Scope("default", "ann")

Rows = Sequence[FactRow]


def never(rows: Rows) -> Rows:
    raise AssertionError(f"asked again about {rows}")


@dataclass
class Applier:
    """Applies the ledger of each job; notes what came of it."""

    engine: MemoryEngine
    settings: Settings
    redecide: Callable[[Rows], Rows] = never
    kind: str = EXTRACT

    def __post_init__(self) -> None:
        self.applied: dict[str, Applied] = {}

    def run(self, job: RunningJob) -> JsonObject:
        with self.engine.namespace(job.scope) as (connection, _):
            rows = extractions.facts(connection, job.id)
        applied = Applying(self.engine, self.settings).apply(job, rows, redecide=self.redecide)
        self.applied[job.id] = applied
        return {"approval": applied.approval} if applied.approval else {"rows": len(applied.rows)}


def seen(engine: MemoryEngine, memory_id: int, scope: Scope = ANN) -> Seen:
    """A memory as it stands now."""
    with engine.namespace(scope) as (connection, namespace):
        versions = {} if namespace is None else extractions.versions(connection, namespace, [memory_id])
        return Seen(memory_id, versions.get(memory_id, 0))


def fact(text: str, *, origin: OriginClass = OriginClass.USER, at: datetime | None = None) -> LedgerFact:
    return LedgerFact(text, Category.DETAIL, origin, event_at=at)


def decided(
    said: str | LedgerFact,
    verdict: Verdict,
    target: Seen | None = None,
    *,
    by: DecidedBy = DecidedBy.MODEL,
    **fields: Any,
) -> FactRow:
    """A row without its place in the ledger."""
    chosen = fact(said) if isinstance(said, str) else said
    return FactRow(0, FactStage.DECIDED, chosen, Decision(verdict, by, "so it was decided", target, **fields))


def submit(
    jobs: Jobs,
    rows: Rows,
    *,
    source: str = SOURCE,
    scope: Scope = ANN,
    phase: Phase = Phase.DECIDED,
    transcript: str | None = "what was said",
    document_at: datetime | None = None,
    **options: Any,
) -> Job:
    """Queue a job whose ledger holds these rows in this order."""

    def write(connection: Connection, job_id: str) -> None:
        length = len(transcript or "")
        extractions.insert(
            connection,
            ExtractionRecord(job_id, scope.namespace, source, "stop", length, transcript, document_at, options, phase),
        )
        extractions.save_facts(
            connection, job_id, [replace(row, ordinal=number) for number, row in enumerate(rows, start=1)]
        )

    return jobs.submit(EXTRACT, scope, {}, serial_key=f"{scope.namespace}\n{source}", in_transaction=write)


def applied(jobs: Jobs, rows: Rows, **fields: Any) -> Job:
    """A finished job that had these rows to apply."""
    return jobs.wait(submit(jobs, rows, **fields).id, PATIENCE_S)


def ledger(engine: MemoryEngine, job_id: str) -> list[FactRow]:
    with engine.namespace(ANN) as (connection, _):
        return extractions.facts(connection, job_id)


def extraction(engine: MemoryEngine, job_id: str) -> ExtractionRecord:
    with engine.namespace(ANN) as (connection, _):
        found = extractions.find(connection, job_id)
    assert found is not None
    return found


def living(engine: MemoryEngine) -> list[str]:
    return [one.text for one in stored(engine, ANN) if not one.archived]


def outcome(engine: MemoryEngine, job_id: str, ordinal: int = 1) -> dict[str, Any]:
    return dict(row_of(engine, job_id, ordinal).outcome)


def row_of(engine: MemoryEngine, job_id: str, ordinal: int = 1) -> FactRow:
    return next(row for row in ledger(engine, job_id) if row.ordinal == ordinal)
