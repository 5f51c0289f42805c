"""Ranking: from a query and the evidence of both arms to ranked owners. Pure arithmetic over arrays.

`rank_owners` adds up the terms of a score, one row per candidate passage, each with the constants of its profile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from souvenir.core.passages import FieldScores
from souvenir.core.types import Fusion, LinkSupport, Profile, Weights
from souvenir.retrieval.profiles import Constants, Profiles

TAG_BOOST = 1.2
"""Factor on the score of a memory that has a tag named by the search."""

FACTS_SHARE = 0.25
"""A memory found by its text and by a fact scores the better of the two, plus this share of the other. Measured with
LoCoMo's observations and with sentences (benchmarks/facts); .5 finds less of the content of short memories."""

PASSAGES_KEPT = 32
"""Maximum number of passages kept per owner, best first, from which the found facts are determined."""

RRF_K = 60
"""Cormack et al. 2009: ranks near the top differ little in weight."""

CONFIDENCE_HALF_LIFE_DAYS = 90.0
DAY_US = 86_400_000_000

MEASURED = Weights()
"""The weights that the constants of relevance and probability are measured with."""

_VECTOR_SHARE = MEASURED.vector

PROFILES_IN_ORDER = tuple(sorted(Profile))

Floats = NDArray[np.float64]


class Terms(NamedTuple):
    """The terms of the sum by name, each of shape (n,), and the sum. Shared: the caller must not change them."""

    parts: Mapping[str, Floats]
    total: Floats


