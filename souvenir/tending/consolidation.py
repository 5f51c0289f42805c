"""Merging clusters of near memories into one text each, which a language model writes.

As a job it finds the clusters first and then merges one after the other, each in one transaction with the progress:
after a kill at most one answer of the model is asked for again. What changed since it was compared stays as it is. The
originals are archived and linked, and a backup is made first. A dry run happens inside of its request, so that no text
of it is kept. Jobs run in a lane of their own: a slow model holds up nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import Any

from llm_provider import LLMProvider
from memory_engine import MemoryEngine
from souvenir.deadlines import time_left
from souvenir.errors import LLMRejected
from souvenir.jobs.comparing import Comparing
from souvenir.jobs.running import RunningJob
from souvenir.jobs.worker import Jobs
from souvenir.moments import to_us
from souvenir.settings import Settings
from souvenir.store import reads
from souvenir.store.jobs import CONSOLIDATE
from souvenir.store.transaction import Transaction
from souvenir.tending.compaction import NEAR_SIMILARITY, clusters_of
from souvenir.tending.merging import NotMerged, merged_text
from souvenir.types import JsonObject, Memory, MemoryDraft, Scope

MAX_CLUSTERS = 20
"""Merged by one job; the model is asked once for each."""

MAX_MEMBERS = 10
"""Memories of a cluster that are merged into one; the others are left for the next time."""

MIN_LEFT_S = 15.0
"""Of its request's time; with less a dry run asks for no further text."""


@dataclass(frozen=True, slots=True)
class _Near:
    """Memories that may be merged: id and `updated_at` in microseconds of each, as they were compared."""

    members: tuple[tuple[int, int], ...]

    @property
    def ids(self) -> list[int]:
        return [memory_id for memory_id, _ in self.members]

    def unchanged(self, found: Mapping[int, Memory]) -> list[Memory] | None:
        """The memories, if each is as it was compared."""
        for memory_id, updated_at in self.members:
            memory = found.get(memory_id)
            if memory is None or memory.archived or memory.pinned or to_us(memory.updated_at) != updated_at:
                return None
        return [found[memory_id] for memory_id in self.ids]


@dataclass(frozen=True, slots=True)
class _State:
    """`clusters` were found, of which the first `done` are dealt with; `more`: there are others."""

    clusters: tuple[tuple[tuple[int, int], ...], ...] = ()
    more: bool = False
    done: int = 0
    backup: str | None = None
    merged: tuple[JsonObject, ...] = ()
    skipped: tuple[JsonObject, ...] = ()

    @classmethod
    def of(cls, state: JsonObject) -> _State:
        clusters = tuple(tuple((id_, at) for id_, at in members) for members in state["clusters"])
        merged, skipped = tuple(state["merged"]), tuple(state["skipped"])
        return cls(**{**state, "clusters": clusters, "merged": merged, "skipped": skipped})

    def after_merge(self, merged_id: int | None, near: _Near, **shown: Any) -> _State:
        one = {"id": merged_id, "ids": near.ids, **shown}
        return replace(self, done=self.done + 1, merged=(*self.merged, one))

    def after_skip(self, near: _Near, reason: NotMerged) -> _State:
        one = {"ids": near.ids, "reason": reason.value}
        return replace(self, done=self.done + 1, skipped=(*self.skipped, one))

    def result(self, *, dry_run: bool) -> JsonObject:
        """:return: What was `merged`, and what was `skipped` and why; `has_more`: there is more to be merged."""
        has_more = self.more or self.done < len(self.clusters)
        merged, skipped = list(self.merged), list(self.skipped)
        return {"dry_run": dry_run, "merged": merged, "skipped": skipped, "has_more": has_more}


