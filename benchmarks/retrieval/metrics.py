"""Quality metrics of rankings: one number per question and metric, to be averaged over questions.

Every function takes the ids that were found, best first, and what is relevant. Turns (or memories) and sessions are
never mixed: recall looks at single documents, `any` and `all` at the sessions that they come from.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

TOP_K = 10
"""NDCG and the reciprocal rank look at so many."""

SESSION_DEPTH = 100
"""Documents of a ranking from which sessions are scored."""

DOCUMENT_METRICS = ("recall@1", "recall@5", "recall@10", "NDCG@10", "MRR@10")
SESSION_METRICS = ("any@5", "any@10", "all@5", "all@10")

Found = Sequence[tuple[str, float]]
"""Ids with their scores, best first."""


def document_scores(found: Found, relevant: Mapping[str, float]) -> list[float]:
    """In the order of DOCUMENT_METRICS."""
    ids = [id_ for id_, _ in found]
    return [
        *(recall(ids[:count], relevant) for count in (1, 5, 10)),
        ndcg(ids, relevant),
        reciprocal_rank(ids, relevant),
    ]


def session_scores(found: Found, relevant: Mapping[str, float], session_of: Mapping[str, str]) -> list[float]:
    """In the order of SESSION_METRICS. A session is relevant if one of its documents is."""
    wanted = {session_of[id_] for id_ in relevant}
    ranked = ranked_sessions(found, session_of)
    return [any_of(ranked[:5], wanted), any_of(ranked[:10], wanted), all_of(ranked[:5], wanted), all_of(ranked, wanted)]


def recall(ids: Sequence[str], relevant: Collection[str]) -> float:
    """The share of all relevant documents that was found."""
    return sum(id_ in relevant for id_ in ids) / len(relevant)


def ndcg(ids: Sequence[str], relevant: Mapping[str, float]) -> float:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen 2002), against the best ranking there could be."""
    best = sorted(relevant.values(), reverse=True)[:TOP_K]
    return _gain(relevant.get(id_, 0.0) for id_ in ids[:TOP_K]) / _gain(best)


def reciprocal_rank(ids: Sequence[str], relevant: Collection[str]) -> float:
    return next((1.0 / rank for rank, id_ in enumerate(ids[:TOP_K], 1) if id_ in relevant), 0.0)


def any_of(sessions: Sequence[str], wanted: Collection[str]) -> float:
    return float(any(session in wanted for session in sessions))


def all_of(sessions: Sequence[str], wanted: Collection[str]) -> float:
    return float(all(session in sessions for session in wanted))


def ranked_sessions(found: Found, session_of: Mapping[str, str]) -> list[str]:
    """The best ten sessions: each scores its best document plus half the mean of its best three.

    A document of which the ranking says nothing, since it ends before, is taken to score as the last one does.
    """
    found = found[:SESSION_DEPTH]
    scores: defaultdict[str, list[float]] = defaultdict(list)
    for id_, score in found:
        scores[session_of[id_]].append(score)
    unknown = found[-1][1] if found else 0.0
    total = {
        session: best[0] + 0.5 * sum([*best[:3], *[unknown] * (3 - len(best))]) / 3 for session, best in scores.items()
    }
    return sorted(total, key=lambda session: -total[session])[:TOP_K]


def _gain(grades: Iterable[float]) -> float:
    return sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))
