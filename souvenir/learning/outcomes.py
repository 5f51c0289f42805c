"""Outcomes of facts, as the ledger stores them and clients read them.

A fact that a caller committed separately is marked, so that its own job does not apply it again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import apsw

from souvenir.core.ledger import FactRow, FactStage, Phase
from souvenir.core.types import JsonObject
from souvenir.store.admin import jobs
from souvenir.store.admin.jobs import JobStatus
from souvenir.store.learning import extractions


def skipped(reason: str, **more: Any) -> JsonObject:
    """Return the outcome of a fact that is not stored. :param reason: One word of a closed set."""
    return {"action": "skipped", "reason": reason, **more}


def error(reason: str) -> JsonObject:
    return {"action": "error", "error": reason}


COMMITTED = "committed"
"""Outcome key with the id of the job that applied another job's fact; also the reason why that other job skips it."""


def committed_by(connection: apsw.Connection, row: FactRow) -> str | None:
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
