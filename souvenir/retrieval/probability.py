"""How likely each result of a search answers the query, from the scores.

    lp_j = s_j / T - ln(sum_k exp(s_k / T))              k: the best `COMPARED` owners; missing ones score 0
    p_j  = 1 / (1 + exp(-(bias + lead * lp_j + relevance * logit(relevance of the search))))

s_j is the score of owner j as measured: under the default weights, without the caller's. With those a result never has
a greater probability than the one before it. In any other order, `descending` lowers the probability of a result to
that of the one before it.

The constants come from `python -m benchmarks.evidence --data FOLDER`, by the profile of the best result, since kinds of
texts differ in the scale of their scores and in the number of texts that answer, and by the arms that took part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from souvenir.core.types import Profile
from souvenir.retrieval.profiles import Profiles
from souvenir.retrieval.ranking import PROFILES_IN_ORDER, Evidence, MeasuredScores, Ranked, measured_scores

COMPARED = 30
"""Owners that a result is compared with. 10 suit short memories a little better and 100 talks and documents; all
candidates would make the probability depend on how many there are. Missing ones count as unrelated: without those, the
only memory of a store would be likely to answer whatever is asked (measured with stores of 1 to 20 memories)."""

LEAST_RELEVANCE = 1e-3
"""Lower relevances, and those near to 1 likewise, count as this one: their logits grow without limit."""

LEAST_EXPONENT = -500.0
"""Lower ones would be 0 as powers of e."""

DECIMALS = 6
"""Decimals of a probability, also before it is compared with a minimum: a shown score is its own minimum."""

Floats = NDArray[np.float64]


class Arms(StrEnum):
    """The parts of the score that took part in a search; late interaction scores turns of talks and short memories."""

    ALL = "all"
    WITHOUT_LATE = "without_late"
    WORDS = "words"
    MEANING = "meaning"


@dataclass(frozen=True, slots=True)
class Calibration:
    """:param temperature: T. :param lead: Weight of lp_j. :param relevance: Weight of the search's relevance."""

    temperature: float
    bias: float
    lead: float
    relevance: float

    def __call__(self, scores: Floats, best: Floats, relevance: float, *, of: Floats | None = None) -> Floats:
        """Return the probabilities of scores (n,), given those of the best owners (m,), at most `COMPARED`.

        :param of: The scores (n,) that these take the place of: those of the owners whose passages they are.
        """
        lead = lead_of(scores, best, self.temperature, of=of)
        exponents = self.lead * lead + (self.bias + self.relevance * logit(relevance))
        likely = 1.0 / (1.0 + np.exp(np.minimum(-exponents, 500.0)))
        return likely.round(DECIMALS)


Calibrations = Mapping[Arms, Mapping[Profile, Calibration]]

CALIBRATIONS: Calibrations = {
    Arms.ALL: {
        Profile.FACT: Calibration(0.25, 0.921, 1.43, 0.364),
        Profile.TALK: Calibration(0.15, 0.155, 1.203, 0.339),
    },
    Arms.WITHOUT_LATE: {
        Profile.FACT: Calibration(0.25, 1.415, 1.598, 0.278),
        Profile.DOC: Calibration(0.5, 7.53, 3.083, 0.619),
        Profile.TALK: Calibration(0.15, 0.848, 1.498, 0.289),
        Profile.CHAT: Calibration(0.25, 0.931, 1.35, 0.406),
    },
    Arms.WORDS: {
        Profile.FACT: Calibration(0.1, 0.163, 1.095, 0.475),
        Profile.DOC: Calibration(0.5, 11.809, 4.488, 0.785),
        Profile.TALK: Calibration(0.1, 0.402, 1.265, 0.361),
        Profile.CHAT: Calibration(0.1, -0.068, 1.03, 0.433),
    },
    Arms.MEANING: {
        Profile.FACT: Calibration(0.1, 2.087, 1.867, 0.329),
        Profile.DOC: Calibration(0.5, 29.647, 9.652, 0.625),
        Profile.TALK: Calibration(0.1, 0.496, 1.616, 0.486),
        Profile.CHAT: Calibration(0.1, -0.049, 1.1, 0.475),
    },
}


@dataclass(frozen=True, slots=True)
class Probabilities:
    """The probabilities of the owners of n candidate passages, (n,), and what those of passages are computed from."""

    owners: Floats
    measured: MeasuredScores
    best: Floats
    relevance: float
    calibration: Calibration

    def passage(self, index: int) -> float:
        """Return the probability of a passage as if it were all of its owner."""
        scores, of = self.measured.passages[[index]], self.measured.of_each[[index]]
        return float(self.calibration(scores, self.best, self.relevance, of=of)[0])


def probabilities(
    evidence: Evidence, profiles: Profiles, calibrations: Calibrations, relevance: float, *, hybrid: bool
) -> Probabilities:
    """Return the probabilities of at least one candidate.

    :param relevance: That of the search. :param hybrid: False: the search was by meaning alone.
    """
    measured = measured_scores(evidence, profiles, hybrid=hybrid)
    best = -np.sort(-measured.owners)[:COMPARED]
    profile = PROFILES_IN_ORDER[evidence.profiles[measured.of_each.argmax()]]
    arms = _arms(evidence, hybrid=hybrid)
    calibration = calibrations[arms].get(profile) or calibrations[Arms.WITHOUT_LATE][profile]
    owners = calibration(measured.of_each, best, relevance)
    return Probabilities(owners, measured, best, relevance, calibration)


def _arms(evidence: Evidence, *, hybrid: bool) -> Arms:
    if not hybrid:
        return Arms.MEANING
    if not evidence.dense_counts:
        return Arms.WORDS
    return Arms.WITHOUT_LATE if evidence.late is None else Arms.ALL


def lead_of(scores: Floats, best: Floats, temperature: float, *, of: Floats | None = None) -> Floats:
    """Return ``lp_j``: the logarithm of each score's share among the best ones, of which missing ones are 0."""
    compared = np.zeros(COMPARED)
    compared[: len(best)] = best
    most = float(compared.max())

    def weight(one: Floats) -> Floats:
        return np.asarray(np.exp(np.maximum((one - most) / temperature, LEAST_EXPONENT)), dtype=np.float64)

    whole = weight(compared).sum()
    if of is not None:
        whole = np.maximum(whole - np.where(of >= compared[-1], weight(of), 0.0), 0.0) + weight(scores)
    return np.asarray((scores - most) / temperature - np.log(whole), dtype=np.float64)


def logit(relevance: float) -> float:
    within = min(max(relevance, LEAST_RELEVANCE), 1.0 - LEAST_RELEVANCE)
    return math.log(within / (1.0 - within))


def descending(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Lower each probability to that of the result before it."""
    found: list[Ranked] = []
    for one in ranked:
        most = found[-1].probability if found else 1.0
        found.append(one if one.probability <= most else one._replace(probability=most))
    return found
