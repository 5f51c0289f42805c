"""Finding clusters: memories of one source that say nearly the same. It only reads; as a job or inside of a request.

A cluster is a memory with those that are near to it, not a chain of them, so that it is about one thing. What must not
be merged is in none: pinned memories, those that a key names, and those that contradict another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from memory_engine import MemoryEngine
from souvenir.jobs.comparing import Comparing, FoundPair
from souvenir.jobs.running import Progress, RunningJob
from souvenir.store.duplicates import Candidate
from souvenir.types import JsonObject, Scope

NEAR_SIMILARITY = 0.85
"""Cosine from which two memories of one source are about the same, unless somebody says otherwise."""

CLUSTERS_SHOWN = 50
MEMBERS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """:param members: In the order of their ids; each other one is near to the first.

    :param similarity: The least of their cosines to the first.
    """

    source: str
    members: tuple[Candidate, ...]
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
class _State:
    """`source` is the last that is done; `shown` are the first clusters, with the ids of their first members."""

    source: str | None = None
    compared: int = 0
    clusters: int = 0
    memories: int = 0
    shown: tuple[JsonObject, ...] = ()

    @classmethod
    def of(cls, state: JsonObject) -> _State:
        return cls(**{**state, "shown": tuple(state.get("shown", ()))})

    def after(self, source: str, compared: int, clusters: Sequence[Cluster]) -> _State:
        return replace(
            self,
            source=source,
            compared=self.compared + compared,
            clusters=self.clusters + len(clusters),
            memories=self.memories + sum(len(cluster.members) for cluster in clusters),
            shown=(*self.shown, *map(_shown, clusters))[:CLUSTERS_SHOWN],
        )


class Compaction:
    """Handles the jobs of its kind."""

    kind = "compact"

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._comparing = Comparing(engine)

    def run(self, job: RunningJob) -> JsonObject:
        return self.survey(job.scope, **job.parameters, progress=job)

    def survey(self, scope: Scope, *, threshold: float, progress: Progress) -> JsonObject:
        """:return: How many `clusters` and `memories` in them there are, and the first of them as `shown`."""
        total = self._engine.count(scope)
        state = _State.of(progress.state)
        while (source := self._comparing.next_source(scope, state.source)) is not None:

            def between(done: int, state: _State = state) -> None:
                progress.checkpoint(done=state.compared + done, total=total, state=asdict(state))

            pairs, compared = self._comparing.pairs(scope, source, threshold, between, mergeable_only=True)
            state = state.after(source, compared, clusters_of(source, pairs))
            progress.checkpoint(done=state.compared, total=total, state=asdict(state))
        return {"clusters": state.clusters, "memories": state.memories, "shown": list(state.shown)}


def _shown(cluster: Cluster) -> dict[str, Any]:
    return {
        "source": cluster.source,
        "count": len(cluster.members),
        "similarity": cluster.similarity,
        "ids": [member.id for member in cluster.members[:MEMBERS_SHOWN]],
    }
