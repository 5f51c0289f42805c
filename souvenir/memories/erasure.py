"""Erasure: permanent removal. The job, and the first step, which runs in the request before the job exists.

The first step writes tombstones and removal targets, hides agents, and searches the backups for matching rows: a user
who is already deleted may still be in a backup. The job removes the rows in parts, overwrites their bytes in the files,
and checks the backups; on request it rewrites backups that contain erased data. After a crash the job resumes from its
saved state; without a job, the removals resume with the rows and the files, not with the backups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from souvenir.core.concurrency import frees_space
from souvenir.core.files import sync
from souvenir.core.stored_json import StoredJson
from souvenir.core.timestamps import utc_now
from souvenir.core.types import JsonObject, Scope
from souvenir.jobs.handler import RunningJob
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.removals import clear, forget_extractions, not_found, parties_of
from souvenir.store import pending_removals, tombstones
from souvenir.store.admin.jobs import ERASE
from souvenir.store.cascade import RemovedRows
from souvenir.store.learning import extractions
from souvenir.store.pending_removals import RemovalStep, SelectedRows, Target
from souvenir.store.selection import Chooses, Selection, resolve
from souvenir.store.sql import Connection

TARGETS_AT_ONCE = 1_000
"""Targets written in one transaction: other writes wait for some tens of milliseconds."""

SETTLE_S = 5.0
"""Timeout for backups in progress, while new ones wait; then it is tried again."""


@dataclass(frozen=True, slots=True)
class _State:
    """`removed` includes what the first step removed; `total` is the value of `done` at the end."""

    removed: RemovedRows = field(default_factory=RemovedRows)
    total: int | None = None
    postings: int = 0
    rewritten: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def done(self) -> int:
        return self.removed.messages + self.removed.memories + self.removed.blocks


_STATE = StoredJson(_State)


@dataclass(frozen=True, slots=True)
class _Found:
    """The targets that are stored, those that only backups contain, and the backups with any of both."""

    stored: Sequence[Target]
    in_backups: Sequence[Target]
    holding: Sequence[str]


@dataclass(frozen=True, slots=True)
class ErasurePreview:
    """:param only_in_backups: The number of objects that only backups contain.

    :param holding: Backups that contain any of the objects, or that cannot be read.
    """

    rows: SelectedRows
    only_in_backups: int
    holding: Sequence[str]


class Erasure:
    """Starts erasures, and runs the jobs of the kind `erase`, whose ids identify the removals."""

    kind = ERASE

    def __init__(self, engine: MemoryEngine, *, on_jobs_gone: Callable[[], None]) -> None:
        """:param on_jobs_gone: Called after jobs were removed, to clean up their leftovers."""
        self._engine = engine
        self._on_jobs_gone = on_jobs_gone

    def preview(self, selections: Sequence[Selection]) -> ErasurePreview:
        """Count what an erasure of these selections would remove now; changes nothing.

        :raises NotFound: If neither the store nor a backup contains any of it.
        """
        found = self._find(selections)
        with self._engine.namespace(Scope()) as (connection, _):
            rows = pending_removals.count_selected(connection, found.stored)
        return ErasurePreview(rows, len(found.in_backups), found.holding)

    @frees_space()
    def begin(self, selections: Sequence[Selection], work: str, *, backups: bool) -> JsonObject:
        """Write the removal targets and their tombstones, and remove the first part; returns the parameters of the job.

        :param selections: One, or several of single ids in one namespace.
        :param backups: True to rewrite the backups.
        :raises NotFound: If neither the store nor a backup contains any of it.
        """
        found = self._find(selections)
        targets = [*found.stored, *found.in_backups]
        removed, postings = RemovedRows(), 0
        if any(parties_of(selections)):
            self._engine.write_rows(partial(forget_extractions, selections=selections))
        for first in range(0, len(targets), TARGETS_AT_ONCE):
            chosen = targets[first : first + TARGETS_AT_ONCE]
            step = self._engine.models.remove(
                partial(_write_tombstones, targets=chosen, work=work, namespace=selections[0].namespace)
            )
            if step is not None:
                removed, postings = removed + step.removed, postings + self._postings(step)
        if removed.jobs:
            self._on_jobs_gone()
        return {
            "removed": asdict(removed),
            "postings": postings,
            "tombstones": len(targets),
            "backups": backups,
        }

    @frees_space()
    def run(self, job: RunningJob) -> JsonObject:
        state = self._remove_rows(job, self._begun(job))
        cleared = clear(self._engine, {job.id})
        state = self._wait_for_backups(job, state)
        if job.parameters["backups"]:
            state = self._rewrite_backups(job, state)
        return {
            "job_id": job.id,
            "removed": asdict(state.removed),
            "postings": state.postings,
            "tombstones": job.parameters["tombstones"],
            "files_cleared": cleared,
            "backups_rewritten": list(state.rewritten),
            "backups_dropped": list(state.dropped),
            "backups_holding": self._holding(),
        }

    def _begun(self, job: RunningJob) -> _State:
        """The state of a job, which begins with what its submission removed."""
        if job.state:
            return _STATE.load(job.state)
        begun = {"removed": job.parameters["removed"], "postings": job.parameters.get("postings", 0)}
        state = _STATE.load(begun)
        with self._engine.namespace(Scope()) as (connection, _):
            return replace(state, total=state.done + pending_removals.count_pending(connection, job.id))

    def _find(self, selections: Sequence[Selection]) -> _Found:
        """Find the selected rows of the store and of its backups.

        :raises NotFound: If there are none.
        """

        def ask(connection: Connection) -> list[Target]:
            targets = [target for selection in selections for target in resolve(connection, selection)]
            return pending_removals.expand(connection, targets)

        with self._engine.namespace(Scope()) as (connection, _):
            here = ask(connection)

        def ask_backup(connection: Connection) -> tuple[list[Target], bool]:
            return ask(connection), bool(pending_removals.present(connection, here))

        answers = list(self._engine.copies.query(ask_backup))
        there = {target for _, answer in answers if answer is not None for target in answer[0]} - set(here)
        if any(selection.chooses is Chooses.SOURCE for selection in selections):
            # Rows that were once in the source and have been moved since are not selected.
            with self._engine.namespace(Scope()) as (connection, _):
                there -= set(pending_removals.present(connection, there))
        if not here and not there and not self._is_learning_with(selections):
            raise not_found(selections[0])
        holding = [name for name, answer in answers if answer is None or answer[1] or not there.isdisjoint(answer[0])]
        return _Found(here, sorted(there), holding)

    def _is_learning_with(self, selections: Sequence[Selection]) -> bool:
        """Return whether an extraction has one of the users or sessions, which need not be stored yet."""
        with self._engine.namespace(Scope()) as (connection, _):
            return any(extractions.learning_with(connection, *party) for party in parties_of(selections))

    def _remove_rows(self, job: RunningJob, state: _State) -> _State:
        while True:

            def work(connection: Connection, before: _State = state) -> RemovalStep | None:
                step = pending_removals.advance(connection, job.id, utc_now())
                if step is not None:
                    after = replace(before, removed=before.removed + step.removed)
                    job.save(connection, done=after.done, total=after.total, state=_STATE.dump(after))
                return step

            step = self._engine.models.remove(work)
            if step is None:
                return state
            postings = state.postings + self._postings(step)
            state = replace(state, removed=state.removed + step.removed, postings=postings)

    def _postings(self, step: RemovalStep) -> int:
        return sum(len(set(self._engine.models.terms(text))) for text in step.texts)

    def _wait_for_backups(self, job: RunningJob, state: _State) -> _State:
        """Wait for backups in progress; later ones do not contain erased data."""
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


def _write_tombstones(connection: Connection, targets: Sequence[Target], work: str, namespace: str) -> RemovalStep:
    extractions.forget_transcripts(connection, namespace)
    now = utc_now()
    tombstones.create(connection, targets, now)
    tombstones.mark_uncleared(connection, work, pending_removals.namespaces_of(connection, targets))
    return pending_removals.begin_with_first_part(connection, targets, work, now)
