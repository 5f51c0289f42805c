"""The constants of `souvenir.retrieval.probability` from labelled answers, and what they are worth.

The hits of a question count as its relevance was judged: by others' conversations. So do the probabilities that are
evaluated; the constants that stand in the code are those of all conversations together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.evidence.calibration import calibration_error, reliability
from benchmarks.evidence.fitting import Answer, newton, weights_of
from benchmarks.evidence.questions import Kind
from benchmarks.report import table
from souvenir.core.types import Profile
from souvenir.retrieval.probability import COMPARED, Arms, Calibration, Calibrations, lead_of, logit
from souvenir.retrieval.profiles import PROFILES

HITS = 10
"""Hits of a question that are fitted and evaluated."""

TEMPERATURES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
LEAST_SCORES = tuple(round(0.1 * number, 1) for number in range(1, 10))

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Hits:
    """The best hits of some answers as rows: whether each is right, its weight, and the features of a fit."""

    right: Floats
    weights: Floats
    scores: Sequence[Floats]
    best: Sequence[Floats]
    relevance: Floats

    @classmethod
    def of(cls, answers: Sequence[Answer], weights: Sequence[float]) -> Hits:
        counts = [len(one.scores[:HITS]) for one in answers]
        return cls(
            right=np.array([right for one in answers for right in one.right[:HITS]], dtype=np.float64),
            weights=np.repeat(np.array(weights), counts),
            scores=[np.array(one.scores[:HITS]) for one in answers],
            best=[np.array(one.scores[:COMPARED]) for one in answers],
            relevance=np.repeat(np.array([logit(one.judgement.relevance) for one in answers]), counts),
        )

    def lead(self, temperature: float) -> Floats:
        return np.concatenate([lead_of(*pair, temperature) for pair in zip(self.scores, self.best, strict=True)])


def calibrations(answers: Sequence[Answer]) -> Calibrations:
    """Fit one calibration for each profile and the arms that took part, where there are answers of these."""
    groups: dict[tuple[Arms, Profile], list[int]] = {}
    for number, one in enumerate(answers):
        if one.kind is not Kind.RENAMED and one.scores:
            groups.setdefault(key_of(one), []).append(number)
    weights = weights_of(answers)
    found: dict[Arms, dict[Profile, Calibration]] = {arms: {} for arms in Arms}
    for arms, profile in sorted(groups, key=lambda key: (list(Arms).index(key[0]), key[1])):
        chosen = groups[arms, profile]
        hits = Hits.of([answers[number] for number in chosen], [weights[number] for number in chosen])
        found[arms][profile] = _calibration(hits)
    return found


def key_of(answer: Answer) -> tuple[Arms, Profile]:
    """The calibration of an answer: late interaction takes part in some profiles only."""
    late = answer.arms is not Arms.ALL or PROFILES[answer.profile].late is not None
    return answer.arms if late else Arms.WITHOUT_LATE, answer.profile


def _calibration(hits: Hits) -> Calibration:
    """The maximum of the likelihood; relevance takes no part where it would lower a probability."""
    fits = [(temperature, *_fit(hits, temperature)) for temperature in TEMPERATURES]
    temperature, _, (lead, relevance, bias) = min(fits, key=lambda fit: fit[1])
    return Calibration(temperature, round(bias, 3), round(lead, 3), round(relevance, 3))


def _fit(hits: Hits, temperature: float) -> tuple[float, tuple[float, float, float]]:
    """The loss, and the weights of lp, of the relevance and the bias."""
    lead, ones = hits.lead(temperature), np.ones(len(hits.right))
    weights = newton(np.stack([lead, hits.relevance, ones], axis=1), hits.right, hits.weights)
    if weights[1] < 0:
        of_lead, bias = newton(np.stack([lead, ones], axis=1), hits.right, hits.weights)
        weights = np.array([of_lead, 0.0, bias])
    likely = 1.0 / (1.0 + np.exp(-np.clip(np.stack([lead, hits.relevance, ones], axis=1) @ weights, -30.0, 30.0)))
    losses = np.where(hits.right > 0, -np.log(likely), -np.log1p(-likely))
    return float(np.average(losses, weights=hits.weights)), (float(weights[0]), float(weights[1]), float(weights[2]))


def probabilities_of(answer: Answer, of: Calibrations) -> tuple[float, ...]:
    """The probabilities of the best hits of an answer."""
    arms, profile = key_of(answer)
    scores = np.array(answer.scores)
    if not len(scores) or profile not in of[arms]:
        return ()
    calibration = of[arms][profile]
    return tuple(calibration(scores[:HITS], scores[:COMPARED], answer.judgement.relevance).tolist())


@dataclass(frozen=True, slots=True)
class Likely:
    """An answer and the probabilities of its best hits."""

    answer: Answer
    probabilities: tuple[float, ...]


def by_others(answers: Sequence[Answer]) -> list[Likely]:
    """Each by the constants of all other conversations."""
    fits = {
        name: calibrations([one for one in answers if one.conversation != name])
        for name in dict.fromkeys(one.conversation for one in answers)
    }
    return [Likely(one, probabilities_of(one, fits[one.conversation])) for one in answers]


@dataclass(frozen=True, slots=True)
class Errors:
    """Expected calibration errors: of the first ten hits and of the first, with others' questions and without."""

    hits: float
    first: float
    first_own: float


