"""One order for what was found of several kinds: pure arithmetic over their scores.

Kinds take turns as long as what they offer is about as good as the best of all; what is weaker follows by its score.
Turns alone, which is what reciprocal rank fusion of disjoint rankings comes to, would give a kind that knows nothing of
the question half of the places; scores alone let one kind crowd out another that answers as well. docs/retrieval.md has
the figures.
"""

from __future__ import annotations

from collections.abc import Sequence

STRONG_SHARE = 0.75
"""Of the best score: from there on kinds take turns. Chosen on LoCoMo's turns with its facts, beside strange texts."""


def in_turns(rankings: Sequence[Sequence[float]], *, comparable: bool = True) -> list[tuple[int, int]]:
    """All items of all rankings, best first, each as (ranking, place in it), both from 0.

    The ranking with the best item begins; of equals, the earlier one. Each keeps its own order.

    :param rankings: Scores, best first, a sequence a kind.
    :param comparable: Whether a score means the same in each; if not, they take turns to the end, as they are given.
    """
    tops = {kind: scores[0] if comparable else 0.0 for kind, scores in enumerate(rankings) if scores}
    least = STRONG_SHARE * max(tops.values(), default=0.0) if comparable else float("-inf")
    items = [(kind, place) for kind, scores in enumerate(rankings) for place in range(len(scores))]
    strong = [item for item in items if _score(rankings, item) >= least]
    rest = [item for item in items if _score(rankings, item) < least]
    strong.sort(key=lambda item: (item[1], -tops[item[0]], item[0]))
    rest.sort(key=lambda item: (-_score(rankings, item), item))
    return strong + rest


def _score(rankings: Sequence[Sequence[float]], item: tuple[int, int]) -> float:
    kind, place = item
    return rankings[kind][place]
