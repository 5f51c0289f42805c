"""Similarity of texts by words, figures and vectors; deduplication as a greedy sweep over blocks of unit vectors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from souvenir.core.passages import PreparedPassage
from souvenir.core.types import FloatVector
from souvenir.index.analyser import normalised

_WORD = re.compile(r"\w+")

BLOCK_ROWS = 2_048
"""Rows compared at once: two blocks of vectors and their cosines take about 25 MB, whatever the number of texts."""

Pair = tuple[int, int, float]
"""(kept id, duplicate id, cosine)."""


def same_words(one: str, other: str) -> bool:
    """Return True if two texts differ only in case, spacing and punctuation.

    A cosine cannot decide that: "100 requests a minute" and "1000 requests a minute" have one above 0.98.
    """
    return words_of(one) == words_of(other)


def words_of(text: str) -> list[str]:
    """Return the case-folded words of a text."""
    return _WORD.findall(text.casefold())


def duplicates(
    ids: NDArray[np.int64],
    vectors_of: Callable[[NDArray[np.int64]], FloatVector],
    *,
    threshold: float,
    keep: Collection[int],
    between_blocks: Callable[[int], None],
) -> list[Pair]:
    """Return a pair for every text that repeats a kept one with a lower id; of several, with the lowest.

    A duplicate makes no further duplicates, so a chain of small changes does not collapse into its first link, and a
    text is compared with kept ones only: n texts with k left take n * k / 2 cosines.

    :param ids: Shape (n,), ascending.
    :param vectors_of: Returns the unit vectors (m, dim) of some of the ids, in order; a row of zeros matches nothing.
    :param threshold: Greater than 0.
    :param keep: Ids that are never duplicates.
    :param between_blocks: Called after each comparison of two blocks, with the number of processed ids.
    """
    found: list[Pair] = []
    kept: list[int] = []
    for start in range(0, len(ids), BLOCK_ROWS):
        block = ids[start : start + BLOCK_ROWS]
        vectors = vectors_of(block)
        repeats = np.zeros(len(block), dtype=np.bool_)
        protected = np.isin(block, list(keep))
        for first in range(0, len(kept), BLOCK_ROWS):
            earlier = np.array(kept[first : first + BLOCK_ROWS], dtype=np.int64)
            open_rows = np.flatnonzero(~repeats & ~protected)
            cosines = vectors[open_rows] @ vectors_of(earlier).T
            for position, nearest in _first_at_least(cosines, threshold):
                row = open_rows[position]
                repeats[row] = True
                found.append((int(earlier[nearest]), int(block[row]), float(cosines[position, nearest])))
            between_blocks(start)
        found += _within(block, vectors, repeats, protected, threshold)
        kept += block[~repeats].tolist()
        between_blocks(start + len(block))
    return sorted(found)


def _first_at_least(cosines: FloatVector, threshold: float) -> Iterator[tuple[int, int]]:
    """Yield, for each row with a column that reaches the threshold, the first such column."""
    reached = cosines >= threshold
    for row in np.flatnonzero(reached.any(axis=1)):
        yield int(row), int(np.argmax(reached[row]))


def _within(
    ids: NDArray[np.int64],
    vectors: FloatVector,
    repeats: NDArray[np.bool_],
    protected: NDArray[np.bool_],
    threshold: float,
) -> Iterator[Pair]:
    """Yield the pairs within one block; marks the duplicates in `repeats`."""
    cosines = vectors @ vectors.T
    for row in range(len(ids)):
        if repeats[row]:
            continue
        later = row + 1 + np.flatnonzero(cosines[row, row + 1 :] >= threshold)
        for duplicate in later[~repeats[later] & ~protected[later]]:
            repeats[duplicate] = True
            yield int(ids[row]), int(ids[duplicate]), float(cosines[row, duplicate])


NOVELTY_SIMILARITY = 0.85
"""Cosine from which a text says nothing new compared with another, by vectors alone; figures may still differ."""

_FIGURE = re.compile(r"[0-9]+")


def words_key(text: str) -> str:
    """Return a key that is equal for texts that differ only in case, spacing, punctuation and Unicode encoding."""
    return " ".join(words_of(normalised(text)))


def figures(text: str) -> Counter[str]:
    """Return the numbers in a text: different numbers mean different statements, whatever the cosine is."""
    return Counter(_FIGURE.findall(normalised(text)))


def unit_vectors(prepared: Sequence[Sequence[PreparedPassage]]) -> list[FloatVector]:
    """Return the unit mean vector (dim,) of each text's passages."""
    return [_unit(np.sum([passage.embedding.vector for passage in passages], axis=0)) for passages in prepared]


def cosine(one: FloatVector, other: FloatVector) -> float:
    """Return the cosine of two unit vectors."""
    return float(np.dot(one, other))


def _unit(vector: FloatVector) -> FloatVector:
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length else vector
