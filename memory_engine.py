"""The lock-guarded core that every noun stands on: namespaces, memories, passages, search, backup, check.

One short method a verb. It owns order and locking; SQL is in `souvenir.store`, arrays in `souvenir.index`, arithmetic
in `souvenir.search`, and it knows nothing of HTTP. A write is prepared (analysed, embedded) outside of every lock,
stands in one transaction, reaches the indexes, and only then returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import compress
from threading import Lock
from typing import TypeVar

import apsw
import structlog

from souvenir.engine.drafts import prepared_drafts, write_patch
from souvenir.engine.maintenance import Maintenance
from souvenir.engine.models import Models
from souvenir.engine.preparation import PassageAnalyser
from souvenir.engine.recall import Found
from souvenir.engine.schedule import back_up_if_due
from souvenir.engine.screening import Screening
from souvenir.engine.searching import Searching, memories_of
from souvenir.engine.vitals import Vitals, readiness_of, stats_of, vitals_of
from souvenir.errors import NothingToDo, Overloaded, ServiceClosing
from souvenir.index.analyser import Analyser
from souvenir.moments import utc_now
from souvenir.notes import without_notes
from souvenir.observation.instruments import Instruments, Stage
from souvenir.observation.tracing import MemoryOperation, traced
from souvenir.passages import PreparedPassage, SpokenBy, Standing
from souvenir.privacy.rules import PrivacyRules
from souvenir.search.duplicates import same_words
from souvenir.search.profiles import PROFILES, Profiles
from souvenir.settings import Settings
from souvenir.store import reads
from souvenir.store.backups import Backup
from souvenir.store.copies import Copies
from souvenir.store.database import Database
from souvenir.store.idempotency import Once
from souvenir.store.insertion import insert_once
from souvenir.store.transaction import Transaction, require_writable
from souvenir.types import (
    AddAction,
    AddOutcome,
    DeleteOutcome,
    Embedder,
    JsonObject,
    Listing,
    Memory,
    MemoryDraft,
    MemoryPatch,
    MergeOutcome,
    OnDuplicate,
    OriginClass,
    Page,
    PassageKind,
    Readiness,
    Reranker,
    Scope,
    SearchQuery,
    SearchResult,
    SkipReason,
    SourceFilter,
    Stats,
    SupersedeOutcome,
    UpsertOutcome,
)

T = TypeVar("T")

DUPLICATE_SIMILARITY = 0.90
"""Cosine from which an add collides with a stored text."""

IDENTICAL_SIMILARITY = 0.97
"""Cosine from which a text of the same words says nothing new, so that superseding would only churn."""

_DUPLICATE_LOCKS = 64

log = structlog.get_logger(__name__)


class MemoryEngine:
    """Open with `MemoryEngine.open`; safe to call from any thread; raises the errors of `souvenir.errors`."""

    def __init__(
        self,
        settings: Settings,
        embedder: Embedder,
        database: Database,
        rules: PrivacyRules,
        instruments: Instruments,
        profiles: Profiles,
        reranker: Reranker | None,
    ) -> None:
        self._settings = settings
        self._instruments = instruments
        self.tracing = instruments.tracing
        self._database = database
        self.screening = Screening(rules, database)
        self.analyser = Analyser(settings.analyser_language)
        self._duplicate_locks = [Lock() for _ in range(_DUPLICATE_LOCKS)]
        self._maintenance = Maintenance(self._maintain, interval_s=settings.snapshot_interval_s)
        analyser = PassageAnalyser(self.analyser, profiles)
        self.models = Models(settings, embedder, analyser, database, on_load=self._maintenance.ask)
        self._searching = Searching(settings, self.models, database, analyser, instruments, reranker)
        self._to_tell_of_restores: list[Callable[[], None]] = []
        self._warm = False
        self._maintenance.start()

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
    ) -> MemoryEngine:
        """:param model_spec: What the embedder is made from again; noted beside the vectors.

        :param profiles: The constants of scoring; a snapshot of the indexes does not know them.
        :param reranker: Orders the best results of a search anew. The caller closes it, and the embedder.
        :raises StoreUnusable: If the data folder must not be opened; the sentence says what to do.
        :raises PrivacyRulesUnusable: If the rules cannot be used; the sentence says why.
        """
        chosen = instruments or Instruments()
        rules = PrivacyRules.load(settings.privacy_rules_path)
        database = Database.open(settings, embedder.model_id, chosen, model_spec=model_spec)
        try:
            return cls(settings, embedder, database, rules, chosen, profiles, reranker)
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Finish the writes that wait, write the changed indexes to disk, close the database."""
        self._maintenance.close()
        # Too busy for a snapshot, or closed before: the next start makes the indexes again.
        with suppress(Overloaded, ServiceClosing), closing(self._database):
            self.snapshot()

    def warm_up(self) -> None:
        """Load the default namespace's index, so that the first search does not wait for it."""
        with self.namespace(Scope()) as (_, namespace):
            pass
        if namespace is not None:
            self.models.serving.registry.get(memories_of(namespace))
        self._warm = True

    # --- writing -----------------------------------------------------------------------------------------------

    @traced(MemoryOperation.CREATE)
    def add(
        self, scope: Scope, draft: MemoryDraft, *, on_duplicate: OnDuplicate | None = None, once: Once | None = None
    ) -> AddOutcome:
        """Store one memory, unless `on_duplicate` says otherwise of a text that is nearly there already."""
        require_writable(scope, draft.source)
        draft = self.screening.draft(scope, draft)
        [passages] = prepared_drafts(self.prepare, [draft])
        insert = partial(insert_once, prepared=[(draft, passages)], once=once)
        if on_duplicate in (None, OnDuplicate.ADD):
            return AddOutcome(AddAction.ADDED, self.write(scope, insert)[0])
        with self._duplicate_lock(scope):
            found = self.nearest_of(scope, passages)
            if found is None or found[1] < DUPLICATE_SIMILARITY:
                return AddOutcome(AddAction.ADDED, self.write(scope, insert)[0])
            blocker, similarity = found
            identical = similarity >= IDENTICAL_SIMILARITY and same_words(draft.text, blocker.text)
            if identical or on_duplicate is OnDuplicate.SKIP:
                reason = SkipReason.IDENTICAL if identical else SkipReason.DUPLICATE
                return AddOutcome(AddAction.SKIPPED, None, blocker, similarity, reason)
            return self.write(scope, lambda tx: tx.replace_blocker(draft, passages, blocker, similarity))

    @traced(MemoryOperation.CREATE)
    def add_batch(
        self, scope: Scope, drafts: Sequence[MemoryDraft], *, deduplicate: bool = False, once: Once | None = None
    ) -> list[int]:
        """Store all of them in one transaction; with `deduplicate`, those that are not nearly stored already.

        :return: The ids of those that were stored, in order.
        """
        for draft in drafts:
            require_writable(scope, draft.source)
        drafts = [self.screening.draft(scope, draft) for draft in drafts]
        prepared = list(zip(drafts, prepared_drafts(self.prepare, drafts), strict=True))
        if not deduplicate:
            return self.write(scope, partial(insert_once, prepared=prepared, once=once))
        with self._duplicate_lock(scope):
            nearest = [self.nearest_of(scope, passages) for _, passages in prepared]
            fresh = [found is None or found[1] < DUPLICATE_SIMILARITY for found in nearest]
            return self.write(scope, partial(insert_once, prepared=list(compress(prepared, fresh)), once=once))

    @traced(MemoryOperation.UPSERT)
    def upsert(self, scope: Scope, drafts: Sequence[MemoryDraft]) -> list[UpsertOutcome]:
        """Store each draft, or change the memory that has its (source, key), all in one transaction.

        Metadata keys that a draft does not name stay as they are.

        :raises InvalidRequest: If a draft has no key.
        """
        drafts = [self.screening.draft(scope, draft) for draft in drafts]
        prepared = prepared_drafts(self.prepare, drafts)

        def work(tx: Transaction) -> list[UpsertOutcome]:
            return [tx.upsert(draft, passages) for draft, passages in zip(drafts, prepared, strict=True)]

        return self.write(scope, work)

    @traced(MemoryOperation.UPDATE)
    def patch(self, scope: Scope, memory_id: int, patch: MemoryPatch) -> Memory:
        """Change some fields of a memory.

        :raises NothingToDo: If the patch changes nothing.
        """
        if patch == MemoryPatch():
            raise NothingToDo("Nothing to update; give text, source, metadata_patch, tags, facts, pinned or archived")
        patch = self.screening.patch(scope, patch)
        present = self.get(scope, [memory_id]).get(memory_id) if patch.facts else None

        def write(passages: Sequence[PreparedPassage]) -> Memory:
            return self.write(scope, lambda tx: tx.memory(tx.update(memory_id, patch, passages).id))

        return write_patch(self.prepare, patch, present, write)

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
        """Store a new text in the place of a memory, which is archived and linked; key and metadata carry over.

        :raises MemoryNotFound: If there is no such memory.
        :raises Conflict: If it is pinned or archived already.
        """
        text, metadata = self.screening.content(scope, text, metadata)
        [passages] = self.prepare([text])

        def work(tx: Transaction) -> SupersedeOutcome:
            old = tx.living_memory(memory_id, hint="unpin it before superseding it")
            carried = {**without_notes(old.metadata), **(metadata or {})}
            draft = MemoryDraft(text, source or old.source, carried, old.key, document_at, origin_class=origin_class)
            return SupersedeOutcome(old, tx.supersede(old, draft, passages).id)

        return self.write(scope, work)

    @traced(MemoryOperation.UPDATE)
    def merge(self, scope: Scope, ids: Sequence[int], *, text: str, source: str) -> MergeOutcome:
        """Store one text in the place of several memories, which are archived and linked.

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
            olds = [tx.living_memory(memory_id, hint="unpin it before merging it") for memory_id in chosen]
            merged = tx.merge(olds, MemoryDraft(text, source, notes or {}), passages)
            return MergeOutcome(merged.id, tuple(chosen))

        return self.write(scope, work)

    @traced(MemoryOperation.UPDATE)
    def archive(self, scope: Scope, ids: Sequence[int]) -> int:
        """Archive those of the memories that exist and are not archived; returns how many that were."""

        def work(tx: Transaction) -> int:
            found = reads.memories(tx.connection, tx.namespace, ids).values()
            return len([tx.archive(memory) for memory in found if not memory.archived])

        return self.write(scope, work)

    @traced(MemoryOperation.DELETE)
    def delete(self, scope: Scope, memory_id: int, *, force: bool = False) -> Memory:
        """Forget one memory for good.

        :raises MemoryPinned: If it is pinned and `force` is not set.
        """

        def work(tx: Transaction) -> Memory:
            memory = (
                tx.memory(memory_id)
                if force
                else tx.unpinned_memory(memory_id, hint="pass force=true to delete it anyway")
            )
            tx.delete([memory_id])
            return memory

        return self.write(scope, work)

    @traced(MemoryOperation.DELETE)
    def delete_many(self, scope: Scope, ids: Sequence[int]) -> DeleteOutcome:
        """Forget those that exist and are not pinned, in one transaction."""

        def work(tx: Transaction) -> DeleteOutcome:
            wanted = list(dict.fromkeys(ids))
            found = reads.memories(tx.connection, tx.namespace, wanted)
            pinned = tuple(id_ for id_ in wanted if id_ in found and found[id_].pinned)
            deleted = tuple(id_ for id_ in wanted if id_ in found and not found[id_].pinned)
            tx.delete(deleted)
            return DeleteOutcome(deleted, tuple(id_ for id_ in wanted if id_ not in found), pinned)

        return self.write(scope, work)

    @traced(MemoryOperation.DELETE, records=lambda outcome: len(outcome.deleted_ids))
    def delete_by_source(self, scope: Scope, source: SourceFilter, *, back_up: bool = True) -> DeleteOutcome:
        """Forget every unpinned memory of the matching sources; a backup is made first."""
        if not self.matching(scope, source):
            return DeleteOutcome(())
        if back_up:
            self.back_up(reason="pre_delete")

        def work(tx: Transaction) -> DeleteOutcome:
            ids = tuple(reads.memory_ids(tx.connection, tx.namespace, Listing(source, pinned=False)))
            tx.delete(ids)
            return DeleteOutcome(ids)

        return self.write(scope, work)

    # --- reading -----------------------------------------------------------------------------------------------

    def get(self, scope: Scope, ids: Sequence[int]) -> dict[int, Memory]:
        """Those of the memories that exist in the namespace, by id."""
        with self.namespace(scope) as (connection, namespace):
            return {} if namespace is None else reads.memories(connection, namespace, ids)

    def page(self, scope: Scope, listing: Listing = reads.ALL, *, offset: int, limit: int) -> Page:
        with self.namespace(scope) as (connection, namespace):
            if namespace is None:
                return Page((), 0)
            total = reads.count_memories(connection, namespace, listing)
            found = reads.list_memories(connection, namespace, listing, offset=offset, limit=limit)
            return Page(tuple(found), total)

    def count(self, scope: Scope, source: SourceFilter | None = None) -> int:
        with self.namespace(scope) as (connection, namespace):
            return 0 if namespace is None else reads.count_memories(connection, namespace, Listing(source))

    def matching(self, scope: Scope, source: SourceFilter) -> Sequence[int]:
        """Ids of the unpinned memories that `delete_by_source` would delete."""
        with self.namespace(scope) as (connection, namespace):
            return [] if namespace is None else reads.memory_ids(connection, namespace, Listing(source, pinned=False))

    def nearest(self, scope: Scope, text: str) -> tuple[Memory, float] | None:
        """The living memory most similar to a text, and the cosine between them."""
        return self.nearest_of(scope, self.prepare([self.screening.query(scope, text)])[0])

    def nearest_of(
        self, scope: Scope, passages: Sequence[PreparedPassage], *, include_archived: bool = False
    ) -> tuple[Memory, float] | None:
        """The memory most similar to a prepared text, and the cosine between them."""
        return self._searching.nearest(scope, passages, include_archived=include_archived)

    @traced(MemoryOperation.SEARCH, records=lambda result: len(result.hits))
    def search(self, scope: Scope, query: SearchQuery) -> SearchResult:
        """The memories that answer a query best. An arm that cannot run is named in the result, not silently left out.

        :raises SearchUnavailable: If no arm can run.
        """
        return replace(self._searching.search(scope, self._screened(scope, query)), query=query.text)

    def stats(self, scope: Scope) -> Stats:
        """Of a scope that does not see all: what it can count, and neither times nor size of the whole."""
        return stats_of(self._database, self.models.serving, scope)

    def readiness(self) -> Readiness:
        """Whether searches of the default namespace are answered now, and from all that it holds."""
        with self.namespace(Scope()) as (connection, namespace):
            return readiness_of(connection, namespace, self.models.serving, warm=self._warm)

    def vitals(self) -> Vitals:
        """What it all takes, over every namespace."""
        return vitals_of(self._database, self.models.serving.registry)

    # --- keeping -----------------------------------------------------------------------------------------------

    def back_up(self, *, reason: str) -> Backup:
        """Copy the database while reads and writes go on.

        :raises InvalidRequest: If the reason cannot be part of a folder's name.
        """
        return self._database.back_up(reason=reason, now=utc_now())

    def backups(self) -> Sequence[Backup]:
        """Newest first."""
        return self._database.backups.all()

    def restore(self, name: str) -> Backup:
        """Go back to a backup in one step, the present state being backed up first; returns that backup.

        :raises BackupNotFound: If there is no such backup.
        :raises BackupDamaged: If it cannot be used; nothing was changed.
        """
        replaced = self._database.restore(name, now=utc_now(), switched=self.models.restored)
        for tell in self._to_tell_of_restores:
            tell()
        return replaced

    def when_restored(self, tell: Callable[[], None]) -> None:
        """Have `tell` called after every restore, by a room that keeps in memory what the database says."""
        self._to_tell_of_restores.append(tell)

    @property
    def copies(self) -> Copies:
        """What holds the store as it was: the backups, and what offline restores put aside."""
        return self._database.copies

    def snapshot(self) -> None:
        """Write every changed index to disk, so that the next start is quick."""
        self._database.between_writes(lambda: self.models.serving.registry.write_snapshots(all_changed=True))

    def check(self) -> Sequence[str]:
        """Compare the database with itself and with every loaded index, row by row; one sentence a disagreement."""

        def work() -> Sequence[str]:
            with self._database.reader() as connection:
                return self.models.disagreements(connection)

        return self._database.between_writes(work)

    # --- what nouns of other rooms are built on --------------------------------------------------------------------

    def prepare(
        self, texts: Sequence[str], *, spoken_by: Sequence[SpokenBy] | None = None
    ) -> Sequence[Sequence[PreparedPassage]]:
        """The passages of each text, analysed and embedded, for a `write`.

        :param spoken_by: Of messages, who says each; None: the texts are memories.
        """
        with self._instruments.stage(Stage.WRITE_PREPARE):
            return self.models.prepare(texts, spoken_by)

    def recall(
        self,
        scope: Scope,
        kind: PassageKind,
        query: SearchQuery,
        *,
        owner_ids: Sequence[int] | None = None,
        standing: Standing | None = None,
    ) -> Found | None:
        """Rank the owners of one kind for a query; None in a namespace that was never written to.

        :param owner_ids: The owners that may be found, if filters outside of the index chose them.
        :param standing: What stood at the moment that is searched; None: the present.
        """
        return self._searching.recall(scope, kind, self._screened(scope, query), owner_ids, standing)

    def write(self, scope: Scope, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one durable transaction; the indexes know it when this returns.

        `work` may run twice, its first transaction being undone: if another model took over since it was prepared.
        """
        return self.models.write(scope, utc_now(), work)

    def write_rows(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work`, which touches no memory, in one durable transaction."""
        return self._database.write_rows(work)

    @contextmanager
    def namespace(self, scope: Scope) -> Iterator[tuple[apsw.Connection, reads.Namespace | None]]:
        """A read transaction, and the scope's namespace in it, as far as it may see it, if it was ever written to."""
        with self._database.read() as connection:
            yield connection, reads.namespace_named(connection, scope.namespace, scope.sources)

    # --- inside ------------------------------------------------------------------------------------------------

    def _screened(self, scope: Scope, query: SearchQuery) -> SearchQuery:
        return replace(query, text=self.screening.query(scope, query.text))

    def _duplicate_lock(self, scope: Scope) -> Lock:
        """Held from the check to the write, so that of two equal texts that come at once only one is new."""
        return self._duplicate_locks[hash(scope.namespace) % _DUPLICATE_LOCKS]

    def _maintain(self) -> None:
        """Drop what is over the memory budget, write the indexes that changed much, make a backup that is due."""
        self.models.tidy_indexes()
        back_up_if_due(self._database, self._settings)
