"""The result of a search, and how likely it answers the query.

Relevance is a hint next to the hits and removes none. If the best hit is a short memory, it is one logistic function
of signals; otherwise the product of two: is the subject of the query mentioned at all, and if so, do the hits answer
the query, or are they about another subject? Pure arithmetic over the candidates of a search.

The coefficients come from `python -m benchmarks.evidence --data FOLDER`, which fits them on labelled conversations and
evaluates them on others (figures in docs/retrieval.md). The cosines are those of all-MiniLM-L6-v2; other models have
other scales. No signal separates an unanswered query about a stored subject from an answered one: relevance says that
the subject is mentioned, not that the query is answered.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from souvenir.core.types import (
    ArmCandidate,
    EvidenceLevel,
    FoundFact,
    Hit,
    LinkUse,
    Memory,
    Profile,
    ScoreParts,
    SearchQuery,
    SearchResult,
    TimeUse,
)
from souvenir.index.analyser import STOP_WORDS
from souvenir.index.candidates import Candidates
from souvenir.retrieval.probability import Probabilities
from souvenir.retrieval.profiles import Profiles
from souvenir.retrieval.ranking import MEASURED, PROFILES_IN_ORDER, Evidence, Ranked, score_terms

STRONG_RELEVANCE, WEAK_RELEVANCE = 0.6, 0.25
"""Minimum relevance for strong and for weak evidence; below, there is none."""

FACT_SHARE = 0.5
"""Share of the score of a memory's best passage below which its facts do not count as found."""

FACTS_SHOWN = 5
"""Maximum number of facts shown per memory; a model splits a memory into no more."""

TURNS_COMPARED = 3
"""Number of turns per speaker: a single turn may contain the words by chance."""

COSINE, UNHEARD, COVERED, GAP = "cosine", "unheard", "covered", "gap"
HIT, UNKNOWN, OTHER_NAME = "hit", "unknown", "other_name"

SMALL_STORE = 20
"""Up to so many passages, a word that none contains means nothing: most questions about them use other words."""

FUNCTION_WORDS = STOP_WORDS | frozenset("am been being can could may might must shall should whose".split())
"""Words that are no names where they are capitalised."""

_CAPITALISED = re.compile(r"(?=[^\W\d_])\w[\w'’-]*")

Floats = NDArray[np.float64]
Signals = Mapping[str, float]
"""Signals of an answer, computed without reading it; a signal that does not exist is omitted.

`cosine`: the greatest one with the query; omitted without a meaningful vector.
`unheard`: the share of the query's words, weighted by rarity, that occur nowhere, times the weight of such a word,
which is small in a small store; omitted without words.
`covered`: the greatest L(j): how much of the query the best passage contains.
`gap`: the lead of the only speaker that the query names over the best other one; omitted without both.

If the best hit is a short memory, `covered` and:

`hit`: the cosine of the best hit with the query; omitted without a meaningful vector.
`unknown`: the share of the query's words, weighted by rarity, that occur nowhere, times ``ln(N / 20)``, at least 0, for
N passages; omitted without words, like `covered` and `other_name`.
`other_name`: the share of the query's names that many passages contain and the best hit does not.
"""


@dataclass(frozen=True, slots=True)
class Spoken:
    """The words and names of a query in the n candidates, and the speakers of those as codes (n,), where 0 means none.

    :param named: The only speaker that it names; None: it names none, or several.
    :param known: The share of its words that occur somewhere; None: no words were used, or there are only names.
    :param rarest: The idf of a word that occurs nowhere. :param count: The number of visible passages.
    :param lacking: The share of its names that many passages contain and each candidate does not, (n,).
    """

    speakers: NDArray[np.int32]
    named: int | None
    known: float | None
    rarest: float
    count: int
    lacking: Floats


@dataclass(frozen=True, slots=True)
class Logistic:
    """``1 / (1 + exp(-(bias + sum of weight * signal)))``."""

    bias: float
    weights: Mapping[str, float] = field(default_factory=dict)

    def __call__(self, signals: Signals) -> float:
        exponent = self.bias + sum([weight * signals[name] for name, weight in self.weights.items()])
        return 1.0 / (1.0 + math.exp(-max(-500.0, min(500.0, exponent))))


@dataclass(frozen=True, slots=True)
class Coefficients:
    """One function for each combination of available signals.

    :param spoken_of: Whether the subject is mentioned; also without a vector, and without words.
    :param answered: Whether a mentioned subject is answered; also with one of several speakers named.
    :param short: Both in one, if the best hit is a short memory; also without a vector, and without words.
    """

    spoken_of: Logistic
    spoken_of_by_words: Logistic
    spoken_of_by_meaning: Logistic
    answered: Logistic
    answered_by_the_named: Logistic
    short: Logistic
    short_by_words: Logistic
    short_by_meaning: Logistic


