"""The job that forgets archived memories which nobody changed for long: what was replaced, merged or put away.

Living and pinned memories are never touched. A backup is made first; then they go in small transactions, each with the
progress that it makes, so that a job that is killed goes on and deletes nothing twice.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime

from memory_engine import MemoryEngine
from souvenir.jobs.running import RunningJob
from souvenir.store import tending as rows
from souvenir.store.transaction import Transaction
from souvenir.types import JsonObject, Scope

DELETED_AT_ONCE = 256
"""Memories deleted in one transaction: other writes wait for some tens of milliseconds."""


@dataclass(frozen=True, slots=True)
class _State:
    candidates: int = 0
    pruned: int = 0
    backup: str | None = None


class Pruning:
    """Handles the jobs of its kind."""

    kind = "prune"

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def candidates(self, scope: Scope, before: datetime) -> int:
        """How many a job would forget now."""
        with self._engine.namespace(scope) as (connection, namespace):
            return 0 if namespace is None else rows.count_prunable(connection, namespace, before)

    def run(self, job: RunningJob) -> JsonObject:
        before = datetime.fromisoformat(job.parameters["before"])
        state = _State(**job.state) if job.state else self._begin(job, before)
        more = state.candidates > 0
        while more:

            def work(tx: Transaction, state: _State = state) -> tuple[_State, bool]:
                tx.job_id = job.id
                ids = rows.prunable(tx.connection, tx.namespace, before, limit=DELETED_AT_ONCE)
                tx.delete(ids)
                after = replace(state, pruned=state.pruned + len(ids))
                job.save(tx.connection, done=after.pruned, total=after.candidates, state=asdict(after))
                return after, bool(ids)

            state, more = self._engine.write(job.scope, work)
        return {"candidates": state.candidates, "pruned": state.pruned}

    def _begin(self, job: RunningJob, before: datetime) -> _State:
        state = _State(candidates=self.candidates(job.scope, before))
        if state.candidates:
            state = replace(state, backup=self._engine.back_up(reason="pre_prune").name)
        job.checkpoint(done=0, total=state.candidates, state=asdict(state))
        return state
