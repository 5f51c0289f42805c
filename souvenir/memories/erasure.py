"""Erasure: removal for good. The job of it, and the first step, which the request takes before there is a job.

The first step writes tombstones and what is to go, hides agents, and finds out what the backups know of what is meant:
a user who is deleted already may still be in one. The job removes the rows part by part, clears the files of their
bytes, and looks at the backups; if that is asked for, it writes those anew that hold what was erased. After a kill the
job goes on from what it saved; without a job, the removals go on with the rows and the files, not with the backups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import apsw

from souvenir.core.files import sync
from souvenir.core.stored_json import StoredJson
from souvenir.core.timestamps import utc_now
from souvenir.core.types import JsonObject, Scope
from souvenir.jobs.handler import RunningJob
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.removals import clear, not_found
from souvenir.store import pending_removals, tombstones
from souvenir.store.cascade import RemovedRows
from souvenir.store.learning import extractions
from souvenir.store.pending_removals import RemovalStep, Target
from souvenir.store.selection import Chooses, Selection, resolve

TARGETS_AT_ONCE = 1_000
"""Written down in one transaction: other writes wait for some tens of milliseconds."""

SETTLE_S = 5.0
"""That new backups wait behind a look for those that are being made; then it is tried again."""


@dataclass(frozen=True, slots=True)
class _State:
    """`removed` counts what the first step removed too."""

    removed: RemovedRows = field(default_factory=RemovedRows)
    postings: int = 0
    rewritten: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def done(self) -> int:
        return self.removed.messages + self.removed.memories + self.removed.blocks


_STATE = StoredJson(_State)


def _begun(job: RunningJob) -> _State:
    """The state of a job, which begins with what its submission removed."""
    return _STATE.load(job.state or {"removed": job.parameters["removed"]})


class Erasure:
    """Begins erasures, and runs the jobs of the kind `erase`, whose ids are the works of the removals."""

    kind = "erase"

    def __init__(self, engine: MemoryEngine, *, on_jobs_gone: Callable[[], None]) -> None:
        """:param on_jobs_gone: Called after jobs were removed, to clear up what they left."""
        self._engine = engine
        self._on_jobs_gone = on_jobs_gone

    def begin(self, selection: Selection, work: str, *, backups: bool) -> JsonObject:
        """Write down what is to go and that it never comes back; the parameters of the job that shall remove it.

        :param backups: Whether the backups shall be written anew.
        :raises NotFound: If neither the store nor a backup has any of it.
        """
        targets = self._targets(selection)
        if not targets:
            raise not_found(selection)
        removed = RemovedRows()
        for first in range(0, len(targets), TARGETS_AT_ONCE):
            chosen = targets[first : first + TARGETS_AT_ONCE]
            step = self._engine.models.remove(partial(_bury, targets=chosen, work=work, namespace=selection.namespace))
            removed += RemovedRows() if step is None else step.removed
        if removed.jobs:
            self._on_jobs_gone()
        return {"removed": asdict(removed), "tombstones": len(targets), "backups": backups}

    def run(self, job: RunningJob) -> JsonObject:
        state = self._remove_rows(job, _begun(job))
        cleared = clear(self._engine, {job.id})
        state = self._settled(job, state)
        if job.parameters["backups"]:
            state = self._rewrite_backups(job, state)
        return {
            "removed": asdict(state.removed),
            "postings": state.postings,
            "tombstones": job.parameters["tombstones"],
            "files_cleared": cleared,
            "backups_rewritten": list(state.rewritten),
            "backups_dropped": list(state.dropped),
            "backups_holding": self._holding(),
        }

    def _targets(self, selection: Selection) -> list[Target]:
        """What is meant, in the store and in its backups."""

        def ask(connection: apsw.Connection) -> list[Target]:
            return pending_removals.expand(connection, resolve(connection, selection))

        with self._engine.namespace(Scope()) as (connection, _):
            here = ask(connection)
        there = {target for _, found in self._engine.copies.query(ask) for target in found or ()} - set(here)
        if selection.chooses is Chooses.SOURCE:
            # What lay in the source once and has been moved since is not meant.
            with self._engine.namespace(Scope()) as (connection, _):
                there -= set(pending_removals.present(connection, there))
        return [*here, *sorted(there)]

    def _remove_rows(self, job: RunningJob, state: _State) -> _State:
        while True:

            def work(connection: apsw.Connection, before: _State = state) -> RemovalStep | None:
                step = pending_removals.advance(connection, job.id, utc_now())
                if step is not None:
                    after = replace(before, removed=before.removed + step.removed)
                    job.save(connection, done=after.done, total=None, state=_STATE.dump(after))
                return step

            step = self._engine.models.remove(work)
            if step is None:
                return state
            postings = sum(len(set(self._engine.models.terms(text))) for text in step.texts)
            state = replace(state, removed=state.removed + step.removed, postings=state.postings + postings)

    def _settled(self, job: RunningJob, state: _State) -> _State:
        """After this, what was erased is in no backup that is not there yet."""
        while True:
            job.checkpoint(done=state.done, total=state.done, state=_STATE.dump(state))
            try:
                self._engine.copies.backups.settle(SETTLE_S)
            except TimeoutError:
                continue
            return state

    def _rewrite_backups(self, job: RunningJob, state: _State) -> _State:
        copies, rows = self._engine.copies, self._tombstones()
        for name in copies.holding(rows):
            if copies.forget(name, rows):
                state = replace(state, rewritten=(*state.rewritten, name))
            else:
                state = replace(state, dropped=(*state.dropped, name))
            job.checkpoint(done=state.done, total=state.done, state=_STATE.dump(state))
        for path in copies.replaced():
            path.unlink()
            sync(path.parent)
            state = replace(state, dropped=(*state.dropped, path.name))
        return state

    def _holding(self) -> list[str]:
        copies = self._engine.copies
        return [*copies.holding(self._tombstones()), *(path.name for path in copies.replaced())]

    def _tombstones(self) -> Sequence[tombstones.Tombstone]:
        with self._engine.namespace(Scope()) as (connection, _):
            return tombstones.read(connection)


def _bury(connection: apsw.Connection, targets: Sequence[Target], work: str, namespace: str) -> RemovalStep:
    extractions.forget_transcripts(connection, namespace)
    tombstones.create(connection, targets, utc_now())
    tombstones.mark_uncleared(connection, work, pending_removals.namespaces_of(connection, targets))
    return pending_removals.begin(connection, targets, work)
