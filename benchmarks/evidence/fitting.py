"""Logistic regression by Newton's method: the coefficients of `souvenir.retrieval.relevance` from labelled answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.evidence.questions import Kind
from souvenir.core.types import Profile
from souvenir.retrieval.probability import Arms
from souvenir.retrieval.relevance import (
    COSINE,
    COVERED,
    GAP,
    HIT,
    OTHER_NAME,
    UNHEARD,
    UNKNOWN,
    Coefficients,
    Judgement,
    Logistic,
)

OFF_TOPIC_SHARE = 0.25
"""Questions of others count as if there were so many for each of an agent's own: one in five. How many there are where
the service is used nobody knows; with more of them every relevance would be lower."""

RIDGE = 1e-3
"""Of the squared weights: keeps a fit finite that separates its questions, and changes no other."""

LOWERING = (UNHEARD, UNKNOWN, OTHER_NAME)
"""The signals that may only lower a relevance; all others may only raise it."""

DOCUMENTS = ("cranfield", "med")
"""Sets of documents. Their questions are all answered, so relevance is not fitted on them."""

_STEPS = 100


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a search to one question of an agent.

    :param conversation: What the agent heard, or a part of it. :param arms: What may take part in the search.
    :param profile: That of the best hit. :param scores: Of the best hits before calibration, best first.
    :param right: Whether each of them answers. :param weight: That of the question in a fit.
    """

    set_name: str
    scope: str
    conversation: str
    kind: Kind
    category: str
    arms: Arms
    judgement: Judgement
    profile: Profile = Profile.TALK
    scores: tuple[float, ...] = ()
    right: tuple[bool, ...] = ()
    weight: float = 1.0

    @property
    def signals(self) -> Mapping[str, float]:
        return self.judgement.signals


def fitted(answers: Sequence[Answer]) -> Coefficients:
    """Fit those of relevance. Answers whose best hit is a short memory have other signals than the rest."""
    answers = [one for one in answers if one.kind is not Kind.RENAMED and one.set_name not in DOCUMENTS]
    both, words, meaning = (
        [one for one in answers if one.arms is arms] for arms in (Arms.ALL, Arms.WORDS, Arms.MEANING)
    )
    return Coefficients(
        spoken_of=_spoken_of(both, COSINE, UNHEARD),
        spoken_of_by_words=_spoken_of(words, UNHEARD, COVERED),
        spoken_of_by_meaning=_spoken_of(meaning, COSINE),
        answered=_answered([one for one in both if COSINE in one.signals and GAP not in one.signals]),
        answered_by_the_named=_answered(both, GAP),
        short=_short(both, HIT, UNKNOWN, OTHER_NAME),
        short_by_words=_short(words, UNKNOWN, COVERED, OTHER_NAME),
        short_by_meaning=_short(meaning, HIT),
    )


def _spoken_of(answers: Sequence[Answer], *names: str) -> Logistic:
    return logistic(answers, [one.kind.own for one in answers], weights_of(answers), names)


def _answered(answers: Sequence[Answer], *names: str) -> Logistic:
    own = [one for one in answers if one.kind.own]
    return logistic(own, [one.kind is Kind.ANSWERED for one in own], [1.0] * len(own), names)


def _short(answers: Sequence[Answer], *names: str) -> Logistic:
    return logistic(answers, [one.kind is Kind.ANSWERED for one in answers], weights_of(answers), names)


def weights_of(answers: Sequence[Answer]) -> list[float]:
    """The weight of its set for an agent's own questions; those of others count together `OFF_TOPIC_SHARE` of them."""
    own: dict[tuple[str, str, str], int] = {}
    others: dict[tuple[str, str, str], int] = {}
    for one in answers:
        counted = own if one.kind.own else others
        counted[_store(one)] = counted.get(_store(one), 0) + 1
    return [
        one.weight * (1.0 if one.kind.own else OFF_TOPIC_SHARE * own.get(_store(one), 0) / others[_store(one)])
        for one in answers
    ]


def _store(answer: Answer) -> tuple[str, str, str]:
    return answer.set_name, answer.scope, answer.arms


def logistic(
    answers: Sequence[Answer], truth: Sequence[bool], weights: Sequence[float], names: Sequence[str]
) -> Logistic:
    """The maximum of the weighted likelihood over the answers that have these signals.

    A signal whose weight would have the wrong sign gets the weight 0, the most wrong one first: more evidence never
    lowers a relevance.

    :raises ValueError: If there is nothing to fit, or all answers are alike.
    """
    chosen = [number for number, one in enumerate(answers) if one.signals.keys() >= set(names)]
    wanted = np.array([truth[number] for number in chosen], dtype=np.float64)
    if len(set(wanted.tolist())) < 2:
        raise ValueError(f"cannot fit {', '.join(names) or 'a share'}: give conversations with questions of all kinds")
    of_each = np.array([weights[number] for number in chosen])
    used = list(names)
    while True:
        columns = np.array([[*(answers[number].signals[name] for name in used), 1.0] for number in chosen])
        *found, bias = newton(columns, wanted, of_each).tolist()
        signed = {name: -weight if name in LOWERING else weight for name, weight in zip(used, found, strict=True)}
        if min(signed.values(), default=0.0) >= 0.0:
            weight_of = dict(zip(used, found, strict=True))
            return Logistic(round(bias, 3), {name: round(weight_of.get(name, 0.0), 3) for name in names})
        used.remove(min(signed, key=signed.__getitem__))


def newton(columns: NDArray[Any], truth: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """The weights of the columns, the last of which is the bias, that make the truth most likely."""
    found = np.zeros(columns.shape[1])
    ridge = np.diag([*[RIDGE] * (columns.shape[1] - 1), 0.0])
    for _ in range(_STEPS):
        expected = 1.0 / (1.0 + np.exp(-np.clip(columns @ found, -30.0, 30.0)))
        slope = columns.T @ (weights * (expected - truth)) + ridge @ found
        curve = (columns * (weights * expected * (1.0 - expected))[:, None]).T @ columns + ridge
        step = np.linalg.solve(curve, slope)
        found = found - step
        if math.isclose(float(np.abs(step).max()), 0.0, abs_tol=1e-9):
            break
    return found
