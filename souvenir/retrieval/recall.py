"""The search of one namespace's index: embed and analyse the query, run both arms, rank the results and judge them.

No language model is involved. An arm that fails is logged and reported in the result; the other one answers alone. So
does the words' arm if the answer is due before the query is embedded (`souvenir.core.concurrency.answer_due`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from threading import Semaphore
from time import perf_counter
from typing import TypeVar

import numpy as np
import structlog
from numpy.typing import NDArray

from souvenir.core.concurrency import deadline, left_until_due, require_time, time_left
from souvenir.core.errors import DeadlineExceeded, Overloaded, SearchUnavailable
from souvenir.core.passages import FieldScores, PassageColumns
from souvenir.core.telemetry import Instruments, Stage
from souvenir.core.timestamps import to_us
from souvenir.core.types import (
    Embedder,
    Fusion,
    Profile,
    SearchQuery,
)
from souvenir.index.candidates import ArmSeconds, Candidates, PastState, Probe
from souvenir.index.late_interaction import LateQuery
from souvenir.index.namespace import NamespaceIndex
from souvenir.retrieval.fields import Question, field_scores
from souvenir.retrieval.preparation import PassageAnalyser
from souvenir.retrieval.probability import probabilities
from souvenir.retrieval.profiles import LEGIBLE_SHARE
from souvenir.retrieval.query_framing import without_framing
from souvenir.retrieval.ranking import (
    PROFILES_IN_ORDER,
    Evidence,
    Ranked,
    rank_by_similarity,
    rank_owners,
    score_terms,
)
from souvenir.retrieval.relevance import NOTHING_FOUND, Found, Judgement, Spoken, judge, names_in, signals_of
from souvenir.retrieval.scoring import Scoring
from souvenir.retrieval.time_intent import TimeIntent, time_intent

T = TypeVar("T")

Tagged = Callable[[Sequence[int]], Collection[int]]
"""Returns those owners that have a tag named by the search."""

Balances = Callable[[Sequence[int]], Mapping[int, float]]
"""Returns the balance of feedback of those owners that have any."""

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

SHARE_FOR_EMBEDDING = 0.5
"""Maximum wait for the vector of the query, as a share of the time until the answer is due."""

FINISH_S = 0.005
"""Expected duration of the steps after the ranking: reading the memories and sending the answer."""

MARGIN = 1.25
"""The time kept for a step, as a multiple of its expected duration (`souvenir.core.concurrency.Pace`)."""

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
        self._pace = index.pace
        self._embedder = embedder
        self._scoring = scoring
        self._analyser = analyser
        self._fusion = fusion
        self._slots = slots
        self._instruments = instruments
        self._omitted: set[str] = set()

    def find(
        self,
        query: SearchQuery,
        owner_ids: Sequence[int] | None,
        now: datetime,
        past: PastState | None = None,
        tagged: Tagged | None = None,
        balances: Balances | None = None,
    ) -> Found:
        """Rank the namespace's owners for a query.

        :param owner_ids: The allowed owners, if filters outside of the index selected them.
        :param past: The past state that is searched; None: the present.
        :param tagged: Returns the owners with a tag named by the search; None: there are none.
        :param balances: Returns the balances of feedback; None: it does not count.
        :raises SearchUnavailable: If no arm can run.
        :raises Overloaded: If too many searches are waiting.
        :raises DeadlineExceeded: If the caller's deadline has passed.
        """
        self._omitted.clear()
        intent, time = time_intent(_read(query), now) if query.auto_intent else None, None
        if intent is not None:
            query, time = intent.applied_to(query)
        with self._instruments.stage(Stage.SEARCH_EMBED):
            probe = replace(self._probe(query, owner_ids, intent), past=past)
        asked_s = perf_counter()
        with self._instruments.stage(Stage.SEARCH_QUEUE):
            if not self._slots.acquire(timeout=time_left(SLOT_WAIT_S)):
                raise Overloaded("Too many searches are waiting; try again in a moment")
        try:
            self._pace.waited(perf_counter() - asked_s)
            if probe.words is not None and probe.vector is not None and self._left_with_scan_s() < 0:
                self._omitted.add(VECTOR)
                self._pace.omitted_scan()
                probe = replace(probe, vector=None, unframed=None, late=None)
            return replace(self._find(query, probe, now, intent, tagged, balances), time=time)
        finally:
            self._slots.release()

    def _find(
        self,
        query: SearchQuery,
        probe: Probe,
        now: datetime,
        time: TimeIntent | None,
        tagged: Tagged | None,
        balances: Balances | None,
    ) -> Found:
        known = _try(VECTOR, lambda: self._embedder.known_share(_read(query))) if probe.vector is not None else None
        legible = known is None or known >= LEGIBLE_SHARE
        # Without the words, the meaning of a query that the model cannot read is better than no order.
        counts = legible or probe.words is None or query.weights.vector >= 1.0
        while True:
            require_time()
            began_s = perf_counter()
            candidates, probe = self._candidates(probe)
            self._note(candidates.seconds)
            with self._instruments.stage(Stage.SEARCH_RANK):
                evidence = _evidence(candidates, tagged, balances, dense_counts=probe.vector is not None and counts)
                near = self._near(query, evidence, probe)
                if candidates.complete or evidence.owner_count(near) >= query.top_k:
                    late_from_s = perf_counter()
                    evidence = self._with_late(evidence, candidates, query, probe, now)
                    late_to_s = perf_counter()
                    found = self._found(query, candidates, near, evidence, probe, now, time, legible=legible)
                    self._note_pace(candidates, evidence, probe, (began_s, late_from_s, late_to_s, perf_counter()))
                    return found
            probe = replace(probe, candidate_count=4 * probe.candidate_count)

    def _probe(self, query: SearchQuery, owner_ids: Sequence[int] | None, time: TimeIntent | None) -> Probe:
        text = _read(query)
        vector = unframed = words = None
        if query.hybrid:
            looked_for = text if time is None or time.words is None else time.words
            words = _try(LEXICAL, lambda: self._analyser.analyser.query_words(looked_for))
        if not query.words_only:
            # The only arm of a search without words is not left out.
            embedded = self._in_time if query.hybrid else _try
            vector = embedded(VECTOR, lambda: self._embedder.embed_query(text))
        about = without_framing(text) if vector is not None and self._index.holds(Profile.CHAT) else text
        if query.hybrid and about != text:
            unframed = self._in_time(VECTOR, lambda: self._embedder.embed_query(about))
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

    def _in_time(self, arm: str, run: Callable[[], T]) -> T | None:
        """As `_try`; None also if it is not done in its share of the time until the answer is due."""
        left_s = left_until_due()
        if left_s == math.inf:
            return _try(arm, run)
        try:
            left_with_slot_s = self._left_with_scan_s() - MARGIN * self._pace.slot_s
            if left_with_slot_s < 0:
                self._pace.omitted_scan()
            with deadline(max(0.0, min(SHARE_FOR_EMBEDDING * left_s, left_with_slot_s))):
                return _try(arm, run)
        except DeadlineExceeded:
            require_time()
            self._omitted.add(arm)
            return None

    def _left_with_scan_s(self) -> float:
        """Return the seconds until the answer is due, less the expected duration of all steps but late interaction."""
        return left_until_due() - MARGIN * (self._pace.scan_s + self._pace.rest_s) - FINISH_S

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

    def _note(self, seconds: ArmSeconds) -> None:
        self._instruments.took(Stage.SEARCH_QUEUE, seconds.waited)
        self._instruments.took(Stage.SEARCH_WORDS, seconds.words)
        self._instruments.took(Stage.SEARCH_VECTORS, seconds.vectors)

    def _note_pace(
        self, candidates: Candidates, evidence: Evidence, probe: Probe, times_s: tuple[float, float, float, float]
    ) -> None:
        """:param times_s: Begin of the search of the index, begin and end of late interaction, end of the ranking."""
        began_s, late_from_s, late_to_s, ended_s = times_s
        scan_s = candidates.seconds.vectors
        self._pace.searched(
            scan_s=None if probe.vector is None else scan_s,
            late_s=None if evidence.late is None else late_to_s - late_from_s,
            rank_s=ended_s - late_to_s,
            # A wait for a writer is rare, and no reason to expect another.
            rest_s=late_from_s - began_s - scan_s - candidates.seconds.waited + ended_s - late_to_s,
        )

    def _found(
        self,
        query: SearchQuery,
        candidates: Candidates,
        near: NDArray[np.bool_] | None,
        evidence: Evidence,
        probe: Probe,
        now: datetime,
        time: TimeIntent | None,
        *,
        legible: bool,
    ) -> Found:
        """Judge the passages and rank them by their owners; those below the minimum score are left out.

        :param near: Mask of the passages that may be ranked, (n,); None: all.
        """
        degraded = self._degraded(query, probe)
        if not len(evidence.rows) or (near is not None and not near.any()):
            return Found(query, candidates, (), degraded, legible, NOTHING_FOUND, None)
        judgement = self._judgement(candidates, evidence if legible else _unread(evidence), probe)
        scoring = self._scoring
        if time is not None and time.only:
            [best] = self._rank(replace(query, top_k=1), evidence, near, now, None)
            if _is_of(time, query, candidates, best):
                judgement = judgement.of_the_time(scoring.coefficients)
        found = probabilities(
            evidence, scoring.profiles, scoring.calibrations, judgement.relevance, hybrid=query.hybrid
        )
        if query.min_score:
            likely = found.owners >= query.min_score
            near = likely if near is None else near & likely
        ranked = self._rank(query, evidence, near, now, found.owners)
        judgement = judgement if ranked else NOTHING_FOUND
        return Found(query, candidates, ranked, degraded, legible, judgement, found)

    @staticmethod
    def _near(query: SearchQuery, evidence: Evidence, probe: Probe) -> NDArray[np.bool_] | None:
        """Return a mask of the passages that the threshold allows, (n,): with words, also all that these found.

        None: there is no threshold.
        """
        if query.threshold is None or probe.vector is None:
            return None
        near = evidence.similarity >= query.threshold
        return near | (evidence.lexical > 0) if query.hybrid else near

    def _rank(
        self,
        query: SearchQuery,
        evidence: Evidence,
        allowed: NDArray[np.bool_] | None,
        now: datetime,
        likely: NDArray[np.float64] | None,
    ) -> Sequence[Ranked]:
        """:param likely: The probability of each passage's owner, (n,), if it is known yet."""
        chosen = None if allowed is None else allowed.nonzero()[0]
        if chosen is not None:
            evidence, likely = evidence.of(chosen), None if likely is None else likely[chosen]
        if not query.hybrid:
            ranked = rank_by_similarity(evidence, top_k=query.top_k, likely=likely)
        else:
            ranked = rank_owners(
                evidence,
                weights=query.weights,
                profiles=self._scoring.profiles,
                fusion=self._fusion,
                now_us=to_us(now),
                top_k=query.top_k,
                likely=likely,
            )
        return ranked if chosen is None else [_of_all(one, chosen) for one in ranked]

    def _with_late(
        self, evidence: Evidence, candidates: Candidates, query: SearchQuery, probe: Probe, now: datetime
    ) -> Evidence:
        """Add the late interaction of the best passages, if it takes part in this search."""
        sums = query.hybrid and self._fusion is Fusion.SUM and query.weights.vector > 0
        if not sums or probe.late is None or not evidence.dense_counts:
            return evidence
        profiles = self._scoring.profiles
        total = score_terms(evidence, query.weights, profiles, to_us(now)).total
        best = (-total).argsort(kind="stable")[: max(LATE_COUNT, query.top_k)]
        has_late = np.array([profiles[one].late is not None for one in PROFILES_IN_ORDER])
        best = best[has_late[evidence.profiles[best]]]
        if not len(best):
            return evidence
        if left_until_due() < MARGIN * (self._pace.late_s + self._pace.rank_s) + FINISH_S:
            self._omitted.add(LATE)
            self._pace.omitted_late()
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

    def _degraded(self, query: SearchQuery, probe: Probe) -> tuple[str, ...]:
        """Count and return the parts that could not run, or not in time."""
        missing = [VECTOR] if probe.vector is None and not query.words_only else []
        missing += [LEXICAL] if query.hybrid and probe.words is None else []
        missing += [LATE] if LATE in self._omitted else []
        for arm in missing:
            (self._instruments.omitted if arm in self._omitted else self._instruments.degraded)(arm)
        return tuple(missing)


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
    return bool(time.within(found.occurred_us[[best.at]])[0])


def _of_all(ranked: Ranked, chosen: NDArray[np.int64]) -> Ranked:
    """Translate indexes among the chosen candidates to indexes among all of them."""
    passages = tuple((int(chosen[index]), score) for index, score in ranked.passages)
    return ranked._replace(at=int(chosen[ranked.at]), passages=passages)


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


def _unread(evidence: Evidence) -> Evidence:
    """Return the evidence without that of the vectors, by which an illegible query is not judged."""
    return replace(evidence, dense=np.zeros(len(evidence.rows)), dense_counts=False, late=None)


def _evidence(found: Candidates, tagged: Tagged | None, balances: Balances | None, *, dense_counts: bool) -> Evidence:
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
        balances=None if balances is None else _balances(found.owner_ids.tolist(), balances),
    )


def _balances(owner_ids: Sequence[int], balances: Balances) -> NDArray[np.float64] | None:
    """Return the balance of feedback of each owner, (n,); None if none of them has any."""
    known = balances(owner_ids)
    return np.array([known.get(owner_id, 0.0) for owner_id in owner_ids]) if known else None
