"""Consolidation: a language model merges each cluster of similar memories into one text.

A job finds the clusters first and then merges one after the other, each in one transaction with the progress: after a
crash at most one call of the model is repeated. Memories that changed since the comparison are skipped. The originals
are archived and linked, after a backup. A dry run is part of its request and stores nothing. Jobs run in a queue of
their own, so that a slow model delays nothing else.

The text of the model is accepted only if it is not longer than the originals together and contains exactly their
numbers: a lost or invented number would go unnoticed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import reduce
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from souvenir.core.concurrency import time_left
from souvenir.core.errors import LLMOutputUnusable, LLMRefused, LLMRejected
from souvenir.core.settings import Settings
from souvenir.core.stored_json import StoredJson
from souvenir.core.timestamps import to_us
from souvenir.core.types import JsonObject, Memory, MemoryDraft, Scope
from souvenir.jobs.handler import RunningJob
from souvenir.jobs.worker import Jobs
from souvenir.memories.deduplication import NEAR_SIMILARITY, DuplicateFinder, clusters_of
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.prompts import prompt_of
from souvenir.models.llm.provider import LLMProvider
from souvenir.store.admin.jobs import CONSOLIDATE
from souvenir.store.memories import reads
from souvenir.store.transaction import Transaction

MAX_CLUSTERS = 20
"""Limit of clusters per job; one call of the model for each."""

MAX_MEMBERS = 10
"""Limit of memories merged into one; the rest of a cluster is left for the next job."""

MIN_LEFT_S = 15.0
"""Remaining request time below which a dry run makes no further call of the model."""


@dataclass(frozen=True, slots=True)
class _Near:
    """Memories to merge: id and `updated_at` in microseconds of each, at the time of the comparison."""

    members: tuple[tuple[int, int], ...]

    @property
    def ids(self) -> list[int]:
        return [memory_id for memory_id, _ in self.members]

    def unchanged(self, found: Mapping[int, Memory]) -> list[Memory] | None:
        """Return the memories if none changed since the comparison."""
        for memory_id, updated_at in self.members:
            memory = found.get(memory_id)
            if memory is None or memory.archived or memory.pinned or to_us(memory.updated_at) != updated_at:
                return None
        return [found[memory_id] for memory_id in self.ids]


@dataclass(frozen=True, slots=True)
class _State:
    """The first `done` of the `clusters` are processed; `more` is true if there are clusters beyond the limit."""

    clusters: tuple[tuple[tuple[int, int], ...], ...] = ()
    more: bool = False
    done: int = 0
    backup: str | None = None
    merged: tuple[JsonObject, ...] = ()
    skipped: tuple[JsonObject, ...] = ()

    def after_merge(self, merged_id: int | None, near: _Near, **shown: Any) -> _State:
        one = {"id": merged_id, "ids": near.ids, **shown}
        return replace(self, done=self.done + 1, merged=(*self.merged, one))

    def after_skip(self, near: _Near, reason: NotMerged) -> _State:
        one = {"ids": near.ids, "reason": reason.value}
        return replace(self, done=self.done + 1, skipped=(*self.skipped, one))

    def result(self, *, dry_run: bool) -> JsonObject:
        """:return: The `merged` clusters, the `skipped` ones with reasons, and `has_more` if there are further ones."""
        has_more = self.more or self.done < len(self.clusters)
        merged, skipped = list(self.merged), list(self.skipped)
        return {"dry_run": dry_run, "merged": merged, "skipped": skipped, "has_more": has_more}


_STATE = StoredJson(_State)


class Consolidation:
    """Runs the jobs of its kind in a queue of their own; jobs wait until `start`."""

    kind = CONSOLIDATE

    def __init__(self, engine: MemoryEngine, provider: LLMProvider | None, settings: Settings) -> None:
        """:param provider: Closed by its owner before this object."""
        self._engine = engine
        self._provider = provider
        self._finder = DuplicateFinder(engine)
        self.jobs = Jobs(
            engine,
            [self],
            queue_max=settings.job_queue_max,
            retention_days=settings.job_retention_days,
            lane=CONSOLIDATE,
        )

    def require_model(self) -> LLMProvider:
        """:raises LLMRejected: If there is no model."""
        if self._provider is None:
            raise LLMRejected("Memories are merged by a language model and none is set; set EXTRACT_PROVIDER")
        return self._provider

    def preview(self, scope: Scope, *, source_prefix: str) -> JsonObject:
        """Return what the model would write for the first clusters; nothing is stored."""
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
        state = _STATE.load(job.state) if job.state else self._begin(job)
        while state.done < len(state.clusters):
            state = self._merge_next(job, state)
        return state.result(dry_run=False)

    def _begin(self, job: RunningJob) -> _State:
        def between(done: int) -> None:
            job.checkpoint(done=0, total=None, state={})

        state = self._found(job.scope, job.parameters["source_prefix"], between)
        if state.clusters:
            state = replace(state, backup=self._engine.back_up_first("pre_consolidate"))
        job.checkpoint(done=0, total=len(state.clusters), state=_STATE.dump(state))
        return state

    def _found(self, scope: Scope, prefix: str, between: Callable[[int], None]) -> _State:
        clusters: list[tuple[tuple[int, int], ...]] = []
        more, source = False, None
        while (source := self._finder.next_source(scope, source, prefix=prefix)) is not None:
            pairs, _ = self._finder.pairs(scope, source, NEAR_SIMILARITY, between, mergeable_only=True)
            for cluster in clusters_of(source, pairs):
                chosen = cluster.members[:MAX_MEMBERS]
                more = more or len(clusters) >= MAX_CLUSTERS or len(chosen) < len(cluster.members)
                clusters.append(tuple((member.id, member.updated_at) for member in chosen))
            if len(clusters) > MAX_CLUSTERS:
                break
        return _State(tuple(clusters[:MAX_CLUSTERS]), more)

    def _merge_next(self, job: RunningJob, before: _State) -> _State:
        """Merge the next cluster, and write the result in one transaction with the progress."""
        near = _Near(before.clusters[before.done])
        memories = near.unchanged(self._engine.get(job.scope, near.ids))
        text = NotMerged.CHANGED if memories is None else merged_text(self.require_model(), memories)
        if isinstance(text, NotMerged) or memories is None:
            skipped = before.after_skip(near, NotMerged(text))
            job.checkpoint(done=skipped.done, total=len(skipped.clusters), state=_STATE.dump(skipped))
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
            job.save(tx.connection, done=after.done, total=len(after.clusters), state=_STATE.dump(after))
            return after

        return self._engine.write(job.scope, work)


def _in_time(_: int) -> None:
    """:raises DeadlineExceeded: If the request of the dry run has timed out."""
    time_left(MIN_LEFT_S)


def _draft(text: str, memories: Sequence[Memory]) -> MemoryDraft:
    """Return the text with the metadata that all memories share, and the latest of their dates."""
    shared = reduce(lambda one, other: dict(one.items() & other.items()), [_plain(old) for old in memories])
    dates = [old.document_at for old in memories if old.document_at is not None]
    return MemoryDraft(text, memories[0].source, shared, document_at=max(dates, default=None))


def _plain(memory: Memory) -> dict[str, Any]:
    return {key: value for key, value in memory.metadata.items() if isinstance(value, str | int | float | None)}


PROMPT = "consolidate"

MAX_CHARS = 12_000
"""Limit of all the texts merged into one."""

_FOLDER = Path(__file__).with_name("prompts")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")


class NotMerged(StrEnum):
    """The reason that memories are not changed."""

    CHANGED = "changed"
    TOO_LONG = "too_long"
    DECLINED = "declined"
    UNUSABLE = "unusable"
    LONGER = "longer"
    NUMBERS_DIFFER = "numbers_differ"


class MergeAnswer(BaseModel):
    """The output of the model."""

    merge: bool
    text: str
    reason: str


def merged_text(provider: LLMProvider, memories: Sequence[Memory]) -> str | NotMerged:
    """Merge memories into one text.

    :raises LLMUnavailable: If a retry may succeed. :raises LLMRejected: If the settings must be corrected.
    """
    texts = [memory.text for memory in memories]
    if sum(map(len, texts)) > MAX_CHARS:
        return NotMerged.TOO_LONG
    listed = [
        {"number": number, "date": memory.occurred_at.date().isoformat(), "statement": memory.text}
        for number, memory in enumerate(memories, 1)
    ]
    asked = prompt_of(_FOLDER, PROMPT, json.dumps(listed, ensure_ascii=False))
    try:
        answer = provider.generate(asked, MergeAnswer).value
    except LLMRefused:
        return NotMerged.DECLINED
    except LLMOutputUnusable:
        return NotMerged.UNUSABLE
    return _checked(answer, texts)


def _checked(answer: MergeAnswer, texts: Sequence[str]) -> str | NotMerged:
    text = answer.text.replace("\0", "").strip()
    if not answer.merge or not text:
        return NotMerged.DECLINED
    if len(text) > sum(map(len, texts)):
        return NotMerged.LONGER
    if set(_NUMBER.findall(text)) != {number for one in texts for number in _NUMBER.findall(one)}:
        return NotMerged.NUMBERS_DIFFER
    return text
