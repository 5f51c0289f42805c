"""Handlers whose steps can be counted and blocked."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from souvenir.core.errors import SouvenirError
from souvenir.core.types import JsonObject, MemoryDraft
from souvenir.jobs.handler import RunningJob
from souvenir.memories.engine import MemoryEngine
from souvenir.store.transaction import Transaction

PATIENCE_S = 30.0


class Counting:
    """Counts to `parameters["until"]`, a checkpoint each; tells each number to `told` before it is saved."""

    kind = "counting"

    def __init__(self, told: Callable[[RunningJob, int], None] = lambda job, number: None) -> None:
        self._told = told

    def run(self, job: RunningJob) -> JsonObject:
        for number in range(job.state.get("counted", 0) + 1, job.parameters["until"] + 1):
            self._told(job, number)
            job.checkpoint(done=number, total=job.parameters["until"], state={"counted": number})
        return {"counted": job.parameters["until"]}


class Storing:
    """Stores `parameters["until"]` memories, each in one transaction with the progress."""

    kind = "storing"

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def run(self, job: RunningJob) -> JsonObject:
        until = job.parameters["until"]
        for number in range(job.state.get("stored", 0) + 1, until + 1):
            draft = MemoryDraft(f"stored by the job, number {number}", "jobs")
            [passages] = self._engine.prepare([draft.text])

            def work(
                tx: Transaction, draft: MemoryDraft = draft, passages: object = passages, number: int = number
            ) -> None:
                tx.insert(draft, passages)  # type: ignore[arg-type]  # what prepare returned
                job.save(tx.connection, done=number, total=until, state={"stored": number})

            self._engine.write(job.scope, work)
        return {"stored": until}


class Failing:
    """Raises what it is given."""

    kind = "failing"

    def __init__(self, error: Exception) -> None:
        self._error = error

    def run(self, job: RunningJob) -> JsonObject:
        raise self._error


class Busy:
    """Finds something too busy so many times, and then does it."""

    kind = "busy"

    def __init__(self, error: SouvenirError, times: int) -> None:
        self._error = error
        self.times = times

    def run(self, job: RunningJob) -> JsonObject:
        if self.times:
            self.times -= 1
            raise self._error
        return {"done": True}


class Gate:
    """Holds a handler at a number until it is let go."""

    def __init__(self, at: int) -> None:
        self._at = at
        self.reached = Event()
        self.open = Event()

    def __call__(self, job: RunningJob, number: int) -> None:
        if number == self._at:
            self.reached.set()
            assert self.open.wait(PATIENCE_S)
