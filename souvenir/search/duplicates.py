"""Which stored texts say the same: a greedy sweep over unit vectors, source by source."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from souvenir.types import FloatVector

_WORD = re.compile(r"\w+")

BLOCK_ROWS = 512
"""Rows compared at once: the block of cosines stays at some megabytes however many texts there are."""


def same_words(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but case, spacing and punctuation.

    A cosine cannot tell: "100 requests a minute" and "1000 requests a minute" have one above 0.98.
    """
    return _WORD.findall(one.casefold()) == _WORD.findall(other.casefold())


def duplicates(
    ids: NDArray[np.int64],
    sources: Sequence[str],
    passage_counts: NDArray[np.int64],
    vectors: FloatVector,
    *,
    threshold: float,
    keep: frozenset[int],
) -> list[tuple[int, int, float]]:
    """(kept id, duplicate id, cosine) for every text that repeats a kept one of its source with a lower id.

    A text that is itself a duplicate makes no further ones, so a chain of small changes does not collapse into its
    first link. Texts of different passage counts are never duplicates.

    :param ids: Shape (n,), ascending. :param vectors: Shape (n, dim), unit rows.
    :param keep: Ids that are never duplicates.
    """
    groups: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row, (source, count) in enumerate(zip(sources, passage_counts.tolist(), strict=True)):
        groups[source, count].append(row)
    found: list[tuple[int, int, float]] = []
    for rows in groups.values():
        if len(rows) > 1:
            chosen = np.array(rows)
            found += _sweep(ids[chosen], vectors[chosen], threshold, keep)
    return sorted(found)


def _sweep(
    ids: NDArray[np.int64], vectors: FloatVector, threshold: float, keep: frozenset[int]
) -> Iterator[tuple[int, int, float]]:
    removed = np.zeros(len(ids), dtype=np.bool_)
    protected = np.isin(ids, list(keep))
    for start in range(0, len(ids), BLOCK_ROWS):
        cosines = vectors[start : start + BLOCK_ROWS] @ vectors[start:].T
        for offset, row in enumerate(range(start, min(start + BLOCK_ROWS, len(ids)))):
            if removed[row]:
                continue
            later = row + 1 + np.flatnonzero(cosines[offset, offset + 1 :] >= threshold)
            for duplicate in later[~removed[later] & ~protected[later]]:
                removed[duplicate] = True
                yield int(ids[row]), int(ids[duplicate]), float(cosines[offset, duplicate - start])
