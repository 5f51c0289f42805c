"""The interface between the job worker and the handlers of jobs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Event
from typing import Protocol, TypeVar, runtime_checkable

from souvenir.core.errors import (
    DatabaseUnavailable,
    EmbeddingUnavailable,
    InvalidRequest,
    LLMUnavailable,
    Overloaded,
    QuotaExceeded,
)
from souvenir.core.quotas import Quotas
from souvenir.core.types import JsonObject, Scope
from souvenir.store import namespaces
from souvenir.store.admin import jobs as rows
from souvenir.store.sql import Connection

T = TypeVar("T")

TRANSIENT = (Overloaded, DatabaseUnavailable, EmbeddingUnavailable, LLMUnavailable)
"""Transient errors, after which a handler runs again later."""

REFUSALS = (InvalidRequest, QuotaExceeded)
"""Errors of the request of a job, not of the service."""


class JobCancelled(Exception):
    """Raised if a user cancelled the job or a restore removed its row; nothing more may be written for it."""


class JobInterrupted(Exception):
    """Raised if the service is closing; the job resumes from its last state at the next start."""


class JobYielded(Exception):
    """Raised if the job ends its turn and is queued again; it resumes from its last state.

    :param waits_for: The transient failure after which it pauses; None if it yielded to another caller's job.
    """

    def __init__(self, waits_for: str | None = None) -> None:
        super().__init__(waits_for)
        self.waits_for = waits_for


class JobStore(Protocol):
    """The part of `MemoryEngine` that jobs need."""

    def write_rows(self, work: Callable[[Connection], T], *, alone: bool = True) -> T:
        """Run `work` in one durable transaction.

        :param alone: Whether no other write may run meanwhile; False if each statement is right whatever others do.
        """

    def quotas_of(self, actor: str) -> Quotas:
        """The quotas of an actor."""

    @property
    def replica(self) -> str:
        """The id of this process among those that run jobs."""

    @property
    def is_shared(self) -> bool:
        """True if several processes share the queue."""

    def namespace(self, scope: Scope) -> AbstractContextManager[tuple[Connection, namespaces.Namespace | None]]:
        """A read transaction and the namespace of the scope, if it exists."""


class Progress(Protocol):
    """The progress of work that runs as a job or within a request."""

    @property
    def state(self) -> JsonObject:
        """The last saved state; empty at first."""

    def checkpoint(self, *, done: int, total: int | None, state: JsonObject) -> None:
        """Save the progress durably. Call it often: a cancelled or interrupted job ends only here."""

    def save(self, connection: Connection, *, done: int, total: int | None, state: JsonObject) -> None:
        """Save the progress in the caller's transaction, so that work and progress are committed atomically."""

    def give_way(self) -> None:
        """Yield this turn if another caller's job is waiting. Call it where the saved state suffices to resume."""


class JobHandler(Protocol):
    """Executes the jobs of one kind. `job.state` is the only record of work done before a kill."""

    @property
    def kind(self) -> str: ...

    def run(self, job: RunningJob) -> JsonObject:
        """Do the work and return the result: ids and counts rather than texts, since a job is kept for days.

        :raises SouvenirError: If the work cannot be done; the job stores the message.
        """


@runtime_checkable
class UndoableHandler(JobHandler, Protocol):
    """A handler that cleans up after a failed or cancelled job of its kind."""

    def undo(self, job: RunningJob) -> None:
        """Undo partial work; called before the job ends, and again if it was interrupted."""


def _nobody_waits() -> bool:
    return False


@dataclass(slots=True)
class RunningJob:
    """A job in execution, used on the worker thread. A checkpoint that raised was not written.

    :param turn: The number of this start of the job.
    :param last_try: True if one of the `TRANSIENT` failures will end the job.
    :param others_wait: Whether a job of another caller could run instead.
    """

    store: JobStore
    id: str
    scope: Scope
    parameters: JsonObject
    state: JsonObject
    closing: Event
    turn: int | None = None
    last_try: bool = False
    others_wait: Callable[[], bool] = _nobody_waits

    def checkpoint(self, *, done: int, total: int | None, state: JsonObject) -> None:
        """:raises JobCancelled: If it must not continue. :raises JobInterrupted: If the service is closing."""
        self.store.write_rows(lambda connection: self._advance(connection, done, total, state), alone=False)
        self.state = state
        if self.closing.is_set():
            raise JobInterrupted

    def save(self, connection: Connection, *, done: int, total: int | None, state: JsonObject) -> None:
        """Like `checkpoint`; the caller's writes in this transaction are rolled back if it raises.

        `state` of this object is not updated, since the transaction may fail later.
        """
        if self.closing.is_set():
            raise JobInterrupted
        self._advance(connection, done, total, state)

    def give_way(self) -> None:
        """:raises JobYielded: If another caller's job is waiting. :raises JobInterrupted: If the service is closing."""
        if self.closing.is_set():
            raise JobInterrupted
        if self.others_wait():
            raise JobYielded

    def _advance(self, connection: Connection, done: int, total: int | None, state: JsonObject) -> None:
        if not rows.advance(connection, self.id, self.turn, done=done, total=total, state=state):
            raise JobCancelled


@dataclass(slots=True)
class AtOnce:
    """The progress of work that is too short to be a job."""

    state: JsonObject

    def checkpoint(self, *, done: int, total: int | None, state: JsonObject) -> None:
        self.state = state

    def save(self, connection: Connection, *, done: int, total: int | None, state: JsonObject) -> None:
        return None

    def give_way(self) -> None:
        return None
