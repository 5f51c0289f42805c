"""The rows of a queue, as its workers and the callers of its jobs see them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import structlog

from souvenir.core.errors import JobNotFound, ServiceClosing, SouvenirError
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Scope
from souvenir.jobs.handler import JobInterrupted, JobStore
from souvenir.store.admin import audit
from souvenir.store.admin import jobs as rows
from souvenir.store.admin.audit import AuditEvent
from souvenir.store.admin.jobs import Job
from souvenir.store.sql import Connection

Persist = Callable[[Callable[[Connection], Job | None]], Job | None]
"""Runs a function in a durable transaction; raises `JobInterrupted` if the service closes first."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class JobFigures:
    """Statistics of a queue, over all namespaces.

    :param workers: Maximum number of concurrent jobs. :param kept: Stored jobs, in any state.
    """

    waiting: int
    waiting_max: int
    workers: int
    kept: int


def claimed(
    store: JobStore, lane: str | None, resting: Collection[str], held: Collection[str], persist: Persist
) -> Job | None:
    """Start the next job of a queue, and return it; where replicas share the queue, also one of an ended replica.

    :param resting: Ids of jobs that must not start yet. :param held: Ids of jobs that this process runs.
    """

    def claim(connection: Connection) -> Job | None:
        if store.is_shared:
            # Also its own that nobody runs, since the answer to their claim was lost.
            rows.requeue_abandoned(connection, lane, store.replica, held)
        return rows.claim(connection, utc_now(), lane, replica=store.replica, resting=resting)

    # A look is cheaper there: a write waits for those of other replicas, and they for it.
    return None if store.is_shared and not _is_claimable(store, lane, resting, held) else persist(claim)


def _is_claimable(store: JobStore, lane: str | None, resting: Collection[str], held: Collection[str]) -> bool:
    try:
        with store.namespace(Scope()) as (connection, _):
            return rows.is_claimable(connection, lane, store.replica, resting=resting, held=held)
    except ServiceClosing as error:
        raise JobInterrupted from error
    except SouvenirError as error:
        log.warning("jobs_wait", reason=error.message)
        return False


def visible(job: Job | None, job_id: str, scope: Scope, *, all_actors: bool) -> Job:
    """Return the job if it is visible to the scope.

    :raises JobNotFound: If it is not.
    """
    own = job is not None and (job.actor, job.sources) == (scope.actor, scope.sources)
    if job is None or job.namespace != scope.namespace or not (own or all_actors):
        raise JobNotFound(job_id)
    return job


def record(connection: Connection, scope: Scope, action: str, job_id: str, kind: str) -> None:
    """Record an action on a job in the audit."""
    audit.record(connection, [AuditEvent(utc_now(), action, scope.actor, scope.namespace, job_id, detail=kind)])
