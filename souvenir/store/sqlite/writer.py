"""The single writer thread. Queued writes are committed together, each inside its own savepoint.

A write's future resolves after the commit and after `after_commit` has updated the indexes, in commit order, so a
caller that has an answer can read what it wrote.

On a full disk, writes are tried again after the log was truncated, and then on the space in reserve: deletions may use
it up, other writes only if they need no new page of the database.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from queue import Empty, Full, Queue
from typing import Any, TypeVar, cast

import apsw
import structlog

from souvenir.core.concurrency import may_use_reserve, time_left
from souvenir.core.errors import Overloaded, ServiceClosing, SouvenirError, Unavailable
from souvenir.core.telemetry import Instruments, Stage, add_to_bill
from souvenir.store.sqlite.connections import BUSY_TIMEOUT_MS
from souvenir.store.sqlite.disk_space import Reserve, is_full
from souvenir.store.sqlite.generations import CommitLog
from souvenir.store.sqlite.scrubbing import empty_log

T = TypeVar("T")
Work = Callable[[apsw.Connection], Any]
REFILL_PAUSE_S = 1.0
"""Minimum time between two attempts to take up the reserve again that ordinary writes trigger."""

MAX_GROUP = 256
"""Maximum writes per commit, so that the first one does not wait for the whole of a long queue."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Job:
    work: Work
    after_commit: Callable[[Any], None]
    future: Future[Any]
    alone: bool
    frees: bool = field(default_factory=may_use_reserve)
    submitted_s: float = field(default_factory=time.perf_counter)
    begun_s: float = 0.0
    committed_s: float = 0.0


def _nothing(_: Any) -> None:
    return None


