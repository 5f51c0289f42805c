"""Logistic regression by Newton's method: the coefficients of `souvenir.retrieval.relevance` from labelled answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.evidence.questions import Kind
from souvenir.retrieval.relevance import COSINE, COVERED, FACT, GAP, UNHEARD, Coefficients, Judgement, Logistic

OFF_TOPIC_SHARE = 0.25
"""Questions of others count as if there were so many for each of an agent's own: one in five. How many there are where
the service is used nobody knows; with more of them every relevance would be lower."""

RIDGE = 1e-3
"""Of the squared weights: keeps a fit finite that separates its questions, and changes no other."""

_STEPS = 100


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search said of its answer to one question."""

    set_name: str
    scope: str
    kind: Kind
    judgement: Judgement

    @property
    def signals(self) -> Mapping[str, float]:
        return self.judgement.signals


def fitted(answers: Sequence[Answer], talks: Sequence[str]) -> Coefficients:
    """:param talks: The sets of conversations; the others hold facts."""
    answers = [one for one in answers if one.kind is not Kind.RENAMED]
    of_talks = [one for one in answers if one.set_name in talks]
    unnamed = [one for one in of_talks if GAP not in one.signals]
    return Coefficients(
        spoken_of=_spoken_of(of_talks, COSINE, UNHEARD),
        spoken_of_by_words=_spoken_of(of_talks, UNHEARD, COVERED),
        spoken_of_by_meaning=_spoken_of(of_talks, COSINE),
        answered=_answered(unnamed),
        answered_by_the_named=_answered(of_talks, GAP),
        answered_by_a_fact=_answered([one for one in answers if one.set_name not in talks], FACT),
    )


def _spoken_of(answers: Sequence[Answer], *names: str) -> Logistic:
    return logistic(answers, [one.kind.own for one in answers], weights_of(answers), names)


def _answered(answers: Sequence[Answer], *names: str) -> Logistic:
    own = [one for one in answers if one.kind.own]
    return logistic(own, [one.kind is Kind.ANSWERED for one in own], [1.0] * len(own), names)


def weights_of(answers: Sequence[Answer]) -> list[float]:
    """1 for an agent's own questions; those of others count together `OFF_TOPIC_SHARE` of them, agent by agent."""
    own: dict[tuple[str, str], int] = {}
    others: dict[tuple[str, str], int] = {}
    for one in answers:
        counted = own if one.kind.own else others
        counted[one.set_name, one.scope] = counted.get((one.set_name, one.scope), 0) + 1
    return [
        1.0
        if one.kind.own
        else OFF_TOPIC_SHARE * own.get((one.set_name, one.scope), 0) / others[one.set_name, one.scope]
        for one in answers
    ]


def logistic(
    answers: Sequence[Answer], truth: Sequence[bool], weights: Sequence[float], names: Sequence[str]
) -> Logistic:
    """The maximum of the weighted likelihood over the answers that have these signals.

    :raises ValueError: If there is nothing to fit, or all answers are alike.
    """
    chosen = [number for number, one in enumerate(answers) if one.signals.keys() >= set(names)]
    wanted = np.array([truth[number] for number in chosen], dtype=np.float64)
    if len(set(wanted.tolist())) < 2:
        raise ValueError(f"cannot fit {', '.join(names) or 'a share'}: give conversations with questions of all kinds")
    columns = np.array([[*(answers[number].signals[name] for name in names), 1.0] for number in chosen])
    *found_weights, bias = _newton(columns, wanted, np.array([weights[number] for number in chosen])).tolist()
    return Logistic(round(bias, 3), {name: round(weight, 3) for name, weight in zip(names, found_weights, strict=True)})


def _newton(columns: NDArray[Any], truth: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
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
