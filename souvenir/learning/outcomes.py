"""Outcomes of facts, as the ledger stores them and clients read them.

A fact that a caller committed by itself is marked, so that its own job does not apply it a second time.
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
    """A fact that is not kept. :param reason: One word, of a closed set."""
    return {"action": "skipped", "reason": reason, **more}


def error(reason: str) -> JsonObject:
    return {"action": "error", "error": reason}


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