def errors_of(found: Sequence[Likely]) -> Errors:
    found = [one for one in found if one.answer.kind is not Kind.RENAMED]
    own = [one for one in found if one.answer.kind.own]
    return Errors(_error(found, HITS), _error(found, 1), _error(own, 1))


def _error(found: Sequence[Likely], count: int) -> float:
    weights = weights_of([one.answer for one in found])
    rows = [
        (probability, right, weight)
        for one, weight in zip(found, weights, strict=True)
        for probability, right in zip(one.probabilities[:count], one.answer.right[:count], strict=True)
    ]
    return calibration_error(reliability(*map(list, zip(*rows, strict=True)))) if rows else 0.0


@dataclass(frozen=True, slots=True)
class Kept:
    """The share of the first ten hits that a minimum score keeps.

    :param right: The share of the right hits of answered questions. :param wrong: Of all other hits.
    :param answered_without: The share of answered questions without any hit, and by kind of the others.
    """

    right: float
    wrong: float
    answered_without: float
    others_without: Mapping[Kind, float]


def kept_at(least: float, found: Sequence[Likely]) -> Kept:
    hits = [
        (probability >= least, right)
        for one in found
        for probability, right in zip(one.probabilities, one.answer.right[:HITS], strict=True)
    ]
    without = {
        kind: [not any(probability >= least for probability in one.probabilities) for one in found
               if one.answer.kind is kind]
        for kind in Kind
    }  # fmt: skip
    return Kept(
        right=_share([kept for kept, right in hits if right]),
        wrong=_share([kept for kept, right in hits if not right]),
        answered_without=_share(without.pop(Kind.ANSWERED)),
        others_without={kind: _share(of_kind) for kind, of_kind in without.items() if of_kind},
    )


def _share(chosen: Sequence[bool]) -> float:
    return sum(chosen) / max(len(chosen), 1)


def print_calibrations(found: Calibrations) -> None:
    for arms, of_arms in found.items():
        print(f"    Arms.{arms.name}: {{")
        for profile, one in of_arms.items():
            values = ", ".join(map(str, (one.temperature, one.bias, one.lead, one.relevance)))
            print(f"        Profile.{profile.name}: Calibration({values}),")
        print("    },")


def print_errors(found: Sequence[Likely]) -> None:
    groups: dict[tuple[str, Arms], list[Likely]] = {}
    for one in found:
        groups.setdefault((one.answer.set_name, one.answer.arms), []).append(one)
    rows = [
        (name, arms.value, f"{errors.hits:.3f}", f"{errors.first:.3f}", f"{errors.first_own:.3f}")
        for (name, arms), of_both in groups.items()
        for errors in (errors_of(of_both),)
    ]
    header = ("set", "searched by", "error, first ten hits", "first hit", "first hit, its own questions")
    print("\n" + table(header, rows))


def print_kept(found: Sequence[Likely]) -> None:
    """Print what a minimum score keeps of each set, searched as usual."""
    usual = [one for one in found if one.answer.arms is Arms.ALL and one.answer.kind is not Kind.RENAMED]
    for name in dict.fromkeys(one.answer.set_name for one in usual):
        of_set = [one for one in usual if one.answer.set_name == name]
        kept = {least: kept_at(least, of_set) for least in LEAST_SCORES}
        kinds = list(kept[LEAST_SCORES[0]].others_without)
        header = (
            name,
            "right hits kept",
            "wrong hits kept",
            "answered, no hit",
            *(f"{kind}, no hit" for kind in kinds),
        )
        rows = [
            (
                f"{least}",
                *(f"{share:.3f}" for share in (one.right, one.wrong, one.answered_without)),
                *(f"{one.others_without[kind]:.3f}" for kind in kinds),
            )
            for least, one in kept.items()
        ]
        print("\n" + table(header, rows))
