"""Similar memories of a namespace: comparison, deduplication and clusters, as a job or inside of a request.

Memories are compared source by source, and only those of equal length in passages with each other.

`Deduplication` deletes duplicates in small transactions, each with its progress, and no memory that changed after the
comparison. After a kill, the source in work is compared again.

A `Cluster` is a memory with those similar to it, not a chain of them, so it has one subject. It excludes memories that
must not be merged: pinned ones, those with a key, and those that contradict another. `Compaction` only reports
clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from souvenir.core.stored_json import StoredJson
from souvenir.core.types import FloatVector, JsonObject, Scope
from souvenir.jobs.handler import Progress, RunningJob
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.similarity import duplicates
from souvenir.store.memories import duplicates as rows
from souvenir.store.memories.duplicates import DuplicateCandidate, DuplicateCandidates
from souvenir.store.transaction import Transaction

CHECKPOINT_S = 0.5
"""Interval of checks during a comparison for a request to stop."""

FoundPair = tuple[DuplicateCandidate, DuplicateCandidate, float]
"""A memory, a duplicate with a higher id, and their cosine."""


class DuplicateFinder:
    """Thread-safe."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def next_source(self, scope: Scope, after: str | None, *, prefix: str = "") -> str | None:
        """Return the first source with the prefix in order, or the first after another one."""
        with self._engine.namespace(scope) as (connection, namespace):
            return None if namespace is None else rows.next_source(connection, namespace, after, prefix=prefix)

    def pairs(
        self,
        scope: Scope,
        source: str,
        threshold: float,
        between: Callable[[int], None],
        *,
        mergeable_only: bool = False,
    ) -> tuple[list[FoundPair], int]:
        """Return the pairs of one source that reach the threshold, and the number of memories compared.

        Each duplicate is in one pair, with the first memory that it duplicates, which is itself no duplicate.

        :param between: Called every `CHECKPOINT_S` with the number of memories compared so far.
        :param mergeable_only: Leave out memories that must not be merged.
        """
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return [], 0
            chosen = rows.candidates(connection, namespace.id, source, mergeable_only=mergeable_only)
        looked_at = monotonic()

        def between_blocks(done: int) -> None:
            nonlocal looked_at
            if monotonic() - looked_at >= CHECKPOINT_S:
                looked_at = monotonic()
                between(compared + done)

        found: list[FoundPair] = []
        compared = 0
        for count in sorted({memory.passage_count for memory in chosen.memories}):
            group = {memory.id: memory for memory in chosen.memories if memory.passage_count == count}
            pairs = duplicates(
                np.array(list(group), dtype=np.int64),
                lambda ids: self._vectors(scope, chosen, ids),
                threshold=threshold,
                keep=[memory.id for memory in group.values() if memory.pinned],
                between_blocks=between_blocks,
            )
            found += [(group[kept], group[duplicate], cosine) for kept, duplicate, cosine in pairs]
            compared += len(group)
        return found, compared

    def _vectors(self, scope: Scope, chosen: DuplicateCandidates, ids: NDArray[np.int64]) -> FloatVector:
        with self._engine.namespace(scope) as (connection, _):
            return rows.mean_vectors(connection, ids, model_id=chosen.model_id, dim=chosen.dim)


PAIRS_SHOWN = 20
DELETED_AT_ONCE = 256
"""Limit per transaction: other writes wait for some tens of milliseconds."""


@dataclass(frozen=True, slots=True)
class _State:
    """`source` is the last one completed; `pairs` are the first few by their ids."""

    source: str | None = None
    compared: int = 0
    found: int = 0
    removed: int = 0
    backup: str | None = None
    pairs: tuple[tuple[int, int, float], ...] = ()

    def with_pairs(self, pairs: Sequence[FoundPair], removed: int) -> _State:
        shown = [(kept.id, found.id, round(cosine, 6)) for kept, found, cosine in pairs]
        return replace(
            self,
            found=self.found + len(pairs),
            removed=self.removed + removed,
            pairs=tuple(sorted([*self.pairs, *shown])[:PAIRS_SHOWN]),
        )


_STATE = StoredJson(_State)


