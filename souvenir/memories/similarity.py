"""Which stored texts say the same: a greedy sweep over unit vectors, a block of rows at a time.

How alike texts are: by their words, by their figures, and by the cosine of their vectors.
"""

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
"""Rows compared at once: two blocks of vectors and their cosines take some 25 MB, however many texts there are."""

Pair = tuple[int, int, float]
"""(kept id, duplicate id, cosine)."""


def same_words(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but case, spacing and punctuation.

    A cosine cannot tell: "100 requests a minute" and "1000 requests a minute" have one above 0.98.
    """
    return words_of(one) == words_of(other)


def words_of(text: str) -> list[str]:
    """What two texts share that differ in nothing else."""
    return _WORD.findall(text.casefold())


def duplicates(
    ids: NDArray[np.int64],
    vectors_of: Callable[[NDArray[np.int64]], FloatVector],
    *,
    threshold: float,
    keep: Collection[int],
    between_blocks: Callable[[int], None],
) -> list[Pair]:
    """A pair for every text that repeats a kept one with a lower id; of several, with the lowest.

    A text that is itself a duplicate makes no further ones, so a chain of small changes does not collapse into its
    first link, and a text is compared with those only that are kept: n texts with k left take n * k / 2 cosines.

    :param ids: Shape (n,), ascending.
    :param vectors_of: The unit vectors (m, dim) of some of the ids, in their order; a row of zeros is like nothing.
    :param threshold: Greater than 0.
    :param keep: Ids that are never duplicates.
    :param between_blocks: Called after each comparison of two blocks, with the number of ids that are done.
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
    """For each row that has one, its first column that reaches the threshold."""
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
    """The pairs of one block; marks the duplicates in `repeats`."""
    cosines = vectors @ vectors.T
    for row in range(len(ids)):
        if repeats[row]:
            continue
        later = row + 1 + np.flatnonzero(cosines[row, row + 1 :] >= threshold)
        for duplicate in later[~repeats[later] & ~protected[later]]:
            repeats[duplicate] = True
            yield int(ids[row]), int(ids[duplicate]), float(cosines[row, duplicate])


NOVELTY_SIMILARITY = 0.85
"""Cosine from which a text says nothing new beside another, as far as vectors tell; figures may still differ."""

_FIGURE = re.compile(r"[0-9]+")


def words_key(text: str) -> str:
    """The same of texts that differ in nothing but case, spacing, punctuation and how their letters are encoded."""
    return " ".join(words_of(normalised(text)))


def figures(text: str) -> Counter[str]:
    """The numbers in a text: two that differ in one say different things, however near their vectors are."""
    return Counter(_FIGURE.findall(normalised(text)))


def unit_vectors(prepared: Sequence[Sequence[PreparedPassage]]) -> list[FloatVector]:
    """The unit mean vector (dim,) of each text's passages."""
    return [_unit(np.sum([passage.vector for passage in passages], axis=0)) for passages in prepared]


def cosine(one: FloatVector, other: FloatVector) -> float:
    """Of unit vectors."""
    return float(np.dot(one, other))


def _unit(vector: FloatVector) -> FloatVector:
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length else vector
