"""BM25 over an inverted index that is updated incrementally, one row at a time, and never rebuilt.

Rows are dense, 0 to n - 1, and shared with the vector index and the attribute columns: `add` appends row n, and
`remove` moves the last row into the hole. Terms come from the analyser; this module sees no text.

A posting is one 64-bit integer, ``row << 16 | tf``. Invariants: the postings of a term ascend by row, so a posting is
found by bisection and the last row is always at the end; every row lists the ids of its distinct terms, and exactly
these terms have a posting of it; a term exists exactly as long as a row holds it, and its id may then be reused.

Reads change nothing and keep no view of a growing array beyond an expression, so any number may run at once; a write
needs exclusive access. The caller's lock ensures this.

A snapshot stores the index as plain arrays. Term t of V is `term_bytes[term_offsets[t] : term_offsets[t + 1]]`, in
UTF-8; an unused id has no bytes and no postings. Its postings, of P in all, are entries `posting_offsets[t]` to
`posting_offsets[t + 1]` of `postings`. The ids of the n rows' distinct terms follow each other in `row_terms`, as many
of each row as `row_term_counts` says; they are only needed to remove a row, and may stay in the file.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from souvenir.core.array_file import Rows, Streamed, in_memory
from souvenir.core.types import Profile, TermMatch
from souvenir.index.analyser import QueryWord, WordKind
from souvenir.index.ragged_rows import RaggedRows
from souvenir.index.trigrams import TrigramIndex

LEAST_SIMILARITY = 0.45
"""Minimum Jaccard similarity of trigrams for replacing an unknown term (measured on dropped letters)."""

SHORTEST_SWAP = 5
"""Minimum length of a stem for repairing swapped letters: `mani` (many) is not a typo of `main`."""

LEAST_IDF = 0.1
"""The weight of a term in half of the passages or more. ``ln(1 + ...)``, which needs no minimum, gives it up to seven
times as much, and in a small index that outweighs the subject of the query (recall@5 of Chinese messages, some 12 in an
index: .740 with it, .766 without; Cranfield, recall@10: .490, .493; .03 to .2 differ little)."""

MAX_TF = 0xFFFF
"""A higher term frequency is capped to this one; BM25 is flat long before."""

_TF_BITS = 16

NO_POSTINGS = array("q")

BLOCK_TERMS = 1_024
"""Terms whose postings are written to a file at once."""


@dataclass(frozen=True, slots=True)
class Bm25Constants:
    """`k1` saturates repeats of a term, `b` in [0, 1] is the share of length normalisation."""

    k1: float
    b: float


class TermWeights(NamedTuple):
    """One query term over the rows that hold it: `weights` (df,) are w_t of `rows` (df,), which ascend."""

    term: str
    idf: float
    rows: NDArray[np.int64]
    weights: NDArray[np.float32]


class WeighedTerms(NamedTuple):
    """Query terms, the counts of their rows (t,), these rows one after the other (P,), and ``idf_t w_t`` there (P,)."""

    terms: Sequence[TermWeights]
    counts: NDArray[np.int64]
    rows: NDArray[np.int64]
    scores: NDArray[np.float32]

    def summed(self, scores: NDArray[np.float32], count: int) -> NDArray[np.float32]:
        """Return the sum over the terms of their scores (P,) in each of `count` rows, (count,)."""
        return np.bincount(self.rows, scores, count).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Corpus:
    """The rows that statistics are computed over: all, or those visible to a caller, as if there were no others.

    :param rows: A mask, shape (n,); None: all.
    :param average_length: Their mean number of terms (avdl); 0 without rows.
    :param df_elsewhere: For a corpus split over two indexes: the number of rows in the other one that hold a term.
        `count` and `average_length` then cover both.
    """

    rows: NDArray[np.bool_] | None
    count: int
    average_length: float
    df_elsewhere: Callable[[str], int] | None = None


class RepairedQuery(NamedTuple):
    """The distinct terms to search for, and the repaired words: word as written -> known term."""

    terms: tuple[str, ...]
    repairs: Mapping[str, str]


class LexicalIndex:
    """The lexical arm's index: rows of terms, scored by BM25 with the constants of each row's profile.

    :param constants: k1 and b for every profile that rows may have.
    """

    def __init__(self, constants: Mapping[Profile, Bm25Constants]) -> None:
        self._constants = dict(constants)
        self._by_profile = np.zeros((3, max(constants, default=-1) + 1), np.float32)  # k1 + 1, k1 (1 - b), k1 b
        for profile, given in constants.items():
            self._by_profile[:, profile] = given.k1 + 1, given.k1 * (1 - given.b), given.k1 * given.b
        self._term_ids: dict[str, int] = {}
        self._terms: list[str] = []
        self._free_ids: list[int] = []
        self._postings: list[array[int]] = []
        self._row_terms = RaggedRows(np.uint32, 1)  # ids of the row's distinct terms
        self._lengths = array("I")
        self._profiles = array("B")
        self._total_length = 0
        self._posting_count = 0
        self._trigrams: TrigramIndex | None = None  # made when the first unknown word is looked up

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._lengths)

    @property
    def average_length(self) -> float:
        """Mean number of terms of a row (avdl), over rows of all profiles; 0 without rows."""
        return self._total_length / len(self) if len(self) else 0.0

    @property
    def profiles(self) -> NDArray[np.uint8]:
        """Profile of every row, shape (n,); a copy."""
        return np.array(self._profiles, np.uint8)

    @property
    def lengths(self) -> NDArray[np.uint32]:
        """Number of terms of every row, shape (n,); a copy."""
        return np.array(self._lengths, np.uint32)

    @property
    def nbytes(self) -> int:
        """Memory in bytes, within some 20 %: the parts are counted, and Python's overhead of each is its usual size."""
        a_posting, a_row, a_term = 8.5, 5, 250
        counted = a_posting * self._posting_count + a_row * len(self) + a_term * len(self._terms)
        trigrams = 0 if self._trigrams is None else self._trigrams.nbytes
        return int(counted) + self._row_terms.nbytes + trigrams

    def document_frequency(self, term: str, corpus: Corpus | None = None) -> int:
        """Return the number of rows, of all or of the corpus, that hold the term."""
        term_id = self._term_ids.get(term)
        if term_id is None:
            here = 0
        elif corpus is None or corpus.rows is None:
            here = len(self._postings[term_id])
        else:
            here = self._df(term_id, corpus)
        return here if corpus is None or corpus.df_elsewhere is None else here + corpus.df_elsewhere(term)

    def corpus(self, rows: NDArray[np.bool_] | None = None) -> Corpus:
        """Return the statistics of some rows, or of all; valid until the index changes."""
        if rows is None:
            return Corpus(None, len(self), self.average_length)
        lengths = np.frombuffer(self._lengths, np.uint32)[rows]
        return Corpus(rows, len(lengths), float(lengths.mean(dtype=np.float64)) if len(lengths) else 0.0)

    def terms_of(self, row: int) -> dict[str, int]:
        """Return term -> tf of a row, for consistency checks.

        :raises IndexError: If there is no such row.
        """
        self._check_row(row)
        return {self._terms[term_id]: self._tf(term_id, row) for term_id in self._term_ids_of(row)}

    def add(self, terms: Sequence[str], profile: Profile) -> None:
        """Append a row.

        :param terms: The analyser's terms of its text, with repeats; may be empty.
        :raises KeyError: If the profile has no constants; nothing is changed then.
        """
        self._constants[profile]
        row, row_term_ids = len(self), list[int]()
        for term, tf in Counter(terms).items():
            term_id = self._term_ids.get(term)
            if term_id is None:
                term_id = self._add_term(term)
            self._postings[term_id].append(row << _TF_BITS | min(tf, MAX_TF))
            row_term_ids.append(term_id)
        self._row_terms.append(np.array(row_term_ids, np.uint32)[:, None])
        self._lengths.append(len(terms))
        self._profiles.append(profile)
        self._total_length += len(terms)
        self._posting_count += len(row_term_ids)

    def remove(self, row: int) -> None:
        """Remove a row; the last row takes its number.

        :raises IndexError: If there is no such row.
        """
        self._check_row(row)
        removed = self._term_ids_of(row)
        for term_id in removed:
            del self._postings[term_id][self._position(term_id, row)]
            if not self._postings[term_id]:
                self._drop_term(term_id)
        self._posting_count -= len(removed)
        self._total_length -= self._lengths[row]
        last = len(self) - 1
        if row != last:
            for term_id in self._term_ids_of(last):
                tf = self._postings[term_id].pop() & MAX_TF
                self._postings[term_id].insert(self._position(term_id, row), row << _TF_BITS | tf)
        self._row_terms.remove(row)
        last_columns = self._lengths.pop(), self._profiles.pop()
        if row != last:
            self._lengths[row], self._profiles[row] = last_columns

    def weigh(self, terms: Sequence[str], corpus: Corpus | None = None) -> WeighedTerms:
        """Return the distinct known terms of a query with their BM25 weights (Robertson and Zaragoza 2009, eq. 3.15).

        ``w_t(j) = tf (k1 + 1) / (tf + k1 (1 - b + b dl / avdl))`` with k1 and b of row j's profile, and
        ``idf_t = ln((N - df + 0.5) / (df + 0.5))``, at least LEAST_IDF. N, df and avdl are the corpus's, but rows
        outside of it are weighed too. Terms in no row of the corpus are skipped.
        """
        corpus = corpus or self.corpus()
        dfs = {term: self.document_frequency(term, corpus) for term in terms}
        known = {term: idf(df, corpus) for term, df in dfs.items() if df}
        # Only the other index may know a term.
        postings = [self._postings[self._term_ids[term]] if term in self._term_ids else NO_POSTINGS for term in known]
        rows, weights = self._weights(b"".join(postings), corpus)
        counts = np.array(list(map(len, postings)), np.int64)
        ends = np.cumsum(counts)
        found = [
            TermWeights(term, rarity, rows[end - count : end], weights[end - count : end])
            for (term, rarity), count, end in zip(known.items(), counts.tolist(), ends.tolist(), strict=True)
        ]
        return WeighedTerms(found, counts, rows, weights * np.repeat(np.array([*known.values()], np.float32), counts))

    def score(self, terms: Sequence[str], corpus: Corpus | None = None) -> NDArray[np.float32]:
        """L(j) = sum_t idf_t w_t(j) / sum_t idf_t over the distinct known terms, for every row: shape (n,), float32.

        The score is absolute: it is below the largest k1 + 1, and 0 for rows without a term of the query. It is
        meaningful only for rows of the corpus.
        """
        weighed = self.weigh(terms, corpus)
        scores = weighed.summed(weighed.scores, len(self))
        total_idf = sum(term.idf for term in weighed.terms)
        if total_idf:
            scores /= np.float32(total_idf)
        return scores

    def explain(self, terms: Sequence[str], rows: Sequence[int], corpus: Corpus | None = None) -> list[list[TermMatch]]:
        """Return the components of `score`, one list per row: all distinct known terms, missing ones with weight 0.

        ``sum(m.idf * m.weight) / sum(m.idf)`` over a row's list is its score.

        :raises IndexError: If there is no such row.
        """
        corpus = corpus or self.corpus()
        known = [term for term in dict.fromkeys(terms) if self.document_frequency(term, corpus)]
        for row in rows:
            self._check_row(row)
        return [[self._match(term, row, corpus) for term in known] for row in rows]

    def repair(
        self, words: Sequence[QueryWord], corpus: Corpus | None = None, other: LexicalIndex | None = None
    ) -> RepairedQuery:
        """Replace each plain word whose term is unknown by the known term with the most similar spelling.

        With a corpus, only the terms of its rows are known, here and in the other index that it is split over.

        Stems are compared with stems: first with two neighbouring letters swapped back, since swaps leave few trigrams
        unchanged (measured: swaps cost 1.6 points of recall@10 instead of 5.4), then by trigrams (see
        `souvenir.index.trigrams`). Ties are broken by the higher document frequency, then alphabetically. Words without
        a similar term are kept, as are stop words, numbers and compound names.
        """
        terms: dict[str, None] = {}
        repairs: dict[str, str] = {}
        for word, term, kind in words:
            unknown = kind is WordKind.PLAIN and not self.document_frequency(term, corpus)
            neighbour = self._nearest(term, corpus, other) if unknown else None
            if neighbour is not None:
                repairs[word] = neighbour
            terms[term if neighbour is None else neighbour] = None
        return RepairedQuery(tuple(terms), repairs)

    def to_arrays(self) -> dict[str, NDArray[Any] | Streamed]:
        """Return everything except the constants, see `souvenir.index.lexical`; valid until the index changes."""
        encoded = [term.encode("utf-8", "surrogatepass") for term in self._terms]
        return {
            "term_bytes": np.frombuffer(b"".join(encoded), np.uint8),
            "term_offsets": offsets(list(map(len, encoded))),
            "posting_offsets": offsets(list(map(len, self._postings))),
            "postings": Streamed(np.dtype(np.int64), (self._posting_count,), self._posting_blocks),
            "row_terms": self._row_terms.streamed(),
            "row_term_counts": self._row_terms.counts,
            "row_lengths": self.lengths,
            "row_profiles": self.profiles,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Rows], constants: Mapping[Profile, Bm25Constants]) -> LexicalIndex:
        """Restore an index from `to_arrays`; it can be changed further.

        :raises ValueError: If the arrays are inconsistent, or a profile has no constants.
        """
        index = cls(constants)
        index._load_rows(arrays)
        index._load_postings(arrays)
        return index

    def rebase(self, arrays: Mapping[str, Rows]) -> None:
        """Use the file to which `to_arrays` was written instead of memory, as far as that is possible."""
        self._row_terms.rebase(arrays["row_terms"])

    def _posting_blocks(self) -> Iterator[NDArray[np.int64]]:
        for start in range(0, len(self._postings), BLOCK_TERMS):
            yield np.frombuffer(b"".join(self._postings[start : start + BLOCK_TERMS]), np.int64)

    def _check_row(self, row: int) -> None:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} is not one of {len(self)}")

    def _add_term(self, term: str) -> int:
        if self._free_ids:
            term_id = self._free_ids.pop()
            self._terms[term_id] = term
        else:
            term_id = len(self._terms)
            self._terms.append(term)
            self._postings.append(array("q"))
        self._term_ids[term] = term_id
        if self._trigrams is not None:
            self._trigrams.add(term_id, term)
        return term_id

    def _drop_term(self, term_id: int) -> None:
        term, self._terms[term_id] = self._terms[term_id], ""
        del self._term_ids[term]
        if self._trigrams is not None:
            self._trigrams.remove(term_id, term)
        self._free_ids.append(term_id)

    def _term_ids_of(self, row: int) -> list[int]:
        ids: list[int] = self._row_terms.items_of(row)[:, 0].tolist()
        return ids

    def _position(self, term_id: int, row: int) -> int:
        """Return the position of the row in the term's postings, or its insertion point."""
        return bisect_left(self._postings[term_id], row << _TF_BITS)

    def _tf(self, term_id: int, row: int) -> int:
        postings, position = self._postings[term_id], self._position(term_id, row)
        held = position < len(postings) and postings[position] >> _TF_BITS == row
        return postings[position] & MAX_TF if held else 0

    def _df(self, term_id: int, corpus: Corpus | None) -> int:
        if corpus is None or corpus.rows is None:
            return len(self._postings[term_id])
        rows = np.frombuffer(self._postings[term_id], np.int64) >> _TF_BITS
        return int(np.count_nonzero(corpus.rows[rows]))

    def _weights(self, postings: bytes, corpus: Corpus) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the rows of postings and w_t there."""
        packed = np.frombuffer(postings, np.int64)
        rows, tf = packed >> _TF_BITS, (packed & MAX_TF).astype(np.float32)
        gain, floor, slope = self._by_profile.take(np.frombuffer(self._profiles, np.uint8)[rows], axis=1)
        scale = np.float32(1.0 / corpus.average_length if corpus.average_length else 0.0)
        relative_lengths = np.frombuffer(self._lengths, np.uint32)[rows] * scale
        return rows, tf * gain / (tf + floor + slope * relative_lengths)

    def _match(self, term: str, row: int, corpus: Corpus) -> TermMatch:
        term_id = self._term_ids.get(term)
        tf = 0 if term_id is None else self._tf(term_id, row)
        weight = 0.0
        if tf:
            given = self._constants[Profile(self._profiles[row])]
            norm = given.k1 * (1 - given.b + given.b * self._lengths[row] / corpus.average_length)
            weight = tf * (given.k1 + 1) / (tf + norm)
        return TermMatch(term, idf(self.document_frequency(term, corpus), corpus), tf, weight)

    def _nearest(self, term: str, corpus: Corpus | None, other: LexicalIndex | None) -> str | None:
        indexes = (self,) if other is None else (self, other)
        swapped = [(one, 1.0) for one in _unswapped(term) if any(one in index._term_ids for index in indexes)]
        return self._most_like(swapped, corpus) or self._most_like(
            dict(one for index in indexes for one in index._similar(term)).items(), corpus
        )

    def _similar(self, term: str) -> Iterator[tuple[str, float]]:
        if self._trigrams is None:
            self._trigrams = TrigramIndex.of(self._terms)  # several searches may make it at once, and one is kept
        return (
            (self._terms[known], similarity) for known, similarity in self._trigrams.similar(term, LEAST_SIMILARITY)
        )

    def _most_like(self, similar: Iterable[tuple[str, float]], corpus: Corpus | None) -> str | None:
        ranked = [(-similarity, -self.document_frequency(known, corpus), known) for known, similarity in similar]
        return min((one for one in ranked if one[1]), default=(0.0, 0, None))[2]

    def _load_postings(self, arrays: Mapping[str, Rows]) -> None:
        names = "term_bytes", "term_offsets", "posting_offsets", "postings"
        term_bytes, term_offsets, posting_offsets, postings = (_typed(arrays, name) for name in names)
        check(_are_offsets(term_offsets, len(term_bytes)), "term offsets")
        check(_are_offsets(posting_offsets, len(postings)), "posting offsets")
        check(len(term_offsets) == len(posting_offsets), "number of terms")
        check(bool(((np.diff(term_offsets) > 0) == (np.diff(posting_offsets) > 0)).all()), "unused terms")
        check(not len(postings) or (postings.min() >= 0 and postings.max() >> _TF_BITS < len(self)), "rows of postings")
        encoded = term_bytes.tobytes()
        self._terms = [
            encoded[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(term_offsets.tolist())
        ]
        self._term_ids = {term: term_id for term_id, term in enumerate(self._terms) if term}
        self._free_ids = [term_id for term_id, term in enumerate(self._terms) if not term]
        check(len(self._term_ids) + len(self._free_ids) == len(self._terms), "terms")
        raw = postings.view(np.uint8).data
        self._postings = [_list_of(raw[start:end]) for start, end in pairwise((posting_offsets * 8).tolist())]
        self._posting_count = len(postings)

    def _load_rows(self, arrays: Mapping[str, Rows]) -> None:
        names = "row_lengths", "row_profiles", "row_term_counts"
        (lengths, profiles, counts), row_terms = (_typed(arrays, name) for name in names), arrays["row_terms"]
        check(row_terms.dtype == np.uint32 and row_terms.shape[1:] == (1,), "terms of rows")
        check(len(lengths) == len(profiles) == len(counts), "lengths of columns")
        check(bool(np.isin(profiles, [profile.value for profile in self._constants]).all()), "profiles")
        check(bool((counts <= lengths).all()) and counts.sum(dtype=np.int64) == len(row_terms), "lengths of rows")
        self._lengths.frombytes(lengths.tobytes())
        self._profiles.frombytes(profiles.tobytes())
        self._total_length = int(lengths.sum(dtype=np.int64))
        self._row_terms = RaggedRows(np.uint32, 1, row_terms, counts)


def _list_of(postings: memoryview) -> array[int]:
    found = array("q")
    found.frombytes(postings)
    return found


def idf(df: int, corpus: Corpus) -> float:
    """``ln((N - df + 0.5) / (df + 0.5))``, at least LEAST_IDF."""
    return max(math.log((corpus.count - df + 0.5) / (df + 0.5)), LEAST_IDF)


def _unswapped(term: str) -> Iterator[str]:
    """Yield the term with each two neighbouring letters swapped; nothing for short terms, which match by accident."""
    if len(term) >= SHORTEST_SWAP:
        for at in range(len(term) - 1):
            yield term[:at] + term[at + 1] + term[at] + term[at + 2 :]


DTYPES = {
    "term_bytes": np.uint8,
    "term_offsets": np.int64,
    "posting_offsets": np.int64,
    "postings": np.int64,
    "row_term_counts": np.int32,
    "row_lengths": np.uint32,
    "row_profiles": np.uint8,
}


def offsets(sizes: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the starts of consecutive pieces, and the end of the last one: shape (len(sizes) + 1,)."""
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def _typed(arrays: Mapping[str, Rows], name: str) -> NDArray[Any]:
    """Return an array of a snapshot.

    :raises ValueError: If it is not of the type in `DTYPES`, or has several dimensions.
    """
    found = in_memory(arrays, name)
    if found.dtype != DTYPES[name] or found.ndim != 1:
        raise ValueError(f"lexical snapshot: {name} is not a one-dimensional array of {np.dtype(DTYPES[name])}")
    return found


def _are_offsets(offsets: NDArray[Any], total: int) -> bool:
    """Return whether offsets split `total` items into consecutive pieces."""
    starts_and_ends = len(offsets) > 0 and int(offsets[0]) == 0 and int(offsets[-1]) == total
    return starts_and_ends and bool((np.diff(offsets) >= 0).all())


def check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"lexical snapshot: {what} are inconsistent")