class Consolidation:
    """Handles the jobs of its kind, and has their lane; they wait until `start`."""

    kind = CONSOLIDATE

    def __init__(self, engine: MemoryEngine, provider: LLMProvider | None, settings: Settings) -> None:
        """:param provider: Closed by its owner, before this is closed."""
        self._engine = engine
        self._provider = provider
        self._comparing = Comparing(engine)
        self.jobs = Jobs(
            engine,
            [self],
            queue_max=settings.job_queue_max,
            retention_days=settings.job_retention_days,
            lane=CONSOLIDATE,
        )

    def require_model(self) -> LLMProvider:
        """:raises LLMRejected: If there is none."""
        if self._provider is None:
            raise LLMRejected("Memories are merged by a language model and none is set; set EXTRACT_PROVIDER")
        return self._provider

    def preview(self, scope: Scope, *, source_prefix: str) -> JsonObject:
        """What the model would write of the first clusters; nothing is stored."""
        provider = self.require_model()
        state = self._found(scope, source_prefix, _in_time)
        while state.done < len(state.clusters) and time_left(MIN_LEFT_S) >= MIN_LEFT_S:
            near = _Near(state.clusters[state.done])
            memories = near.unchanged(self._engine.get(scope, near.ids))
            text = NotMerged.CHANGED if memories is None else merged_text(provider, memories)
            if isinstance(text, NotMerged) or memories is None:
                state = state.after_skip(near, NotMerged(text))
            else:
                state = state.after_merge(None, near, source=memories[0].source, text=text)
        return state.result(dry_run=True)

    def run(self, job: RunningJob) -> JsonObject:
        state = _State.of(job.state) if job.state else self._begin(job)
        while state.done < len(state.clusters):
            state = self._merge_next(job, state)
        return state.result(dry_run=False)

    def _begin(self, job: RunningJob) -> _State:
        def between(done: int) -> None:
            job.checkpoint(done=0, total=None, state={})

        state = self._found(job.scope, job.parameters["source_prefix"], between)
        if state.clusters:
            state = replace(state, backup=self._engine.back_up(reason="pre_consolidate").name)
        job.checkpoint(done=0, total=len(state.clusters), state=asdict(state))
        return state

    def _found(self, scope: Scope, prefix: str, between: Callable[[int], None]) -> _State:
        clusters: list[tuple[tuple[int, int], ...]] = []
        more, source = False, None
        while (source := self._comparing.next_source(scope, source, prefix=prefix)) is not None:
            pairs, _ = self._comparing.pairs(scope, source, NEAR_SIMILARITY, between, mergeable_only=True)
            for cluster in clusters_of(source, pairs):
                chosen = cluster.members[:MAX_MEMBERS]
                more = more or len(clusters) >= MAX_CLUSTERS or len(chosen) < len(cluster.members)
                clusters.append(tuple((member.id, member.updated_at) for member in chosen))
            if len(clusters) > MAX_CLUSTERS:
                break
        return _State(tuple(clusters[:MAX_CLUSTERS]), more)

    def _merge_next(self, job: RunningJob, before: _State) -> _State:
        """Ask about the next cluster, and write what came of it with the progress."""
        near = _Near(before.clusters[before.done])
        memories = near.unchanged(self._engine.get(job.scope, near.ids))
        text = NotMerged.CHANGED if memories is None else merged_text(self.require_model(), memories)
        if isinstance(text, NotMerged) or memories is None:
            skipped = before.after_skip(near, NotMerged(text))
            job.checkpoint(done=skipped.done, total=len(skipped.clusters), state=asdict(skipped))
            return skipped
        draft = self._engine.screening.draft(job.scope, _draft(text, memories))
        [passages] = self._engine.prepare([draft.text])

        def work(tx: Transaction) -> _State:
            tx.job_id = job.id
            now = near.unchanged(reads.memories(tx.connection, tx.namespace, near.ids))
            if now is None:
                after = before.after_skip(near, NotMerged.CHANGED)
            else:
                after = before.after_merge(tx.merge(now, draft, passages).id, near)
            job.save(tx.connection, done=after.done, total=len(after.clusters), state=asdict(after))
            return after

        return self._engine.write(job.scope, work)


def _in_time(_: int) -> None:
    """:raises DeadlineExceeded: If nobody waits for the dry run any more."""
    time_left(MIN_LEFT_S)


def _draft(text: str, memories: Sequence[Memory]) -> MemoryDraft:
    """The text with what the metadata of all of them says, dated by the latest of those that have a date."""
    shared = reduce(lambda one, other: dict(one.items() & other.items()), [_plain(old) for old in memories])
    dates = [old.document_at for old in memories if old.document_at is not None]
    return MemoryDraft(text, memories[0].source, shared, document_at=max(dates, default=None))


def _plain(memory: Memory) -> dict[str, Any]:
    return {key: value for key, value in memory.metadata.items() if isinstance(value, str | int | float | None)}
