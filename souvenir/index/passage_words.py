"""The words of passages: BM25 over chunks, spread over neighbouring turns, as one score per passage.

A row here is a passage, numbered like the rows of a namespace's other arrays; `LexicalIndex` below has a row per chunk.
Most passages are one chunk. Statistics (N, df, avdl) are over chunks. Reads change nothing; a write needs exclusive
access.

`SessionLinks` holds the order of the passages of each session as a linked list over rows. Rows are dense; removing one
moves the last row to its place, as in the other arrays of a namespace. Apart from a bisection in the order of one
session, adding and removing take constant time. Removing a passage makes its neighbours adjacent.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from souvenir.core.array_file import Rows, Streamed, in_memory
from souvenir.core.passages import Chunks, TurnFlag
from souvenir.core.types import Profile, TermMatch
from souvenir.index.lexical import Bm25Constants, Corpus, LexicalIndex, TermWeights, idf

_MIN_CAPACITY = 64
_SEVERAL = -1

FREQUENT_SHARE, FREQUENT_COUNT = 0.1, 3
"""A name is frequent if so large a share of the passages contains it, and at least so many."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SpreadRule:
    """The share of a profile's passages in the words of their neighbours, by distance from 1; empty: no spread.

    :param after_question: Replaces the first share of `back` after a turn that is a question, if it is greater.
    """

    back: tuple[float, ...] = ()
    forward: tuple[float, ...] = ()
    after_question: float = 0.0


@dataclass(frozen=True, slots=True)
class WordRules:
    """Weighting of the words of a profile's passages."""

    bm25: Bm25Constants
    spread: SpreadRule = SpreadRule()


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The inputs of the spread over n passages.

    :param before: The row before each in its session, and -1 at the end, (n + 1,); likewise `after`.
    :param profiles: With an arbitrary last entry, (n + 1,). :param only_profile: The profile of all, if there is only
        one.
    :param flags: `TurnFlag` values, (n,).
    """

    before: NDArray[np.int64]
    after: NDArray[np.int64]
    profiles: NDArray[np.uint8]
    only_profile: Profile | None
    flags: NDArray[np.uint8]

    def asks(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of the rows end with a question mark; an arbitrary value for the row -1."""
        return (self.flags[rows] & TurnFlag.QUESTION).astype(np.bool_)


@dataclass(frozen=True, slots=True)
class SpreadShares:
    """The spread rules of all profiles as arrays over profiles: `back` and `forward` (reach, profiles)."""

    back: Floats
    forward: Floats
    after_question: Floats


@dataclass(frozen=True, slots=True)
class WordQuery:
    """The distinct terms of a query.

    :param names: Those that are names of speakers, which do not characterise the subject of a turn of a talk.
    """

    terms: Sequence[str]
    names: frozenset[str] = frozenset()


class _Term(NamedTuple):
    """A term over chunks, and its gain by the spread in each passage (n,); None: no gain."""

    weights: TermWeights
    is_name: bool
    gained: Floats | None


