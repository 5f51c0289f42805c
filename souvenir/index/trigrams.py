"""Known terms with a spelling similar to a given one: an incremental index of character trigrams.

Similarity is the Jaccard index of two sets of trigrams, |A and B| / |A or B|, of terms padded with two blanks on either
side, so that the first and last letters weigh as much as the middle ones: "garden" and "gaden" share 5 of 10.

Ids are the caller's, dense from 0. The ids of a trigram ascend, so that one is found by bisection. Reads change nothing
and keep no view of the growing arrays.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

MIN_LENGTH = 4
"""Characters. A shorter term has more neighbours than typos explain."""

MAX_LENGTH = 64
"""Characters. A longer term is not a word."""

_PAD = "  "
_SPANS = tuple(slice(start, start + 3) for start in range(MAX_LENGTH + 2))


class TrigramIndex:
    """Trigram -> ids of the terms that contain it. Holds terms of letters only, of 4 to 64 characters."""

    def __init__(self) -> None:
        self._ids: defaultdict[str, array[int]] = defaultdict(partial(array, "I"))
        self._sizes = array("B")  # distinct trigrams by term id; 0 for terms that are not held
        self._id_count = 0

    @classmethod
    def of(cls, terms: Sequence[str]) -> TrigramIndex:
        """Equivalent to adding the terms one by one, with ids from 0; about twice as fast."""
        index = cls()
        held = np.array([term_id for term_id, term in enumerate(terms) if _is_held(term)], np.int64)
        if not len(held):
            index._sizes.frombytes(bytes(len(terms)))
            return index
        trigrams, postings = _inverted([_PAD + terms[term_id] + _PAD for term_id in held])
        ids = held[postings & 0xFFFFFFFF]
        starts = np.searchsorted(postings >> 32, np.arange(len(trigrams) + 1)) * 4
        raw = ids.astype(np.uint32).tobytes()
        index._ids.update(
            (trigram, array("I", raw[start:end]))
            for trigram, (start, end) in zip(trigrams, pairwise(starts.tolist()), strict=True)
        )
        index._sizes = array("B", np.bincount(ids, minlength=len(terms)).astype(np.uint8).tobytes())
        index._id_count = len(ids)
        return index

    def add(self, term_id: int, term: str) -> None:
        """Add a new term. Its id is the next one, counted from 0, or that of a removed term."""
        trigrams = _trigrams(term)
        if term_id == len(self._sizes):
            self._sizes.append(len(trigrams))
            for trigram in trigrams:
                self._ids[trigram].append(term_id)
        else:
            self._sizes[term_id] = len(trigrams)
            for trigram in trigrams:
                insort(self._ids[trigram], term_id)
        self._id_count += len(trigrams)

    def remove(self, term_id: int, term: str) -> None:
        """Remove a term that was added under this id."""
        trigrams = _trigrams(term)
        for trigram in trigrams:
            ids = self._ids[trigram]
            del ids[bisect_left(ids, term_id)]
            if not ids:
                del self._ids[trigram]
        self._sizes[term_id] = 0
        self._id_count -= len(trigrams)

    def similar(self, term: str, least: float) -> list[tuple[int, float]]:
        """Return (id, similarity) of the terms with at least this similarity, in id order; `least` is above 0."""
        trigrams = _trigrams(term)
        found = b"".join(self._ids[trigram] for trigram in trigrams if trigram in self._ids)
        shared = np.bincount(np.frombuffer(found, np.uint32), minlength=len(self._sizes))
        # |A or B| is at least |A|, so fewer shared trigrams than this are not enough.
        ids = np.flatnonzero(shared >= max(1.0, least * len(trigrams)))
        sizes = np.frombuffer(self._sizes, np.uint8)[ids].astype(np.int64)
        similarities: NDArray[np.float64] = shared[ids] / (len(trigrams) + sizes - shared[ids])
        kept = similarities >= least
        return list(zip(ids[kept].tolist(), similarities[kept].tolist(), strict=True))

    @property
    def nbytes(self) -> int:
        """Memory in bytes, within some 20 %: 4 a posting with spare capacity, some 270 a trigram."""
        return 5 * self._id_count + 270 * len(self._ids) + len(self._sizes)


def _is_held(term: str) -> bool:
    return MIN_LENGTH <= len(term) <= MAX_LENGTH and term.isalpha()


def _trigrams(term: str) -> set[str]:
    """Return the distinct trigrams of a padded term; empty if the index does not hold such terms."""
    if not _is_held(term):
        return set()
    padded = _PAD + term + _PAD
    return set(map(padded.__getitem__, _SPANS[: len(term) + 2]))


def _inverted(padded: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the distinct trigrams of some padded terms, and ``trigram << 32 | term`` for each pair, ascending.

    Both are counted from 0. The terms are concatenated, so that four blanks separate them: the windows of three blanks
    are the only ones that belong to no term.
    """
    text = "".join(padded)
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.int64)
    windows = points[:-2] << 42 | points[1:-1] << 21 | points[2:]  # a code point has 21 bits
    blank = ord(" ")
    filled = np.flatnonzero(windows != (blank << 42 | blank << 21 | blank))
    _, first, trigram = np.unique(windows[filled], return_index=True, return_inverse=True)
    owner = np.repeat(np.arange(len(padded)), list(map(len, padded)))[filled]
    pairs = np.sort(trigram << 32 | owner)
    return [text[at : at + 3] for at in filled[first].tolist()], pairs[np.diff(pairs, prepend=-1) > 0]
