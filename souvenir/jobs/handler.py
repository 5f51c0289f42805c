"""What a handler of long work is given, and what it promises."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Event
from typing import Protocol, TypeVar, runtime_checkable

import apsw

from souvenir.core.errors import EmbeddingUnavailable, LLMUnavailable, Overloaded
from souvenir.core.quotas import Quotas
from souvenir.core.types import JsonObject, Scope
from souvenir.store import namespaces
from souvenir.store.admin import jobs as rows

T = TypeVar("T")

TRANSIENT = (Overloaded, EmbeddingUnavailable, LLMUnavailable)
"""Transient errors, after which a handler runs again later."""


class JobCancelled(Exception):
    """Somebody asked for the job's end, or a restore took its row away; nothing more may be written for it."""


class JobInterrupted(Exception):
    """The service closes; the job resumes from its last state at the next start."""


class JobYielded(Exception):
    """The job ends its turn and is queued again; it resumes from its last state.

    :param waits_for: The temporary failure after which it rests; None if it made way for another caller's job.
    """

    def __init__(self, waits_for: str | None = None) -> None:
        super().__init__(waits_for)
        self.waits_for = waits_for


class JobStore(Protocol):
    """The part of `MemoryEngine` that jobs need."""

    def write_rows(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` in one durable transaction."""

    def quotas_of(self, actor: str) -> Quotas:
        """The quotas of an actor."""

    def namespace(self, scope: Scope) -> AbstractContextManager[tuple[apsw.Connection, namespaces.Namespace | None]]:
        """A read transaction and the namespace of the scope, if it exists."""


class Progress(Protocol):
    """Where long work says how far it is, whether it is a job or runs inside of a request."""

    @property
    def state(self) -> JsonObject:
        """What was saved last; empty at first."""

    def checkpoint(self, *, done: int, total: int | None, state: JsonObject) -> None:
        """Save how far it is, durably. Call it often: only here does a job end that is cancelled or interrupted."""

    def save(self, connection: apsw.Connection, *, done: int, total: int | None, state: JsonObject) -> None:
        """The same inside the caller's own write, so that a piece of work and its progress stand or fall together."""

    def give_way(self) -> None:
        """End this turn if another caller's job waits. Call it where the saved state suffices to resume."""


class JobHandler(Protocol):
    """Does the jobs of one kind. What it did before a kill is in `job.state`, and only that."""

    @property
    def kind(self) -> str: ...

    def run(self, job: RunningJob) -> JsonObject:
        """Do it and return the result: ids and counts rather than texts, since a job is kept for days.

        :raises SouvenirError: If it cannot be done; the job keeps the sentence.
        """


@runtime_checkable
class UndoableHandler(JobHandler, Protocol):
    """One that has to clear up when a job of its kind has failed or was cancelled."""

    def undo(self, job: RunningJob) -> None:
        """Take back what is half done; called before the job ends, and again if it was interrupted."""


def _nobody_waits() -> bool:
    return False


@dataclass(slots=True)
class RunningJob:
    """A job that a handler works on, on the thread of the jobs. A checkpoint that did not return was not written.

    :param last_try: True if one of the `TRANSIENT` failures will end the job.
    :param others_wait: Whether a job of another caller could run instead.
    """

    store: JobStore
    id: str
    scope: Scope
    parameters: JsonObject
    state: JsonObject
    closing: Event
    last_try: bool = False
    others_wait: Callable[[], bool] = _nobody_waits

    def checkpoint(self, *, done: int, total: int | None, state: JsonObject) -> None:
        """:raises JobCancelled: If it shall not go on. :raises JobInterrupted: If the service closes."""
        self.store.write_rows(lambda connection: self._advance(connection, done, total, state))
        self.state = state
        if self.closing.is_set():
            raise JobInterrupted

    def save(self, connection: apsw.Connection, *, done: int, total: int | None, state: JsonObject) -> None:
        """As `checkpoint`; what the caller wrote in this transaction is undone if it raises.

        `state` of this object stays as it was: the transaction may fail after this.
        """
        if self.closing.is_set():
            raise JobInterrupted
        self._advance(connection, done, total, state)

    def give_way(self) -> None:
        """:raises JobYielded: If another caller's job waits. :raises JobInterrupted: If the service closes."""
        if self.closing.is_set():
            raise JobInterrupted
        if self.others_wait():
            raise JobYielded

    def _advance(self, connection: apsw.Connection, done: int, total: int | None, state: JsonObject) -> None:
        if not rows.advance(connection, self.id, done=done, total=total, state=state):
            raise JobCancelled


@dataclass(slots=True)
class AtOnce:
    """The progress of work that is too small to be a job."""

    state: JsonObject

    def checkpoint(self, *, done: int, total: int | None, state: JsonObject) -> None:
        self.state = state

    def save(self, connection: apsw.Connection, *, done: int, total: int | None, state: JsonObject) -> None:
        return None

    def give_way(self) -> None:
        return None
