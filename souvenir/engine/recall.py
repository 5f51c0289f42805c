"""The path of a search: embed and analyse the query, run both arms, rank what they found.

No language model takes part. An arm that fails is logged and named in the answer; the other one answers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from threading import Semaphore
from typing import TypeVar

import numpy as np
import structlog
from numpy.typing import NDArray

from souvenir.deadlines import time_left
from souvenir.engine.preparation import PassageAnalyser
from souvenir.errors import Overloaded, SearchUnavailable
from souvenir.index.namespace import Candidates, Moment, NamespaceIndex, Probe
from souvenir.moments import to_us
from souvenir.observation.instruments import Instruments, Stage
from souvenir.passages import FieldScores, PassageColumns
from souvenir.search.fields import Question, field_scores
from souvenir.search.framing import without_framing
from souvenir.search.profiles import LEGIBLE_SHARE
from souvenir.search.ranking import Evidence, Ranked, rank_by_similarity, rank_owners
from souvenir.search.relevance import NOTHING_FOUND, Judgement, Spoken, judge, signals_of
from souvenir.search.time_intent import TimeIntent, time_intent
from souvenir.types import (
    ArmCandidate,
    Embedder,
    FoundFact,
    Fusion,
    Hit,
    Memory,
    Profile,
    ScoreParts,
    SearchQuery,
    SearchResult,
    TimeUse,
)

T = TypeVar("T")

Tagged = Callable[[Sequence[int]], Collection[int]]
"""Those of some owners that have a tag which a search names."""

CANDIDATE_COUNT = 256
"""Passages that each arm hands to the ranking: the full ranking's first ten are among them (benchmarks/engine)."""

FACT_SHARE = 0.5
"""Of its memory's best passage: what scores less of the same memory was not what was looked for."""

FACTS_SHOWN = 5
"""Of one memory; a model splits a memory into no more."""

QUESTION_CHARS = 2_000
"""Of a longer question the beginning is read: some windows of the model, and a tenth of a second."""

SLOT_WAIT_S = 30.0
"""A search waits this long at most for its turn at the arrays."""

VECTOR, LEXICAL = "vector", "lexical"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """A ranking, before the memories themselves were read.

    :param legible: Whether the embedding model can make something of the question's words.
    :param judgement: How likely it is that what was found answers the question.
    """

    query: SearchQuery
    candidates: Candidates
    ranked: Sequence[Ranked]
    degraded: tuple[str, ...]
    legible: bool
    judgement: Judgement
    time: TimeUse | None = None

    @property
    def owner_ids(self) -> list[int]:
        return [ranked.owner_id for ranked in self.ranked]

    def result(self, memories: Mapping[int, Memory]) -> SearchResult:
        """The answer. A memory that was deleted since it was ranked is left out."""
        hits = tuple(
            Hit(
                memories[ranked.owner_id],
                ranked.score,
                self.score_parts(ranked),
                self._facts(ranked, memories[ranked.owner_id]),
            )
            for ranked in self.ranked
            if ranked.owner_id in memories
        )
        judgement = self.judgement if hits else NOTHING_FOUND
        # As long as a classic fusion would take them.
        vector, lexical = self.arms(3 * self.query.top_k) if self.query.explain else ((), ())
        return SearchResult(
            query=self.query.text,
            hits=hits,
            degraded=self.degraded,
            relevance=judgement.relevance,
            evidence=judgement.evidence,
            signals=judgement.signals,
            candidates_considered=len(self.candidates.rows),
            vector_candidates=vector,
            lexical_candidates=lexical,
            filtered_by_source=self.candidates.excluded,
            repairs=self.candidates.repairs,
            time=self.time,
        )

    def _facts(self, ranked: Ranked, memory: Memory) -> tuple[FoundFact, ...]:
        """The facts of a memory that were found, best first; by its text the one that says just the same."""
        if not memory.facts or not ranked.passages:
            return ()
        facts = {fact.id: fact for fact in memory.facts}
        whole = next((fact for fact in memory.facts if fact.text == memory.text), None)
        least = max(FACT_SHARE * ranked.passages[0][1], 0.0)
        found: dict[int, FoundFact] = {}
        for index, score in ranked.passages:
            fact = facts.get(fact_id) if (fact_id := int(self.candidates.fact_ids[index])) else whole
            if fact is not None and score > least:
                found.setdefault(fact.id, FoundFact(fact, score))
        return tuple(found.values())[:FACTS_SHOWN]

    def arms(self, count: int) -> tuple[tuple[ArmCandidate, ...], tuple[ArmCandidate, ...]]:
        """What each arm ranks first by itself: the vectors', and the words'."""
        dense = self.candidates.dense if self.query.hybrid else self.candidates.similarity
        return self._arm(dense, count), self._arm(self.candidates.lexical, count)

    def _arm(self, scores: NDArray[np.float64], count: int) -> tuple[ArmCandidate, ...]:
        matched = scores > 0
        best: dict[int, float] = {}
        for owner, score in zip(self.candidates.owner_ids[matched].tolist(), scores[matched].tolist(), strict=True):
            best[owner] = max(score, best.get(owner, score))
        first = sorted(best.items(), key=lambda item: (-item[1], item[0]))[:count]
        return tuple(ArmCandidate(owner, score) for owner, score in first)

    def score_parts(self, ranked: Ranked) -> ScoreParts:
        found, index = self.candidates, ranked.index
        return ScoreParts(
            lexical=float(found.lexical[index]),
            dense=float(found.dense[index]),
            similarity=float(found.similarity[index]),
            lexical_rank=ranked.lexical_rank,
            vector_rank=ranked.vector_rank,
            rrf_score=ranked.rrf_score,
            parts=ranked.parts,
            profile=Profile(int(found.profiles[index])),
            passage_id=int(found.passage_ids[index]),
            terms=found.terms[index] if found.terms else (),
            rerank_score=ranked.rerank_score,
        )


