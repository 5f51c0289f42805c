"""How good a ranking is. Every function takes the ids found, best first, and the grades of the relevant ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

TOP_K = 10


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over questions. `mrr` looks at the first ten, like `ndcg_10`."""

    recall_5: float
    recall_10: float
    ndcg_10: float
    mrr: float


def scores_of(found: Sequence[str], relevant: Mapping[str, float]) -> Scores:
    return Scores(
        recall_5=recall(found[:5], relevant),
        recall_10=recall(found[:TOP_K], relevant),
        ndcg_10=ndcg(found[:TOP_K], relevant),
        mrr=reciprocal_rank(found[:TOP_K], relevant),
    )


def mean(scores: Sequence[Scores]) -> Scores:
    return Scores(*(sum(getattr(one, field.name) for one in scores) / len(scores) for field in fields(Scores)))


def recall(found: Sequence[str], relevant: Mapping[str, float]) -> float:
    """The share of all relevant documents that was found."""
    return sum(id_ in relevant for id_ in found) / len(relevant)


def ndcg(found: Sequence[str], relevant: Mapping[str, float]) -> float:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen 2002), against the best ranking there could be."""
    best = sorted(relevant.values(), reverse=True)[:TOP_K]
    return _gain(relevant.get(id_, 0.0) for id_ in found) / _gain(best)


def reciprocal_rank(found: Sequence[str], relevant: Mapping[str, float]) -> float:
    return next((1.0 / rank for rank, id_ in enumerate(found, 1) if id_ in relevant), 0.0)


def _gain(grades: Iterable[float]) -> float:
    return sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))
