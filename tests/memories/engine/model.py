"""A model of the engine's operations on dictionaries, which the engine must agree with.

An operation checks first and then changes, and raises the expected errors. Times and new ids are the engine's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from souvenir.core.errors import KeyTaken, MemoryArchived, MemoryNotFound, MemoryPinned
from souvenir.core.types import Fact, FactsBy, Link, Memory, MemoryDraft, MemoryPatch, SourceFilter
from tests.reference.search import selects
from tests.reference.tags import folded


@dataclass
class Model:
    """Memories by namespace and id; links from a memory to the one it replaced, with times.

    Facts have no ids. `waiting` is the split queue.
    """

    memories: dict[str, dict[int, Memory]] = field(default_factory=dict)
    supersedes: dict[tuple[int, int], datetime] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)

    def copy(self) -> Model:
        memories = {name: dict(held) for name, held in self.memories.items()}
        return Model(memories, dict(self.supersedes), set(self.waiting))

    def held(self, namespace: str) -> dict[int, Memory]:
        return self.memories.setdefault(namespace, {})

    def memory(self, namespace: str, memory_id: int) -> Memory:
        if memory_id not in self.held(namespace):
            raise MemoryNotFound(memory_id)
        return self.held(namespace)[memory_id]

    def listing(self, namespace: str) -> list[Memory]:
        """Return memories as the engine lists them: in id order, with values from their links."""
        texts = {old.id: old.text for held in self.memories.values() for old in held.values()}
        return [self._linked(memory, texts) for _, memory in sorted(self.held(namespace).items())]

    def _linked(self, memory: Memory, texts: Mapping[int, str]) -> Memory:
        replaced = sorted(old for new, old in self.supersedes if new == memory.id)
        replacing = sorted(new for new, old in self.supersedes if old == memory.id)
        return replace(
            memory,
            links=tuple(Link(memory.id, old, "supersedes", self.supersedes[memory.id, old]) for old in replaced),
            previous_text=texts[replaced[0]] if len(replaced) == 1 else None,
            superseded_by=replacing[-1] if replacing else None,
        )

    def keyed(self, namespace: str, source: str, key: str) -> Memory | None:
        return next(
            (
                memory
                for memory in self.held(namespace).values()
                if (memory.source, memory.key, memory.archived) == (source, key, False)
            ),
            None,
        )

    def _require_free_key(self, namespace: str, source: str, key: str | None, *, but: int | None) -> None:
        holder = None if key is None else self.keyed(namespace, source, key)
        if key is not None and holder is not None and holder.id != but:
            raise KeyTaken(source, key, holder.id)

    def add(
        self, namespace: str, memory_id: int, draft: MemoryDraft, at: datetime, *, replaces: Sequence[Memory] = ()
    ) -> None:
        if not draft.archived:
            self._require_free_key(namespace, draft.source, draft.key, but=None)
        self.held(namespace)[memory_id] = Memory(
            id=memory_id,
            text=draft.text,
            source=draft.source,
            created_at=at,
            updated_at=at,
            metadata=draft.metadata,
            key=draft.key,
            document_at=draft.document_at,
            pinned=draft.pinned,
            archived=draft.archived,
            tags=tags_of(draft.tags, *(old.tags for old in replaces)),
            facts=facts_of(draft.facts, draft.facts_by, at),
        )
        if not draft.facts and any(old.facts for old in replaces):
            self.waiting.add(memory_id)

    def update(self, namespace: str, memory_id: int, patch: MemoryPatch, at: datetime) -> None:
        before = self.memory(namespace, memory_id)
        after = replace(
            before,
            text=chosen(patch.text, before.text),
            source=chosen(patch.source, before.source),
            metadata=patched(before.metadata, patch.metadata or {}),
            document_at=None if patch.remove_document_at else chosen(patch.document_at, before.document_at),
            pinned=chosen(patch.pinned, before.pinned),
            archived=chosen(patch.archived, before.archived),
            valid_to=None if patch.archived is False else before.valid_to,
            updated_at=at,
            tags=tags_of(chosen(patch.tags, before.tags), patch.add_tags, without=patch.remove_tags),
        )
        if not after.archived:
            self._require_free_key(namespace, after.source, after.key, but=memory_id)
        self.held(namespace)[memory_id] = after
        if patch.facts is not None:
            self._split(namespace, before, patch.facts, patch.facts_by, at)
        elif after.text != before.text:
            self.held(namespace)[memory_id] = replace(after, facts=())
            self.waiting |= {memory_id} if before.facts else set()

    def split(self, namespace: str, memory_id: int, facts: Sequence[str], made_by: FactsBy, at: datetime) -> None:
        self._split(namespace, self.memory(namespace, memory_id), facts, made_by, at)

    def _split(self, namespace: str, before: Memory, facts: Sequence[str], made_by: FactsBy, at: datetime) -> None:
        """A kept fact keeps its time, unless it equals the text of its memory before or after."""
        after = self.held(namespace)[before.id]
        known = {one.text: one for one in before.facts if (one.text == before.text) == (one.text == after.text)}
        held = tuple(known.get(one.text, one) for one in facts_of(facts, made_by, at))
        self.held(namespace)[before.id] = replace(after, facts=held)
        self.waiting.discard(before.id)

    def upsert(self, namespace: str, memory_id: int, draft: MemoryDraft, at: datetime) -> None:
        held = None if draft.key is None else self.keyed(namespace, draft.source, draft.key)
        if held is None:
            self.add(namespace, memory_id, draft, at)
        else:
            patch = MemoryPatch(
                text=draft.text,
                metadata=draft.metadata,
                document_at=draft.document_at,
                add_tags=draft.tags,
                facts=draft.facts or None,
                facts_by=draft.facts_by,
            )
            self.update(namespace, held.id, patch, at)

    def archive(self, namespace: str, memory_id: int, at: datetime) -> None:
        self.update(namespace, memory_id, MemoryPatch(archived=True), at)

    def require_living(self, namespace: str, memory_id: int) -> Memory:
        memory = self.memory(namespace, memory_id)
        if memory.pinned:
            raise MemoryPinned(memory_id, "")
        if memory.archived:
            raise MemoryArchived(memory_id, "")
        return memory

    def supersede(self, namespace: str, old_id: int, new_id: int, draft: MemoryDraft, at: datetime) -> None:
        old = self.require_living(namespace, old_id)
        if not draft.archived and (draft.source, draft.key) != (old.source, old.key):
            self._require_free_key(namespace, draft.source, draft.key, but=None)
        self.archive(namespace, old_id, at)
        held = self.held(namespace)
        held[old_id] = replace(held[old_id], valid_to=draft.document_at or at)
        self.add(namespace, new_id, draft, at, replaces=[old])
        self.supersedes[new_id, old_id] = at

    def merge(self, namespace: str, ids: Sequence[int], new_id: int, text: str, source: str, at: datetime) -> None:
        olds = [self.require_living(namespace, memory_id) for memory_id in sorted(set(ids))]
        draft = MemoryDraft(text, source, {"source_memory_ids": sorted(set(ids))})
        self.add(namespace, new_id, draft, at, replaces=olds)
        for memory_id in set(ids):
            self.archive(namespace, memory_id, at)
            self.supersedes[new_id, memory_id] = at

    def delete(self, namespace: str, memory_id: int, *, force: bool = False) -> None:
        if self.memory(namespace, memory_id).pinned and not force:
            raise MemoryPinned(memory_id, "")
        del self.held(namespace)[memory_id]
        self.waiting.discard(memory_id)
        self.supersedes = {pair: at for pair, at in self.supersedes.items() if memory_id not in pair}

    def unpinned_of(self, namespace: str, source: SourceFilter) -> list[int]:
        return [
            id_
            for id_, memory in sorted(self.held(namespace).items())
            if selects(source, memory.source) and not memory.pinned
        ]


def tags_of(*several: Sequence[str], without: Sequence[str] = ()) -> tuple[str, ...]:
    """Return all tags by name without duplicates, in their first spelling."""
    found: dict[str, str] = {}
    for tag in (tag for tags in several for tag in tags):
        found.setdefault(folded(tag), tag)
    return tuple(found[name] for name in sorted(found) if name not in set(map(folded, without)))


def facts_of(texts: Sequence[str], made_by: FactsBy, at: datetime) -> tuple[Fact, ...]:
    return tuple(Fact(0, text, made_by, at) for text in dict.fromkeys(texts))


def without_fact_ids(memory: Memory) -> Memory:
    return replace(memory, facts=tuple(replace(fact, id=0) for fact in memory.facts))


def chosen(new: Any, old: Any) -> Any:
    return old if new is None else new


def patched(metadata: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**metadata, **patch}.items() if key not in patch or value is not None}
