"""Equivalence of two statements by two independent measures.

`cosine`: that of their vectors by the service's own model. `overlap`: 2 |A ∩ B| / (|A| + |B|) of their sets of terms
by the service's analyser (stemmed, without stop words; Dice 1945). Either counts from its threshold on. Both thresholds
were set where 4.3 % and 4.5 % of the pairs of different reference facts of one session pass them (LoCoMo, 4,381 pairs).

Matches are one to one, best first: a text that mixes two facts finds one of them, and what is said twice counts
against precision once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from souvenir.core.types import Embedder, FloatVector
from souvenir.index.analyser import Analyser

COSINE, OVERLAP = "cosine", "overlap"
THRESHOLDS: Mapping[str, float] = MappingProxyType({COSINE: 0.75, OVERLAP: 0.40})

Likeness = Callable[[Sequence[str], Sequence[str]], FloatVector]
"""How like each of the first texts is each of the second ones: a row a text of the first."""


def matches(likeness: FloatVector, threshold: float) -> dict[int, int]:
    """Rows to columns, none twice, at or above the threshold: the most alike first, then those that come first."""
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    order = np.argsort(-likeness, axis=None, kind="stable")
    for row, column in zip(*np.unravel_index(order, likeness.shape), strict=True):
        if likeness[row, column] < threshold:
            break
        if row not in pairs and column not in taken:
            pairs[int(row)] = int(column)
            taken.add(int(column))
    return pairs


def measures(embedder: Embedder) -> dict[str, Likeness]:
    """Both, by name."""
    analyser = Analyser()

    def cosine(found: Sequence[str], wanted: Sequence[str]) -> FloatVector:
        # Vectors have the length 1, so that their product is the cosine.
        return embedder.embed_documents(found) @ embedder.embed_documents(wanted).T

    def overlap(found: Sequence[str], wanted: Sequence[str]) -> FloatVector:
        ours, theirs = ([frozenset(analyser.terms(text)) for text in texts] for texts in (found, wanted))
        values = [_dice(one, other) for one in ours for other in theirs]
        return np.array(values, dtype=np.float32).reshape(len(found), len(wanted))

    return {COSINE: cosine, OVERLAP: overlap}


def _dice(one: frozenset[str], other: frozenset[str]) -> float:
    """Of a text without a term: 0."""
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0
