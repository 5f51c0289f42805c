"""The order of the best results once a cross-encoder has read them: pure arithmetic over the first ranking.

The cross-encoder has the last word on what a text says. What it cannot read stays as it was weighed: when something was
said, and what the caller asked for. Those that it did not read keep their order, behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp

from souvenir.search.ranking import Ranked
from souvenir.types import Weights

RERANK = "rerank"

BESIDE_THE_TEXT = ("recency", "confidence", "period", "day", "tags")
"""Parts of the first score that no reader of the text can know."""

ROLE = "role"
"""Nor this one, but only a caller who says so is known to want it: the measured weight is of the two arms' scores."""


def reranked(ranked: Sequence[Ranked], scores: Mapping[int, float], weights: Weights) -> list[Ranked]:
    """The ranking with those first that have a score, by it: ``1 / (1 + exp(-score)) + parts beside the text``.

    The others follow with their first score less so much that none is above 0, nor above one that was read. The part
    `rerank` is what makes the sum of the parts the new score.

    :param ranked: Best first. :param scores: The cross-encoder's raw scores, by index in the evidence.
    """
    beside = BESIDE_THE_TEXT if weights.role is None else (*BESIDE_THE_TEXT, ROLE)
    read = sorted((_read(one, scores[one.index], beside) for one in ranked if one.index in scores), key=_by_score)
    others = [one for one in ranked if one.index not in scores]
    most = min(0.0, read[-1].score) if read else 0.0
    return read + [_scored(one, one.score - others[0].score + most) for one in others]


def _read(one: Ranked, score: float, beside: Sequence[str]) -> Ranked:
    weighed = sum(one.parts.get(name, 0.0) for name in beside)
    return replace(_scored(one, logistic(score) + weighed), rerank_score=score)


def _scored(one: Ranked, score: float) -> Ranked:
    of_parts = sum(one.parts.values())
    return replace(one, score=score, parts={**one.parts, RERANK: score - of_parts})


def _by_score(one: Ranked) -> tuple[float, float]:
    """Best first; far from 0 the logistic of two raw scores is the same number."""
    return -one.score, -(one.rerank_score or 0.0)


def logistic(value: float) -> float:
    """``1 / (1 + exp(-value))`` for any number."""
    return 1.0 / (1.0 + exp(-value)) if value >= 0 else exp(value) / (1.0 + exp(value))