COEFFICIENTS = Coefficients(
    spoken_of=Logistic(-9.091, {COSINE: 25.641, UNHEARD: -0.749}),
    spoken_of_by_words=Logistic(-0.445, {UNHEARD: -0.463, COVERED: 7.572}),
    spoken_of_by_meaning=Logistic(-11.062, {COSINE: 25.9}),
    answered=Logistic(2.426),
    answered_by_the_named=Logistic(0.208, {GAP: 14.362}),
    short=Logistic(-1.961, {HIT: 6.522, UNKNOWN: -1.071, OTHER_NAME: -3.335}),
    short_by_words=Logistic(0.424, {UNKNOWN: -0.706, COVERED: 2.444, OTHER_NAME: -2.366}),
    short_by_meaning=Logistic(-3.1, {HIT: 6.538}),
)
"""Fitted by that command on 2026-11-23: LoCoMo's conversations 26, 30, 41 and 42 (turns and facts), BEAM 100k's chats 1
to 8, and plain_questions."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """How likely it is that the best hits answer the query, and the signals for it."""

    relevance: float = 0.0
    evidence: EvidenceLevel = EvidenceLevel.NONE
    signals: Signals = field(default_factory=dict)

    def of_the_time(self, coefficients: Coefficients = COEFFICIENTS) -> Judgement:
        """Return the judgement of a query for nothing but a time with messages: its subject is mentioned."""
        relevance = coefficients.answered(self.signals)
        return Judgement(relevance, evidence_of(relevance), self.signals)


NOTHING_FOUND = Judgement()


def signals_of(evidence: Evidence, spoken: Spoken, profiles: Profiles) -> dict[str, float]:
    """Compute the signals from the candidates under the measured weights, regardless of the caller's.

    :param evidence: Of at least one candidate.
    """
    if not evidence.dense_counts and spoken.known is None:
        return {}
    best = int(score_terms(evidence, MEASURED, profiles, now_us=0).total.argmax())
    if evidence.profiles[best] == Profile.FACT:
        return _signals_of_a_short_memory(evidence, spoken, best)
    found: dict[str, float] = {}
    if evidence.dense_counts:
        found[COSINE] = float(evidence.similarity.max())
    if spoken.known is not None:
        found[UNHEARD] = (1.0 - spoken.known) * spoken.rarest
        found[COVERED] = float(evidence.lexical.max())
        if spoken.named is not None:
            alike = _alike(evidence, profiles)
            gap = _gap(best_means(alike, spoken.speakers), spoken.named)
            found |= {} if gap is None else {GAP: gap}
    return found


def _alike(evidence: Evidence, profiles: Profiles) -> Floats:
    """Return the scores without what speakers differ in anyway, (n,).

    That is the term for being named, and late interaction: it scores the best passages only, mostly those of the named
    speaker (with it, the AUC of questions of others under the speakers' names is .79 instead of .84).
    """
    parts = score_terms(replace(evidence, late=None), MEASURED, profiles, now_us=0).parts
    return np.asarray(reduce(np.add, (values for name, values in parts.items() if name != "speaker")), dtype=np.float64)


def _signals_of_a_short_memory(evidence: Evidence, spoken: Spoken, best: int) -> dict[str, float]:
    found = {HIT: float(evidence.similarity[best])} if evidence.dense_counts else {}
    if spoken.known is None:
        return found
    of_best = evidence.owner_ids == evidence.owner_ids[best]
    return found | {
        UNKNOWN: (1.0 - spoken.known) * max(0.0, math.log(max(spoken.count, 1) / SMALL_STORE)),
        COVERED: float(evidence.lexical.max()),
        OTHER_NAME: float(spoken.lacking[of_best].min()),
    }


def names_in(query: str, terms_of: Callable[[str], Iterable[str]]) -> frozenset[str]:
    """Return the terms of the capitalised words of a query, without function words."""
    words = [word for word in _CAPITALISED.findall(query) if word[0].isupper()]
    names = [word for word in words if word.casefold().partition("'")[0].partition("’")[0] not in FUNCTION_WORDS]
    return frozenset([term for name in names for term in terms_of(name)])


def judge(signals: Signals, coefficients: Coefficients = COEFFICIENTS) -> Judgement:
    if not signals.keys() & {HIT, COSINE} and not signals.get(COVERED):
        relevance = 0.0  # no vector that can be read, and no word of the query anywhere
    elif HIT in signals or OTHER_NAME in signals:
        relevance = _short(signals, coefficients)(signals)
    elif COSINE in signals or UNHEARD in signals:
        relevance = _spoken_of(signals, coefficients)(signals) * _answered(signals, coefficients)(signals)
    else:
        relevance = 0.0
    return Judgement(relevance, evidence_of(relevance), signals)


def evidence_of(relevance: float) -> EvidenceLevel:
    if relevance >= STRONG_RELEVANCE:
        return EvidenceLevel.STRONG
    return EvidenceLevel.WEAK if relevance >= WEAK_RELEVANCE else EvidenceLevel.NONE


def _spoken_of(signals: Signals, coefficients: Coefficients) -> Logistic:
    if UNHEARD not in signals:
        return coefficients.spoken_of_by_meaning
    return coefficients.spoken_of if COSINE in signals else coefficients.spoken_of_by_words


def _answered(signals: Signals, coefficients: Coefficients) -> Logistic:
    return coefficients.answered_by_the_named if GAP in signals else coefficients.answered


def _short(signals: Signals, coefficients: Coefficients) -> Logistic:
    if OTHER_NAME not in signals:
        return coefficients.short_by_meaning
    return coefficients.short if HIT in signals else coefficients.short_by_words


def _gap(means: Mapping[int, float], named: int) -> float | None:
    others = [mean for speaker, mean in means.items() if speaker not in (0, named)]
    return means.get(named, 0.0) - max(others) if others else None


def best_means(scores: Floats, speakers: NDArray[np.int32]) -> dict[int, float]:
    """Return the mean of each speaker's `TURNS_COMPARED` best scores, or of all if there are fewer."""
    order = np.lexsort((-scores, speakers))
    of = speakers[order]
    is_first = np.ones(len(of), dtype=np.bool_)
    is_first[1:] = of[1:] != of[:-1]
    starts = np.flatnonzero(is_first)
    group = np.cumsum(is_first) - 1
    best = np.arange(len(of)) - starts[group] < TURNS_COMPARED
    means = np.bincount(group[best], weights=scores[order][best]) / np.bincount(group[best])
    return dict(zip(of[starts].tolist(), means.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Found:
    """A ranking, before the memories themselves are read.

    :param legible: Whether the embedding model knows enough of the query's words.
    :param probabilities: Those of the candidates; None: there are none.
    :param judgement: How likely it is that the results answer the query.
    :param linked: The search that found those results that only links of users support; None: there are none.
    """

    query: SearchQuery
    candidates: Candidates
    ranked: Sequence[Ranked]
    degraded: tuple[str, ...]
    legible: bool
    judgement: Judgement
    probabilities: Probabilities | None
    time: TimeUse | None = None
    linked: Found | None = None
    links: LinkUse | None = None

    @property
    def owner_ids(self) -> list[int]:
        return [ranked.owner_id for ranked in self.ranked]

    @property
    def unheard(self) -> float:
        """The share of the query's words, weighted by rarity, that no passage contains."""
        return 0.0 if self.candidates.known is None else 1.0 - self.candidates.known

    def result(self, memories: Mapping[int, Memory]) -> SearchResult:
        """Return the search result. A memory that was deleted after the ranking is skipped."""
        hits = [self._hit(ranked, memories[ranked.owner_id]) for ranked in self.ranked if ranked.owner_id in memories]
        judgement = self.judgement if hits else NOTHING_FOUND
        # As many as a classic fusion would use.
        vector, lexical = self.arms(3 * self.query.top_k) if self.query.explain else ((), ())
        return SearchResult(
            query=self.query.text,
            hits=tuple(hits),
            degraded=self.degraded,
            relevance=judgement.relevance,
            evidence=judgement.evidence,
            signals=judgement.signals,
            candidates_considered=len(self.candidates.rows),
            vector_candidates=vector,
            lexical_candidates=lexical,
            filtered_by_source=self.candidates.excluded,
            repairs=self.candidates.repairs,
            unheard=self.unheard,
            time=self.time,
            links=self.links,
        )

    def _hit(self, ranked: Ranked, memory: Memory) -> Hit:
        # The search among whose candidates the result is.
        origin = self if self.linked is None or ranked.support is None or ranked.support.direct else self.linked
        facts = origin._facts(ranked, memory) if memory.facts else ()
        return Hit(memory, ranked.probability, origin.score_parts(ranked), facts, ranked.support)

    def _facts(self, ranked: Ranked, memory: Memory) -> tuple[FoundFact, ...]:
        """Return the found facts of a memory, best first; for its text, the fact that equals the text."""
        if not ranked.passages or self.probabilities is None:
            return ()
        facts = {fact.id: fact for fact in memory.facts}
        whole = next((fact for fact in memory.facts if fact.text == memory.text), None)
        least = max(FACT_SHARE * ranked.passages[0][1], 0.0)
        found: dict[int, FoundFact] = {}
        for index, score in ranked.passages:
            fact = facts.get(fact_id) if (fact_id := int(self.candidates.fact_ids[index])) else whole
            if fact is not None and score > least:
                most = min((one.score for one in found.values()), default=ranked.probability)
                found.setdefault(fact.id, FoundFact(fact, min(most, self.probabilities.passage(index))))
        return tuple(found.values())[:FACTS_SHOWN]

    def arms(self, count: int) -> tuple[tuple[ArmCandidate, ...], tuple[ArmCandidate, ...]]:
        """Return the first results of each arm alone: of the vectors, and of the words."""
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
        found, index = self.candidates, ranked.at
        return ScoreParts(
            raw_score=ranked.score,
            lexical=float(found.lexical[index]),
            dense=float(found.dense[index]),
            similarity=float(found.similarity[index]),
            lexical_rank=ranked.lexical_rank,
            vector_rank=ranked.vector_rank,
            rrf_score=ranked.rrf_score,
            parts=ranked.parts,
            profile=PROFILES_IN_ORDER[found.profiles[index]],
            passage_id=int(found.passage_ids[index]),
            terms=found.terms[index] if found.terms else (),
            rerank_score=ranked.rerank_score,
        )
