"""A job queue: jobs are submitted from any thread and run by the queue's worker threads; callers take turns.

A caller is a namespace and an actor. A long job ends its turn between two steps if another caller's job waits, and a
job that waits for a busy or missing service rests in the queue, so neither delays the jobs of others by more than one
step. Every state is stored before it is reported. A job that was running when the process ended is queued again, at the
next start or by another replica, and resumes from its saved state. A process that was only stopped cannot write for it
any more. A handler that fails ends its own job, never the thread.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Condition, Event, Lock, Thread
from time import monotonic
from typing import TypeVar

import structlog

from souvenir.core.concurrency import frees_space
from souvenir.core.errors import Conflict, JobNotFound, Overloaded, ServiceClosing, SouvenirError
from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import utc_now
from souvenir.core.types import JsonObject, Scope
from souvenir.jobs.handler import (
    REFUSALS,
    TRANSIENT,
    JobCancelled,
    JobHandler,
    JobInterrupted,
    JobStore,
    JobYielded,
    RunningJob,
    UndoableHandler,
)
from souvenir.jobs.queue_rows import JobFigures, claimed, record, visible
from souvenir.store.admin import jobs as rows
from souvenir.store.admin import keys
from souvenir.store.admin.jobs import Job, JobFilter, JobStatus
from souvenir.store.sql import Connection

T = TypeVar("T")

Continuation = Callable[[Connection, Job], None]

Within = Callable[[Callable[[Connection], Job]], Job]
"""Runs the function that queues a job in a transaction, and returns the new job or an equivalent existing one."""

CLOSE_TIMEOUT_S = 10.0
"""How long closing waits for the next checkpoint of the running job; unsaved work is repeated."""

RETRY_PAUSES_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Pauses of a job after transient failures, such as a busy database or model; after the last one it fails."""

POLL_S = 1.0
"""How often the queue is looked at where other replicas fill it."""

WRITE_PAUSE_S = 1.0
"""The pause before a failed write of a job's state is retried."""

log = structlog.get_logger(__name__)


def _nothing() -> None:
    return None


def _too_many_wait(_: int) -> Overloaded:
    return Overloaded("Too many jobs are waiting; look at GET /jobs and try again later", retry_after_s=30)


@dataclass(slots=True)
class _Rest:
    """The transient failures of a job in one state, and the monotonic time until which it pauses."""

    state: JsonObject
    failures: int
    until: float


