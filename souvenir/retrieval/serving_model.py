"""The embedding model in use with its indexes, and its replacement during searches and writes.

The current model and the indexes of its vectors are one value, replaced atomically under the database's gate. Near the
end of a replacement the next model is loaded too: texts are then embedded by both, and the indexes of the next model
receive every write, so that requests wait neither for loading nor for embedding.

Invariant: a vector is stored under the id of the model that made it. A write that was prepared with a model that has
been replaced since is embedded again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from threading import Lock
from typing import TypeVar

import structlog

from souvenir.core.errors import ModelReplaced, SouvenirError
from souvenir.core.passages import (
    Chunks,
    Embeddable,
    Embedding,
    Passage,
    PassageAdded,
    PreparedPassage,
    SpokenBy,
    TokenCodes,
    TokensAdded,
)
from souvenir.core.settings import Settings
from souvenir.core.types import Embedder, Scope
from souvenir.index.cross_check import problems
from souvenir.index.index_key import IndexKey
from souvenir.index.namespace import NamespaceIndex
from souvenir.index.registry import IndexRegistry
from souvenir.retrieval.new_registry import new_registry, view_of
from souvenir.retrieval.preparation import PassageAnalyser, embeddings_of, prepare
from souvenir.retrieval.scoring import Scoring, scoring_of
from souvenir.store import index_changes, namespaces
from souvenir.store import vectors as rows
from souvenir.store.database import Database
from souvenir.store.index_changes import IndexUpdate
from souvenir.store.namespace_view import NamespaceView
from souvenir.store.passages import ModelChanged, insert_embeddings
from souvenir.store.pending_removals import RemovalStep
from souvenir.store.sql import Connection
from souvenir.store.sqlite import generations
from souvenir.store.transaction import Transaction
from souvenir.store.vectors import NextModel

T = TypeVar("T")

log = structlog.get_logger(__name__)

SETTLE_TRIES = 3
"""Each with a new view of the database, since other processes write meanwhile."""

CHECKED_INDEXES = 64
"""Indexes of which a sample is compared with the database in one run of the maintenance."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A model, the indexes of its vectors, and the constants by which searches of them are scored."""

    embedder: Embedder
    registry: IndexRegistry
    scoring: Scoring

    def embeddings_of(self, passages: Sequence[PreparedPassage]) -> list[Embedding]:
        """Return this model's embeddings of passages that may have been prepared with the previous one."""
        found = [passage.embedding_by(self.embedder.model_id) for passage in passages]
        known = [embedding for embedding in found if embedding is not None]
        if len(known) == len(found):
            return known
        return embeddings_of([passage.embeddable for passage in passages], self.embedder)


