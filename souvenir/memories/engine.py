"""The memory service: add, get, list, search, history, update and delete; current or as of an earlier time.

HTTP, MCP and Python callers use this one class. Transactions, indexes and backups are those of `IndexedStore`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from souvenir.core.concurrency import frees_space
from souvenir.core.errors import (
    DiskFull,
    MemoryChanged,
    MemoryNotFound,
    MemoryPinned,
    MemoryUnreadable,
    NothingToDo,
)
from souvenir.core.labels import without_notes, without_origin
from souvenir.core.passages import PreparedPassage
from souvenir.core.settings import Settings
from souvenir.core.telemetry import Instruments, MemoryOperation, traced
from souvenir.core.timestamps import utc_now
from souvenir.core.types import (
    AddAction,
    AddOutcome,
    DeleteOutcome,
    Embedder,
    FactsOutcome,
    JsonObject,
    Listing,
    Memory,
    MemoryDraft,
    MemoryPatch,
    MergeOutcome,
    OnDuplicate,
    OriginClass,
    Page,
    Reranker,
    Scope,
    SearchQuery,
    SearchResult,
    SkipReason,
    SourceFilter,
    SupersedeOutcome,
    UpsertOutcome,
)
from souvenir.memories.comparisons import Comparisons
from souvenir.memories.facts import Facts
from souvenir.memories.history import MemoryHistory, history_of, page_at, search_at
from souvenir.memories.indexed_store import IndexedStore
from souvenir.memories.similarity import same_words
from souvenir.models.llm.provider import LLMProvider
from souvenir.privacy.rules import PrivacyRules
from souvenir.retrieval.preparation import write_patch
from souvenir.retrieval.profiles import PROFILES, Profiles
from souvenir.store.database import Database
from souvenir.store.engines import open_database
from souvenir.store.idempotency import Once, insert_once, made_before
from souvenir.store.memories import history, reads
from souvenir.store.transaction import Transaction, require_writable

DUPLICATE_SIMILARITY = 0.90
"""Cosine from which an added text is a duplicate of a stored one."""

IDENTICAL_SIMILARITY = 0.97
"""Cosine from which a text of the same words adds nothing, so that superseding would only churn."""


class MemoryEngine(IndexedStore):
    """Open with `MemoryEngine.open`. Thread-safe; raises the errors of `souvenir.core.errors`.

    Memories that are invisible to the scope, now or at the time of `as_of`, are reported as missing. A future time is
    treated as now, and a deleted memory is deleted at all times.
    """

    def __init__(
        self,
        settings: Settings,
        embedder: Embedder,
        database: Database,
        rules: PrivacyRules,
        instruments: Instruments,
        profiles: Profiles,
        reranker: Reranker | None,
        provider: LLMProvider | None,
    ) -> None:
        super().__init__(settings, embedder, database, rules, instruments, profiles, reranker)
        self._comparisons = Comparisons(self)
        self.facts = Facts(self, provider, settings)

    @classmethod
    def open(
        cls,
        settings: Settings,
        embedder: Embedder,
        instruments: Instruments | None = None,
        *,
        model_spec: str | None = None,
        profiles: Profiles = PROFILES,
        reranker: Reranker | None = None,
        provider: LLMProvider | None = None,
    ) -> MemoryEngine:
        """Open the store of the settings. The caller closes the embedder, the re-ranker and the provider.

        :param model_spec: The spec that the embedder can be created from again; stored with the vectors.
        :param profiles: The constants of scoring; snapshots of the indexes do not contain them.
        :param reranker: Re-orders the best results of a search.
        :param provider: Splits texts into facts; closed before this is closed.
        :raises StoreUnusable: If the data folder must not be opened; the message says what to do.
        :raises PrivacyRulesUnusable: If the rules cannot be used; the message says why.
        """
        chosen = instruments or Instruments()
        rules = PrivacyRules.load(settings.privacy_rules_path)
        database = open_database(settings, embedder.model_id, chosen, model_spec=model_spec)
        try:
            return cls(settings, embedder, database, rules, chosen, profiles, reranker, provider)
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Stop splitting in the background, and close the store."""
        self.facts.close()
        super().close()

    # --- writing -----------------------------------------------------------------------------------------------

    @traced(MemoryOperation.CREATE)
    def add(
        self, scope: Scope, draft: MemoryDraft, *, on_duplicate: OnDuplicate | None = None, once: Once | None = None
    ) -> AddOutcome:
        """Store one memory; `on_duplicate` selects what happens if a near duplicate is stored already."""
        require_writable(scope, draft.source)
        draft, failure = self._screened_draft(scope, draft, wait=True, once=once)
        [passages] = self.prepare_drafts([draft])
        insert = partial(insert_once, prepared=[(draft, passages)], once=once)
        if on_duplicate in (None, OnDuplicate.ADD):
            outcome = AddOutcome(AddAction.ADDED, self.write(scope, insert)[0])
        else:
            add = partial(self._add_unless_duplicate, scope, draft, passages, on_duplicate, insert)
            outcome = self._comparisons.run(scope, add)
        self._wake_queue([draft])
        return replace(outcome, split_failure=failure) if failure else outcome

    @traced(MemoryOperation.CREATE)
    def add_batch(
        self, scope: Scope, drafts: Sequence[MemoryDraft], *, deduplicate: bool = False, once: Once | None = None
    ) -> list[int]:
        """Store all drafts in one transaction; with `deduplicate`, near duplicates of stored memories are skipped.

        A model splits them into facts in the background only.

        :return: The ids of the stored memories, in order.
        """
        for draft in drafts:
            require_writable(scope, draft.source)
        drafts = [self._screened_draft(scope, draft)[0] for draft in drafts]
        prepared = list(zip(drafts, self.prepare_drafts(drafts), strict=True))
        if not deduplicate:
            ids = self.write(scope, partial(insert_once, prepared=prepared, once=once))
        else:
            ids = self._comparisons.run(scope, partial(self._add_fresh, scope, prepared, once))
        self._wake_queue(drafts)
        return ids

    @traced(MemoryOperation.UPSERT)
    def upsert(self, scope: Scope, drafts: Sequence[MemoryDraft]) -> list[UpsertOutcome]:
        """Insert each draft, or update the memory with its (source, key), all in one transaction.

        Metadata keys that a draft does not name are kept. A model splits the texts into facts in the background only.

        :raises InvalidRequest: If a draft has no key.
        """
        drafts = [self._screened_draft(scope, draft)[0] for draft in drafts]
        prepared = self.prepare_drafts(drafts)

        def work(tx: Transaction) -> list[UpsertOutcome]:
            return [tx.upsert(draft, passages) for draft, passages in zip(drafts, prepared, strict=True)]

        outcomes = self.write(scope, work)
        self._wake_queue(drafts)
        return outcomes

    @traced(MemoryOperation.UPDATE)
    def update(
        self, scope: Scope, memory_id: int, patch: MemoryPatch, *, expected: Callable[[Memory], bool] | None = None
    ) -> FactsOutcome:
        """Change some fields of a memory. A new text without new facts removes the old ones.

        :param expected: Whether the memory is as the caller read it, asked in the transaction; None: it always is.
        :raises NothingToDo: If the patch changes nothing.
        :raises MemoryChanged: If it is not as expected.
        :raises MemoryNotFound: If the scope sees no such memory; the model is not asked then.
        """
        if replace(patch, split=False) == MemoryPatch():
            raise NothingToDo("Nothing to update; give text, source, metadata_patch, tags, facts, pinned or archived")
        to_split = patch.split and patch.facts is None and patch.text is not None
        before = self.memory(scope, memory_id) if to_split else None
        patch, failure = self.screening.patch(scope, patch), None
        if before is not None and patch.text is not None and not (patch.text == before.text and before.facts):
            found = self.facts.split(scope, patch.text)
            patch, failure = self.screening.patch_with_facts(scope, patch, found.facts), found.failure
            patch = replace(patch, facts_by=found.made_by, split_later=found.later)
        present = self.get(scope, [memory_id]).get(memory_id) if patch.facts else None

        def write(passages: Sequence[PreparedPassage]) -> Memory:
            return self.write(scope, partial(_update, memory_id, patch, passages, expected))

        after = write_patch(self.prepare, patch, present, write)
        pending = self.facts.is_pending(memory_id)
        if pending:
            self.facts.queue.wake()
        return FactsOutcome(after, pending, failure)

    @traced(MemoryOperation.UPDATE)
    def supersede(
        self,
        scope: Scope,
        memory_id: int,
        *,
        text: str,
        source: str | None = None,
        metadata: JsonObject | None = None,
        document_at: datetime | None = None,
        origin_class: OriginClass = OriginClass.USER,
    ) -> SupersedeOutcome:
        """Replace a memory by a new text; the old one is archived and linked, its key and metadata carry over.

        Notes on the old text, and where it came from, do not.

        :raises MemoryNotFound: If there is no such memory.
        :raises Conflict: If it is pinned or archived already.
        """
        text, metadata = self.screening.content(scope, text, metadata)
        [passages] = self.prepare([text])

        def work(tx: Transaction) -> SupersedeOutcome:
            old = tx.replaceable_memory(memory_id, hint="unpin it before superseding it")
            carried = {**without_origin(without_notes(old.metadata)), **(metadata or {})}
            draft = MemoryDraft(text, source or old.source, carried, old.key, document_at, origin_class=origin_class)
            return SupersedeOutcome(old, tx.supersede(old, draft, passages).id)

        return self.write(scope, work)

    @traced(MemoryOperation.UPDATE)
    def merge(self, scope: Scope, ids: Sequence[int], *, text: str, source: str) -> MergeOutcome:
        """Replace several memories by one text; they are archived and linked.

        :raises NothingToDo: If fewer than two memories are named.
        :raises MemoryNotFound: If one does not exist; nothing is changed.
        :raises Conflict: If one is pinned or archived already; nothing is changed.
        """
        chosen = sorted(set(ids))
        if len(chosen) < 2:
            raise NothingToDo("A merge takes the ids of at least two different memories")
        text, notes = self.screening.content(scope, text, {})
        [passages] = self.prepare([text])

        def work(tx: Transaction) -> MergeOutcome:
            olds = [tx.replaceable_memory(memory_id, hint="unpin it before merging it") for memory_id in chosen]
            merged = tx.merge(olds, MemoryDraft(text, source, notes or {}), passages)
            return MergeOutcome(merged.id, tuple(chosen))

        return self.write(scope, work)

    @traced(MemoryOperation.UPDATE)
    def archive(self, scope: Scope, ids: Sequence[int]) -> int:
        """Archive those of the memories that exist and are not archived; returns their number."""

        def work(tx: Transaction) -> int:
            found = reads.memories(tx.connection, tx.namespace, ids).values()
            return len([tx.archive(memory) for memory in found if not memory.archived])

        return self.write(scope, work)

    @traced(MemoryOperation.DELETE)
    @frees_space()
    def delete(self, scope: Scope, memory_id: int, *, force: bool = False) -> str:
        """Delete one memory permanently; return its text, or an empty one if it cannot be read.

        :raises MemoryPinned: If it is pinned and `force` is not set.
        """

        def work(tx: Transaction) -> str:
            try:
                text = tx.memory(memory_id).text
            except MemoryUnreadable:
                text = ""
            if not force and reads.pinned_ids(tx.connection, [memory_id]):
                raise MemoryPinned(memory_id, "pass force=true to delete it anyway")
            tx.delete([memory_id])
            return text

        return self.write(scope, work)

    @traced(MemoryOperation.DELETE)
    @frees_space()
    def delete_many(self, scope: Scope, ids: Sequence[int]) -> DeleteOutcome:
        """Delete those that exist and are not pinned, in one transaction."""

        def work(tx: Transaction) -> DeleteOutcome:
            wanted = list(dict.fromkeys(ids))
            found = reads.visible_ids(tx.connection, tx.namespace, wanted)
            kept = reads.pinned_ids(tx.connection, found)
            pinned = tuple(id_ for id_ in wanted if id_ in kept)
            deleted = tuple(id_ for id_ in wanted if id_ in found - kept)
            tx.delete(deleted)
            return DeleteOutcome(deleted, tuple(id_ for id_ in wanted if id_ not in found), pinned)

        return self.write(scope, work)

    @traced(MemoryOperation.DELETE, records=lambda outcome: len(outcome.deleted_ids))
    def delete_by_source(self, scope: Scope, source: SourceFilter, *, back_up: bool = True) -> DeleteOutcome:
        """Delete every unpinned memory of the matching sources, after a backup."""
        if not self.matching(scope, source):
            return DeleteOutcome(())
        if back_up:
            try:
                self.back_up_first("pre_delete")
            except DiskFull as error:
                raise DiskFull(
                    f"{error.message}; a deletion by source makes a backup first, deleting by id needs none"
                ) from error

        def work(tx: Transaction) -> DeleteOutcome:
            ids = tuple(reads.memory_ids(tx.connection, tx.namespace, Listing(source, pinned=False)))
            tx.delete(ids)
            return DeleteOutcome(ids)

        with frees_space():
            return self.write(scope, work)

    # --- reading -----------------------------------------------------------------------------------------------

    def memory(self, scope: Scope, memory_id: int, as_of: datetime | None = None) -> Memory:
        """Return one memory.

        :raises MemoryNotFound: If the scope sees no such memory, or did not see it then.
        :raises MemoryUnreadable: If it is damaged.
        """
        found = self.get(scope, [memory_id], as_of)
        if memory_id in found:
            return found[memory_id]
        with self.namespace(scope) as (connection, namespace):
            if namespace is None:
                raise MemoryNotFound(memory_id)
            if as_of is None:
                return reads.required(connection, namespace, found, memory_id)
            if history.was_stored(connection, namespace, as_of, memory_id):
                raise MemoryUnreadable(memory_id)
        raise MemoryNotFound(memory_id)

    def get(self, scope: Scope, ids: Sequence[int], as_of: datetime | None = None) -> dict[int, Memory]:
        """Return those of the memories that exist in the namespace, by id."""
        with self.namespace(scope) as (connection, namespace):
            if namespace is None:
                return {}
            if as_of is None:
                return reads.memories(connection, namespace, ids)
            return history.memories_at(connection, namespace, as_of, ids)

    def page(
        self, scope: Scope, listing: Listing = reads.ALL, as_of: datetime | None = None, *, offset: int, limit: int
    ) -> Page:
        """List memories. Tags are always those of the present."""
        with self.namespace(scope) as (connection, namespace):
            if namespace is None:
                return Page((), 0)
            if as_of is not None:
                return page_at(connection, namespace, as_of, listing, offset=offset, limit=limit)
            total = reads.count_memories(connection, namespace, listing)
            found = reads.list_memories(connection, namespace, listing, offset=offset, limit=limit)
            return Page(tuple(found), total)

    def count(self, scope: Scope, source: SourceFilter | None = None, *, archived: bool | None = None) -> int:
        """:param archived: Only archived memories, or only others; None counts both."""
        with self.namespace(scope) as (connection, namespace):
            return (
                0
                if namespace is None
                else reads.count_memories(connection, namespace, Listing(source, archived=archived))
            )

    def matching(self, scope: Scope, source: SourceFilter) -> Sequence[int]:
        """Return the ids of the unpinned memories that `delete_by_source` would delete."""
        with self.namespace(scope) as (connection, namespace):
            return [] if namespace is None else reads.memory_ids(connection, namespace, Listing(source, pinned=False))

    def history(self, scope: Scope, memory_id: int) -> MemoryHistory:
        """Return every change of a memory.

        :raises MemoryNotFound: If there never was such a memory, or the scope must not know of it.
        """
        with self.namespace(scope) as (connection, namespace):
            found = None if namespace is None else history_of(connection, namespace, memory_id)
        if found is None:
            raise MemoryNotFound(memory_id)
        return found

    def nearest(self, scope: Scope, text: str) -> tuple[Memory, float] | None:
        """Return the living memory most similar to a text, with their cosine."""
        return self.nearest_of(scope, self.prepare([self.screening.query(scope, text)])[0])

    @traced(MemoryOperation.SEARCH, records=lambda result: len(result.hits))
    def search(self, scope: Scope, query: SearchQuery, as_of: datetime | None = None) -> SearchResult:
        """Return the memories that answer a query best. The result names every arm that could not run.

        :raises SearchUnavailable: If no arm can run.
        """
        if as_of is not None:
            return search_at(self, scope, query, as_of)
        screened = replace(query, text=self.screening.query(scope, query.text))
        return replace(self._searcher.search(scope, screened), query=query.text)

    # --- inside ------------------------------------------------------------------------------------------------

    def _screened_draft(
        self, scope: Scope, draft: MemoryDraft, *, wait: bool = False, once: Once | None = None
    ) -> tuple[MemoryDraft, str | None]:
        """Apply the privacy policy, and split the text if requested.

        :param wait: True if the model may be called now.
        :return: The draft, and the reason why no model split it, if any.
        """
        draft = self.screening.draft(scope, draft)
        if not draft.split or draft.facts or self._is_repeated(scope, once):
            return draft, None
        found = self.facts.split(scope, draft.text, wait=wait)
        draft = self.screening.draft_with_facts(scope, draft, found.facts)
        return replace(draft, facts_by=found.made_by, split_later=found.later), found.failure

    def _is_repeated(self, scope: Scope, once: Once | None) -> bool:
        """Return True if the same request was completed before, so that the model need not be called again."""
        if once is None:
            return False
        with self.namespace(scope) as (connection, namespace):
            return namespace is not None and bool(made_before(connection, namespace.id, scope.actor, once, utc_now()))

    def _add_unless_duplicate(
        self,
        scope: Scope,
        draft: MemoryDraft,
        passages: Sequence[PreparedPassage],
        on_duplicate: OnDuplicate,
        insert: Callable[[Transaction], list[int]],
        compared: int,
    ) -> AddOutcome:
        found = self._duplicate_of(scope, passages)
        if found is None:
            return AddOutcome(AddAction.ADDED, self._comparisons.write(scope, compared, insert)[0])
        blocker, similarity = found
        identical = similarity >= IDENTICAL_SIMILARITY and same_words(draft.text, blocker.text)
        if identical or on_duplicate is OnDuplicate.SKIP:
            reason = SkipReason.IDENTICAL if identical else SkipReason.DUPLICATE
            return AddOutcome(AddAction.SKIPPED, None, blocker, similarity, reason)
        return self._comparisons.write(
            scope, compared, lambda tx: tx.replace_blocker(draft, passages, blocker, similarity)
        )

    def _add_fresh(
        self,
        scope: Scope,
        prepared: Sequence[tuple[MemoryDraft, Sequence[PreparedPassage]]],
        once: Once | None,
        compared: int,
    ) -> list[int]:
        fresh = [one for one in prepared if self._duplicate_of(scope, one[1]) is None]
        return self._comparisons.write(scope, compared, partial(insert_once, prepared=fresh, once=once))

    def _duplicate_of(self, scope: Scope, passages: Sequence[PreparedPassage]) -> tuple[Memory, float] | None:
        found = self.nearest_text_of(scope, passages)
        return None if found is None or found[1] < DUPLICATE_SIMILARITY else found

    def _wake_queue(self, drafts: Sequence[MemoryDraft]) -> None:
        if any(draft.split_later for draft in drafts):
            self.facts.queue.wake()


def _update(
    memory_id: int,
    patch: MemoryPatch,
    passages: Sequence[PreparedPassage],
    expected: Callable[[Memory], bool] | None,
    tx: Transaction,
) -> Memory:
    if expected is not None and not expected(tx.memory(memory_id)):
        raise MemoryChanged(memory_id)
    return tx.memory(tx.update(memory_id, patch, passages).id)
