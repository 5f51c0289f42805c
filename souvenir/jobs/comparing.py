"""Comparing the memories of a namespace with each other: source by source, those of equal length in passages.

It reads and says which are near; what is done about them is up to whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from memory_engine import MemoryEngine
from souvenir.search.duplicates import duplicates
from souvenir.store import duplicates as rows
from souvenir.store.duplicates import Candidate, Candidates
from souvenir.types import FloatVector, Scope

CHECKPOINT_S = 0.5
"""Between two looks, while a source is compared, whether the work shall end."""

FoundPair = tuple[Candidate, Candidate, float]
"""A memory, one with a higher id that says nearly the same, and the cosine between them."""


class Comparing:
    """Safe for many threads."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def next_source(self, scope: Scope, after: str | None, *, prefix: str = "") -> str | None:
        """The first source in order that begins with the prefix, or the first after one."""
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
        """The pairs of one source that are at least so near, and how many memories were compared.

        Each memory that repeats another is in one pair, with the first that it repeats; that one is in no pair so.

        :param between: Called every `CHECKPOINT_S` with the number of memories that are done.
        :param mergeable_only: Leave out what must not be merged with anything.
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

    def _vectors(self, scope: Scope, chosen: Candidates, ids: NDArray[np.int64]) -> FloatVector:
        with self._engine.namespace(scope) as (connection, _):
            return rows.mean_vectors(connection, ids, model_id=chosen.model_id, dim=chosen.dim)
