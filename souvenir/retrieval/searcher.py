"""The path of a search: choose the namespace, its state and its index, search that (`Recall`), and re-rank."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from threading import Semaphore

import numpy as np

from souvenir.core.concurrency import left_until_due, require_time
from souvenir.core.labels import fold, named_in
from souvenir.core.passages import Passage, PassageAdded, PastPassages, PreparedPassage
from souvenir.core.settings import Settings
from souvenir.core.telemetry import Instruments, Stage
from souvenir.core.timestamps import utc_now
from souvenir.core.types import (
    Filters,
    LinkUse,
    Memory,
    PassageKind,
    Reranker,
    Scope,
    SearchQuery,
    SearchResult,
)
from souvenir.index.candidates import PastState
from souvenir.index.index_key import IndexKey
from souvenir.retrieval.links import LINKS, MAX_LINKS, with_links
from souvenir.retrieval.preparation import PassageAnalyser
from souvenir.retrieval.recall import FINISH_S, Balances, Recall, Tagged
from souvenir.retrieval.relevance import Found
from souvenir.retrieval.reranking import Reranking
from souvenir.retrieval.serving_model import Models, Serving
from souvenir.store import namespaces
from souvenir.store.database import Database
from souvenir.store.memories import feedback, links, reads

ANY = Filters()


class Searcher:
    """Thread-safe. Every search of an index is limited to what is visible to the scope."""

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
        self._reranking = None if reranker is None else Reranking(settings, reranker, database, instruments)

    def search(self, scope: Scope, query: SearchQuery) -> SearchResult:
        """Return the memories that answer a query best.

        :raises SearchUnavailable: If no arm can run.
        """
        return self._models.using(lambda serving: self._search(serving, scope, query))

    def recall(
        self,
        scope: Scope,
        kind: PassageKind,
        query: SearchQuery,
        owner_ids: Sequence[int] | None,
        past_passages: PastPassages | None = None,
        tagged: Tagged | None = None,
    ) -> Found | None:
        """Rank the owners of one kind; None for a namespace that was never written to.

        :param past_passages: The past state that is searched; None: the present.
        :param tagged: Returns the owners with a tag that the query names; None: there are none.
        """
        namespace = self._namespace(scope)
        if namespace is None:
            return None
        return self._models.using(
            lambda serving: self._find(serving, scope, namespace, kind, query, owner_ids, past_passages, tagged)
        )

    def nearest(
        self,
        scope: Scope,
        passages: Sequence[PreparedPassage],
        *,
        include_archived: bool,
        without: tuple[int, ...] = (),
    ) -> tuple[Memory, float] | None:
        """Return the memory most similar to a prepared text, except for some, and the cosine between them."""
        require_time()
        namespace = self._namespace(scope)
        if namespace is None:
            return None
        texts = [one for one in passages if one.fact is None]
        key, wanted = memories_of(namespace), Filters(include_archived=include_archived, without=without)
        filters = _visible_to(scope, wanted)
        found = self._models.using(
            lambda serving: serving.registry.get(key, namespace.change_seq).nearest(
                np.stack([one.vector for one in serving.embeddings_of(texts)]), filters=filters
            )
        )
        if found is None:
            return None
        with self._database.read() as connection:
            memory = reads.memories(connection, namespace, [found[0]]).get(found[0])
        return None if memory is None else (memory, found[1])

    def _namespace(self, scope: Scope) -> namespaces.Namespace | None:
        with self._database.read_once() as connection:
            return namespaces.named(connection, scope.namespace, scope.sources)

    def _search(self, serving: Serving, scope: Scope, query: SearchQuery) -> SearchResult:
        may_name = {*map(fold, query.filters.tags), *named_in(query.text)}
        with self._database.read_once() as connection:
            searched = reads.searched(connection, scope.namespace, scope.sources, may_name)
            if searched is None:
                return SearchResult(query.text, ())
            namespace = searched.namespace
            owner_ids = reads.owners_matching(connection, namespace, query.filters)
        tagged = partial(self._tagged, searched.tags) if searched.tags else None
        balances = self._balances if query.weights.feedback > 0 and searched.is_judged else None
        kind = PassageKind.MEMORY
        found = self._find(serving, scope, namespace, kind, query, owner_ids, tagged=tagged, balances=balances)
        with self._instruments.stage(Stage.SEARCH_READ):
            return found.result(self._memories(namespace, found.owner_ids))

    def _memories(self, namespace: namespaces.Namespace, ids: Sequence[int]) -> Mapping[int, Memory]:
        """Return those of the memories that exist, all in one state of the database."""
        with self._database.read_once() as connection:
            found = reads.without_parts(connection, namespace, ids)
        if found is None:
            with self._database.read() as connection:
                found = reads.memories(connection, namespace, ids)
        return found

    def _find(
        self,
        serving: Serving,
        scope: Scope,
        namespace: namespaces.Namespace,
        kind: PassageKind,
        query: SearchQuery,
        owner_ids: Sequence[int] | None,
        past_passages: PastPassages | None = None,
        tagged: Tagged | None = None,
        balances: Balances | None = None,
    ) -> Found:
        key = IndexKey(namespace.id, kind)
        recall = Recall(
            serving.registry.get(key, namespace.change_seq),
            serving.embedder,
            serving.scoring,
            self._analyser,
            self._fusion,
            self._slots,
            self._instruments,
        )
        query = replace(query, filters=_visible_to(scope, query.filters))
        former = [] if past_passages is None else list(_former_passages(serving, past_passages))
        past = None if past_passages is None else _past_state(serving, key, past_passages, former)
        now = query.now or utc_now()
        if self._reranking is None or not query.hybrid or query.words_only:
            found = recall.find(query, owner_ids, now, past, tagged, balances)
        else:
            found = recall.find(self._reranking.enlarged(query), owner_ids, now, past, tagged, balances)
            texts = {added.passage.id: added.passage.text for added in former}
            found = self._reranking.reordered(found, query, namespace.id, texts)
        if not query.link_weight or not query.hybrid or not found.ranked:
            return found
        with self._database.read_once() as connection:
            at = None if past_passages is None else past_passages.at
            pairs = links.linked_with(connection, scope.sources, found.owner_ids, at=at, limit=MAX_LINKS)
        if not pairs:
            return replace(found, links=LinkUse(tuple(found.owner_ids))) if query.explain else found
        if left_until_due() < FINISH_S:
            self._instruments.omitted(LINKS)
            return replace(found, degraded=(*found.degraded, LINKS))

        def find_among(query: SearchQuery, ids: Sequence[int]) -> Found:
            allowed = ids if owner_ids is None else sorted({*ids} & {*owner_ids})
            return recall.find(query, allowed, now, past, tagged, balances)

        return with_links(found, pairs, query, find_among)

    def _tagged(self, named: Collection[str], owner_ids: Sequence[int]) -> Collection[int]:
        with self._database.read_once() as connection:
            return reads.having_tags(connection, named, owner_ids)

    def _balances(self, owner_ids: Sequence[int]) -> Mapping[int, float]:
        with self._database.read_once() as connection:
            return feedback.balances(connection, owner_ids)


def memories_of(namespace: namespaces.Namespace) -> IndexKey:
    return IndexKey(namespace.id, PassageKind.MEMORY)


def _former_passages(serving: Serving, past_passages: PastPassages) -> Iterator[PassageAdded]:
    """Yield passages with negative ids, which no stored passage has."""
    ids = count(-1, -1)
    for text in past_passages.former:
        owner = text.owner
        for ordinal, (one, made) in enumerate(zip(text.passages, serving.embeddings_of(text.passages), strict=True)):
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
                turn=owner.turn,
                fact_id=None if one.fact is None else text.fact_ids[one.fact],
            )
            yield PassageAdded(passage, made, one.chunks)


def _past_state(
    serving: Serving, key: IndexKey, past_passages: PastPassages, former: Sequence[PassageAdded]
) -> PastState:
    index = serving.registry.detached(key, former, past_passages.related)
    return PastState(np.array(past_passages.unchanged, dtype=np.int64), index)


def _visible_to(scope: Scope, filters: Filters = ANY) -> Filters:
    return replace(filters, visible=scope.sources)
