"""The path of a search: choose the index, embed and analyse the query, run both arms, and rank the results.

No language model is involved. An arm that fails is logged and reported in the result; the other one answers alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import count
from threading import Semaphore
from typing import TypeVar

import numpy as np
import structlog
from numpy.typing import NDArray

from souvenir.core.concurrency import require_time, time_left
from souvenir.core.errors import DeadlineExceeded, Overloaded, SearchUnavailable
from souvenir.core.labels import fold, named_in
from souvenir.core.passages import FieldScores, Passage, PassageAdded, PassageColumns, PastPassages, PreparedPassage
from souvenir.core.settings import Settings
from souvenir.core.telemetry import Instruments, Stage
from souvenir.core.timestamps import to_us, utc_now
from souvenir.core.types import (
    Embedder,
    Filters,
    Fusion,
    Memory,
    PassageKind,
    Profile,
    Reranker,
    Scope,
    SearchQuery,
    SearchResult,
)
from souvenir.index.candidates import Candidates, PastState, Probe
from souvenir.index.late_interaction import LateQuery
from souvenir.index.namespace import NamespaceIndex
from souvenir.index.registry import IndexKey
from souvenir.retrieval.preparation import PassageAnalyser
from souvenir.retrieval.profiles import LEGIBLE_SHARE
from souvenir.retrieval.ranking import (
    Evidence,
    Question,
    Ranked,
    field_scores,
    rank_by_similarity,
    rank_owners,
    score_parts,
    without_framing,
)
from souvenir.retrieval.relevance import NOTHING_FOUND, Found, Judgement, Spoken, judge, names_in, signals_of
from souvenir.retrieval.reranking import Reranking
from souvenir.retrieval.scoring import Scoring
from souvenir.retrieval.serving_model import Models, Serving
from souvenir.retrieval.time_intent import TimeIntent, time_intent
from souvenir.store import namespaces
from souvenir.store.database import Database
from souvenir.store.memories import reads

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
    ) -> Found | None:
        """Rank the owners of one kind; None for a namespace that was never written to.

        :param past_passages: The past state that is searched; None: the present.
        """
        namespace = self._namespace(scope)
        if namespace is None:
            return None
        key = IndexKey(namespace.id, kind)
        return self._models.using(lambda serving: self._find(serving, scope, key, query, owner_ids, past_passages))

    def nearest(
        self, scope: Scope, passages: Sequence[PreparedPassage], *, include_archived: bool
    ) -> tuple[Memory, float] | None:
        """Return the memory most similar to a prepared text, and the cosine between them."""
        require_time()
        namespace = self._namespace(scope)
        if namespace is None:
            return None
        texts = [one for one in passages if one.fact is None]
        key, filters = memories_of(namespace), _visible_to(scope, Filters(include_archived=include_archived))
        found = self._models.using(
            lambda serving: serving.registry.get(key).nearest(
                np.stack([one.vector for one in serving.embeddings_of(texts)]), filters=filters
            )
        )
        if found is None:
            return None
        with self._database.read() as connection:
            memory = reads.memories(connection, namespace, [found[0]]).get(found[0])
        return None if memory is None else (memory, found[1])

    def _namespace(self, scope: Scope) -> namespaces.Namespace | None:
        with self._database.read() as connection:
            return namespaces.named(connection, scope.namespace, scope.sources)

    def _search(self, serving: Serving, scope: Scope, query: SearchQuery) -> SearchResult:
        with self._database.read() as connection:
            namespace = namespaces.named(connection, scope.namespace, scope.sources)
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
        past_passages: PastPassages | None = None,
        tagged: Tagged | None = None,
    ) -> Found:
        recall = Recall(
            serving.registry.get(key),
            serving.embedder,
            serving.scoring,
            self._analyser,
            self._fusion,
            self._slots,
            self._instruments,
        )
        query = replace(query, filters=_visible_to(scope, query.filters))
        former = [] if past_passages is None else list(_former_passages(serving, past_passages))
        past = None if past_passages is None else _past_state(serving, past_passages, former)
        now = query.now or utc_now()
        if self._reranking is None or not query.hybrid or query.words_only:
            return recall.find(query, owner_ids, now, past, tagged)
        found = recall.find(self._reranking.enlarged(query), owner_ids, now, past, tagged)
        texts = {added.passage.id: added.passage.text for added in former}
        return self._reranking.reordered(found, query, key.namespace_id, texts)

    def _tagged(self, named: Collection[str], owner_ids: Sequence[int]) -> Collection[int]:
        with self._database.read() as connection:
            return reads.having_tags(connection, named, owner_ids)


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
            )
            yield PassageAdded(passage, made, one.chunks)


def _past_state(serving: Serving, past_passages: PastPassages, former: Sequence[PassageAdded]) -> PastState:
    return PastState(np.array(past_passages.unchanged, dtype=np.int64), serving.registry.detached(former))


def _visible_to(scope: Scope, filters: Filters = ANY) -> Filters:
    return replace(filters, visible=scope.sources)


T = TypeVar("T")

Tagged = Callable[[Sequence[int]], Collection[int]]
"""Returns those owners that have a tag named by the search."""

CANDIDATE_COUNT = 256
"""Candidates per arm: the first ten of the full ranking are among them (benchmarks/engine)."""

QUESTION_CHARS = 2_000
"""Maximum length of a query, for a few windows of the model and a tenth of a second; the rest is ignored."""

SLOT_WAIT_S = 30.0
"""Maximum time that a search waits for a slot."""

VECTOR, LEXICAL, LATE = "vector", "lexical", "late"

LATE_COUNT = 100
"""Passages scored by late interaction, best first by the rest of the score, or as many as are asked for if these are
more: the first ten of 200 were the same ten on all development questions."""

log = structlog.get_logger(__name__)


class Recall:
    """Searches one namespace's index.

    :param slots: Concurrent searches, one per core, shared by all indexes. More would not be faster, since they share
        the interpreter, and would delay everything else in the process.
    """

    def __init__(
        self,
        index: NamespaceIndex,
        embedder: Embedder,
        scoring: Scoring,
        analyser: PassageAnalyser,
        fusion: Fusion,
        slots: Semaphore,
        instruments: Instruments,
    ) -> None:
        self._index = index
        self._embedder = embedder
        self._scoring = scoring
        self._analyser = analyser
        self._fusion = fusion
        self._slots = slots
        self._instruments = instruments

    def find(
        self,
        query: SearchQuery,
        owner_ids: Sequence[int] | None,
        now: datetime,
        past: PastState | None = None,
        tagged: Tagged | None = None,
    ) -> Found:
        """Rank the namespace's owners for a query.

        :param owner_ids: The allowed owners, if filters outside of the index selected them.
        :param past: The past state that is searched; None: the present.
        :param tagged: Returns the owners with a tag named by the search; None: there are none.
        :raises SearchUnavailable: If no arm can run.
        :raises Overloaded: If too many searches are waiting.
        :raises DeadlineExceeded: If the caller's deadline has passed.
        """
        intent, time = time_intent(_read(query), now) if query.auto_intent else None, None
        if intent is not None:
            query, time = intent.applied_to(query)
        with self._instruments.stage(Stage.SEARCH_EMBED):
            probe = replace(self._probe(query, owner_ids, intent), past=past)
        with self._instruments.stage(Stage.SEARCH_WAIT):
            if not self._slots.acquire(timeout=time_left(SLOT_WAIT_S)):
                raise Overloaded("Too many searches are waiting; try again in a moment")
        try:
            return replace(self._find(query, probe, now, intent, tagged), time=time)
        finally:
            self._slots.release()

    def _find(
        self, query: SearchQuery, probe: Probe, now: datetime, time: TimeIntent | None, tagged: Tagged | None
    ) -> Found:
        known = _try(VECTOR, lambda: self._embedder.known_share(_read(query))) if probe.vector is not None else None
        legible = known is None or known >= LEGIBLE_SHARE
        while True:
            require_time()
            with self._instruments.stage(Stage.SEARCH_INDEX):
                candidates, probe = self._candidates(probe)
            with self._instruments.stage(Stage.SEARCH_RANK):
                evidence = _evidence(candidates, tagged, dense_counts=probe.vector is not None and legible)
                evidence = self._with_late(evidence, candidates, query, probe, now)
                ranked = self._rank(query, evidence, now, with_vector=probe.vector is not None)
            if len(ranked) >= query.top_k or candidates.complete:
                degraded = self._degraded(query, probe)
                for arm in degraded:
                    self._instruments.degraded(arm)
                judgement = self._judgement(candidates, evidence, probe) if ranked else NOTHING_FOUND
                if time is not None and time.only and ranked and _is_of(time, query, candidates, ranked[0]):
                    judgement = judgement.of_the_time(self._scoring.coefficients)
                return Found(query, candidates, ranked, degraded, legible, judgement)
            probe = replace(probe, candidate_count=4 * probe.candidate_count)

    def _probe(self, query: SearchQuery, owner_ids: Sequence[int] | None, time: TimeIntent | None) -> Probe:
        text = _read(query)
        vector = unframed = words = None
        if query.hybrid:
            looked_for = text if time is None or time.words is None else time.words
            words = _try(LEXICAL, lambda: self._analyser.analyser.query_words(looked_for))
        if not query.words_only:
            vector = _try(VECTOR, lambda: self._embedder.embed_query(text))
        about = without_framing(text) if vector is not None and self._index.holds(Profile.CHAT) else text
        if query.hybrid and about != text:
            unframed = _try(VECTOR, lambda: self._embedder.embed_query(about))
        return Probe(
            vector=vector,
            words=words,
            filters=query.filters,
            owner_ids=None if owner_ids is None else np.array(owner_ids, dtype=np.int64),
            centred=query.hybrid and self._scoring.centred,
            candidate_count=CANDIDATE_COUNT,
            explain=query.explain,
            unframed=unframed,
            fields=self._fields(query, time) if query.hybrid else None,
            names=names_in(text, self._analyser.terms) if self._index.holds(Profile.FACT) else frozenset(),
            late=_try(LATE, lambda: self._late_query(text)) if query.hybrid and vector is not None else None,
        )

    def _late_query(self, text: str) -> LateQuery | None:
        tokens = self._embedder.query_tokens(text)
        if tokens is None or not len(tokens.ids):
            return None
        words = [_word_around(text, *span) for span in tokens.spans]
        terms = {word: self._analyser.terms(word) for word in set(words)}
        return LateQuery(tokens.vectors, [terms[word] for word in words])

    def _fields(self, query: SearchQuery, time: TimeIntent | None) -> Callable[[PassageColumns], FieldScores]:
        question = Question.of(_read(query), role=query.weights.role, time=time)
        return partial(field_scores, question, profiles=self._scoring.profiles)

    def _candidates(self, probe: Probe) -> tuple[Candidates, Probe]:
        """Return the results of the arms, and the probe with the arms that could run."""
        for attempt in _attempts(probe):
            found = _try("index", partial(self._index.search, attempt))
            if found is not None:
                return found, attempt
        raise SearchUnavailable("Neither arm of the search can run; look at the service's log")

    def _rank(self, query: SearchQuery, evidence: Evidence, now: datetime, *, with_vector: bool) -> Sequence[Ranked]:
        chosen: NDArray[np.int64] | None = None
        if query.threshold is not None and with_vector:
            chosen = np.flatnonzero(evidence.similarity >= query.threshold)
            evidence = evidence.of(chosen)
        if not query.hybrid:
            ranked = rank_by_similarity(evidence, top_k=query.top_k)
        else:
            ranked = rank_owners(
                evidence,
                weights=query.weights,
                profiles=self._scoring.profiles,
                fusion=self._fusion,
                now_us=to_us(now),
                top_k=query.top_k,
            )
        return ranked if chosen is None else [_of_all(one, chosen) for one in ranked]

    def _with_late(
        self, evidence: Evidence, candidates: Candidates, query: SearchQuery, probe: Probe, now: datetime
    ) -> Evidence:
        """Add the late interaction of the best passages, if it takes part in this search."""
        sums = query.hybrid and self._fusion is Fusion.SUM and query.weights.vector > 0
        if not sums or probe.late is None or probe.past is not None or not evidence.dense_counts:
            return evidence
        profiles = self._scoring.profiles
        total = sum(score_parts(evidence, query.weights, profiles, to_us(now)).values())
        best = np.argsort(-np.asarray(total), kind="stable")[: max(LATE_COUNT, query.top_k)]
        best = best[np.isin(evidence.profiles[best], [one for one in Profile if profiles[one].late is not None])]
        if not len(best):
            return evidence
        found = _try(LATE, lambda: self._index.late_scores(probe, candidates.rows[best], candidates.passage_ids[best]))
        if found is None:
            return evidence
        late = np.full(len(evidence.rows), -1.0)
        late[best] = found
        return replace(evidence, late=late)

    def _judgement(self, found: Candidates, evidence: Evidence, probe: Probe) -> Judgement:
        known = None if probe.words is None else found.known
        spoken = Spoken(found.speakers, found.named, known, found.rarest, found.count, found.lacking)
        return judge(signals_of(evidence, spoken, self._scoring.profiles), self._scoring.coefficients)

    @staticmethod
    def _degraded(query: SearchQuery, probe: Probe) -> tuple[str, ...]:
        missing = [VECTOR] if probe.vector is None and not query.words_only else []
        return tuple(missing + ([LEXICAL] if query.hybrid and probe.words is None else []))


def _word_around(text: str, start: int, end: int) -> str:
    """Return the word of letters and digits that a token is a part of."""
    while start and text[start - 1].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum():
        end += 1
    return text[start:end]


def _read(query: SearchQuery) -> str:
    """Return the start of the query: a long pasted text would take seconds."""
    return query.text[:QUESTION_CHARS]


def _is_of(time: TimeIntent, query: SearchQuery, found: Candidates, best: Ranked) -> bool:
    """Return whether the best hit is in the time that the query names."""
    if time.asked is not None and (query.filters.since, query.filters.until) != (None, None):
        return True
    return bool(time.within(found.occurred_us[[best.index]])[0])


def _of_all(ranked: Ranked, chosen: NDArray[np.int64]) -> Ranked:
    """Translate indexes among the chosen candidates to indexes among all of them."""
    passages = tuple((int(chosen[index]), score) for index, score in ranked.passages)
    return replace(ranked, index=int(chosen[ranked.index]), passages=passages)


def _attempts(probe: Probe) -> Iterator[Probe]:
    """Yield the probe with both arms, then with each alone."""
    if probe.vector is not None and probe.words is not None:
        yield probe
    if probe.vector is not None:
        yield replace(probe, words=None)
    if probe.words is not None:
        yield replace(probe, vector=None)


def _try(arm: str, run: Callable[[], T]) -> T | None:
    """The boundary of an arm: its failure is logged and the search continues without it."""
    try:
        return run()
    except DeadlineExceeded:
        raise
    except Exception:
        log.exception("search_arm_failed", arm=arm)
        return None


def _evidence(found: Candidates, tagged: Tagged | None, *, dense_counts: bool) -> Evidence:
    return Evidence(
        rows=found.rows,
        owner_ids=found.owner_ids,
        lexical=found.lexical,
        dense=found.dense * dense_counts,
        similarity=found.similarity,
        profiles=found.profiles,
        occurred_us=found.occurred_us,
        fields=found.fields,
        greatest_lexical=found.greatest_lexical,
        dense_counts=dense_counts,
        of_fact=of_fact if (of_fact := found.fact_ids != 0).any() else None,
        tagged=None if tagged is None else np.isin(found.owner_ids, list(tagged(found.owner_ids.tolist()))),
    )