class PassageWords:
    """:param rules: For every profile that passages may have."""

    def __init__(self, rules: Mapping[Profile, WordRules], lexical: LexicalIndex | None = None) -> None:
        self.chunks = (
            LexicalIndex({profile: rule.bm25 for profile, rule in rules.items()}) if lexical is None else lexical
        )
        self._owner = np.zeros(_MIN_CAPACITY, dtype=np.int32)  # passage of each chunk
        self._only_chunk = array("i")  # of each passage; _SEVERAL: there are several
        self._several: dict[int, tuple[int, ...]] = {}
        self._is_aligned = True
        """True if every passage has exactly one chunk, with the same number."""
        self._lengths = array("I")
        self._length_copy: NDArray[np.uint32] | None = None
        reach = max((len(rule.spread.back) for rule in rules.values()), default=0)
        back = np.zeros((reach, max(rules, default=-1) + 1), dtype=np.float32)
        self.shares = SpreadShares(back, np.zeros_like(back), np.zeros(back.shape[1], dtype=np.float32))
        for profile, rule in rules.items():
            self.shares.back[: len(rule.spread.back), profile] = rule.spread.back
            self.shares.forward[: len(rule.spread.forward), profile] = rule.spread.forward
            self.shares.after_question[profile] = rule.spread.after_question

    def __len__(self) -> int:
        """Number of passages."""
        return len(self._only_chunk)

    @property
    def nbytes(self) -> int:
        """Memory in bytes, within some 20 %: the chunks, two numbers per passage, and a tuple for several chunks."""
        return self.chunks.nbytes + self._owner.nbytes + 8 * len(self) + 200 * len(self._several)

    @property
    def lengths(self) -> NDArray[np.uint32]:
        """Number of terms of every passage, (n,); a copy, made once as long as nothing is written."""
        if self._length_copy is None:
            self._length_copy = np.array(self._lengths, np.uint32)
        return self._length_copy

    def spreads(self, profile: Profile) -> bool:
        """Return whether passages of a profile gain anything from their neighbours."""
        return bool(self.shares.back[:, profile].any() or self.shares.forward[:, profile].any())

    def add(self, chunks: Chunks, profile: Profile) -> None:
        """Append a passage of at least one chunk.

        :raises KeyError: If the profile has no rules; nothing is changed then.
        """
        first = len(self.chunks)
        for terms in chunks:
            self.chunks.add(terms, profile)
        last = len(self.chunks)
        if last > len(self._owner):
            self._owner = np.concatenate([self._owner, np.zeros(max(last, len(self._owner)), dtype=np.int32)])
        self._owner[first:last] = len(self)
        self._is_aligned &= last - first == 1
        self._length_copy = None
        if last - first > 1:
            self._several[len(self)] = tuple(range(first, last))
        self._only_chunk.append(first if last - first == 1 else _SEVERAL)
        self._lengths.append(sum(map(len, chunks)))

    def remove(self, row: int) -> None:
        """Remove a passage; the last one takes its number.

        :raises IndexError: If there is no such passage.
        """
        self._length_copy = None
        for chunk in sorted(self._chunks_of(row), reverse=True):
            self._remove_chunk(chunk)
        self._several.pop(row, None)
        last = len(self) - 1
        chunks = self._chunks_of(last) if row < last else ()
        only, length, several = self._only_chunk.pop(), self._lengths.pop(), self._several.pop(last, None)
        if row < last:
            self._only_chunk[row], self._lengths[row] = only, length
            if several is not None:
                self._several[row] = several
            self._owner[list(chunks)] = row

    def _chunks_of(self, row: int) -> tuple[int, ...]:
        only = self._only_chunk[row]
        return self._several[row] if only == _SEVERAL else (only,)

    def _remove_chunk(self, chunk: int) -> None:
        """Remove a chunk; the last one takes its number."""
        last = len(self.chunks) - 1
        self.chunks.remove(chunk)
        if chunk == last:
            return
        owner = int(self._owner[last])
        self._owner[chunk] = owner
        if self._only_chunk[owner] == last:
            self._only_chunk[owner] = chunk
        else:
            self._several[owner] = tuple(chunk if one == last else one for one in self._several[owner])

    def chunks_of(self, row: int) -> list[dict[str, int]]:
        """Return term -> tf of each chunk of a passage, unordered, for consistency checks."""
        return [self.chunks.terms_of(chunk) for chunk in self._chunks_of(row)]

    def corpus(self, visible: NDArray[np.bool_] | None = None) -> Corpus:
        """Return the statistics of the chunks of some passages, or of all; valid until the index changes."""
        if visible is None or self._is_aligned:
            return self.chunks.corpus(visible)
        return self.chunks.corpus(visible[self._owners()])

    def corpora_with(self, other: PassageWords, rows: NDArray[np.bool_]) -> tuple[Corpus, Corpus]:
        """Return corpora of some passages here and all of another index, with common statistics."""
        here, there = self.corpus(rows), other.corpus()
        count = here.count + there.count
        length = here.count * here.average_length + there.count * there.average_length
        average = length / count if count else 0.0
        return (
            Corpus(here.rows, count, average, lambda term: other.chunks.document_frequency(term, there)),
            Corpus(there.rows, count, average, lambda term: self.chunks.document_frequency(term, here)),
        )

    # --- scores ------------------------------------------------------------------------------------------------

    def score(self, query: WordQuery, corpus: Corpus, near: Neighbourhood | None, talk: NDArray[np.bool_]) -> Evidence:
        """L(j) of every passage: the best of its chunks (docs/ranking.md has the formula).

        ``L(j) = sum_t idf_t m_t(j) / sum_t idf_t``, where m_t is BM25's w_t of the chunk or the weight that reaches the
        passage from its neighbours, whichever is greater. A term in no passage counts in the divisor as the rarest one
        does, so that a query of mostly unheard words is not one of the few others. Absolute: not rescaled per query.

        :param near: None: nothing spreads. :param talk: Mask of the turns of talks, (n,), for which names do not count.
        """
        weighed = self.chunks.weigh(query.terms, corpus)
        terms = [
            _Term(weights, weights.term in query.names, None if near is None else self._gained(weights, corpus, near))
            for weights in weighed.terms
        ]
        known = {weights.term for weights in weighed.terms}
        unheard = [term for term in query.terms if term not in known and term not in query.names]
        of_unheard = len(unheard) * idf(0, corpus)
        total = of_unheard + sum([term.weights.idf for term in terms])
        total_without_names = of_unheard + sum([term.weights.idf for term in terms if not term.is_name])
        counted = weighed.scores
        if query.names:
            of_names = np.repeat([term.is_name for term in terms], weighed.counts)
            counted = counted * ~(of_names & talk[self._owner[weighed.rows]])
        of_chunks = weighed.summed(counted, len(self.chunks))
        scores = self._best(of_chunks)
        if near is not None:
            gained = np.zeros(len(self), np.float32)
            for term in terms:
                if term.gained is not None:
                    rarity = np.float32(term.weights.idf)
                    gained += term.gained * rarity * ~talk if term.is_name else term.gained * rarity
            scores += gained
        if query.names:
            divisors = np.where(talk, total_without_names, total).astype(np.float32)
            np.divide(scores, divisors, out=scores, where=divisors > 0)
        elif total > 0:
            scores /= np.float32(total)
        known_share = 1.0 - of_unheard / total_without_names if total_without_names else None
        return Evidence(self, scores, of_chunks, terms, unheard, corpus, talk, known_share)

    def _gained(self, term: TermWeights, corpus: Corpus, near: Neighbourhood) -> Floats:
        """Return the additional weight of a term in each passage from its neighbours, (n,)."""
        own = np.zeros(len(self) + 1, dtype=np.float32)  # the last entry is for a missing neighbour
        rows = self._owner[term.rows].astype(np.int64)
        if self._is_chunked:
            np.maximum.at(own, rows, term.weights)
        else:
            own[rows] = term.weights
        if corpus.rows is not None:
            rows = rows[corpus.rows[term.rows]]
        weights = own[rows]  # a passage occurs once for each of its chunks, each time with its greatest weight
        best = np.zeros_like(own)
        for links, shares, asks in (
            (near.after, self.shares.back, near.asks(rows)),
            (near.before, self.shares.forward, None),
        ):
            reached = rows
            for distance in range(len(shares)):
                reached = links[reached]
                of = near.profiles[reached] if near.only_profile is None else near.only_profile
                share = shares[distance][of]
                if distance == 0 and asks is not None:
                    share = np.where(asks, np.maximum(share, self.shares.after_question[of]), share)
                best[reached] = np.maximum(best[reached], share * weights)
        best -= own
        return np.maximum(best, 0.0, out=best)[:-1]

    def _best(self, of_chunks: Floats) -> Floats:
        """Return the greatest score of each passage's chunks."""
        if self._is_aligned:
            return np.array(of_chunks)
        best = np.zeros(len(self), dtype=np.float32)
        if self._is_chunked:
            scored = of_chunks.nonzero()[0]
            np.maximum.at(best, self._owner[scored], of_chunks[scored])
        else:
            best[self._owners()] = of_chunks
        return best

    @property
    def _is_chunked(self) -> bool:
        """Whether some passage has several chunks."""
        return len(self.chunks) > len(self)

    def _owners(self) -> NDArray[np.int32]:
        return self._owner[: len(self.chunks)]

    # --- snapshot ----------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, NDArray[Any] | Streamed]:
        """Return everything except the rules as plain arrays; valid until the index changes."""
        return {**self.chunks.to_arrays(), "chunk_passages": self._owners().astype(np.uint32)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Rows], rules: Mapping[Profile, WordRules]) -> PassageWords:
        """:raises ValueError: If the arrays are inconsistent, or a profile has no rules."""
        owners = in_memory(arrays, "chunk_passages")
        if owners.dtype != np.uint32 or owners.ndim != 1:
            raise ValueError("lexical snapshot: chunk_passages is not a one-dimensional array of uint32")
        lexical = LexicalIndex.from_arrays(arrays, {profile: rule.bm25 for profile, rule in rules.items()})
        count = int(owners.max()) + 1 if len(owners) else 0
        if len(owners) != len(lexical) or count > len(owners):
            raise ValueError("lexical snapshot: chunks and passages are inconsistent")
        counts = np.bincount(owners, minlength=count)
        if not counts.all():
            raise ValueError("lexical snapshot: a passage has no chunk")
        words = cls(rules, lexical)
        words._owner = np.concatenate([owners.astype(np.int32), np.zeros(_MIN_CAPACITY, dtype=np.int32)])
        chunks_by_owner = np.argsort(owners, kind="stable")
        ends = np.cumsum(counts)
        only = np.where(counts == 1, chunks_by_owner[ends - 1] if count else 0, _SEVERAL)
        words._only_chunk = array("i", only.astype(np.int32).tobytes())
        words._is_aligned = np.array_equal(owners, np.arange(count))
        for row in np.flatnonzero(counts > 1).tolist():
            words._several[row] = tuple(chunks_by_owner[ends[row] - counts[row] : ends[row]].tolist())
        lengths = np.bincount(owners, weights=lexical.lengths, minlength=count)
        words._lengths = array("I", lengths.astype(np.uint32).tobytes())
        return words


