"""Every statement that changes memories. A `Transaction` is one caller's write to one namespace, on the writer thread.

Each operation keeps the rows, their passages, their history and the list of index changes consistent; the caller
commits them together. Passages and vectors are prepared before, so a transaction is fast.

The clock may go back, the times of one memory do not: a change is never dated before the one before it, nor the end of
its validity before its creation, unless a document dates it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, TypeVar

from souvenir.core.errors import (
    InvalidRequest,
    KeyTaken,
    MemoryArchived,
    MemoryPinned,
    PersonForbidden,
    SourceForbidden,
)
from souvenir.core.labels import attributed, belongs_to_another, contributed, few, inherited, is_visible, joined
from souvenir.core.passages import PassageOwner, PreparedPassage
from souvenir.core.quotas import UNLIMITED_QUOTAS, Quotas
from souvenir.core.timestamps import to_us
from souvenir.core.types import (
    AddAction,
    AddOutcome,
    Fact,
    FactsBy,
    Memory,
    MemoryDraft,
    MemoryPatch,
    Origin,
    PassageKind,
    RecordKind,
    Scope,
    SkipReason,
    UpsertOutcome,
    least_trusted,
)
from souvenir.store import index_changes, namespaces
from souvenir.store.admin import keys
from souvenir.store.admin.transfers import insert_history
from souvenir.store.cascade import Removal
from souvenir.store.graph import mention_queue, mentions
from souvenir.store.index_changes import IndexUpdate
from souvenir.store.learning import extractions
from souvenir.store.memories import facts, memories, reads
from souvenir.store.memories.memories import concept_state, metadata_after, written_state
from souvenir.store.passages import PassageWriter, VectorModels
from souvenir.store.rows import ids_parameter, only
from souvenir.store.sql import Connection

T = TypeVar("T")

UNDONE = "undo"
"""The action, in the history, of a memory that was restored or deleted because a job was undone."""

WRITING = frozenset({"update", "import"})
"""Actions by which a principal writes a text; others, such as a privacy scan, only correct it."""

_CHANGED_AT = "max(?5, coalesce((SELECT at FROM history WHERE memory_id = {memory} ORDER BY id DESC LIMIT 1), 0))"
"""The time of a change, parameter 5, but not before the last one of the memory."""


class FactsNotPrepared(Exception):
    """Raised if an expected fact does not exist and its passages were not prepared; nothing was written."""


class NewFacts(NamedTuple):
    """`for_now`: the memory is to be split again.

    :param split: Author and time of some of these texts; the others are by `made_by`, and now.
    """

    texts: Sequence[str]
    made_by: FactsBy
    for_now: bool
    split: Mapping[str, tuple[FactsBy, datetime]] = {}


@dataclass(slots=True)
class Transaction:
    """:param job_id: Recorded with every change, if a job makes it."""

    connection: Connection
    namespace: namespaces.Namespace
    scope: Scope
    passages: PassageWriter
    now: datetime
    job_id: str | None = None

    @classmethod
    def begin(cls, connection: Connection, scope: Scope, models: VectorModels, now: datetime) -> Transaction:
        """Start a write to the scope's namespace; create the namespace if it is new."""
        now_us = to_us(now)
        namespace = only(
            connection,
            namespaces.Namespace,
            "INSERT INTO namespaces (name, created_at, changed_at) VALUES (?, ?, ?) "
            f"ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING {namespaces.COLUMNS}",
            (scope.namespace, now_us, now_us),
        )
        seen = replace(namespace, sources=scope.sources)
        return cls(connection, seen, scope, PassageWriter(connection, namespace.id, models), now)

    @property
    def namespace_id(self) -> int:
        return self.namespace.id

    def finish(self) -> IndexUpdate:
        """Increment the change sequence number, and log the index changes under it.

        :raises ModelChanged: If vectors of the current model are missing.
        """
        self.passages.require_embedded()
        changes, next_changes = tuple(self.passages.changes), tuple(self.passages.next_changes)
        change_seq = index_changes.append(self.connection, self.namespace_id, changes, self.now)
        return IndexUpdate(self.namespace_id, change_seq, changes, next_changes)

    def memory(self, memory_id: int) -> Memory:
        """:raises MemoryNotFound: If this namespace has no such memory, or it is not visible to the scope.

        :raises MemoryUnreadable: If it is damaged.
        """
        found = reads.memories(self.connection, self.namespace, [memory_id])
        return reads.required(self.connection, self.namespace, found, memory_id)

    def unpinned_memory(self, memory_id: int, *, hint: str) -> Memory:
        """:raises MemoryPinned: If it is pinned."""
        memory = self.memory(memory_id)
        if memory.pinned:
            raise MemoryPinned(memory_id, hint)
        return memory

    def replaceable_memory(self, memory_id: int, *, hint: str) -> Memory:
        """Return a memory that may be replaced.

        :raises MemoryPinned: If it is pinned.
        :raises MemoryArchived: If it is archived.
        """
        memory = self.unpinned_memory(memory_id, hint=hint)
        if memory.archived:
            raise MemoryArchived(memory_id, "supersede the memory that replaced it")
        return memory

    def insert(
        self,
        draft: MemoryDraft,
        passages: Sequence[PreparedPassage],
        *,
        action: str = "add",
        origin: Origin | None = None,
        replaces: Sequence[Memory] = (),
    ) -> Memory:
        """:param replaces: Memories that it replaces; it is linked to them, and no more trusted than any of them.

        :raises SourceForbidden: If the scope may not write to the draft's source.
        :raises KeyTaken: If an active memory has the draft's key, and the new one is not archived.
        """
        require_writable(self.scope, draft.source)
        if replaces or self.scope.author is not None or self.scope.client is not None:
            draft = replace(draft, metadata=attributed(draft.metadata, self.scope, replaces))
        if draft.key is not None and not draft.archived:
            self._require_free_key(draft.source, draft.key, but=None)
        origin = origin or Origin(self.now, self.now)
        origin = replace(origin, updated_at=max(origin.created_at, origin.updated_at))
        origin_class = least_trusted((draft.origin_class, *(old.origin_class for old in replaces)))
        memory_id = memories.insert(
            self.connection, self.namespace_id, draft, origin, origin_class, actor=self.scope.actor
        )
        if not draft.archived:
            mention_queue.put(self.connection, self.namespace_id, RecordKind.MEMORY, [memory_id])
        memory = Memory(
            id=memory_id,
            text=draft.text,
            source=draft.source,
            created_at=origin.created_at,
            updated_at=origin.updated_at,
            metadata=draft.metadata,
            key=draft.key,
            document_at=draft.document_at,
            pinned=draft.pinned,
            archived=draft.archived,
            origin_class=origin_class,
            valid_to=draft.valid_to,
            tags=self._put_tags(
                memory_id, inherited(draft.tags, (tag for old in replaces for tag in old.tags)), origin.created_at
            ),
        )
        owner = owner_of(memory)
        self.passages.insert(owner, [one for one in passages if one.fact is None])
        new = NewFacts(draft.facts, draft.facts_by, draft.split_later, origin.split)
        memory = replace(memory, facts=self._put_facts(memory, (), new, passages))
        if draft.split_later or (not draft.facts and any(old.facts for old in replaces)):
            facts.enqueue(self.connection, self.namespace_id, memory.id, self.now)
        insert_history(self.connection, self.namespace_id, memory.id, origin.history, self.now)
        self._record(action, memory.id, before=None, after=memory)
        for old in replaces:
            self.link(memory.id, old.id, reads.SUPERSEDES)
        if replaces:
            extractions.carry(self.connection, [old.id for old in replaces], memory.id)
            memories.carry_tag_times(self.connection, [old.id for old in replaces], memory.id)
        return memory

    def update(
        self, memory_id: int, patch: MemoryPatch, passages: Sequence[PreparedPassage], *, action: str = "update"
    ) -> Memory:
        """Apply a patch; `passages` are those of the new text and the new facts.

        :raises SourceForbidden: If the scope may not write to the old source or the new one.
        :raises KeyTaken: If another active memory has the resulting (source, key).
        :raises InvalidRequest: If it would have too many tags.
        """
        before = self._stored(memory_id)
        require_writable(self.scope, before.source)
        writes = patch.text is not None and action in WRITING
        after = replace(
            before,
            text=before.text if patch.text is None else patch.text,
            source=before.source if patch.source is None else patch.source,
            metadata=contributed(metadata_after(before, patch), self.scope.author if writes else None),
            document_at=None if patch.remove_document_at else patch.document_at or before.document_at,
            pinned=before.pinned if patch.pinned is None else patch.pinned,
            archived=before.archived if patch.archived is None else patch.archived,
            created_at=patch.created_at or before.created_at,
            origin_class=least_trusted((before.origin_class, patch.origin_class or before.origin_class)),
            valid_to=None if patch.archived is False else before.valid_to,
            tags=few(joined(before.tags if patch.tags is None else patch.tags, patch.add_tags, patch.remove_tags)),
        )
        new = None if patch.facts is None else NewFacts(patch.facts, patch.facts_by, patch.split_later)
        return self._write(before, after, passages, action=action, new_facts=new)

    def archive(self, memory: Memory, *, action: str = "archive", valid_to: datetime | None = None) -> Memory:
        """:param valid_to: When its statement ceased to hold, if it did."""
        before = self._stored(memory.id)
        after = replace(before, archived=True, valid_to=valid_to or before.valid_to)
        return self._write(before, after, (), action=action)

    def upsert(self, draft: MemoryDraft, passages: Sequence[PreparedPassage]) -> UpsertOutcome:
        """Update the active memory that has the draft's (source, key), or store a new one.

        :raises InvalidRequest: If the draft has no key.
        :raises SourceForbidden: If the scope may not write to its source.
        """
        if draft.key is None:
            raise InvalidRequest("An upsert names its memory by source and key; give a key")
        require_writable(self.scope, draft.source)
        held = reads.keyed_memory_id(self.connection, self.namespace_id, draft.source, draft.key)
        if held is None:
            return UpsertOutcome(self.insert(draft, passages).id, created=True)
        patch = MemoryPatch(
            text=draft.text,
            metadata=draft.metadata,
            document_at=draft.document_at,
            origin_class=draft.origin_class,
            add_tags=draft.tags,
            facts=draft.facts or None,
            facts_by=draft.facts_by,
            split_later=draft.split_later,
        )
        return UpsertOutcome(self.update(held, patch, passages).id, created=False)

    def supersede(self, old: Memory, draft: MemoryDraft, passages: Sequence[PreparedPassage]) -> Memory:
        """Archive a memory and store the draft as its replacement; the old one is valid until the new one begins."""
        self.archive(old, action="superseded", valid_to=draft.document_at or max(self.now, old.created_at))
        return self.insert(draft, passages, action="supersede", replaces=[old])

    def merge(self, olds: Sequence[Memory], draft: MemoryDraft, passages: Sequence[PreparedPassage]) -> Memory:
        """Store the draft as a replacement of several memories, which are archived and linked."""
        metadata = {**draft.metadata, reads.MERGED_FROM: [old.id for old in olds]}
        merged = self.insert(replace(draft, metadata=metadata), passages, action="merge", replaces=olds)
        for old in olds:
            self.archive(old, action="merged")
        return merged

    def replace_blocker(
        self, draft: MemoryDraft, passages: Sequence[PreparedPassage], blocker: Memory, similarity: float
    ) -> AddOutcome:
        """Supersede the memory that an add collided with, if it is still active and not pinned."""
        now = reads.memories(self.connection, self.namespace, [blocker.id]).get(blocker.id)
        if now is None or now.archived:
            return AddOutcome(AddAction.ADDED, self.insert(draft, passages).id)
        if now.pinned:
            return AddOutcome(AddAction.SKIPPED, None, now, similarity, SkipReason.PINNED_BLOCKER)
        new = self.supersede(now, replace(draft, key=draft.key or now.key), passages)
        return AddOutcome(AddAction.SUPERSEDED, new.id, now, similarity)

    def link(self, from_id: int, to_id: int, link_type: str) -> None:
        self.connection.execute(
            "INSERT INTO links (from_id, to_id, type, created_at) VALUES (?1, ?2, ?3, "
            "(SELECT max(?4, max(created_at)) FROM memories WHERE id IN (?1, ?2)))",
            (from_id, to_id, link_type, to_us(self.now)),
        )

    def unarchive(self, memory_id: int, *, updated_at: datetime, valid_to: datetime | None) -> Memory:
        """Undo an archiving completely.

        :param updated_at: The previous time of change. :param valid_to: The previous end of validity.
        """
        before = self._stored(memory_id)
        after = replace(before, archived=False, valid_to=valid_to)
        return self._write(before, after, (), action=UNDONE, updated_at=updated_at)

    def split(self, memory_id: int, new: NewFacts, passages: Sequence[PreparedPassage]) -> Memory:
        """Replace the facts of a memory; its text and its times do not change."""
        before = self._stored(memory_id)
        return self._write(before, before, passages, action=facts.SPLIT, updated_at=before.updated_at, new_facts=new)

    def inherit_tags(self, kept_ids: Mapping[int, int]) -> None:
        """Copy the tags of duplicates that are to be deleted to the memories that are kept, which count as unchanged.

        :param kept_ids: The id of the kept memory by the id of its duplicate.
        """
        for gone in reads.as_stored(self.connection, self.namespace, kept_ids).values():
            before = self._stored(kept_ids[gone.id])
            inherits = inherited(before.tags, gone.tags)
            if inherits != before.tags:
                after = replace(before, tags=inherits)
                self._write(before, after, (), action="inherit", updated_at=before.updated_at)
            memories.carry_tag_times(self.connection, [gone.id], before.id)
            if gone.facts and not before.facts:
                facts.enqueue(self.connection, self.namespace_id, before.id, self.now)

    def delete(self, memory_ids: Sequence[int], *, action: str = "delete", forget: bool = True) -> None:
        """Delete memories with their passages, vectors and links, and blank their content in the history.

        Ids that are not visible to the scope are skipped.

        :param forget: Whether extraction ledgers also forget their content.
        :raises SourceForbidden: If one of them is another principal's.
        """
        found = sorted(reads.visible_ids(self.connection, self.namespace, memory_ids))
        if self.scope.person is not None:
            for source in reads.sources(self.connection, found):
                require_writable(self.scope, source)
        removal = Removal(self.connection)
        removal.memories(found, self.namespace_id, forget=forget)
        self.passages.tell(removal.changes)
        self.connection.execute(
            "INSERT INTO history (namespace_id, memory_id, action, actor, job_id, at) "
            f"SELECT ?1, value, ?2, ?3, ?4, {_CHANGED_AT.format(memory='value')} FROM json_each(?6)",
            (self.namespace_id, action, self.scope.actor, self.job_id, to_us(self.now), ids_parameter(found)),
        )

    def _stored(self, memory_id: int) -> Memory:
        """Return the complete memory: a caller that sees only part of its metadata must not delete the rest."""
        found = reads.as_stored(self.connection, self.namespace, [memory_id])
        return reads.required(self.connection, self.namespace, found, memory_id)

    def _write(
        self,
        before: Memory,
        after: Memory,
        passages: Sequence[PreparedPassage],
        *,
        action: str,
        updated_at: datetime | None = None,
        new_facts: NewFacts | None = None,
    ) -> Memory:
        require_writable(self.scope, after.source)
        if after.key is not None and not after.archived:
            self._require_free_key(after.source, after.key, but=after.id)
        at = max(self.now, before.updated_at, after.created_at)
        after = replace(after, updated_at=updated_at or at)
        memories.update(self.connection, after)
        if after.tags != before.tags:
            after = replace(after, tags=self._put_tags(after.id, after.tags, at))
        after = replace(after, facts=self._write_passages(before, after, passages, new_facts))
        if concept_state(after) != concept_state(before):
            mentions.reread(self.connection, self.namespace_id, RecordKind.MEMORY, after.id, stays=not after.archived)
        self._record(action, after.id, before=before, after=after)
        return after

    def _write_passages(
        self, before: Memory, after: Memory, passages: Sequence[PreparedPassage], new: NewFacts | None
    ) -> tuple[Fact, ...]:
        """Update the passages and facts of a memory to its new state; return its facts."""
        owner, rewritten = owner_of(after), after.text != before.text
        kept = _kept(before, after, new)
        gone = [fact.id for fact in before.facts if fact not in kept]
        if rewritten or gone:
            self.passages.delete_parts(owner.kind, owner.id, gone, text=rewritten)
            facts.delete(self.connection, gone)
        if rewritten:
            self.passages.insert(owner, [one for one in passages if one.fact is None])
        if owner_of(before) != owner and (kept or not rewritten):
            self.passages.move(owner)
        if new is None:
            if gone:
                facts.enqueue(self.connection, self.namespace_id, after.id, self.now)
            return tuple(kept)
        facts.dequeue(self.connection, [after.id])
        if new.for_now:
            facts.enqueue(self.connection, self.namespace_id, after.id, self.now)
        return self._put_facts(after, kept, new, passages)

    def _put_facts(
        self,
        memory: Memory,
        kept: Sequence[Fact],
        new: NewFacts,
        passages: Sequence[PreparedPassage],
    ) -> tuple[Fact, ...]:
        """Return the facts of the new texts: existing ones are reused, the others are stored.

        :raises FactsNotPrepared: If passages of a fact are missing; the transaction must be rolled back.
        """
        held = list(kept)
        found: list[Fact] = []
        for ordinal, text in enumerate(new.texts):
            fact = next((one for one in held if one.text == text), None)
            if fact is None:
                made_by, at = new.split.get(text, (new.made_by, max(self.now, memory.created_at)))
                fact = facts.insert(self.connection, self.namespace_id, memory.id, ordinal, text, made_by, at)
                of_fact = [one for one in passages if one.fact == text]
                if text != memory.text:
                    if not of_fact:
                        raise FactsNotPrepared
                    self.passages.insert(owner_of(memory), of_fact, fact_id=fact.id)
            else:
                held.remove(fact)
                facts.place(self.connection, fact.id, ordinal)
            found.append(fact)
        return tuple(found)

    def _put_tags(self, memory_id: int, wanted: Sequence[str], at: datetime) -> tuple[str, ...]:
        return memories.put_tags(self.connection, self.namespace_id, memory_id, wanted, at)

    def _require_free_key(self, source: str, key: str, *, but: int | None) -> None:
        holder = reads.keyed_memory_id(self.connection, self.namespace_id, source, key)
        if holder is not None and holder != but:
            raise KeyTaken(source, key, holder)

    def _record(self, action: str, memory_id: int, *, before: Memory | None, after: Memory) -> None:
        self.connection.execute(
            "INSERT INTO history (namespace_id, action, actor, job_id, at, memory_id, before, after) "
            f"VALUES (?1, ?2, ?3, ?4, {_CHANGED_AT.format(memory='?6')}, ?6, ?7, ?8)",
            (
                self.namespace_id,
                action,
                self.scope.actor,
                self.job_id,
                to_us(self.now),
                memory_id,
                None if before is None else written_state(before),
                written_state(after),
            ),
        )


