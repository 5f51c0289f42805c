"""Rows of jobs: queued, running, and then completed, failed or cancelled.

`state` is what a handler needs to resume after a crash; it is written in the transaction of the work it describes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us
from souvenir.core.types import JsonObject, Scope
from souvenir.store.admin.keys import EXTRACT as EXTRACT
from souvenir.store.admin.keys import KEY_ACTOR
from souvenir.store.rows import first, select
from souvenir.store.sql import Connection, Parameters, SqlValue

MAX_FINISHED = 1_000
"""Maximum number of finished jobs of one queue to keep, regardless of age."""

ERASE = "erase"
REEMBED = "reembed"
STORE_WIDE = (ERASE, REEMBED)
"""Kinds of jobs that cover the whole store, whatever namespace their caller named."""

SERIAL = (REEMBED,)
"""Kinds of which one job runs at a time, whatever replica runs it."""

CONSOLIDATE = "consolidate"
SPLIT = "split"
DESCRIBE = "describe"
IMPORT_FOLDER = "import_folder"
SYNC = "sync"
OWN_LANES = (ERASE, REEMBED, EXTRACT, CONSOLIDATE, SPLIT, DESCRIBE, IMPORT_FOLDER, SYNC)
"""Kinds with a queue and workers of their own; all others share one queue."""


SHARE = 4
"""A key may have one in so many of the places of a queue."""


class JobStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Job:
    """`done` of `total` is the progress in the handler's own unit; `total` is None while it is unknown.

    :param turn: The number of its last start. A replica that started it before that cannot write for it any more.
    :param result: Of a completed job; of one that failed because of its request, the `code` of the error.
    :param error: The failure; of an unfinished job, the transient error because of which it is retried.
    """

    id: str
    kind: str
    status: JobStatus
    done: int
    total: int | None
    result: JsonObject | None
    error: str | None
    actor: str
    namespace: str
    sources: tuple[str, ...] | None
    author: str | None
    client: str | None
    person: str | None
    cancel_requested: bool
    turn: int | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def finished(self) -> bool:
        return self.status not in (JobStatus.QUEUED, JobStatus.RUNNING)

    @property
    def waits_for(self) -> str | None:
        """The transient error because of which an unfinished job is waiting."""
        return None if self.finished else self.error

    @property
    def outcome(self) -> JsonObject | None:
        """The result of a completed job."""
        return self.result if self.status is JobStatus.COMPLETED else None

    @property
    def refused(self) -> bool:
        """True if it failed because its request cannot be carried out."""
        return self.status is JobStatus.FAILED and self.result is not None

    @property
    def failure(self) -> str | None:
        """The error of a job that failed permanently."""
        return self.error if self.finished else None


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Filters of the jobs of a namespace: of one owner, or of all.

    :param waits_for_approval: Only jobs that changed nothing yet, because they need an approval.
    """

    namespace: str
    owner: Scope | None = None
    status: JobStatus | None = None
    kind: str | None = None
    waits_for_approval: bool = False


_FREE = "({0} IS NULL OR {0} NOT IN (SELECT id FROM replicas))"
"""SQL that is true if no running replica has a job."""

_COLUMNS = (
    "id, kind, status, done, total, result, error, actor, namespace, sources, author, client, person, "
    "cancel_requested, turn, created_at, started_at, finished_at"
)


def insert(
    connection: Connection,
    job_id: str,
    kind: str,
    scope: Scope,
    parameters: JsonObject,
    now: datetime,
    *,
    serial_key: str | None = None,
    replica: str | None = None,
) -> Job:
    """Queue a job. Its time is later than that of any other, so times give the order even if the clock goes backwards.

    :param serial_key: Jobs of this kind with the same key run one at a time, in the order of their times.
    :param replica: The only replica that may run it, as long as there is that one; None: any.
    """
    connection.execute(
        "INSERT INTO jobs (id, kind, namespace, actor, sources, author, client, person, status, parameters, state, "
        "serial_key, replica, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, '{}', ?, ?, "
        "max(?, coalesce((SELECT max(created_at) FROM jobs), 0) + 1))",
        (
            job_id,
            kind,
            scope.namespace,
            scope.actor,
            _sources(scope),
            scope.author,
            scope.client,
            scope.person,
            to_json(dict(parameters)),
            kind if kind in SERIAL else serial_key,
            replica,
            to_us(now),
        ),
    )
    [job] = _jobs(connection, "id = ?", (job_id,))
    return job


def find(connection: Connection, job_id: str) -> Job | None:
    return next(iter(_jobs(connection, "id = ?", (job_id,))), None)


