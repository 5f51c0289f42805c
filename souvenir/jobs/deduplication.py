"""The sweep for duplicates: source by source, as a job or inside of a request, by the same steps.

A source is compared and then, unless it is a dry run, thinned out in small transactions, each with the progress that it
makes. What changed after it was compared is not deleted. After a kill the source that it stood at is compared again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from memory_engine import MemoryEngine
from souvenir.jobs.comparing import Comparing, FoundPair
from souvenir.jobs.running import Progress, RunningJob
from souvenir.store import duplicates as rows
from souvenir.store.transaction import Transaction
from souvenir.types import JsonObject, Scope

PAIRS_SHOWN = 20
DELETED_AT_ONCE = 256
"""Memories deleted in one transaction: other writes wait for some tens of milliseconds."""


@dataclass(frozen=True, slots=True)
class _State:
    """`source` is the last that is done; `pairs` are the first few by their ids."""

    source: str | None = None
    compared: int = 0
    found: int = 0
    removed: int = 0
    backup: str | None = None
    pairs: tuple[tuple[int, int, float], ...] = ()

    @classmethod
    def of(cls, state: JsonObject) -> _State:
        return cls(**{**state, "pairs": tuple(map(tuple, state.get("pairs", ())))})

    def with_pairs(self, pairs: Sequence[FoundPair], removed: int) -> _State:
        shown = [(kept.id, found.id, round(cosine, 6)) for kept, found, cosine in pairs]
        return replace(
            self,
            found=self.found + len(pairs),
            removed=self.removed + removed,
            pairs=tuple(sorted([*self.pairs, *shown])[:PAIRS_SHOWN]),
        )


class Deduplication:
    """Handles the jobs of its kind."""

    kind = "deduplicate"

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._comparing = Comparing(engine)

    def run(self, job: RunningJob) -> JsonObject:
        return self.sweep(job.scope, **job.parameters, progress=job)

    def sweep(self, scope: Scope, *, threshold: float, dry_run: bool, progress: Progress) -> JsonObject:
        """Find memories of one source that say the same, and unless it is a dry run delete all but the first of each.

        The first has the tags of all then. Pinned and archived memories are never removed; a backup is made before the
        first one is.

        :return: `found` pairs, the first `pairs` as (kept id, duplicate id, cosine), `removed` and `remaining`.
        """
        total = self._engine.count(scope)
        state = _State.of(progress.state)
        while (source := self._comparing.next_source(scope, state.source)) is not None:
            pairs, compared = self._compare(scope, source, threshold, progress, state, total)
            after = replace(state, source=source, compared=state.compared + compared)
            if dry_run or not pairs:
                state = after.with_pairs(pairs, 0)
            else:
                state = replace(self._thin_out(scope, pairs, progress, state, total), source=source)
                state = replace(state, compared=after.compared)
            progress.checkpoint(done=state.compared, total=total, state=asdict(state))
        return {
            "found": state.found,
            "pairs": [list(pair) for pair in state.pairs],
            "removed": state.removed,
            "remaining": self._engine.count(scope),
            "dry_run": dry_run,
        }

    def _compare(
        self, scope: Scope, source: str, threshold: float, progress: Progress, state: _State, total: int
    ) -> tuple[list[FoundPair], int]:
        """The pairs of one source, and how many memories were compared."""

        def between(done: int) -> None:
            progress.checkpoint(done=state.compared + done, total=total, state=asdict(state))

        return self._comparing.pairs(scope, source, threshold, between)

    def _thin_out(
        self, scope: Scope, pairs: Sequence[FoundPair], progress: Progress, state: _State, total: int
    ) -> _State:
        """Delete the duplicates that still are ones; returns the state after that, its source not yet done."""
        if state.backup is None:
            state = replace(state, backup=self._engine.back_up(reason="pre_deduplicate").name)
            progress.checkpoint(done=state.compared, total=total, state=asdict(state))
        for first in range(0, len(pairs), DELETED_AT_ONCE):

            def work(tx: Transaction, first: int = first, before: _State = state) -> _State:
                batch = pairs[first : first + DELETED_AT_ONCE]
                standing = rows.unchanged(tx.connection, tx.namespace_id, [(kept, found) for kept, found, _ in batch])
                heirs = {found.id: kept.id for kept, found, _ in batch}
                tx.bequeath({memory_id: heirs[memory_id] for memory_id in standing})
                tx.delete(standing)
                after = before.with_pairs(batch, len(standing))
                progress.save(tx.connection, done=after.compared, total=total, state=asdict(after))
                return after

            state = self._engine.write(scope, work)
        return state