class Models:
    """Thread-safe."""

    def __init__(
        self,
        settings: Settings,
        embedder: Embedder,
        analyser: PassageAnalyser,
        database: Database,
        *,
        on_load: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._analyser = analyser
        self._database = database
        self._on_load = on_load
        self._checked_until = 0
        self._changing = Lock()
        self._next: Serving | None = None
        self.also_checked: list[Callable[[Connection], Sequence[str]]] = []
        self.serving = self._serving(embedder)

    def using(self, work: Callable[[Serving], T]) -> T:
        """Run a read with the current model and indexes; repeat it if they were replaced meanwhile.

        :raises ModelReplaced: If another process changed the model, and this one does not load it soon.
        """
        while True:
            serving = self.serving
            try:
                result = work(serving)
            except ModelReplaced:
                self._database.await_model(serving.embedder.model_id)
            except Exception:
                if serving is self.serving:
                    raise
            else:
                if serving is self.serving:
                    return result

    def prepare(
        self, texts: Sequence[str], spoken_by: Sequence[SpokenBy] | None = None
    ) -> Sequence[Sequence[PreparedPassage]]:
        while True:
            serving, following = self.serving, self._next
            next_embedder = None if following is None else following.embedder
            try:
                return prepare(
                    texts, serving.embedder, self._analyser, spoken_by=spoken_by, next_embedder=next_embedder
                )
            except SouvenirError:
                if serving is self.serving:
                    raise

    def write(self, scope: Scope, now: datetime, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one durable transaction and update the indexes before returning.

        If the model was replaced after texts were embedded, the transaction is rolled back and `work` runs again.
        """
        again: dict[tuple[str, Embeddable], Embedding] = {}
        while True:
            try:
                return self._database.write(scope, now, work, self._apply, again)
            except ModelChanged as changed:
                embedder = self.serving.embedder
                try:
                    embeddings = embeddings_of(changed.passages, embedder)
                except SouvenirError:
                    if embedder is self.serving.embedder:
                        raise
                    continue
                for one, embedding in zip(changed.passages, embeddings, strict=True):
                    again[embedder.model_id, one] = embedding

    def remove(self, work: Callable[[Connection], RemovalStep | None]) -> RemovalStep | None:
        """Run `work`, which deletes rows, in one durable transaction and update the indexes before returning."""
        return self._database.write_rows(work, self._removed)

    def follow(self) -> None:
        """Let the loaded indexes catch up with other processes, so that the next searches do not wait for it."""
        registry = self.serving.registry
        loaded = {key.namespace_id for key in registry.loaded()}
        if loaded:
            with self._database.read() as connection:
                change_seqs = namespaces.change_seqs(connection, loaded)
            # A replaced model has other indexes soon.
            with suppress(ModelReplaced):
                registry.follow(change_seqs)

    def sweep_snapshots(self, changed: Container[int] = ()) -> bool:
        """Remove snapshots that contain deleted data; return False if their folder does not allow it.

        :param changed: Namespaces with deletions; snapshots of deleted namespaces are removed in any case.
        """

        def work() -> bool:
            with self._database.reader() as connection:
                includes = partial(generations.includes, connection)
                return self.serving.registry.sweep_snapshots(namespaces.ids(connection), changed, includes)

        return self._database.between_writes(work)

    def sweep_old_snapshots(self, before: float) -> bool:
        """Remove snapshots from before a time, in seconds since 1970; return False if their folder does not allow it.

        :raises OSError: If the folder cannot be read.
        """
        return self.sweep_snapshots(self.serving.registry.namespaces_of_snapshots(before))

    def clear_unused(self, changed: Container[int]) -> bool:
        """Clear the deleted bytes of namespaces from all files.

        :return: False if long reads, or the folder of the indexes, prevent it; try again later.
        """
        return self.sweep_snapshots(changed) and self._database.clear_unused()

    def terms(self, text: str) -> Sequence[str]:
        """Return the terms of a text as in the index."""
        return self._analyser.terms(text)

    def restored(self) -> None:
        """Discard the indexes of the database that was replaced."""
        with self._changing:
            self._forget_next()
            self.serving = self._serving(self.serving.embedder)

    def disagreements(self, connection: Connection) -> Sequence[str]:
        """Return inconsistencies within the database, and of loaded indexes with it. No write may run meanwhile.

        Packages that derive other data add their checks to `also_checked`.
        """
        serving, chunks = self.serving, self._analyser.chunks
        found = [*self._database.problems(connection)]
        for key in serving.registry.loaded():
            with serving.registry.standing_at(key, self._view(connection, key, serving)) as index:
                loaded = {} if index is None else {key: index}
                found += disagreements(connection, serving.embedder.model_id, serving.embedder.dim, loaded, chunks)
        return [*found, *(one for compare in self.also_checked for one in compare(connection))]

    def tidy_indexes(self) -> None:
        """Drop indexes beyond the memory budget, and write snapshots of those that changed much."""
        registry = self.serving.registry
        if registry.over_budget:
            self._database.between_writes(registry.shrink)
        self._database.between_writes(lambda: registry.write_snapshots(all_changed=False))

    def cross_check(self) -> None:
        """Compare samples of the loaded indexes, some each time, with the database.

        One that disagrees is rebuilt on its next use.

        Only where a sample disagrees, writes wait for some milliseconds while it is compared again.
        """
        serving = self.serving
        loaded = [*serving.registry.loaded()]
        self._checked_until %= max(len(loaded), 1)
        turn = [*loaded[self._checked_until :], *loaded[: self._checked_until]][:CHECKED_INDEXES]
        self._checked_until += len(turn)
        for key in turn:
            with self._database.read() as connection:
                ids = serving.registry.suspicions(key, self._view(connection, key, serving))
            if ids is not None:
                self._database.between_writes(partial(self._verify, serving, key, ids))

    def _verify(self, serving: Serving, key: IndexKey, ids: Sequence[int]) -> None:
        if serving is self.serving:
            with self._database.reader() as connection:
                serving.registry.verify(key, ids, self._view(connection, key, serving))

    # --- another model -----------------------------------------------------------------------------------------

    def expect(self, embedder: Embedder, announcement: str, *, replacing: bool = True) -> bool:
        """Start to embed texts with this model too; its indexes are loaded from the vectors it has so far.

        :param announcement: By which all processes know of it; its vectors are stored while it stands in the database.
        :param replacing: Whether it takes the place of another one that is expected.
        :return: False if another one is expected.
        """
        following = self._serving(embedder)
        following.registry.keeps_snapshots = False
        with self._changing:
            if self._next is not None and not replacing:
                return False
            self._next = following
            self._database.next_model = NextModel(embedder.model_id, announcement)
        try:
            for key in self.serving.registry.loaded():
                following.registry.get(key, 0)
        except BaseException:
            self.dismiss(embedder)
            raise
        return True

    @property
    def expecting(self) -> bool:
        return self._next is not None

    def expects(self, embedder: Embedder) -> bool:
        """Return whether this instance is the one that is expected."""
        following = self._next
        return following is not None and following.embedder is embedder

    def dismiss(self, embedder: Embedder | None = None) -> None:
        """Stop expecting another model; its stored vectors are kept.

        :param embedder: Only if this one is expected; None: whichever is.
        """
        with self._changing:
            if embedder is None or self.expects(embedder):
                self._forget_next()

    def _forget_next(self) -> None:
        self._database.next_model = None
        self._next = None

    def add_embeddings(
        self, model_id: str, embeddings: Mapping[int, Embedding], save: Callable[[Connection], None], *, announced: bool
    ) -> None:
        """Store a model's embeddings by passage id, in one transaction with what `save` writes, and index them.

        :param announced: Whether processes may have indexes of the model, which then catch up by the log.
        """

        def work(connection: Connection) -> list[IndexUpdate]:
            save(connection)
            insert_embeddings(connection, model_id, embeddings)
            if not announced:
                return []
            added: dict[int, list[PassageAdded]] = {}
            for namespace_id, passage in rows.passages(connection, embeddings):
                change = PassageAdded(passage, embeddings[passage.id], self._analyser.chunks(passage))
                added.setdefault(namespace_id, []).append(change)
            return [
                IndexUpdate(one, index_changes.append(connection, one, changes, None), (), tuple(changes))
                for one, changes in added.items()
            ]

        def apply(updates: list[IndexUpdate]) -> None:
            for update in updates:
                self._apply(update)

        self._database.write_rows(work, apply)

    def add_tokens(
        self,
        model_id: str,
        lacking: Sequence[tuple[int, Passage]],
        tokens: Sequence[TokenCodes],
        save: Callable[[Connection], None],
    ) -> None:
        """Store token vectors of the current model in one transaction with what `save` writes, and index them.

        :param lacking: The passages, with the ids of their namespaces.
        """
        by_id = {passage.id: codes for (_, passage), codes in zip(lacking, tokens, strict=True)}

        changes: dict[int, list[TokensAdded]] = {}
        for namespace_id, passage in lacking:
            change = TokensAdded(passage.id, passage.kind, by_id[passage.id])
            changes.setdefault(namespace_id, []).append(change)

        def work(connection: Connection) -> Mapping[int, int]:
            save(connection)
            rows.add_tokens(connection, model_id, by_id)
            left = namespaces.ids(connection) & changes.keys()
            return {one: index_changes.append(connection, one, changes[one], None) for one in left}

        def apply(change_seqs: Mapping[int, int]) -> None:
            for namespace_id, change_seq in change_seqs.items():
                self.serving.registry.apply(namespace_id, changes[namespace_id], change_seq)

        self._database.write_rows(work, apply)

    def switch(self, spec: str, ready: Callable[[Connection], bool]) -> bool:
        """Replace the model by the expected one, atomically.

        :param spec: The configuration from which the model is created at the next start.
        :param ready: Returns whether nothing is missing; may write, and raise to change nothing. No write runs
            meanwhile.
        :return: Whether it was ready.
        :raises TimeoutError: If a running read takes too long; try again later.
        :raises ModelReplaced: If none is expected any more, or the model was replaced and does not serve here yet.
        """
        following = self._next
        if following is None:
            raise ModelReplaced
        serve = partial(self._serve, following.embedder)
        done = self._database.switch_model(following.embedder.model_id, spec, ready, serve)
        if done:
            self._settle(self.serving)
        return done

    def adopt(self, embedder: Embedder) -> bool:
        """Serve with the model that another process changed the database to.

        :return: False if it is not that one, or serves already.

        :raises TimeoutError: If a running write takes too long; try again later.
        """
        if embedder.model_id == self.serving.embedder.model_id:
            return False
        done = self._database.adopt_model(embedder.model_id, partial(self._serve, embedder))
        if done:
            self._settle(self.serving)
        return done

    def _serve(self, embedder: Embedder) -> None:
        """Serve with a model; with the indexes that were loaded for it, unless the database was replaced since."""
        with self._changing:
            following = self._next
            is_expected = following is not None and following.embedder is embedder
            serving = following if following is not None and is_expected else self._serving(embedder)
            serving.registry.keeps_snapshots = True
            self.serving = serving
            self._forget_next()

    def _settle(self, serving: Serving) -> None:
        """Add what the indexes lack that were loaded while texts were not embedded by their model yet.

        An index for which that fails is loaded again on its next use.
        """

        def settle(key: IndexKey) -> bool:
            with self._database.reader() as connection:
                return serving.registry.settle(key, self._view(connection, key, serving))

        for key in serving.registry.loaded():
            try:
                is_settled = any(self._database.between_writes(partial(settle, key)) for _ in range(SETTLE_TRIES))
            except SouvenirError as error:
                log.warning("index_not_settled", **key.labels, reason=error.message, action="loaded again")
                is_settled = False
            if not is_settled:
                serving.registry.drop(key)

    def reload(self, embedder: Embedder) -> bool:
        """Replace the embedder by another instance of the same model; return False if it is of another model."""
        with self._changing:
            if embedder.model_id != self.serving.embedder.model_id:
                return False
            self.serving = replace(self.serving, embedder=embedder, scoring=self._scoring(embedder))
            return True

    # --- inside ------------------------------------------------------------------------------------------------

    def _view(self, connection: Connection, key: IndexKey, serving: Serving) -> NamespaceView:
        return view_of(connection, key, serving.embedder, self._database)

    def _serving(self, embedder: Embedder) -> Serving:
        registry = new_registry(self._settings, embedder, self._analyser, self._database, on_load=self._on_load)
        return Serving(embedder, registry, self._scoring(embedder))

    def _scoring(self, embedder: Embedder) -> Scoring:
        return scoring_of(embedder, self._analyser.profiles)

    def _removed(self, step: RemovalStep | None) -> None:
        if step is None:
            return
        if step.update is not None:
            self._apply(step.update)
        following = self._next
        for namespace_id in step.gone:
            self.serving.registry.forget(namespace_id)
            if following is not None:
                following.registry.forget(namespace_id)

    def _apply(self, update: IndexUpdate) -> None:
        self.serving.registry.apply(update.namespace_id, update.changes, update.change_seq)
        following = self._next
        if following is not None:
            following.registry.apply(update.namespace_id, update.next_changes, update.change_seq)


def disagreements(
    connection: Connection,
    model_id: str,
    dim: int,
    indexes: Mapping[IndexKey, NamespaceIndex],
    analyse: Callable[[Passage], Chunks],
) -> Sequence[str]:
    """Return one sentence for each difference of indexes from the database. No write may run meanwhile.

    :param indexes: The loaded indexes, of the vectors of this model.
    """
    found: list[str] = []
    for (namespace_id, kind), index in indexes.items():
        truth = NamespaceView(connection, namespace_id, kind, model_id, dim)
        of_index = problems(index, truth.passages(None), analyse)
        found += [f"{kind} index of namespace {namespace_id}: {problem}" for problem in of_index]
        if index.change_seq != truth.change_seq:
            found.append(f"{kind} index of namespace {namespace_id} stands at another write than the database")
    return found
