"""The store with its indexes and embedding model: prepared writes, ranking, backup, restore and check.

It is responsible for order and locking, and independent of what is stored. SQL is in `souvenir.store`, arrays are in
`souvenir.index`, arithmetic is in `souvenir.retrieval`. A write is prepared (analysed, embedded) outside of every lock,
runs in one transaction, updates the indexes, and only then returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from threading import Event
from typing import TypeVar

from souvenir.core.background import Maintenance
from souvenir.core.errors import DatabaseUnavailable, Overloaded, ServiceClosing
from souvenir.core.labels import is_document
from souvenir.core.passages import PastPassages, PreparedPassage, SpokenBy
from souvenir.core.quotas import Quotas
from souvenir.core.settings import Settings
from souvenir.core.telemetry import Instruments, Stage
from souvenir.core.timestamps import utc_now
from souvenir.core.types import (
    Embedder,
    Memory,
    MemoryDraft,
    MemoryPatch,
    PassageKind,
    Readiness,
    Reranker,
    Scope,
    SearchQuery,
    Stats,
)
from souvenir.index.analyser import Analyser
from souvenir.memories.backup_schedule import BackupSchedule
from souvenir.memories.statistics import Vitals, readiness_of, stats_of, vitals_of
from souvenir.privacy.rules import PrivacyRules
from souvenir.privacy.screening import Screening
from souvenir.retrieval.preparation import PassageAnalyser, embeddings_of, prepared_drafts, prepared_patches
from souvenir.retrieval.profiles import Profiles
from souvenir.retrieval.recall import Tagged
from souvenir.retrieval.relevance import Found
from souvenir.retrieval.searcher import Searcher, memories_of
from souvenir.retrieval.serving_model import Models
from souvenir.store import index_changes, namespaces, vectors
from souvenir.store.database import Database
from souvenir.store.memories import documents
from souvenir.store.passages import insert_embeddings
from souvenir.store.sql import Connection
from souvenir.store.sqlite.backups import SCHEDULED, Backup
from souvenir.store.sqlite.copies import Copies
from souvenir.store.transaction import Transaction

T = TypeVar("T")
EMBEDDED_AT_ONCE = 256
NEWS_INTERVAL_S = 3_600.0
"""Between two looks at the database without news of other processes, which come more often."""


class IndexedStore:
    """Thread-safe; raises the errors of `souvenir.core.errors`."""

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
        self.warnings = database.warnings
        self.screening = Screening(rules, database)
        self.analyser = Analyser(settings.analyser_language)
        self._maintenance = Maintenance(self._maintain, interval_s=settings.snapshot_interval_s, when_asked=self._tidy)
        analyser = PassageAnalyser(self.analyser, profiles)
        self.models = Models(settings, embedder, analyser, database, on_load=self._maintenance.ask)
        self._searcher = Searcher(settings, self.models, database, analyser, instruments, reranker)
        self._schedule = BackupSchedule(timedelta(hours=settings.backup_interval_hours))
        self._on_restored: list[Callable[[], None]] = []
        self._replaced = Event()
        self._following = Maintenance(self._follow, interval_s=NEWS_INTERVAL_S)
        self._following.start()
        database.on_replaced.append(self._drop_indexes)
        database.on_news.append(self._following.ask)
        self._warm = False
        self._maintenance.start()

    def close(self) -> None:
        """Finish pending writes, write the changed indexes to disk, and close the database."""
        self._database.stop_checking()
        self._maintenance.close()
        self._following.close()
        # Too busy for a snapshot, or closed already: the next start rebuilds the indexes.
        with suppress(Overloaded, ServiceClosing, DatabaseUnavailable), closing(self._database):
            self.snapshot()

    def warm_up(self) -> None:
        """Load the index of the default namespace, so that the first search does not wait for it."""
        with self.namespace(Scope()) as (_, namespace):
            pass
        if namespace is not None:
            self.models.serving.registry.get(memories_of(namespace), namespace.change_seq)
        self._warm = True

    # --- preparing, ranking, writing ---------------------------------------------------------------------------

    def prepare(
        self, texts: Sequence[str], *, spoken_by: Sequence[SpokenBy] | None = None
    ) -> Sequence[Sequence[PreparedPassage]]:
        """Return the passages of each text, analysed and embedded, for a `write`.

        :param spoken_by: The speakers of messages; None if the texts are memories.
        """
        with self._instruments.stage(Stage.WRITE_PREPARE):
            return self.models.prepare(texts, spoken_by)

    def prepare_drafts(self, drafts: Sequence[MemoryDraft]) -> list[list[PreparedPassage]]:
        """Return the passages of each memory and its facts, in one batch of embeddings."""
        return prepared_drafts(self.prepare, drafts)

    def prepare_patches(self, patches: Sequence[MemoryPatch], present: Sequence[Memory]) -> list[list[PreparedPassage]]:
        """Return the passages that each patch adds to a memory; the write must check that the memory is unchanged."""
        return prepared_patches(self.prepare, patches, present)

    def recall(
        self,
        scope: Scope,
        kind: PassageKind,
        query: SearchQuery,
        *,
        owner_ids: Sequence[int] | None = None,
        past_passages: PastPassages | None = None,
        tagged: Tagged | None = None,
    ) -> Found | None:
        """Rank the owners of one kind for a query; None in a namespace that was never written to.

        :param owner_ids: The eligible owners, if filters outside of the index chose them.
        :param past_passages: The passages at an earlier time; None for the current ones.
        :param tagged: Returns the owners with a tag that the query names; None: there are none.
        """
        screened = replace(query, text=self.screening.query(scope, query.text))
        return self._searcher.recall(scope, kind, screened, owner_ids, past_passages, tagged)

    def write(self, scope: Scope, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one durable transaction, and return once the indexes have applied it.

        `work` runs again, after a rollback, if the model was replaced since its texts were prepared.
        """
        return self.models.write(scope, utc_now(), work)

    def write_rows(self, work: Callable[[Connection], T], *, alone: bool = True) -> T:
        """Run `work`, which changes no memory, in one durable transaction.

        :param alone: Whether no other write may run meanwhile; False if each statement is right whatever others do.
        """
        return self._database.write_rows(work, alone=alone)

    @contextmanager
    def namespace(self, scope: Scope) -> Iterator[tuple[Connection, namespaces.Namespace | None]]:
        """Open a read transaction, with the scope's namespace if it was ever written to."""
        with self._database.read() as connection:
            yield connection, namespaces.named(connection, scope.namespace, scope.sources)

    def nearest_of(
        self, scope: Scope, passages: Sequence[PreparedPassage], *, include_archived: bool = False
    ) -> tuple[Memory, float] | None:
        """Return the memory most similar to a prepared text, with their cosine."""
        return self._searcher.nearest(scope, passages, include_archived=include_archived)

    def nearest_text_of(
        self, scope: Scope, passages: Sequence[PreparedPassage], *, include_archived: bool = False
    ) -> tuple[Memory, float] | None:
        """Like `nearest_of`, documents left out, which are no duplicates of other texts."""
        found = self.nearest_of(scope, passages, include_archived=include_archived)
        if found is None or not is_document(found[0]):
            return found
        with self.namespace(scope) as (connection, namespace):
            files = [] if namespace is None else documents.every_id(connection, namespace)
        return self._searcher.nearest(scope, passages, include_archived=include_archived, without=tuple(files))

    # --- statistics, backups, consistency ----------------------------------------------------------------------

    def stats(self, scope: Scope) -> Stats:
        """Return statistics of a namespace; to a restricted scope only the counts of what it sees."""
        return stats_of(self._database, self.models.serving, scope)

    def readiness(self) -> Readiness:
        """Return True as ready if searches of the default namespace are answered from all of its memories."""
        try:
            readiness = readiness_of(self._database, self.models.serving, warm=self._warm)
        except DatabaseUnavailable:
            readiness = Readiness(False, "database_unavailable", 0, 0)
        return replace(readiness, warnings=self.warnings.current())

    def vitals(self) -> Vitals:
        """Return row counts and sizes over all namespaces."""
        return vitals_of(self._database, self.models.serving.registry)

    @property
    def replica(self) -> str:
        """The id of this process among those that write to the database."""
        return self._database.replica

    @property
    def is_shared(self) -> bool:
        """True if several processes share the database."""
        return self._database.is_shared

    def connections(self) -> Mapping[str, int]:
        """Return the numbers of connections to PostgreSQL, by what they do, and of requests that wait for one."""
        return self._database.connections()

    @property
    def bytes_on_disk(self) -> tuple[int, int]:
        """Sizes of the database file and of its write-ahead log."""
        return self._database.bytes_on_disk

    def back_up(self, *, reason: str) -> Backup:
        """Copy the database while reads and writes go on.

        :raises InvalidRequest: If the reason cannot be part of a folder's name.
        """
        return self._database.back_up(reason=reason, now=utc_now())

    def back_up_first(self, reason: str) -> str | None:
        """Make a backup before a change that deletes much; return its name.

        :return: None for a database in PostgreSQL, which its own tools return to any moment.
        """
        return self.back_up(reason=reason).name if self.keeps_backups else None

    @property
    def keeps_backups(self) -> bool:
        """True if the service makes the backups itself; PostgreSQL has its own tools."""
        return not self._database.is_shared

    def backups(self) -> Sequence[Backup]:
        """Return all backups, newest first."""
        return self._database.backups.all()

    def restore(self, name: str) -> Backup:
        """Restore a backup atomically, after a backup of the current state; returns the latter.

        :raises BackupNotFound: If there is no such backup.
        :raises BackupDamaged: If it cannot be used; nothing was changed.
        """
        replaced = self._database.restore(name, now=utc_now(), switched=self.models.restored)
        self._tell_restored()
        return replaced

    def _drop_indexes(self) -> None:
        """Load everything again, since commits may have been lost without a restore; other services do so soon."""
        self.models.restored()
        self._replaced.set()
        self._following.ask()

    def _follow(self) -> None:
        if self._replaced.is_set():
            self._replaced.clear()
            self._tell_restored()
        self.models.follow()

    def _tell_restored(self) -> None:
        for notify in self._on_restored:
            notify()

    def when_restored(self, notify: Callable[[], None]) -> None:
        """Call `notify` after every restore; for services that cache rows of the database."""
        self._on_restored.append(notify)

    def when_committed(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` on the writer's thread after every commit of changes, until the returned function is called.

        :param notify: Must be quick.
        """
        listeners = self._database.on_commit
        listeners.append(notify)
        return lambda: listeners.remove(notify)

    def when_others_commit(self, notify: Callable[[], None]) -> None:
        """Call `notify` soon after commits of other processes; for services that cache rows of the database."""
        self._database.on_news.append(notify)

    def when_model_replaced(self, notify: Callable[[], None]) -> None:
        """Call `notify` when a request noticed that another process changed the model; it must be quick."""
        self._database.on_model_replaced.append(notify)

    def owns(self, key: str) -> bool:
        """Return whether this process does the background work of a key, such as a namespace."""
        return self._database.owns(key)

    def runs(self, replica: str) -> bool:
        """Return whether a process is running, as far as is known."""
        return self._database.runs(replica)

    def limit_by(self, quotas_of: Callable[[str], Quotas]) -> None:
        """From now on refuse writes that exceed the quotas of their actor."""
        self._database.quotas_of = quotas_of

    def quotas_of(self, actor: str) -> Quotas:
        """The quotas of an actor."""
        return self._database.quotas_of(actor)

    @property
    def copies(self) -> Copies:
        """Earlier states of the store: its backups, and the files that offline restores set aside."""
        return self._database.copies

    def snapshot(self) -> None:
        """Write every changed index to disk, for a fast next start."""
        self._database.between_writes(lambda: self.models.serving.registry.write_snapshots(all_changed=True))

    def check(self) -> Sequence[str]:
        """Check the database, and every loaded index against it, row by row; returns one sentence per inconsistency."""

        def work() -> Sequence[str]:
            with self._database.reader() as connection:
                return self.models.disagreements(connection)

        return self._database.between_writes(work)

    def repair(self) -> Sequence[str]:
        """Repair damaged rows as far as they are stored twice, after a backup; returns one sentence per repair.

        No other caller may use the store.
        """
        backup = self.back_up(reason="pre_repair")
        done = self._database.repair()
        made = self._embed_missing()
        if made:
            done.append(f"{made} missing vectors were made")
        with self._database.read() as connection:
            known = namespaces.ids(connection)
        for namespace_id in known:
            self.models.serving.registry.forget(namespace_id)
        self._database.unreadable.clear()
        return [f"The state before the repair is in the backup {backup.name}", *done]

    def _embed_missing(self) -> int:
        """Make the vectors that passages lack; return their number."""
        embedder, after, made = self.models.serving.embedder, 0, 0
        while True:
            with self._database.read() as connection:
                lacking = vectors.missing(connection, embedder.model_id, after=after, limit=EMBEDDED_AT_ONCE)
            if not lacking:
                return made
            embeddings = embeddings_of([one for _, one in lacking], embedder)
            by_id = {id_: embedding for (id_, _), embedding in zip(lacking, embeddings, strict=True)}
            self._database.write_rows(partial(insert_embeddings, model_id=embedder.model_id, embeddings=by_id))
            after, made = lacking[-1][0], made + len(lacking)

    # --- maintenance -------------------------------------------------------------------------------------------

    def _tidy(self) -> None:
        self.models.tidy_indexes()

    def _maintain(self) -> None:
        """Check the file, refill the reserve, tidy up indexes and their log, and make a backup if it is due."""
        self._database.check_for_damage()
        self._database.refill_reserve()
        self.models.tidy_indexes()
        self._database.sync_marker()
        if self._settings.backup_interval_hours and self.keeps_backups:
            self._back_up_if_due(utc_now())
        self.models.cross_check()
        self._trim_index_changes(utc_now())

    def _trim_index_changes(self, now: datetime) -> None:
        if not self.owns("index_changes"):
            return
        with self._database.read() as connection:
            quiet = index_changes.quiet(connection, now)
        for namespace_id in quiet:
            trim = partial(index_changes.trim_quiet, namespace_id=namespace_id)
            while self._database.write_rows(trim, alone=False):
                pass

    def _back_up_if_due(self, now: datetime) -> None:
        with self._database.read() as connection:
            first_write, state = namespaces.first_write(connection), namespaces.write_state(connection)
        backups = [backup for backup in self._database.backups.all() if backup.reason == SCHEDULED]
        if first_write and self._schedule.is_due(backups, first_write=first_write, state=state, now=now):
            self._schedule.made(self._database.back_up(reason=SCHEDULED, now=now))