class Recall:
    """Searches one namespace's index.

    :param slots: Turns at the arrays, one a core, shared by all searches. More at once are no faster, since they
        share the interpreter, and everything else in the process would wait for them.
    """

    def __init__(
        self,
        index: NamespaceIndex,
        embedder: Embedder,
        analyser: PassageAnalyser,
        fusion: Fusion,
        slots: Semaphore,
        instruments: Instruments,
    ) -> None:
        self._index = index
        self._embedder = embedder
        self._analyser = analyser
        self._fusion = fusion
        self._slots = slots
        self._instruments = instruments

    def find(
        self,
        query: SearchQuery,
        owner_ids: Sequence[int] | None,
        now: datetime,
        moment: Moment | None = None,
        tagged: Tagged | None = None,
    ) -> Found:
        """Rank the namespace's owners for a query.

        :param owner_ids: The owners that may be found, if filters outside of the index chose them.
        :param moment: What stood at the moment that is searched; None: the present.
        :param tagged: Which of some owners have a tag that the search names; None: none has.
        :raises SearchUnavailable: If no arm can run.
        :raises Overloaded: If too many searches go before this one.
        :raises DeadlineExceeded: If nobody waits for it any more.
        """
        intent, time = time_intent(_read(query), now) if query.auto_intent else None, None
        if intent is not None:
            query, time = intent.applied_to(query)
        with self._instruments.stage(Stage.SEARCH_EMBED):
            probe = replace(self._probe(query, owner_ids, intent), moment=moment)
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
            with self._instruments.stage(Stage.SEARCH_INDEX):
                candidates, probe = self._candidates(probe)
            with self._instruments.stage(Stage.SEARCH_RANK):
                evidence = _evidence(candidates, tagged, dense_counts=probe.vector is not None and legible)
                ranked = self._rank(query, evidence, now, with_vector=probe.vector is not None)
            if len(ranked) >= query.top_k or candidates.complete:
                degraded = self._degraded(query, probe)
                for arm in degraded:
                    self._instruments.degraded(arm)
                judgement = self._judgement(candidates, evidence, probe) if ranked else NOTHING_FOUND
                if time is not None and time.only and ranked and _is_of(time, query, candidates, ranked[0]):
                    judgement = judgement.of_the_time()
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
            centred=query.hybrid,
            candidate_count=CANDIDATE_COUNT,
            explain=query.explain,
            unframed=unframed,
            fields=self._fields(query, time) if query.hybrid else None,
        )

    def _fields(self, query: SearchQuery, time: TimeIntent | None) -> Callable[[PassageColumns], FieldScores]:
        question = Question.of(_read(query), role=query.weights.role, time=time)
        return partial(field_scores, question, profiles=self._analyser.profiles)

    def _candidates(self, probe: Probe) -> tuple[Candidates, Probe]:
        """What the arms find, and the probe with the arms that could run."""
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
                profiles=self._analyser.profiles,
                fusion=self._fusion,
                now_us=to_us(now),
                top_k=query.top_k,
            )
        return ranked if chosen is None else [_of_all(one, chosen) for one in ranked]

    def _judgement(self, found: Candidates, evidence: Evidence, probe: Probe) -> Judgement:
        spoken = Spoken(found.speakers, found.named, None if probe.words is None else found.known, found.rarest)
        return judge(signals_of(evidence, spoken, self._analyser.profiles))

    @staticmethod
    def _degraded(query: SearchQuery, probe: Probe) -> tuple[str, ...]:
        missing = [VECTOR] if probe.vector is None and not query.words_only else []
        return tuple(missing + ([LEXICAL] if query.hybrid and probe.words is None else []))


def _read(query: SearchQuery) -> str:
    """As much of a question as is read: a text that was pasted whole would take seconds."""
    return query.text[:QUESTION_CHARS]


def _is_of(time: TimeIntent, query: SearchQuery, found: Candidates, best: Ranked) -> bool:
    """Whether the best hit is of the time that the question names."""
    if time.asked is not None and (query.filters.since, query.filters.until) != (None, None):
        return True
    return bool(time.within(found.occurred_us[[best.index]])[0])


def _of_all(ranked: Ranked, chosen: NDArray[np.int64]) -> Ranked:
    """One that was ranked among the chosen candidates, with its places among all of them."""
    passages = tuple((int(chosen[index]), score) for index, score in ranked.passages)
    return replace(ranked, index=int(chosen[ranked.index]), passages=passages)


def _attempts(probe: Probe) -> Iterator[Probe]:
    """The probe with both arms, then with either alone."""
    if probe.vector is not None and probe.words is not None:
        yield probe
    if probe.vector is not None:
        yield replace(probe, words=None)
    if probe.words is not None:
        yield replace(probe, vector=None)


def _try(arm: str, run: Callable[[], T]) -> T | None:
    """An arm's boundary: its failure is logged and the search goes on without it."""
    try:
        return run()
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
        dense_counts=dense_counts,
        of_fact=of_fact if (of_fact := found.fact_ids != 0).any() else None,
        tagged=None if tagged is None else np.isin(found.owner_ids, list(tagged(found.owner_ids.tolist()))),
    )
