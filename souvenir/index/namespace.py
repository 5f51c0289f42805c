"""The indexes of a namespace's passages of one kind as one thing: vectors, words and attributes with common rows.

One lock is held only while arrays are touched: queries come analysed and embedded, passages come prepared. Updates are
idempotent, since a namespace that is being loaded may be told of a write that its load has already seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from souvenir.index.analyser import QueryWord
from souvenir.index.attributes import PassageAttributes, row_of
from souvenir.index.lexical import Bm25Constants, Corpus, LexicalIndex, RepairedQuery
from souvenir.index.vector import VectorIndex, drawn_mean
from souvenir.locks import ReadersWriterLock
from souvenir.moments import to_us
from souvenir.passages import IndexChange, OwnerChanged, Passage, PassageAdded, PassageRemoved
from souvenir.sources import is_visible
from souvenir.types import Filters, FloatVector, Profile, TermMatch

CHANGES_PER_LOCK = 256
"""Changes made while searches wait: some tens of milliseconds at most."""

NEAREST_PASSAGES = 32
"""Passages looked at for each passage of a new text when the nearest stored text is wanted."""


PARTS_KEPT = 64
"""Lists of paths for which the sum of what lies in them is kept."""


@dataclass(slots=True)
class _Part:
    """The sum (dim,) of the vectors that somebody sees, and how many they are."""

    total: NDArray[np.float64]
    count: int


@dataclass(frozen=True, slots=True)
class Probe:
    """A query in the form that the arms take; an arm whose part is None does not run.

    :param vector: Unit vector (dim,).
    :param centred: Whether the vector arm compares directions from the namespace's mean.
    """

    vector: FloatVector | None
    words: Sequence[QueryWord] | None
    filters: Filters
    owner_ids: NDArray[np.int64] | None
    centred: bool
    candidate_count: int
    explain: bool = False


@dataclass(frozen=True, slots=True)
class Candidates:
    """The union of what both arms found, scored exactly; arrays of shape (n,) except where said.

    :param terms: The query's terms in each candidate, if the probe asked to explain; else empty.
    :param complete: No allowed passage was left out by the cut.
    :param excluded: Passages that the filters kept from the arms, of those that the scope may see.
    """

    rows: NDArray[np.int64]
    passage_ids: NDArray[np.int64]
    owner_ids: NDArray[np.int64]
    lexical: NDArray[np.float64]
    dense: NDArray[np.float64]
    similarity: NDArray[np.float64]
    profiles: NDArray[np.int64]
    occurred_us: NDArray[np.int64]
    terms: tuple[tuple[TermMatch, ...], ...]
    repairs: Mapping[str, str]
    complete: bool
    excluded: int


class NamespaceIndex:
    """Search and update of one namespace. `change_seq` is the last write that it knows.

    Who sees a part of it gets the answers that the part alone would give: the statistics are the part's too, since a
    rare word's weight or a mean would tell of the rest.
    """

    def __init__(
        self,
        dim: int,
        constants: Mapping[Profile, Bm25Constants],
        *,
        vectors: VectorIndex | None = None,
        lexical: LexicalIndex | None = None,
    ) -> None:
        self.lock = ReadersWriterLock()
        self.change_seq = 0
        self.vectors = VectorIndex(dim) if vectors is None else vectors
        self.lexical = LexicalIndex(constants) if lexical is None else lexical
        self.attributes = PassageAttributes()
        self._parts: dict[tuple[str, ...], _Part] = {}

    def __len__(self) -> int:
        return len(self.attributes)

    def owner_count(self) -> int:
        with self.lock.read():
            owners = np.sort(self.attributes.owners)
        return len(owners[:1]) + int(np.count_nonzero(np.diff(owners)))

    @property
    def nbytes(self) -> int:
        return self.vectors.nbytes + self.lexical.nbytes + self.attributes.nbytes

    def apply(self, changes: Iterable[IndexChange], change_seq: int) -> None:
        """Bring the index to the state of a write; a large one lets searches in between its parts."""
        remaining = iter(changes)
        while part := list(islice(remaining, CHANGES_PER_LOCK)):
            with self.lock.write():
                for change in part:
                    self._apply(change)
        self.change_seq = max(self.change_seq, change_seq)

    def _apply(self, change: IndexChange) -> None:
        match change:
            case PassageAdded(passage, vector, terms):
                row = self.attributes.row_of(passage.id)
                if row is None:
                    self.vectors.extend(vector[None, :])
                    self.lexical.add(terms, passage.profile)
                    self.attributes.append(row_of(passage))
                    self._count_in_parts(passage.source, vector, 1)
                else:  # an earlier write of its owner may have been told again
                    self._parts.clear()
                    self.attributes.change(row, passage.source, to_us(passage.occurred_at), passage.archived)
            case PassageRemoved(passage_id):
                row = self.attributes.row_of(passage_id)
                if row is not None:
                    self._count_in_parts(self.attributes.source_of(row), self.vectors.rows(np.array([row]))[0], -1)
                    self.vectors.remove(row)
                    self.lexical.remove(row)
                    self.attributes.remove(row)
            case OwnerChanged():
                if self.attributes.change_owner(change):
                    self._parts.clear()

    def search(self, probe: Probe) -> Candidates:
        """Every passage that either arm ranks among its first `candidate_count`, under the filters, scored exactly."""
        with self.lock.read():
            allowed = self.attributes.allowed(probe.filters, probe.owner_ids)
            visible = self.attributes.visible(probe.filters.visible)
            corpus = self.lexical.corpus(visible)
            query, lexical = self._lexical(probe, corpus, allowed)
            found = [_top(lexical, probe.candidate_count)]
            mean = self._mean(probe.filters.visible, visible)
            centre = mean if probe.centred else np.zeros_like(mean)
            if probe.vector is not None:
                found.append(self.vectors.search(probe.vector - centre, probe.candidate_count, allowed))
            rows = _union(found, len(self))
            dense, similarity = self._cosines(rows, probe.vector, centre)
            reachable = len(self) if allowed is None else int(np.count_nonzero(allowed))
            return Candidates(
                rows=rows,
                passage_ids=self.attributes.ids[rows],
                owner_ids=self.attributes.owners[rows],
                lexical=lexical[rows].astype(np.float64),
                dense=dense,
                similarity=similarity,
                profiles=self.attributes.profiles[rows],
                occurred_us=self.attributes.occurred[rows],
                terms=tuple(map(tuple, self.lexical.explain(query.terms, rows.tolist(), corpus)))
                if probe.explain
                else (),
                repairs=query.repairs,
                complete=all(len(part) < probe.candidate_count for part in found) or len(rows) == reachable,
                excluded=corpus.count - reachable,
            )

    def _terms(
        self, query: RepairedQuery, rows: NDArray[np.int64], corpus: Corpus
    ) -> tuple[tuple[TermMatch, ...], ...]:
        return tuple(map(tuple, self.lexical.explain(query.terms, rows.tolist(), corpus)))

    def _mean(self, paths: tuple[str, ...] | None, visible: NDArray[np.bool_] | None) -> FloatVector:
        """The mean vector of what somebody sees."""
        if paths is None or visible is None:
            return self.vectors.mean
        part = self._parts.get(paths)
        if part is None:
            if len(self._parts) >= PARTS_KEPT:
                self._parts.clear()
            part = self._parts[paths] = _Part(self.vectors.sum_of(visible), int(np.count_nonzero(visible)))
        return drawn_mean(part.total, part.count)

    def _count_in_parts(self, source: str, vector: FloatVector, sign: int) -> None:
        for paths, part in self._parts.items():
            if is_visible(source, paths):
                part.total += sign * vector.astype(np.float64)
                part.count += sign

    def _lexical(
        self, probe: Probe, corpus: Corpus, allowed: NDArray[np.bool_] | None
    ) -> tuple[RepairedQuery, NDArray[np.float32]]:
        if not probe.words:
            return RepairedQuery((), {}), np.zeros(len(self), dtype=np.float32)
        query = self.lexical.repair(probe.words, corpus)
        scores = self.lexical.score(query.terms, corpus)
        if allowed is not None:
            scores[~allowed] = 0
        return query, scores

    def _cosines(
        self, rows: NDArray[np.int64], query: FloatVector | None, centre: FloatVector
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Centred and plain cosine of the query with the rows; zeros without a query vector."""
        if query is None:
            return np.zeros(len(rows)), np.zeros(len(rows))
        vectors = self.vectors.rows(rows)
        # `vecdot` stays on this thread: for so few rows, waking a second one costs more than it brings.
        similarity, along_centre = (np.vecdot(vectors, other).astype(np.float64) for other in (query, centre))
        # The rows have length 1, so both parts of the centred cosine follow from these two products.
        centre_square = float(centre @ centre)
        products = similarity - along_centre - float(centre @ query) + centre_square
        lengths = np.sqrt(np.maximum(1.0 - 2.0 * along_centre + centre_square, 0.0)) * np.linalg.norm(query - centre)
        return np.divide(products, lengths, out=np.zeros(len(rows)), where=lengths > 0), similarity

    def nearest(self, vectors: FloatVector, *, filters: Filters) -> tuple[int, float] | None:
        """The owner most similar to a text of these passages (m, dim), and how similar it is.

        Similarity is the mean over the text's passages of their best cosine with one of the owner's: 1.0 means that
        everything the text says stands there.
        """
        with self.lock.read():
            allowed = self.attributes.allowed(filters, None)
            found = [self.vectors.search(vector, NEAREST_PASSAGES, allowed) for vector in vectors]
            owners = np.unique(self.attributes.owners[np.concatenate(found)])
            if not len(owners):
                return None
            mask = np.isin(self.attributes.owners, owners)
            rows = np.flatnonzero(mask if allowed is None else mask & allowed)
            products = self.vectors.rows(rows) @ vectors.T
            of_owner = np.searchsorted(owners, self.attributes.owners[rows])
            best = np.full((len(owners), len(vectors)), -1.0)
            np.maximum.at(best, of_owner, products)
            similarity = best.mean(axis=1)
            winner = int(np.argmax(similarity))
            return int(owners[winner]), float(similarity[winner])

    def problems(
        self, truth: Iterable[tuple[Passage, FloatVector]], analyse: Callable[[str], Sequence[str]]
    ) -> list[str]:
        """Every way in which this index is not what the passages of the database say."""
        found: list[str] = []
        seen = 0
        with self.lock.read():
            for passage, vector in truth:
                seen += 1
                row = self.attributes.row_of(passage.id)
                if row is None:
                    found.append(f"passage {passage.id} is not indexed")
                    continue
                found += self._row_problems(row, passage, vector, analyse(passage.searched_text))
            if seen != len(self) or len(self.vectors) != len(self) or len(self.lexical) != len(self):
                found.append(
                    f"{seen} passages stored, {len(self)} rows, {len(self.vectors)} vectors, {len(self.lexical)} texts"
                )
        return found

    def _row_problems(self, row: int, passage: Passage, vector: FloatVector, terms: Sequence[str]) -> Iterable[str]:
        if not self.vectors.agrees(row, vector):
            yield f"passage {passage.id} has another vector"
        if self.lexical.terms_of(row) != Counter(terms):
            yield f"passage {passage.id} has other terms"
        if not self.attributes.agrees(row, passage):
            yield f"passage {passage.id} has other attributes"


def _top(scores: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Rows of the `count` greatest scores above zero, in no order."""
    rows = np.flatnonzero(scores > 0)
    if len(rows) > count:
        rows = rows[np.argpartition(scores[rows], len(rows) - count)[-count:]]
    return rows


def _union(parts: Sequence[NDArray[np.int64]], count: int) -> NDArray[np.int64]:
    """The rows, of `count`, that stand in any of the parts, in ascending order."""
    found = np.zeros(count, dtype=np.bool_)
    for part in parts:
        found[part] = True
    return np.flatnonzero(found)