def run_write(
    connection: Connection,
    scope: Scope,
    models: VectorModels,
    now: datetime,
    limits: Quotas,
    work: Callable[[Transaction], T],
) -> tuple[T, IndexUpdate]:
    """Run `work` in the open transaction, within the quotas of its actor; return its result and the index changes."""
    transaction = Transaction.begin(connection, scope, models, now)
    stored = None if limits == UNLIMITED_QUOTAS else keys.stored_usage(connection, scope.actor)
    result = work(transaction)
    if stored is not None:
        keys.require_storable(connection, scope.actor, stored, limits)
    return result, transaction.finish()


def require_writable(scope: Scope, source: str) -> None:
    """:raises SourceForbidden: If the scope may not write to the source, or it is another principal's."""
    if not is_visible(source, scope.sources):
        raise SourceForbidden(source)
    if scope.person is not None and belongs_to_another(source, scope.person):
        raise PersonForbidden(source, scope.person)


def owner_of(memory: Memory) -> PassageOwner:
    """Return the attributes of a memory that its passages copy."""
    dated = memory.document_at is not None
    return PassageOwner(PassageKind.MEMORY, memory.id, memory.source, memory.occurred_at, memory.archived, dated)


def _kept(before: Memory, after: Memory, new: NewFacts | None) -> list[Fact]:
    """Return the facts that a change of a memory keeps, with their passages."""
    if new is None:
        return [] if after.text != before.text else list(before.facts)
    wanted = Counter(new.texts)
    kept: list[Fact] = []
    for fact in before.facts:
        # A fact that equals the text of its memory, before or after, gains or loses its passages.
        if wanted[fact.text] and (fact.text == before.text) == (fact.text == after.text):
            wanted[fact.text] -= 1
            kept.append(fact)
    return kept