class Jobs:
    """A job queue. Jobs can be submitted and read before `start`, and run after it."""

    def __init__(
        self,
        store: JobStore,
        handlers: Iterable[JobHandler],
        *,
        queue_max: int,
        retention_days: float,
        on_end: Callable[[], None] = _nothing,
        lane: str | None = None,
        workers: int = 1,
        when_full: Callable[[int], Overloaded] = _too_many_wait,
    ) -> None:
        """:param on_end: Called after jobs ended, also if they never started, to clean up after them.

        :param lane: The kind of `souvenir.store.admin.jobs.OWN_LANES` handled here; None: all without one.
        :param workers: Jobs that run at once; of one serial key never more than one does.
        :param when_full: What is raised when so many wait already.
        """
        self._store = store
        self._on_end = on_end
        self._lane = lane
        self._workers = workers
        self._when_full = when_full
        self._handlers = {handler.kind: handler for handler in handlers}
        self._queue_max = queue_max
        self._retention_days = retention_days
        self._closing = Event()
        self._changed = Condition()
        self._changes = 0
        self._rests: dict[str, _Rest] = {}
        self._starting = Lock()
        self._claiming = Lock()
        self._held: set[str] = set()
        """Ids of the jobs that workers of this process run."""
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Resume jobs of a previous process, and start the workers."""
        with self._starting:
            if self._closing.is_set() or self._threads:
                return
            first = Thread(target=self._run_first, name=self._thread_name(0), daemon=True)
            others = [Thread(target=self._run, name=self._thread_name(n), daemon=True) for n in range(1, self._workers)]
            self._threads = [first, *others]
            first.start()

    def close(self) -> None:
        """Stop at the next checkpoint. Running and waiting jobs resume at the next start."""
        with self._starting:
            self._closing.set()
        self._notify_changed()
        deadline = monotonic() + CLOSE_TIMEOUT_S
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, deadline - monotonic()))
                if thread.is_alive():
                    log.warning("job_abandoned", action="what it did not save is done again at the next start")

    def submit(
        self,
        kind: str,
        scope: Scope,
        parameters: JsonObject,
        *,
        job_id: str | None = None,
        serial_key: str | None = None,
        is_local: bool = False,
        in_transaction: Callable[[Connection, str], None] | None = None,
        within: Within | None = None,
    ) -> Job:
        """Queue a job.

        :param serial_key: Jobs of one kind and serial key run one after another.
        :param is_local: Whether only this replica can run it, as it has a file of it.
        :param in_transaction: Writes rows of the job, whose id it gets, in the same transaction.
        :param within: Runs the insert in a transaction with other writes; by default in a separate transaction.
        :raises Overloaded: If the queue is full.
        """
        chosen = job_id or uuid.uuid4().hex

        def work(connection: Connection) -> Job:
            now = utc_now()
            self._require_place(connection, scope.actor)
            keys.count_submission(connection, scope.actor, self._store.quotas_of(scope.actor), kind, now)
            record(connection, scope, "job.submit", chosen, kind)
            replica = self._store.replica if is_local else None
            job = rows.insert(connection, chosen, kind, scope, parameters, now, serial_key=serial_key, replica=replica)
            if in_transaction is not None:
                in_transaction(connection, chosen)
            return job

        job = (within or self._store.write_rows)(work)
        log.info("job_submitted", job_id=job.id, kind=kind)
        self._notify_changed()
        return job

    def require_quota(self, kind: str, scope: Scope) -> None:
        """Check the quota before a submission is prepared; `submit` checks it again.

        :raises QuotaExceeded: If the actor may not submit another job of the kind today.
        """
        with self._store.namespace(scope) as (connection, _):
            keys.require_submittable(connection, scope.actor, self._store.quotas_of(scope.actor), kind, utc_now())

    def get(self, scope: Scope, job_id: str, *, all_actors: bool = False) -> Job:
        """:param all_actors: Whether jobs of other actors in the namespace are visible.

        :raises JobNotFound: If no visible job has this id.
        """
        with self._store.namespace(scope) as (connection, _):
            return visible(rows.find(connection, job_id), job_id, scope, all_actors=all_actors)

    def list(
        self,
        scope: Scope,
        *,
        all_actors: bool = False,
        status: JobStatus | None = None,
        kind: str | None = None,
        waits_for_approval: bool = False,
        limit: int,
        offset: int = 0,
    ) -> tuple[Sequence[Job], int]:
        """Return the visible jobs, newest first, and their total number."""
        with self._store.namespace(scope) as (connection, _):
            chosen = JobFilter(scope.namespace, None if all_actors else scope, status, kind, waits_for_approval)
            return rows.page(connection, chosen, limit=limit, offset=offset)

    @property
    def waiting(self) -> int:
        """The number of jobs of all namespaces that have not started."""
        with self._store.namespace(Scope()) as (connection, _):
            return rows.count_queued(connection, self._lane)

    @property
    def figures(self) -> JobFigures:
        with self._store.namespace(Scope()) as (connection, _):
            waiting, kept = rows.count_queued(connection, self._lane), rows.count(connection, self._lane)
        return JobFigures(waiting, self._queue_max, self._workers, kept)

    @frees_space()
    def cancel(self, scope: Scope, job_id: str, *, all_actors: bool = False) -> Job:
        """Cancel a waiting job at once, and a running one at its next checkpoint.

        :raises JobNotFound: If no visible job has this id.
        :raises Conflict: If it is finished.
        """

        def work(connection: Connection) -> Job:
            job = visible(rows.find(connection, job_id), job_id, scope, all_actors=all_actors)
            if job.finished:
                raise Conflict(f"Job {job_id!r} is {job.status} already; there is nothing to cancel")
            rows.request_cancel(connection, job_id, utc_now())
            rows.prune_excess(connection, rows.lane_of(job.kind))
            record(connection, scope, "job.cancel", job_id, job.kind)
            return visible(rows.find(connection, job_id), job_id, scope, all_actors=all_actors)

        return self._tell_end(self._store.write_rows(work))

    def reopen(self, scope: Scope, job_id: str, in_transaction: Continuation, *, all_actors: bool = False) -> Job:
        """Queue a completed job again.

        :param in_transaction: Writes the input of the continuation, in the same transaction; may raise to roll it back.
        :raises JobNotFound: If no visible job has this id.
        :raises Conflict: If it is not completed.
        :raises Overloaded: If the queue is full.
        """

        def work(connection: Connection) -> Job:
            job = visible(rows.find(connection, job_id), job_id, scope, all_actors=all_actors)
            if job.status is not JobStatus.COMPLETED:
                raise Conflict(f"Job {job_id!r} is {job.status}; only a completed one can go on")
            in_transaction(connection, job)
            self._require_place(connection, job.actor)
            rows.reopen(connection, job_id)
            record(connection, scope, "job.reopen", job_id, job.kind)
            return visible(rows.find(connection, job_id), job_id, scope, all_actors=all_actors)

        job = self._store.write_rows(work)
        log.info("job_reopened", job_id=job.id, kind=job.kind)
        self._notify_changed()
        return job

    def wait(self, job_id: str, timeout_s: float) -> Job:
        """Return the job when it is finished, or its state after this time.

        :raises JobNotFound: If it no longer exists, for example after a restore.
        """
        deadline = monotonic() + timeout_s
        while True:
            with self._changed:
                seen = self._changes
            with self._store.namespace(Scope()) as (connection, _):
                job = rows.find(connection, job_id)
            if job is None:
                raise JobNotFound(job_id)
            with self._changed:
                left = deadline - monotonic()
                if job.finished or left <= 0 or self._closing.is_set():
                    return job
                if self._changes == seen:
                    self._changed.wait(min(left, POLL_S) if self._store.is_shared else left)

    def notify_removed(self) -> None:
        """Clean up after removed jobs, and wake the threads that wait for them."""
        with self._changed:
            self._rests.clear()
        self._tell_end(None)

    def _require_place(self, connection: Connection, actor: str) -> None:
        """:raises Overloaded: If the queue has no place for another job of the actor."""
        waiting = rows.count_queued(connection, self._lane)
        own = rows.count_queued(connection, self._lane, actor=actor)
        if rows.has_place(actor, own=own, waiting=waiting, places=self._queue_max):
            return
        if waiting >= self._queue_max:
            raise self._when_full(waiting)
        message = f"{own} jobs of this key are waiting, as many as one key may have; try again when some are done"
        raise Overloaded(message, retry_after_s=30)

    def _tell_end(self, job: T) -> T:
        try:
            self._on_end()
        except Exception:  # the rest is cleaned up at the next end of a job or the next start
            log.exception("job_left_something")
        self._notify_changed()
        return job

    def _notify_changed(self) -> None:
        """Wake waiting threads after a job was queued or ended."""
        with self._changed:
            self._changes += 1
            self._changed.notify_all()

    def _thread_name(self, number: int) -> str:
        return f"souvenir-jobs-{self._lane or 'common'}-{number}"

    def _run_first(self) -> None:
        """Resume the jobs of a previous process before any other worker runs."""
        try:
            replica = self._store.replica
            self._persist(lambda connection: rows.requeue_abandoned(connection, self._lane, replica, ()))
        except JobInterrupted:
            return
        with self._starting:
            if self._closing.is_set():
                return
            for thread in self._threads[1:]:
                thread.start()
        self._run()

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                with self._changed:
                    seen = self._changes
                    resting = self._resting()

                with self._claiming:
                    job = claimed(self._store, self._lane, resting, self._held, self._persist)
                    self._held |= set() if job is None else {job.id}
                if job is not None:
                    try:
                        self._work_on(job)
                    finally:
                        self._held -= {job.id}
                    continue
                with self._changed:
                    look_at = min(resting.values(), default=math.inf)
                    if self._store.is_shared:
                        look_at = min(look_at, monotonic() + POLL_S)
                    while self._changes == seen and not self._closing.is_set():
                        left = look_at - monotonic()
                        if left <= 0:
                            break
                        self._changed.wait(None if math.isinf(left) else left)
        except JobInterrupted:
            return

    def _resting(self) -> dict[str, float]:
        """The pausing jobs, and until when each pauses. The caller holds the lock."""
        now = monotonic()
        return {job_id: rest.until for job_id, rest in self._rests.items() if rest.until > now}

    def _others_wait(self, job: Job) -> bool:
        with self._changed:
            resting = self._resting()
        with self._store.namespace(rows.scope_of(job)) as (connection, _):
            scope, replica = rows.scope_of(job), self._store.replica
            return rows.others_wait(connection, scope, self._lane, replica=replica, resting=resting)

    def _work_on(self, job: Job) -> None:
        """Run a job to its end, unless the service closes first or the job yields or pauses."""
        log.info("job_started", job_id=job.id, kind=job.kind)
        try:
            result, error, status = self._outcome(job)
        except JobYielded as yielded:
            self._persist(partial(rows.requeue, job_id=job.id, turn=job.turn, waits_for=yielded.waits_for))
            self._notify_changed()
            return
        if status is not JobStatus.COMPLETED:
            self._undo(job)

        def end(connection: Connection) -> None:
            rows.finish(connection, job.id, job.turn, status, utc_now(), result=result, error=error)
            rows.prune(connection, utc_now(), retention_days=self._retention_days, lane=self._lane)

        self._persist(end)
        with self._changed:
            self._rests.pop(job.id, None)
        log.info("job_ended", job_id=job.id, kind=job.kind, status=status.value)
        self._tell_end(job)

    def _outcome(self, job: Job) -> tuple[str | None, str | None, JobStatus]:
        """Return the result as JSON, the message of a failure, and the final status of the job.

        The result is the code of the error if the job failed because of its request.
        :raises JobInterrupted: If the service is closing. :raises JobYielded: If the job yields or pauses.
        """
        try:
            return to_json(dict(self._result(job))), None, JobStatus.COMPLETED
        except JobCancelled:
            return None, None, JobStatus.CANCELLED
        except ServiceClosing as error:
            raise JobInterrupted from error
        except (JobInterrupted, JobYielded):
            raise
        except SouvenirError as error:
            log.warning("job_failed", job_id=job.id, kind=job.kind, reason=error.message)
            code = to_json({"code": error.code}) if isinstance(error, REFUSALS) else None
            return code, error.message, JobStatus.FAILED
        except Exception:  # the boundary of a thread; the job's error refers to the log
            log.exception("job_failed", job_id=job.id, kind=job.kind)
            return None, f"internal error; look at the service's log for job {job.id}", JobStatus.FAILED

    def _result(self, job: Job) -> JsonObject:
        """Return the result of the handler.

        :raises JobYielded: After a transient failure, unless all pauses are used up without progress.
        """
        running = self._resumed(job)
        with self._changed:
            rest = self._rests.get(job.id)
        failures = rest.failures if rest is not None and rest.state == running.state else 0
        running.last_try = failures >= len(RETRY_PAUSES_S)
        before = running.state
        try:
            return self._handler(job).run(running)
        except TRANSIENT as error:
            if running.last_try:
                raise
            pause_s = RETRY_PAUSES_S[failures]
            log.warning("job_waits", job_id=job.id, kind=job.kind, reason=error.message, pause_s=pause_s)
            with self._changed:
                self._rests[job.id] = _Rest(before, failures + 1, monotonic() + pause_s)
            raise JobYielded(error.message) from error

    def _undo(self, job: Job) -> None:
        """Let the handler undo partial work.

        :raises JobInterrupted: If the service closes first; the job then ends the same way at the next start.
        """
        handler = self._handlers.get(job.kind)
        if not isinstance(handler, UndoableHandler):
            return
        try:
            handler.undo(self._resumed(job))
        except JobCancelled:  # a restore removed the job and its effects
            return
        except (JobInterrupted, ServiceClosing) as error:
            raise JobInterrupted from error
        except Exception:  # the boundary of a thread
            log.exception("job_not_undone", job_id=job.id, kind=job.kind)

    def _handler(self, job: Job) -> JobHandler:
        if job.kind not in self._handlers:
            raise Conflict(f"This release does not know jobs of the kind {job.kind!r}; start the one that does")
        return self._handlers[job.kind]

    def _resumed(self, job: Job) -> RunningJob:
        """The job with its last saved state."""
        scope = rows.scope_of(job)
        # As a write it is repeated while the database cannot be reached.
        kept = self._persist(lambda connection: rows.kept(connection, job.id, job.turn))
        if kept is None:
            raise JobCancelled
        parameters, state = kept
        others_wait = partial(self._others_wait, job)
        return RunningJob(
            self._store, job.id, scope, parameters, state, self._closing, turn=job.turn, others_wait=others_wait
        )

    @frees_space()
    def _persist(self, work: Callable[[Connection], T]) -> T:
        """Write, retrying until it succeeds.

        :raises JobInterrupted: If the service closes first.
        """
        while True:
            try:
                return self._store.write_rows(work)
            except ServiceClosing as error:
                raise JobInterrupted from error
            except SouvenirError as error:
                log.warning("jobs_wait", reason=error.message)
            if self._closing.wait(WRITE_PAUSE_S):
                raise JobInterrupted
