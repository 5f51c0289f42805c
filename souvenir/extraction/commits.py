"""Which facts of a job somebody committed by themselves: they are not applied a second time, by whatever way."""

from __future__ import annotations

from dataclasses import replace

import apsw

from souvenir.decisions import FactRow, FactStage, Phase
from souvenir.extraction.outcomes import skipped
from souvenir.store import extractions, jobs
from souvenir.store.jobs import JobStatus

COMMITTED = "committed"
"""The key of an outcome that names the job which applied a fact of another; also the reason why that does not."""


def committed_by(connection: apsw.Connection, row: FactRow) -> str | None:
    """The job that applies a fact or has applied it; None if there is none, or if it was undone."""
    job_id = row.outcome.get(COMMITTED)
    if job_id is None:
        return None
    job, found = jobs.find(connection, job_id), extractions.find(connection, job_id)
    if job is None or found is None or found.phase is Phase.UNDONE:
        return None
    return None if job.status in (JobStatus.FAILED, JobStatus.CANCELLED) else str(job_id)


def noted(row: FactRow, job_id: str) -> FactRow:
    """The row, as one that the job applies."""
    return replace(row, outcome={**row.outcome, COMMITTED: job_id})


def noted_as(row: FactRow, other: FactRow) -> FactRow:
    """The row, with what another state of it notes of a commit."""
    return noted(row, other.outcome[COMMITTED]) if COMMITTED in other.outcome else row


def passed_over(row: FactRow, job_id: str) -> FactRow:
    """The row, as one that ended since the job applied it."""
    return replace(row, stage=FactStage.SKIPPED, outcome=skipped(COMMITTED, committed=job_id))