@dataclass(frozen=True, slots=True)
class Evidence:
    """L(j) of every passage, (n,), and its components; valid until the index changes.

    :param unheard: The terms, other than names, that no passage holds.
    :param known_share: The share of the query's other terms, weighted by idf; None if there are only names.
    """

    words: PassageWords
    scores: Floats
    of_chunks: Floats
    terms: Sequence[_Term]
    unheard: Sequence[str]
    corpus: Corpus
    talk: NDArray[np.bool_]
    known_share: float | None

    def explain(self, row: int) -> tuple[TermMatch, ...]:
        """Return the query's terms in a passage; ``sum(m.idf * m.weight) / sum(m.idf)`` over them is its score."""
        chunks = self.words._chunks_of(row)
        best = max(chunks, key=lambda chunk: float(self.of_chunks[chunk]))
        counted = [term for term in self.terms if not (term.is_name and self.talk[row])]
        held = self.words.chunks.explain([term.weights.term for term in counted], [best], self.corpus)[0]
        heard = [
            match if term.gained is None else replace(match, weight=match.weight + float(term.gained[row]))
            for term, match in zip(counted, held, strict=True)
        ]
        rarest = idf(0, self.corpus)
        return (*heard, *(TermMatch(term, rarest, tf=0, weight=0.0) for term in self.unheard))

    def lacking(self, names: frozenset[str], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the share of a query's names that are frequent and not in each of these passages, (n,)."""
        found = np.zeros(len(rows))
        least = max(FREQUENT_COUNT, FREQUENT_SHARE * self.corpus.count)
        for term in (one.weights for one in self.terms if one.weights.term in names):
            if self.words.chunks.document_frequency(term.term, self.corpus) >= least:
                holds = np.zeros(len(self.words), dtype=np.bool_)
                holds[self.words._owner[term.rows]] = True
                found += ~holds[rows]
        return found / max(len(names), 1)


NO_ROW = -1
"""The row number of a missing neighbour."""

Place = tuple[int, int]
"""The place of a passage in its session: its sort key, and its id as a tie-breaker."""


class SessionLinks:
    """:param row_of: Returns the current row of a passage id."""

    def __init__(self, row_of: Callable[[int], int | None]) -> None:
        self._row_of = row_of
        self._before = np.full(_MIN_CAPACITY, NO_ROW, dtype=np.int64)
        self._after = np.full(_MIN_CAPACITY, NO_ROW, dtype=np.int64)
        self._order: dict[Hashable, list[Place]] = {}

    def arrays(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows before and after each of `count` rows; the last entry, which -1 selects, is `NO_ROW`."""
        return self._before[: count + 1], self._after[: count + 1]

    @property
    def any(self) -> bool:
        return bool(self._order)

    @property
    def nbytes(self) -> int:
        """Approximate memory: the arrays, and some 130 bytes per passage of a session."""
        return self._before.nbytes + self._after.nbytes + 130 * sum(map(len, self._order.values()))

    def insert(self, row: int, session: Hashable, place: Place) -> None:
        """Link a row that is in no session yet."""
        order = self._order.setdefault(session, [])
        at = bisect_left(order, place)
        self._join(self._row(order, at - 1), row)
        self._join(row, self._row(order, at))
        insort(order, place)

    def fill(
        self, rows: NDArray[np.int64], sessions: Sequence[Hashable], starts: NDArray[np.int64], places: list[Place]
    ) -> None:
        """Link many rows while there are none; the same as `insert` of each.

        :param rows: In the order of their sessions, and within one in that of their places, which are in `places`.
        :param starts: Where each session starts.
        """
        first, second = rows[:-1], rows[1:]
        together = np.ones(len(first), dtype=np.bool_)
        together[starts[1:] - 1] = False
        self._after[first[together]] = second[together]
        self._before[second[together]] = first[together]
        ends = [*starts[1:].tolist(), len(rows)]
        for session, start, end in zip(sessions, starts.tolist(), ends, strict=True):
            self._order[session] = places[start:end]

    def remove(self, row: int, session: Hashable, place: Place) -> None:
        """Remove a row from its session."""
        self._join(int(self._before[row]), int(self._after[row]))
        self._before[row] = self._after[row] = NO_ROW
        order = self._order[session]
        del order[bisect_left(order, place)]
        if not order:
            del self._order[session]

    def move(self, row: int, to: int) -> None:
        """Renumber a row; the row that had the number before is in no session."""
        before, after = int(self._before[row]), int(self._after[row])
        self._before[row] = self._after[row] = NO_ROW
        self._join(before, to)
        self._join(to, after)

    def _row(self, order: list[Place], at: int) -> int:
        if not 0 <= at < len(order):
            return NO_ROW
        row = self._row_of(order[at][1])
        return NO_ROW if row is None else row

    def _join(self, first: int, second: int) -> None:
        if first != NO_ROW:
            self._after[first] = second
        if second != NO_ROW:
            self._before[second] = first

    def reserve(self, rows: int) -> None:
        """Grow the arrays to at least this number of rows; called before one is linked, and before `arrays`."""
        if rows < len(self._before):
            return
        size = max(rows + 1, 2 * len(self._before))
        for name in ("_before", "_after"):
            grown = np.full(size, NO_ROW, dtype=np.int64)
            old = getattr(self, name)
            grown[: len(old)] = old
            setattr(self, name, grown)