class Writer:
    """Owns the write connection from construction until `close()` returns."""

    def __init__(
        self,
        connection: apsw.Connection,
        *,
        commits: CommitLog,
        reserve: Reserve,
        queue_max: int,
        timeout_s: float,
        instruments: Instruments | None = None,
        on_commit: Sequence[Callable[[], None]] = (),
    ) -> None:
        """:param on_commit: Called after every commit of changes, when the indexes have applied it; must be quick."""
        self._on_commit = on_commit
        self._connection = connection
        self._commits = commits
        self._reserve = reserve
        self._refilled_s = 0.0
        self._instruments = instruments or Instruments()
        self._queue: Queue[_Job | None] = Queue(queue_max)
        self._forget_queue = self._instruments.watch_queue("writer", self._queue.qsize, capacity=queue_max)
        self._timeout_s = timeout_s
        self._closing = False
        self._refusal: str | None = None
        self._submitting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="souvenir-writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        return self._queue.qsize()

    def write(self, work: Callable[[apsw.Connection], T], after_commit: Callable[[T], None] = _nothing) -> T:
        """Run `work` in a transaction and return its result once it is durable and `after_commit(result)` has run.

        :raises Overloaded: If the queue is full, or the work did not begin in time; nothing was written.
        :raises DeadlineExceeded: If the caller's deadline has passed; nothing was written.
        :raises Unavailable: If the database refused; nothing was written.
        """
        wait_s = time_left(self._timeout_s)
        if self._refusal is not None:
            raise Unavailable(self._refusal)
        job = _Job(work, after_commit, Future(), alone=False)
        self._submit(job)
        try:
            job.future.result(wait_s)
        except TimeoutError:
            if job.future.cancel():
                raise Overloaded("The write waited too long for the database; try again in a moment") from None
        result = cast(T, job.future.result())
        add_to_bill(Stage.WRITE_QUEUE, job.begun_s - job.submitted_s)
        add_to_bill(Stage.WRITE_COMMIT, job.committed_s - job.begun_s)
        add_to_bill(Stage.WRITE_APPLY, time.perf_counter() - job.committed_s)
        return result

    def run_alone(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` between two commits, outside of a transaction, while no other write runs."""
        job = _Job(work, _nothing, Future(), alone=True)
        self._submit(job)
        return cast(T, job.future.result())

    def refuse(self, reason: str) -> None:
        """Refuse all later writes."""
        self._refusal = reason

    def close(self) -> None:
        """Reject new writes, finish the queued ones, and close the connection."""
        with self._submitting:
            first = not self._closing
            self._closing = True
        if first:
            self._queue.put(None)
        self._thread.join()
        self._forget_queue()

    def _submit(self, job: _Job) -> None:
        with self._submitting:
            if self._closing:
                raise ServiceClosing
            try:
                self._queue.put_nowait(job)
            except Full:
                raise Overloaded("Too many writes are waiting for the database; try again in a moment") from None

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            group = [job]
            while not group[-1].alone and len(group) < MAX_GROUP:
                try:
                    following = self._queue.get_nowait()
                except Empty:
                    break
                if following is None:
                    self._queue.put(None)
                    break
                group.append(following)
            last = group.pop() if group[-1].alone else None
            begun = [job for job in group if job.future.set_running_or_notify_cancel()]
            try:
                self._commit(begun)
            except Exception as error:  # the boundary of a thread, without which no write would ever be answered
                log.exception("writer_failed")
                for job in begun:
                    _fail(job, error)
            if last is not None and last.future.set_running_or_notify_cancel():
                self._run_alone(last)
        try:
            self._connection.close()
        except apsw.Error as error:
            # The commits are durable in the log, which the next start reads.
            log.error("log_not_emptied", error=type(error).__name__, reason=str(error))

    def _run_alone(self, job: _Job) -> None:
        try:
            job.future.set_result(job.work(self._connection))
        except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
            job.future.set_exception(_wrapped(error))

    def _commit(self, group: list[_Job]) -> None:
        if not group:
            return
        begun_s = time.perf_counter()
        for job in group:
            job.begun_s = begun_s
            self._instruments.took(Stage.WRITE_QUEUE, begun_s - job.submitted_s)
        if self._reserve.is_spent and time.monotonic() - self._refilled_s >= REFILL_PAUSE_S:
            self.refill_reserve()
        left = self._attempt(group)
        if left:
            self._commit_on_full_disk(left)

    def _commit_on_full_disk(self, group: list[_Job]) -> None:
        self._truncate_log()
        left = self._attempt(group)
        if left and (any(job.frees for job in left) or self._connection.pragma("freelist_count")):
            self._reserve.spend()
            self._truncate_log()
            left = self._attempt(left)
        if left:
            self._reserve.report()
        for job in left:
            _fail(job, self._reserve.disk_full(frees=job.frees))
        self.refill_reserve()

    def refill_reserve(self) -> None:
        """Take up the reserve again if it was used; called on the writer's thread."""
        self._refilled_s = time.monotonic()
        if self._reserve.is_spent:
            self._truncate_log()
        self._reserve.make()

    def _truncate_log(self) -> None:
        """Copy the log to the database and free its space, as far as readers and the disk permit."""
        try:
            empty_log(self._connection, BUSY_TIMEOUT_MS)
        except apsw.Error as error:
            log.info("log_not_truncated", reason=str(error))

    def _attempt(self, group: list[_Job]) -> list[_Job]:
        """Commit the writes together; return those that failed because the disk is full, which may be tried again."""
        done: list[tuple[_Job, Any]] = []
        full: list[_Job] = []
        try:
            with self._instruments.stage(Stage.WRITE_COMMIT):
                changes = self._connection.total_changes()
                self._connection.execute("BEGIN IMMEDIATE")
                for job in group:
                    self._run_in_savepoint(job, done, full)
                is_changed = self._connection.total_changes() > changes
                if is_changed:
                    self._commits.number(self._connection)
                self._connection.execute("COMMIT")
                if is_changed:
                    self._commits.committed()
        except BaseException as error:  # noqa: BLE001 - every caller of the group raises it
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if is_full(error):
                return [job for job in group if not job.future.done()]
            for job in group:
                _fail(job, error)
            return []
        committed_s = time.perf_counter()
        for job, result in done:
            job.committed_s = committed_s
            self._publish(job, result)
        if is_changed:
            self._notify()
        return full

    def _notify(self) -> None:
        try:
            for notify in tuple(self._on_commit):
                notify()
        except Exception:  # the boundary of a thread: the commit is durable, and the next one notifies again
            log.exception("commit_not_announced")

    def _run_in_savepoint(self, job: _Job, done: list[tuple[_Job, Any]], full: list[_Job]) -> None:
        """Let a failing write fail alone, unless SQLite ended the whole transaction for it (disk full, I/O error)."""
        pages = self._pages() if self._reserve.is_spent else 0
        self._connection.execute("SAVEPOINT job")
        try:
            result = job.work(self._connection)
            if self._reserve.is_spent and not job.frees and self._pages() > pages:
                raise self._reserve.disk_full(frees=False)
        except Exception as error:
            if not self._connection.in_transaction:
                raise
            self._connection.execute("ROLLBACK TO job")
            self._connection.execute("RELEASE job")
            if is_full(error):
                full.append(job)
            else:
                _fail(job, error)
        else:
            self._connection.execute("RELEASE job")
            done.append((job, result))

    def _pages(self) -> int:
        return int(self._connection.pragma("page_count"))

    def _publish(self, job: _Job, result: Any) -> None:
        """Update the indexes. The rows are durable, so an error here is logged and the write still succeeds."""
        try:
            with self._instruments.stage(Stage.WRITE_APPLY):
                job.after_commit(result)
        except Exception:
            log.exception("index_update_failed")
        job.future.set_result(result)


def _fail(job: _Job, error: BaseException) -> None:
    try:
        job.future.set_exception(_wrapped(error))
    except InvalidStateError:  # it failed alone before its group did
        return


def _wrapped(error: BaseException) -> BaseException:
    if isinstance(error, apsw.Error) and not isinstance(error, SouvenirError):
        wrapped = Unavailable("The database could not take the write; look at the disk and the service's log")
        wrapped.__cause__ = error
        log.error("write_failed", error=type(error).__name__, reason=str(error))
        return wrapped
    return error