class Deduplication:
    """Runs the jobs of its kind."""

    kind = "deduplicate"

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._finder = DuplicateFinder(engine)

    def run(self, job: RunningJob) -> JsonObject:
        return self.sweep(job.scope, **job.parameters, progress=job)

    def sweep(self, scope: Scope, *, threshold: float, dry_run: bool, progress: Progress) -> JsonObject:
        """Find duplicates, and unless it is a dry run delete all but the first of each.

        The first one inherits their tags. Pinned and archived memories are never deleted. A backup is made before the
        first deletion.

        :return: `found` pairs, the first `pairs` as (kept id, duplicate id, cosine), `removed` and `remaining`.
        """
        total = self._engine.count(scope)
        state = _STATE.load(progress.state)
        while (source := self._finder.next_source(scope, state.source)) is not None:
            pairs, compared = self._compare(scope, source, threshold, progress, state, total)
            after = replace(state, source=source, compared=state.compared + compared)
            if dry_run or not pairs:
                state = after.with_pairs(pairs, 0)
            else:
                state = replace(self._delete_duplicates(scope, pairs, progress, state, total), source=source)
                state = replace(state, compared=after.compared)
            progress.checkpoint(done=state.compared, total=total, state=_STATE.dump(state))
            progress.give_way()
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
        """Return the pairs of one source, and the number of memories compared."""

        def between(done: int) -> None:
            progress.checkpoint(done=state.compared + done, total=total, state=_STATE.dump(state))

        return self._finder.pairs(scope, source, threshold, between)

    def _delete_duplicates(
        self, scope: Scope, pairs: Sequence[FoundPair], progress: Progress, state: _State, total: int
    ) -> _State:
        """Delete those that are still duplicates; the source is not marked as completed yet."""
        if state.backup is None and self._engine.keeps_backups:
            state = replace(state, backup=self._engine.back_up_first("pre_deduplicate"))
            progress.checkpoint(done=state.compared, total=total, state=_STATE.dump(state))
        for first in range(0, len(pairs), DELETED_AT_ONCE):

            def work(tx: Transaction, first: int = first, before: _State = state) -> _State:
                batch = pairs[first : first + DELETED_AT_ONCE]
                standing = rows.unchanged(tx.connection, tx.namespace_id, [(kept, found) for kept, found, _ in batch])
                kept_ids = {found.id: kept.id for kept, found, _ in batch}
                tx.inherit_tags({memory_id: kept_ids[memory_id] for memory_id in standing})
                tx.delete(standing)
                after = before.with_pairs(batch, len(standing))
                progress.save(tx.connection, done=after.compared, total=total, state=_STATE.dump(after))
                return after

            state = self._engine.write(scope, work)
        return state


NEAR_SIMILARITY = 0.85
"""Default cosine from which two memories of one source are similar."""

CLUSTERS_SHOWN = 50
MEMBERS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """:param members: In the order of their ids; each is similar to the first.

    :param similarity: The least of their cosines to the first.
    """

    source: str
    members: tuple[DuplicateCandidate, ...]
    similarity: float


def clusters_of(source: str, pairs: Sequence[FoundPair]) -> list[Cluster]:
    """:param pairs: Of one source."""
    found: dict[int, list[FoundPair]] = {}
    for pair in pairs:
        found.setdefault(pair[0].id, []).append(pair)
    return [
        Cluster(
            source,
            (near[0][0], *sorted((other for _, other, _ in near), key=lambda one: one.id)),
            round(min(cosine for *_, cosine in near), 6),
        )
        for _, near in sorted(found.items())
    ]


@dataclass(frozen=True, slots=True)
class _CompactionState:
    """`source` is the last that is done; `shown` are the first clusters, with the ids of their first members."""

    source: str | None = None
    compared: int = 0
    clusters: int = 0
    memories: int = 0
    shown: tuple[JsonObject, ...] = ()

    def after(self, source: str, compared: int, clusters: Sequence[Cluster]) -> _CompactionState:
        return replace(
            self,
            source=source,
            compared=self.compared + compared,
            clusters=self.clusters + len(clusters),
            memories=self.memories + sum(len(cluster.members) for cluster in clusters),
            shown=(*self.shown, *map(_shown, clusters))[:CLUSTERS_SHOWN],
        )


_COMPACTION_STATE = StoredJson(_CompactionState)


class Compaction:
    """Runs the jobs of its kind."""

    kind = "compact"

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._finder = DuplicateFinder(engine)

    def run(self, job: RunningJob) -> JsonObject:
        return self.survey(job.scope, **job.parameters, progress=job)

    def survey(self, scope: Scope, *, threshold: float, progress: Progress) -> JsonObject:
        """:return: The numbers of `clusters` and of `memories` in them, and the first clusters as `shown`."""
        total = self._engine.count(scope)
        state = _COMPACTION_STATE.load(progress.state)
        while (source := self._finder.next_source(scope, state.source)) is not None:

            def between(done: int, state: _CompactionState = state) -> None:
                progress.checkpoint(done=state.compared + done, total=total, state=_COMPACTION_STATE.dump(state))

            pairs, compared = self._finder.pairs(scope, source, threshold, between, mergeable_only=True)
            state = state.after(source, compared, clusters_of(source, pairs))
            progress.checkpoint(done=state.compared, total=total, state=_COMPACTION_STATE.dump(state))
            progress.give_way()
        return {"clusters": state.clusters, "memories": state.memories, "shown": list(state.shown)}


def _shown(cluster: Cluster) -> dict[str, Any]:
    return {
        "source": cluster.source,
        "count": len(cluster.members),
        "similarity": cluster.similarity,
        "ids": [member.id for member in cluster.members[:MEMBERS_SHOWN]],
    }