@dataclass(frozen=True)
class Evidence:
    """The evidence for n candidate passages, by ascending `rows`; every array has shape (n,).

    `lexical` is L(j) in [0, k1 + 1], `dense` the centred cosine, `similarity` the plain one; 0 for a passage that an
    arm did not match, and `dense` is 0 throughout where it does not count. `profiles` holds `Profile` values,
    `occurred_us` microseconds. `fields` are the field scores, by name. `tagged` marks passages whose owner has a tag
    named by the search; None: there are none. `balances` are those of feedback on the owners, in (-1, 1); None: it does
    not count. `of_fact` marks passages of facts; None: there are none.
    `greatest_lexical` is the greatest L(j) of all passages that the filters allow. `late` is the late interaction of
    the best passages, negative for the others; None: it takes no part.
    """

    rows: NDArray[np.int64]
    owner_ids: NDArray[np.int64]
    lexical: Floats
    dense: Floats
    similarity: Floats
    profiles: NDArray[np.int64]
    occurred_us: NDArray[np.int64]
    fields: FieldScores
    greatest_lexical: float
    dense_counts: bool = True
    tagged: NDArray[np.bool_] | None = None
    balances: Floats | None = None
    of_fact: NDArray[np.bool_] | None = None
    late: Floats | None = None
    untimed: dict[float, Terms] = field(default_factory=dict, init=False, repr=False, compare=False)
    """`score_terms` by `Weights.vector`, without times: ranking, relevance and probability need the same."""

    @cached_property
    def by_owner(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The passages by owner, then by row, (n,); where in them the passages of each owner begin, (m,)."""
        order = self.owner_ids.argsort(kind="stable")
        ids = self.owner_ids[order]
        is_first = np.empty(len(ids), dtype=np.bool_)
        is_first[:1] = True
        np.not_equal(ids[1:], ids[:-1], out=is_first[1:])
        return order, is_first.nonzero()[0]

    def of(self, chosen: NDArray[np.int64]) -> Evidence:
        """Return the evidence for a selection of the candidates."""
        return Evidence(
            rows=self.rows[chosen],
            owner_ids=self.owner_ids[chosen],
            lexical=self.lexical[chosen],
            dense=self.dense[chosen],
            similarity=self.similarity[chosen],
            profiles=self.profiles[chosen],
            occurred_us=self.occurred_us[chosen],
            fields={name: values[chosen] for name, values in self.fields.items()},
            greatest_lexical=self.greatest_lexical,
            dense_counts=self.dense_counts,
            tagged=None if self.tagged is None else self.tagged[chosen],
            balances=None if self.balances is None else self.balances[chosen],
            of_fact=None if self.of_fact is None else self.of_fact[chosen],
            late=None if self.late is None else self.late[chosen],
        )

    def owner_count(self, among: NDArray[np.bool_] | None) -> int:
        """Return the number of owners of the candidates, or of those that a mask (n,) selects."""
        return len(self.by_owner[1]) if among is None else len(np.unique(self.owner_ids[among]))

    def adjustments(self, scores: Floats, *, feedback: float) -> dict[str, Floats]:
        """Return the additional scores for tags and then for feedback; zero for scores below zero.

        :param feedback: The weight of feedback. A memory's score is multiplied by ``1 + feedback * balance``.
        """
        found: dict[str, Floats] = {}
        positive = np.maximum(scores, 0.0)
        if self.tagged is not None:
            found["tags"] = (TAG_BOOST - 1.0) * positive * self.tagged
            positive = positive + found["tags"]
        if self.balances is not None and feedback:
            found["feedback"] = feedback * self.balances * positive
        return found


class Ranked(NamedTuple):
    """One owner's best passage: where it is in the evidence, the score, the score's parts and the arms' ranks.

    `rerank_score` is a cross-encoder's raw score, if it scored the passage. `passages` are the owner's best passages
    with their scores, best first. `probability` is how likely it answers. `support` is that by links of users.
    """

    at: int
    owner_id: int
    score: float
    rrf_score: float
    parts: Mapping[str, float]
    lexical_rank: int | None
    vector_rank: int | None
    rerank_score: float | None = None
    passages: tuple[tuple[int, float], ...] = ()
    probability: float = 0.0
    support: LinkSupport | None = None


def half_life(age_us: NDArray[np.int64], half_life_days: float) -> Floats:
    """``0.5 ** (age / half-life)``; a negative age counts as zero."""
    return np.asarray(0.5 ** (np.maximum(age_us, 0) / (half_life_days * DAY_US)), dtype=np.float64)


def score_terms(evidence: Evidence, weights: Weights, profiles: Profiles, now_us: int) -> Terms:
    """Return the terms of the sum; those that do not depend on the time are kept.

    ``g L(j) + w_dense d(j)``, fields, and requested weights.

    g is 1, and less for profiles with `doubt_below` if no passage contains much of the query. Where late interaction
    takes part, it is one more term, and the other two have the weights for that.

    `weights.vector` shifts weight between the arms; at its default, the measured constants apply unchanged.

    :param profiles: The same for all calls with one evidence.
    """
    untimed = evidence.untimed.get(weights.vector)
    if untimed is None:
        parts = _untimed_parts(evidence, weights, profiles)
        untimed = evidence.untimed[weights.vector] = Terms(parts, reduce(np.add, parts.values()))
    if weights.recency or weights.confidence:
        timed = _timed_parts(evidence, weights, now_us)
        return Terms({**untimed.parts, **timed}, reduce(np.add, timed.values(), untimed.total))
    return untimed


def _untimed_parts(evidence: Evidence, weights: Weights, profiles: Profiles) -> dict[str, Floats]:
    lexical_share = (1.0 - weights.vector) / (1.0 - _VECTOR_SHARE)
    dense_share = weights.vector / _VECTOR_SHARE
    factors = np.array([_factors(profiles[profile], evidence) for profile in PROFILES_IN_ORDER], dtype=np.float64)
    lexical, dense, late, unrelated = factors.take(evidence.profiles, axis=0).T
    parts = {
        "lexical": lexical_share * lexical * evidence.lexical,
        "dense": dense_share * dense * evidence.dense,
        **{name: values.astype(np.float64) for name, values in evidence.fields.items()},
    }
    if evidence.late is not None:
        parts["late"] = dense_share * late * (evidence.late >= 0) * (evidence.late - unrelated)
    return parts


def _timed_parts(evidence: Evidence, weights: Weights, now_us: int) -> dict[str, Floats]:
    parts: dict[str, Floats] = {}
    age_us = now_us - evidence.occurred_us
    if weights.recency:
        parts["recency"] = weights.recency * half_life(age_us, weights.recency_half_life_days)
    if weights.confidence:
        parts["confidence"] = weights.confidence * half_life(age_us, CONFIDENCE_HALF_LIFE_DAYS)
    return parts


def _factors(constants: Constants, evidence: Evidence) -> tuple[float, float, float, float]:
    """Return the weights of L(j), d(j) and late interaction in a profile, and the latter of an unrelated passage."""
    doubt_below = constants.doubt_below
    trust = min(1.0, evidence.greatest_lexical / doubt_below) if doubt_below else 1.0
    if evidence.late is None or constants.late is None:
        return trust, constants.dense, 0.0, 0.0
    late = constants.late
    return trust * late.lexical, late.dense, late.weight, late.unrelated


@dataclass(frozen=True, slots=True)
class _Owners:
    """The m owners of n passages in id order, each with its best passage.

    :param ids: Shape (m,). :param best: Index of each one's best passage (ties: the lower row), (m,).
    :param order: The passages owner by owner, (n,); those of owner i begin at `starts[i]`.
    """

    ids: NDArray[np.int64]
    best: NDArray[np.int64]
    order: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, evidence: Evidence, scores: Floats) -> _Owners:
        order, starts = evidence.by_owner
        if len(starts) < len(order):
            order = np.lexsort((evidence.rows, -scores, evidence.owner_ids))
        best = order[starts]
        return cls(evidence.owner_ids[best], best, order, starts)

    def passages(self, owner: int, scores: Floats) -> tuple[tuple[int, float], ...]:
        """Return the best passages of an owner by `scores`, from which the order was made: index and score."""
        end = int(self.starts[owner + 1]) if owner + 1 < len(self.starts) else len(self.order)
        mine = self.order[int(self.starts[owner]) : end][:PASSAGES_KEPT]
        return tuple(zip(mine.tolist(), scores[mine].tolist(), strict=True))

    def greatest(self, scores: Floats) -> Floats:
        """Return the greatest score of each owner over all its passages; shape (m,)."""
        if len(self.starts) == len(self.order):
            return scores[self.order]
        found: Floats = np.maximum.reduceat(scores[self.order], self.starts)
        return found


def _gained(owners: _Owners, evidence: Evidence, scores: Floats) -> Floats | float:
    """Return what each owner gains by being found by its text and by a fact, shape (m,); 0 if there are no facts."""
    if evidence.of_fact is None:
        return 0.0
    texts = owners.greatest(np.where(evidence.of_fact, -np.inf, scores))
    facts = owners.greatest(np.where(evidence.of_fact, scores, -np.inf))
    return np.asarray(FACTS_SHARE * np.maximum(np.minimum(texts, facts), 0.0), dtype=np.float64)


def ranks(scores: Floats) -> NDArray[np.int64]:
    """Return the 1-based rank of every score, the greatest first; ties in their order."""
    found = np.empty(len(scores), dtype=np.int64)
    found[_best_first(scores)] = np.arange(1, len(scores) + 1)
    return found


def reciprocal_rank_scores(
    rankings: Sequence[NDArray[np.int64]], shares: Sequence[float], *, rrf_k: int = RRF_K
) -> Floats:
    """Reciprocal rank fusion (Cormack et al. 2009, eq. 1), weighted: ``sum(share / (rrf_k + rank))``.

    :param rankings: The 1-based rank of each of m items, one array (m,) per retriever; 0 for items it did not find.
    """
    terms = [share * (ranking > 0) / (rrf_k + ranking) for ranking, share in zip(rankings, shares, strict=True)]
    return reduce(np.add, terms)


def rank_owners(
    evidence: Evidence,
    *,
    weights: Weights,
    profiles: Profiles,
    fusion: Fusion,
    now_us: int,
    top_k: int,
    likely: Floats | None = None,
) -> list[Ranked]:
    """Return the best `top_k` owners by their best passage and their facts, best first; ties by owner.

    :param likely: The probability of each passage's owner, (n,); a result has at most that of the one before it.
    """
    parts, total = _adjusted(evidence, score_terms(evidence, weights, profiles, now_us), feedback=weights.feedback)
    owners = _Owners.of(evidence, total)
    lexical = owners.greatest(evidence.lexical)
    lexical_ranks = ranks(lexical) * (lexical > 0)
    vector_ranks = ranks(owners.greatest(evidence.dense)) * evidence.dense_counts
    gained = _gained(owners, evidence, total)
    rrf = _rrf(owners, evidence, lexical_ranks, vector_ranks, weights, now_us)
    if fusion is Fusion.RRF:
        adjustments = evidence.of(owners.best).adjustments(rrf, feedback=weights.feedback)
        score = reduce(np.add, adjustments.values(), rrf)
    else:
        score = total[owners.best] + gained
    first = _best_first(score)[:top_k]
    of_owners = {"facts": gained[first]} if isinstance(gained, np.ndarray) else {}
    return _ranked(
        owners, first, score, parts, total, likely, rrf[first], lexical_ranks[first], vector_ranks[first], of_owners
    )


def rank_by_similarity(evidence: Evidence, *, top_k: int, likely: Floats | None = None) -> list[Ranked]:
    """Return the best `top_k` owners by the plain cosine of their best passage and by tags: the vector arm alone.

    :param likely: As in `rank_owners`.
    """
    parts, total = _adjusted(evidence, Terms({"similarity": evidence.similarity}, evidence.similarity))
    owners = _Owners.of(evidence, total)
    score = total[owners.best]
    first = _best_first(score)[:top_k]
    places = np.arange(1, len(first) + 1)
    return _ranked(owners, first, score, parts, total, likely, 1.0 / (RRF_K + places), 0 * places, places, {})


def _ranked(
    owners: _Owners,
    first: NDArray[np.int64],
    score: Floats,
    parts: Mapping[str, Floats],
    total: Floats,
    likely: Floats | None,
    rrf: Floats,
    lexical_ranks: NDArray[np.int64],
    vector_ranks: NDArray[np.int64],
    of_owners: Mapping[str, Floats],
) -> list[Ranked]:
    """Return the results of the owners `first` (k,); the arrays after `likely` are theirs, (k,)."""
    best = owners.best[first]
    columns = {name: values[best].tolist() for name, values in parts.items()}
    columns |= {name: values.tolist() for name, values in of_owners.items()}
    is_single = len(owners.starts) == len(owners.order)
    return [
        Ranked(
            index,
            owner_id,
            one,
            rrf_score,
            dict(zip(columns, of_index, strict=True)),
            lexical_rank or None,
            vector_rank or None,
            passages=((index, of_passage),) if is_single else owners.passages(owner, total),
            probability=probability,
        )
        for index, owner_id, owner, one, of_passage, rrf_score, of_index, lexical_rank, vector_rank, probability in zip(
            best.tolist(),
            owners.ids[first].tolist(),
            first.tolist(),
            score[first].tolist(),
            total[best].tolist(),
            rrf.tolist(),
            zip(*columns.values(), strict=True),
            lexical_ranks.tolist(),
            vector_ranks.tolist(),
            [0.0] * len(first) if likely is None else np.minimum.accumulate(likely[best]).tolist(),
            strict=True,
        )
    ]


@dataclass(frozen=True, slots=True)
class MeasuredScores:
    """Sums under the default weights: of n passages, of their m owners, and of the owner of each passage, (n,)."""

    passages: Floats
    owners: Floats
    of_each: Floats


def measured_scores(evidence: Evidence, profiles: Profiles, *, hybrid: bool) -> MeasuredScores:
    """:param hybrid: False: by meaning alone, as in `rank_by_similarity`."""
    by_meaning = Terms({}, evidence.similarity)
    _, total = _adjusted(evidence, score_terms(evidence, MEASURED, profiles, now_us=0) if hybrid else by_meaning)
    owners = _Owners.of(evidence, total)
    scores = total[owners.best] + (_gained(owners, evidence, total) if hybrid else 0.0)
    return MeasuredScores(total, scores, scores[np.searchsorted(owners.ids, evidence.owner_ids)])


def _adjusted(evidence: Evidence, terms: Terms, *, feedback: float = 0.0) -> Terms:
    """Return the terms with those of tags and feedback, if there are any."""
    if evidence.tagged is None and evidence.balances is None:
        return terms
    found = evidence.adjustments(terms.total, feedback=feedback)
    return Terms({**terms.parts, **found}, reduce(np.add, found.values(), terms.total))


def rrf_shares(weights: Weights) -> dict[str, float]:
    """Return the share of each ranking in reciprocal rank fusion; they add up to 1."""
    core = 1.0 - weights.confidence
    return {
        "vector": weights.vector * core * (1.0 - weights.recency),
        "bm25": (1.0 - weights.vector) * core * (1.0 - weights.recency),
        "recency": weights.recency * core,
        "confidence": weights.confidence,
    }


def _rrf(
    owners: _Owners,
    evidence: Evidence,
    lexical_ranks: NDArray[np.int64],
    vector_ranks: NDArray[np.int64],
    weights: Weights,
    now_us: int,
) -> Floats:
    shares = rrf_shares(weights)
    rankings, of = [vector_ranks, lexical_ranks], [shares["vector"], shares["bm25"]]
    if weights.recency or weights.confidence:
        newest_first = ranks(owners.greatest(half_life(now_us - evidence.occurred_us, 1e6)))
        rankings += [newest_first, newest_first]
        of += [shares["recency"], shares["confidence"]]
    return reciprocal_rank_scores(rankings, of)


def _best_first(scores: Floats) -> NDArray[np.int64]:
    return (-scores).argsort(kind="stable")
