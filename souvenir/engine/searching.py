"""Searches of a database's indexes: which index, what the scope may see of it, and turns at the arrays."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from threading import Semaphore

import numpy as np

from souvenir.engine.models import Models, Serving
from souvenir.engine.preparation import PassageAnalyser
from souvenir.engine.recall import Found, Recall, Tagged
from souvenir.engine.reranking import Reranking
from souvenir.index.namespace import Moment
from souvenir.index.registry import IndexKey
from souvenir.moments import utc_now
from souvenir.observation.instruments import Instruments, Stage
from souvenir.passages import Passage, PassageAdded, PreparedPassage, Standing
from souvenir.settings import Settings
from souvenir.store import reads, tags
from souvenir.store.database import Database
from souvenir.tags import fold, named_in
from souvenir.types import Filters, Memory, PassageKind, Reranker, Scope, SearchQuery, SearchResult

ANY = Filters()


class Searching:
    """Safe to call from any thread. Every question to an index carries what the scope may see of it."""

    def __init__(
        self,
        settings: Settings,
        models: Models,
        database: Database,
        analyser: PassageAnalyser,
        instruments: Instruments,
        reranker: Reranker | None,
    ) -> None:
        self._fusion = settings.search_fusion
        self._models = models
        self._database = database
        self._analyser = analyser
        self._instruments = instruments
        self._slots = Semaphore(os.cpu_count() or 1)
        self._reranking = Reranking(settings, reranker, database, instruments)

    def search(self, scope: Scope, query: SearchQuery) -> SearchResult:
        """The memories that answer a query best.

        :raises SearchUnavailable: If no arm can run.
        """
        return self._models.using(lambda serving: self._search(serving, scope, query))

    def recall(
        self,
        scope: Scope,
        kind: PassageKind,
        query: SearchQuery,
        owner_ids: Sequence[int] | None,
        standing: Standing | None = None,
    ) -> Found | None:
        """The ranking of one kind's owners; None in a namespace that was never written to.

        :param standing: What stood at the moment that is searched; None: the present.
        """
        namespace = self._namespace(scope)
        if namespace is None:
            return None
        key = IndexKey(namespace.id, kind)
        return self._models.using(lambda serving: self._find(serving, scope, key, query, owner_ids, standing))

    def nearest(
        self, scope: Scope, passages: Sequence[PreparedPassage], *, include_archived: bool
    ) -> tuple[Memory, float] | None:
        """The memory most similar to a prepared text, and the cosine between them."""
        namespace = self._namespace(scope)
        if namespace is None:
            return None
        texts = [one for one in passages if one.fact is None]
        key, filters = memories_of(namespace), _visible_to(scope, Filters(include_archived=include_archived))
        found = self._models.using(
            lambda serving: serving.registry.get(key).nearest(serving.vectors_of(texts), filters=filters)
        )
        if found is None:
            return None
        with self._database.read() as connection:
            memory = reads.memories(connection, namespace, [found[0]]).get(found[0])
        return None if memory is None else (memory, found[1])

    def _namespace(self, scope: Scope) -> reads.Namespace | None:
        with self._database.read() as connection:
            return reads.namespace_named(connection, scope.namespace, scope.sources)

    def _search(self, serving: Serving, scope: Scope, query: SearchQuery) -> SearchResult:
        with self._database.read() as connection:
            namespace = reads.namespace_named(connection, scope.namespace, scope.sources)
            if namespace is None:
                return SearchResult(query.text, ())
            owner_ids = reads.owners_matching(connection, namespace, query.filters)
            named = reads.tags_used(connection, namespace, {*map(fold, query.filters.tags), *named_in(query.text)})
        tagged = partial(self._tagged, named) if named else None
        found = self._find(serving, scope, memories_of(namespace), query, owner_ids, tagged=tagged)
        with self._instruments.stage(Stage.SEARCH_READ), self._database.read() as connection:
            return found.result(reads.memories(connection, namespace, found.owner_ids))

    def _find(
        self,
        serving: Serving,
        scope: Scope,
        key: IndexKey,
        query: SearchQuery,
        owner_ids: Sequence[int] | None,
        standing: Standing | None = None,
        tagged: Tagged | None = None,
    ) -> Found:
        recall = Recall(
            serving.registry.get(key),
            serving.embedder,
            self._analyser,
            self._fusion,
            self._slots,
            self._instruments,
        )
        query = replace(query, filters=_visible_to(scope, query.filters))
        former = [] if standing is None else list(_former_passages(serving, standing))
        moment = None if standing is None else _moment(serving, standing, former)
        found = recall.find(self._reranking.first(query), owner_ids, query.now or utc_now(), moment, tagged)
        texts = {added.passage.id: added.passage.text for added in former}
        return self._reranking.second(found, query, key.namespace_id, texts)

    def _tagged(self, named: Collection[str], owner_ids: Sequence[int]) -> Collection[int]:
        with self._database.read() as connection:
            return tags.tagged(connection, named, owner_ids)


def memories_of(namespace: reads.Namespace) -> IndexKey:
    return IndexKey(namespace.id, PassageKind.MEMORY)


def _former_passages(serving: Serving, standing: Standing) -> Iterator[PassageAdded]:
    """Under ids below 0, which no stored passage has."""
    ids = count(-1, -1)
    for text in standing.former:
        owner = text.owner
        for ordinal, (one, vector) in enumerate(zip(text.passages, serving.vectors_of(text.passages), strict=True)):
            passage = Passage(
                id=next(ids),
                kind=owner.kind,
                owner_id=owner.id,
                ordinal=ordinal,
                text=one.text,
                profile=one.profile,
                source=owner.source,
                occurred_at=owner.occurred_at,
                archived=owner.archived,
                dated=owner.dated,
            )
            yield PassageAdded(passage, vector, one.chunks)


def _moment(serving: Serving, standing: Standing, former: Sequence[PassageAdded]) -> Moment:
    return Moment(np.array(standing.unchanged, dtype=np.int64), serving.registry.apart(former))


def _visible_to(scope: Scope, filters: Filters = ANY) -> Filters:
    return replace(filters, visible=scope.sources)
