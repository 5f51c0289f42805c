"""Late interaction: a score of passages from the best match of each token of the query.

A match reaches neighbours in the session, as words do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from souvenir.core.types import FloatVector
from souvenir.index.passage_words import NO_ROW, Neighbourhood, SpreadShares
from souvenir.index.token_vectors import TokenVectors

SPREAD_TURNS = 3
"""Neighbours on either side whose matches reach a passage; farther ones are always below its own best match."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class LateQuery:
    """The content tokens of a query.

    :param vectors: Unit vectors, (t, dim). :param terms: The analyser's terms of each token's word.
    """

    vectors: FloatVector
    terms: Sequence[Sequence[str]]


def late_interaction(
    tokens: TokenVectors,
    rows: NDArray[np.int64],
    vectors: FloatVector,
    weights: Floats,
    near: Neighbourhood | None,
    shares: SpreadShares,
    visible: NDArray[np.bool_] | None,
) -> Floats:
    """Late interaction (Khattab and Zaharia 2020) of some rows, (rows,).

    ``LI(j) = sum_t w_t m_t(j) / sum_t w_t``, where m_t is the greatest cosine of query token t with a token of the
    passage, or that of a neighbour in the session times its share, whichever is greater.

    :param vectors: Of the query's tokens, (t, dim). :param weights: w_t, (t,), positive.
    :param near: None: nothing spreads. :param visible: Mask of the rows that may be looked at, (n,); None: all.
    """
    if near is None:
        best = tokens.matches(rows, vectors)
    else:
        best = _spread_matches(tokens, rows, vectors, near, shares, visible)
    found: Floats = np.vecdot(best, weights / weights.sum(dtype=np.float32))
    return found


def _spread_matches(
    tokens: TokenVectors,
    rows: NDArray[np.int64],
    vectors: FloatVector,
    near: Neighbourhood,
    shares: SpreadShares,
    visible: NDArray[np.bool_] | None,
) -> Floats:
    sides: list[tuple[NDArray[np.int64], Floats]] = []
    profiles = near.profiles[rows]
    for links, of_profiles in ((near.before, shares.back), (near.after, shares.forward)):
        reached = rows
        for distance, of in enumerate(of_profiles[:SPREAD_TURNS]):
            reached = links[reached]
            share = of[profiles]
            if distance == 0 and links is near.before:
                asks = near.asks(reached) & (reached != NO_ROW)
                share = np.where(asks, np.maximum(share, shares.after_question[profiles]), share)
            sides.append((reached, share))
    looked_at = np.unique(np.concatenate([rows, *(reached for reached, _ in sides)]))
    looked_at = looked_at[looked_at != NO_ROW]
    if visible is not None:
        looked_at = looked_at[visible[looked_at]]
    matches: Floats = np.vstack([tokens.matches(looked_at, vectors), np.zeros((1, len(vectors)), dtype=np.float32)])

    def matches_of(reached: NDArray[np.int64]) -> Floats:
        places = np.minimum(np.searchsorted(looked_at, reached), max(len(looked_at) - 1, 0))
        is_seen = looked_at[places] == reached if len(looked_at) else np.zeros(len(reached), dtype=np.bool_)
        return matches[np.where(is_seen, places, len(looked_at))]

    best = matches_of(rows)
    for reached, share in sides:
        np.maximum(best, share[:, None] * matches_of(reached), out=best)
    return best