def count_queued(connection: Connection, lane: str | None = None, *, actor: str | None = None) -> int:
    """:param lane: A kind of `OWN_LANES`; None for all other kinds. :param actor: Count only the jobs of this actor."""
    where, parameters = _of_lane(lane)
    if actor is not None:
        where, parameters = f"{where} AND actor = ?", [*parameters, actor]
    return int(connection.execute(f"SELECT count(*) FROM jobs WHERE status = 'queued' AND {where}", parameters).get)


def has_place(actor: str, *, own: int, waiting: int, places: int) -> bool:
    """Return whether an actor may queue another job.

    A managed key may hold one in `SHARE` of the places, and may queue one thing even if all places are taken, so that
    the keys cannot keep each other out. Callers without a managed key are one party, which may fill the queue.

    :param own: What the actor has in the queue. :param waiting: What all have in it. :param places: Its length.
    """
    if not actor.startswith(KEY_ACTOR):
        return waiting < places
    return own == 0 or (waiting < places and own < max(1, places // SHARE))


def count(connection: Connection, lane: str | None = None) -> int:
    """Count jobs of a queue in any state."""
    where, parameters = _of_lane(lane)
    return int(connection.execute(f"SELECT count(*) FROM jobs WHERE {where}", parameters).get)


def has_unfinished(connection: Connection, kind: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM jobs WHERE kind = ? AND status IN ('queued', 'running') LIMIT 1", (kind,)
    ).fetchone()
    return row is not None


def may_be_queued(connection: Connection, kind: str, namespace: str, *, none_failed_since: datetime) -> bool:
    """Return whether no job of this kind is unfinished in a namespace, and the last one did not fail since then."""
    row = first(
        connection,
        tuple[JobStatus, int],
        "SELECT status, coalesce(finished_at, 0) FROM jobs WHERE kind = ? AND namespace = ? "
        "ORDER BY created_at DESC LIMIT 1",
        (kind, namespace),
    )
    if row is None:
        return True
    status, finished_at = row
    if status == JobStatus.FAILED:
        return bool(finished_at < to_us(none_failed_since))
    return status not in (JobStatus.QUEUED, JobStatus.RUNNING)


def unfinished(connection: Connection) -> dict[str, str]:
    """The actors of the jobs that are queued or running, by the ids of these."""
    query = "SELECT id, actor FROM jobs WHERE status IN ('queued', 'running')"
    return dict(select(connection, tuple[str, str], query))


def page(connection: Connection, chosen: JobFilter, *, limit: int, offset: int) -> tuple[list[Job], int]:
    """Return jobs, newest first, and the total."""
    where, parameters = _where(chosen)
    total = int(connection.execute(f"SELECT count(*) FROM jobs WHERE {where}", parameters).get)
    rest = "ORDER BY created_at DESC, id LIMIT ? OFFSET ?"
    return _jobs(connection, f"{where} {rest}", (*parameters, limit, offset)), total


def is_claimable(
    connection: Connection, lane: str | None, replica: str, *, resting: Collection[str], held: Collection[str]
) -> bool:
    """Return whether a replica could start a job of a queue, or has to queue one that was abandoned."""
    startable, values = _startable(lane, replica, resting)
    abandoned, parameters = _abandoned(lane, replica, held)
    row = connection.execute(
        f"SELECT 1 FROM jobs j WHERE {startable} UNION ALL SELECT 1 FROM jobs WHERE {abandoned} LIMIT 1",
        (*values, *parameters),
    ).fetchone()
    return row is not None


def claim(
    connection: Connection,
    now: datetime,
    lane: str | None = None,
    *,
    replica: str = "",
    resting: Collection[str] = (),
) -> Job | None:
    """Start the next job of a queue: the callers (namespace and actor) take turns, each with its oldest job first.

    A job waits for earlier jobs of its serial key. One that was cancelled after it began is next, to clear up.

    :param resting: Ids of jobs that must not start yet, unless they were cancelled.
    """
    where, parameters = _of_lane(lane)
    startable, values = _startable(lane, replica, resting)
    following = (
        "WITH served AS "
        f"(SELECT namespace, actor, max(turn) AS turn FROM jobs WHERE {where} GROUP BY namespace, actor) "
        f"SELECT id FROM jobs j JOIN served USING (namespace, actor) WHERE {startable} "
        "ORDER BY cancel_requested DESC, coalesce(served.turn, 0), created_at, id LIMIT 1"
    )
    return first(
        connection,
        Job,
        "UPDATE jobs SET status = 'running', started_at = coalesce(started_at, ?), replica = ?, "
        f"turn = (SELECT coalesce(max(turn), 0) + 1 FROM jobs) WHERE id = ({following}) RETURNING {_COLUMNS}",
        (to_us(now), replica, *parameters, *values),
    )


def others_wait(
    connection: Connection,
    scope: Scope,
    lane: str | None = None,
    *,
    replica: str = "",
    resting: Collection[str] = (),
) -> bool:
    """Return whether a job of another caller (namespace and actor) could start now."""
    startable, values = _startable(lane, replica, resting)
    row = connection.execute(
        f"SELECT 1 FROM jobs j WHERE {startable} AND (namespace, actor) <> (?, ?) LIMIT 1",
        (*values, scope.namespace, scope.actor),
    ).fetchone()
    return row is not None


def requeue(connection: Connection, job_id: str, turn: int | None, *, waits_for: str | None = None) -> None:
    """Queue a running job again, to resume from its last state, on the same replica as long as there is that one.

    :param waits_for: The temporary failure because of which it is queued again; its next progress clears it.
    """
    connection.execute(
        "UPDATE jobs SET status = 'queued', error = ? WHERE id = ? AND turn = ? AND status = 'running'",
        (waits_for, job_id, turn),
    )


def kept(connection: Connection, job_id: str, turn: int | None) -> tuple[JsonObject, JsonObject] | None:
    """Return parameters and last state of a job that runs in this turn."""
    return first(
        connection,
        tuple[JsonObject, JsonObject],
        "SELECT parameters, state FROM jobs WHERE id = ? AND turn = ? AND status = 'running'",
        (job_id, turn),
    )


def advance(
    connection: Connection, job_id: str, turn: int | None, *, done: int, total: int | None, state: JsonObject
) -> bool:
    """Write the progress of a job that runs in this turn.

    :return: False if it must stop: it was cancelled or deleted, or another replica took it over.
    """
    row = connection.execute(
        "UPDATE jobs SET done = ?, total = ?, state = ?, error = NULL "
        "WHERE id = ? AND turn = ? AND status = 'running' AND cancel_requested = 0 RETURNING id",
        (done, total, to_json(dict(state)), job_id, turn),
    ).fetchone()
    return row is not None


def finish(
    connection: Connection,
    job_id: str,
    turn: int | None,
    status: JobStatus,
    now: datetime,
    *,
    result: str | None = None,
    error: str | None = None,
) -> None:
    """End a job that runs in this turn, with its result as JSON or its error sentence; its state is cleared."""
    connection.execute(
        "UPDATE jobs SET status = ?, result = ?, error = ?, finished_at = ?, state = '{}' "
        "WHERE id = ? AND turn = ? AND status = 'running'",
        (status.value, result, error, to_us(now), job_id, turn),
    )


def reopen(connection: Connection, job_id: str) -> None:
    """Queue a completed job again, before all later ones; its handler resumes from what it stored elsewhere."""
    connection.execute(
        "UPDATE jobs SET status = 'queued', result = NULL, finished_at = NULL, cancel_requested = 0 "
        "WHERE id = ? AND status = 'completed'",
        (job_id,),
    )


def request_cancel(connection: Connection, job_id: str, now: datetime) -> None:
    """Cancel a job that has not begun; ask a running one to stop, so that it can clean up."""
    connection.execute(
        "UPDATE jobs SET cancel_requested = 1, finished_at = CASE WHEN started_at IS NULL THEN CAST(? AS BIGINT) END, "
        "status = CASE WHEN started_at IS NULL THEN 'cancelled' ELSE status END "
        "WHERE id = ? AND status IN ('queued', 'running')",
        (to_us(now), job_id),
    )


def request_cancel_of(connection: Connection, actor: str) -> None:
    """Ask every unfinished job of an actor to stop; a queued one ends when its turn comes."""
    connection.execute(
        "UPDATE jobs SET cancel_requested = 1 WHERE actor = ? AND status IN ('queued', 'running')", (actor,)
    )


def request_cancel_in(connection: Connection, namespace: str) -> None:
    """Ask every unfinished job of a namespace to stop; a queued one ends when its turn comes."""
    connection.execute(
        "UPDATE jobs SET cancel_requested = 1 WHERE namespace = ? AND status IN ('queued', 'running') "
        "AND kind NOT IN (SELECT atom FROM json_each(?))",
        (namespace, to_json(list(STORE_WIDE))),
    )


def requeue_abandoned(connection: Connection, lane: str | None, replica: str, held: Collection[str]) -> None:
    """Queue the running jobs that nobody runs any more; they resume from their last state.

    :param held: Ids of the jobs that the replica, which asks, runs.
    """
    abandoned, parameters = _abandoned(lane, replica, held)
    connection.execute(f"UPDATE jobs SET status = 'queued' WHERE {abandoned}", parameters)


def delete_of(connection: Connection, namespace: str) -> int:
    """Delete all jobs of a namespace; return how many there were."""
    connection.execute(
        "DELETE FROM jobs WHERE namespace = ? AND kind NOT IN (SELECT atom FROM json_each(?))",
        (namespace, to_json(list(STORE_WIDE))),
    )
    return connection.changes()


def cancel_unfinished(connection: Connection, now: datetime, *, reason: str) -> None:
    connection.execute(
        "UPDATE jobs SET status = 'cancelled', cancel_requested = 1, error = ?, finished_at = ?, state = '{}' "
        "WHERE status IN ('queued', 'running')",
        (reason, to_us(now)),
    )


def prune(connection: Connection, now: datetime, *, retention_days: float, lane: str | None = None) -> None:
    """Delete finished jobs of a queue that are older than that, and those beyond `MAX_FINISHED`."""
    where, parameters = _of_lane(lane)
    expired_at = to_us(now - timedelta(days=retention_days))
    connection.execute(f"DELETE FROM jobs WHERE {where} AND finished_at < ?", (*parameters, expired_at))
    prune_excess(connection, lane)


def prune_excess(connection: Connection, lane: str | None = None) -> None:
    """Delete finished jobs of a queue beyond `MAX_FINISHED`: the oldest ones of the actors that have most."""
    where, parameters = _of_lane(lane)
    ranked = (
        "SELECT id, finished_at, row_number() OVER (PARTITION BY actor ORDER BY finished_at DESC, id) AS rank "
        f"FROM jobs WHERE finished_at IS NOT NULL AND {where}"
    )
    connection.execute(
        "DELETE FROM jobs WHERE id IN "
        f"(SELECT id FROM ({ranked}) ORDER BY rank, finished_at DESC, id LIMIT 9223372036854775807 OFFSET ?)",
        (*parameters, MAX_FINISHED),
    )


def lane_of(kind: str) -> str | None:
    """The lane of a kind; None for the one shared by all kinds without their own."""
    return kind if kind in OWN_LANES else None


def scope_of(job: Job) -> Scope:
    """Return the visibility of the job's caller at submission."""
    return Scope(job.namespace, job.actor, job.sources, job.author, job.client, job.person)


def _of_lane(lane: str | None) -> tuple[str, list[str]]:
    """Return an SQL condition on the kinds of a queue, and its parameters."""
    if lane is None:
        return "kind NOT IN (SELECT atom FROM json_each(?))", [to_json(list(OWN_LANES))]
    return "kind = ?", [lane]


def _abandoned(lane: str | None, replica: str, held: Collection[str]) -> tuple[str, list[str]]:
    """SQL that is true of the running jobs of a queue that no replica runs, and its parameters."""
    where, parameters = _of_lane(lane)
    own = "replica = ? AND id NOT IN (SELECT atom FROM json_each(?))"
    condition = (
        f"{where} AND status = 'running' AND CASE WHEN replica = ? THEN {own} ELSE {_FREE.format('replica')} END"
    )
    return condition, [*parameters, replica, replica, to_json(list(held))]


def _startable(lane: str | None, replica: str, resting: Collection[str]) -> tuple[str, list[str]]:
    """SQL that is true of the queued jobs `j` of a queue that a replica may start now, and its parameters."""
    where, parameters = _of_lane(lane)
    earlier = (
        "SELECT 1 FROM jobs e WHERE e.kind = j.kind AND e.serial_key = j.serial_key AND e.created_at < j.created_at "
        "AND e.status IN ('queued', 'running')"
    )
    condition = (
        f"j.status = 'queued' AND {where} AND (cancel_requested = 1 OR id NOT IN (SELECT atom FROM json_each(?))) "
        f"AND NOT EXISTS ({earlier}) AND (j.replica = ? OR {_FREE.format('j.replica')})"
    )
    return condition, [*parameters, to_json(list(resting)), replica]


def _sources(scope: Scope) -> str | None:
    return None if scope.sources is None else to_json(list(scope.sources))


def _where(chosen: JobFilter) -> tuple[str, list[SqlValue]]:
    conditions: list[str] = ["namespace = ?"]
    parameters: list[SqlValue] = [chosen.namespace]
    if chosen.owner is not None:
        conditions += ["actor = ?", "sources IS NOT DISTINCT FROM ?"]
        parameters += [chosen.owner.actor, _sources(chosen.owner)]
    if chosen.status is not None:
        conditions.append("status = ?")
        parameters.append(chosen.status.value)
    if chosen.kind is not None:
        conditions.append("kind = ?")
        parameters.append(chosen.kind)
    if chosen.waits_for_approval:
        conditions.append("status = 'completed' AND result ->> '$.approval' = 'required'")
    return " AND ".join(conditions), parameters


def _jobs(connection: Connection, rest: str, parameters: Parameters) -> list[Job]:
    return list(select(connection, Job, f"SELECT {_COLUMNS} FROM jobs WHERE {rest}", parameters))
