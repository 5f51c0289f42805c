"""The indexes of a namespace's passages of one kind as one thing: vectors, words and attributes with common rows.

One lock is held only while arrays are touched: queries come analysed and embedded, passages come prepared. Updates are
idempotent, since a namespace that is being loaded may be told of a write that its load has already seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from souvenir.core.concurrency import ReadersWriterLock
from souvenir.core.labels import is_visible
from souvenir.core.passages import (
    Chunks,
    FieldScores,
    IndexChange,
    OwnerChanged,
    Passage,
    PassageAdded,
    PassageColumns,
    PassageRemoved,
    TurnFlag,
)
from souvenir.core.timestamps import to_us
from souvenir.core.types import Filters, FloatVector, Profile, TermMatch
from souvenir.index.analyser import QueryWord
from souvenir.index.attributes import PassageAttributes, row_of
from souvenir.index.lexical import Corpus, idf
from souvenir.index.passage_words import Neighbourhood, PassageWords, WordQuery, WordRules
from souvenir.index.vector import VectorIndex, drawn_mean

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
    :param unframed: The vector (dim,) of the question without its framing, for chats; None: it has none.
    :param centred: Whether the vector arm compares directions from the namespace's mean.
    :param fields: The terms of the score beside the two arms', of every passage; None: there are none.
    """

    vector: FloatVector | None
    words: Sequence[QueryWord] | None
    filters: Filters
    owner_ids: NDArray[np.int64] | None
    centred: bool
    candidate_count: int
    explain: bool = False
    unframed: FloatVector | None = None
    fields: Callable[[PassageColumns], FieldScores] | None = None
    moment: Moment | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """What stood at a moment that is over. It is searched as if one index held all of it, and nothing else.

    Facts are not searched: those of now need not be those of then. Passages of memories that belong together lend each
    other words within either part only.

    :param owner_ids: Owners whose passages say what they said then.
    :param former: The other ones' passages as they were, in an index that nobody else has.
    """

    owner_ids: NDArray[np.int64]
    former: NamespaceIndex


@dataclass(frozen=True, slots=True)
class Candidates:
    """The union of what both arms found, scored exactly; arrays of shape (n,) except where said.

    :param fact_ids: Of those that are of a fact; 0 is the owner's own text.
    :param fields: The terms of the score beside the two arms'.
    :param speakers: Codes of who said each; 0 is nobody.
    :param named: The code of the one speaker whom the question names; None: it names none, or several.
    :param known: The share of the question's terms, weighted by rarity, that some passage holds; None: it has none
        but names.
    :param rarest: The idf of a term that no passage holds: the more passages, the more it weighs.
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
    fact_ids: NDArray[np.int64]
    fields: FieldScores
    speakers: NDArray[np.int32]
    named: int | None
    known: float | None
    rarest: float
    terms: tuple[tuple[TermMatch, ...], ...]
    repairs: Mapping[str, str]
    complete: bool
    excluded: int

    def joined(self, other: Candidates, rows_before: int) -> Candidates:
        """With the candidates of another index, whose rows are numbered on from `rows_before`."""

        def both(one: NDArray[Any], two: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([one, two])

        def field_of(found: Candidates, name: str) -> NDArray[np.float32]:
            return found.fields.get(name, np.zeros(len(found.rows), dtype=np.float32))

        return replace(
            self,
            rows=both(self.rows, other.rows + rows_before),
            passage_ids=both(self.passage_ids, other.passage_ids),
            owner_ids=both(self.owner_ids, other.owner_ids),
            lexical=both(self.lexical, other.lexical),
            dense=both(self.dense, other.dense),
            similarity=both(self.similarity, other.similarity),
            profiles=both(self.profiles, other.profiles),
            occurred_us=both(self.occurred_us, other.occurred_us),
            fact_ids=both(self.fact_ids, other.fact_ids),
            speakers=both(self.speakers, other.speakers),
            fields={
                name: both(field_of(self, name), field_of(other, name))
                for name in dict.fromkeys([*self.fields, *other.fields])
            },
            terms=(*self.terms, *other.terms),
            complete=self.complete and other.complete,
            excluded=self.excluded + other.excluded,
        )


class NamespaceIndex:
    """Search and update of one namespace. `change_seq` is the last write that it knows.

    Who sees a part of it gets the answers that the part alone would give: the statistics are the part's too, since a
    rare word's weight or a mean would tell of the rest.
    """

    def __init__(
        self,
        dim: int,
        rules: Mapping[Profile, WordRules],
        analyse: Callable[[str], Sequence[str]],
        *,
        vectors: VectorIndex | None = None,
        words: PassageWords | None = None,
    ) -> None:
        self.lock = ReadersWriterLock()
        self.change_seq = 0
        self.vectors = VectorIndex(dim) if vectors is None else vectors
        self.words = PassageWords(rules) if words is None else words
        self.attributes = PassageAttributes(analyse)
        self._parts: dict[tuple[str, ...], _Part] = {}

    def __len__(self) -> int:
        return len(self.attributes)

    def owner_count(self) -> int:
        with self.lock.read():
            owners = np.sort(self.attributes.owners)
        return len(owners[:1]) + int(np.count_nonzero(np.diff(owners)))

    @property
    def nbytes(self) -> int:
        return self.vectors.nbytes + self.words.nbytes + self.attributes.nbytes

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
            case PassageAdded(passage, vector, chunks):
                row = self.attributes.row_of(passage.id)
                if row is None:
                    self.vectors.extend(vector[None, :])
                    self.words.add(chunks, passage.profile)
                    self.attributes.append(row_of(passage))
                    self._count_in_parts(passage.source, vector, 1)
                else:  # an earlier write of its owner may have been told again
                    self._parts.clear()
                    occurred_us = to_us(passage.occurred_at)
                    self.attributes.change(row, passage.source, occurred_us, passage.archived, passage.dated)
            case PassageRemoved(passage_id):
                row = self.attributes.row_of(passage_id)
                if row is not None:
                    self._count_in_parts(self.attributes.source_of(row), self.vectors.rows(np.array([row]))[0], -1)
                    self.vectors.remove(row)
                    self.words.remove(row)
                    self.attributes.remove(row)
            case OwnerChanged():
                if self.attributes.change_owner(change):
                    self._parts.clear()

    def holds(self, profile: Profile) -> bool:
        """Whether there is a passage of this profile."""
        return self.attributes.holds(profile)

    def search(self, probe: Probe) -> Candidates:
        """The passages that either arm ranks among its first `candidate_count`, under the filters, scored exactly.

        The words' arm ranks by everything but the cosine.
        """
        with self.lock.read():
            visible = self.attributes.visible(probe.filters.visible)
            if probe.moment is not None:
                return self._found_at(probe.moment, probe, visible)
            corpus = self._corpus(visible)
            part = _Searched(visible, corpus, self._mean(probe.filters.visible, visible), self._asked(probe, corpus))
            return self._found(probe, part)

    def _found_at(self, moment: Moment, probe: Probe, visible: NDArray[np.bool_] | None) -> Candidates:
        former = moment.former
        stood = np.isin(self.attributes.owners, moment.owner_ids)
        for mask in (self.attributes.texts(), visible):
            stood = stood if mask is None else stood & mask
        corpus, of_former = self.words.corpora_with(former.words, stood)
        total = self.vectors.sum_of(stood) + former.vectors.sum_of(np.ones(len(former), dtype=np.bool_))
        mean = drawn_mean(total, int(np.count_nonzero(stood)) + len(former))
        asked = self._asked(probe, corpus)
        here = self._found(probe, _Searched(stood, corpus, mean, asked))
        if not len(former):
            return here
        talk = former.attributes.profiles == Profile.TALK
        there = former._found(probe, _Searched(None, of_former, mean, replace(asked, talk=talk)))
        return here.joined(there, len(self))

    def _found(self, probe: Probe, part: _Searched) -> Candidates:
        visible, corpus, asked = part.rows, part.corpus, part.asked
        allowed = self.attributes.allowed(probe.filters, probe.owner_ids)
        if probe.moment is not None and visible is not None:
            allowed = visible if allowed is None else allowed & visible
        evidence = self.words.score(asked.words, corpus, self._neighbourhood(), asked.talk)
        columns = self.attributes.columns(self.words.lengths, asked.named)
        fields = {} if probe.fields is None else probe.fields(columns)
        centre = part.mean if probe.centred else np.zeros_like(part.mean)
        count = probe.candidate_count
        # Alone the words find what holds one of them; beside the other arm everything is a candidate.
        matched = evidence.scores > 0 if probe.vector is None else None
        found = [_top(evidence.scores, fields, [one for one in (allowed, matched) if one is not None], count)]
        found += [self.vectors.search(one - centre, count, allowed) for one in self._dense_queries(probe)]
        rows = self._with_siblings(_union(found, len(self)), allowed)
        dense, similarity = self._cosines(rows, probe, centre)
        reachable = len(self) if allowed is None else int(np.count_nonzero(allowed))
        seen = len(self) if visible is None else int(np.count_nonzero(visible))
        return Candidates(
            rows=rows,
            passage_ids=self.attributes.ids[rows],
            owner_ids=self.attributes.owners[rows],
            lexical=evidence.scores[rows].astype(np.float64),
            dense=dense,
            similarity=similarity,
            profiles=self.attributes.profiles[rows].astype(np.int64),
            occurred_us=self.attributes.occurred[rows],
            fact_ids=self.attributes.fact_ids[rows],
            fields={name: values[rows] for name, values in fields.items()},
            speakers=self.attributes.spoken_by[rows],
            named=asked.named,
            known=evidence.known_share,
            rarest=idf(0, corpus),
            terms=tuple(map(evidence.explain, rows.tolist())) if probe.explain else (),
            repairs=asked.repairs,
            complete=all(len(part) < count for part in found) or len(rows) == reachable,
            excluded=seen - reachable,
        )

    def _corpus(self, visible: NDArray[np.bool_] | None) -> Corpus:
        """What somebody sees. The average length is that of texts alone: beside facts every text would be long."""
        corpus, texts = self.words.corpus(visible), self.attributes.texts()
        if texts is None:
            return corpus
        lengths = self.words.lengths[texts if visible is None else texts & visible]
        return replace(corpus, average_length=float(lengths.mean()) if len(lengths) else 0.0)

    def _with_siblings(self, rows: NDArray[np.int64], allowed: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """Where owners have facts, with all passages of these rows' owners, since they count together."""
        if self.attributes.texts() is None:
            return rows
        owners = self.attributes.owners
        found = np.isin(owners, owners[rows])
        return np.flatnonzero(found if allowed is None else found & allowed)

    def _asked(self, probe: Probe, corpus: Corpus) -> _Asked:
        """The terms to look for, and the one speaker whom they name."""
        repaired = self.words.chunks.repair(probe.words or (), corpus)
        speakers = self.attributes.speakers
        names = frozenset(term for term in repaired.terms if speakers.is_name(term))
        talk = self.attributes.profiles == Profile.TALK
        named = speakers.only_one_named(names)
        return _Asked(WordQuery(repaired.terms, names), repaired.repairs, talk, named)

    def _neighbourhood(self) -> Neighbourhood | None:
        """None where nothing spreads."""
        held = [profile for profile in Profile if self.attributes.holds(profile)]
        if not self.attributes.linked or not any(map(self.words.spreads, held)):
            return None
        before, after = self.attributes.neighbours()
        asks = (self.attributes.flags & TurnFlag.QUESTION).astype(np.bool_)
        # One entry more, for the neighbour that is not there.
        profiles = np.append(self.attributes.profiles, np.uint8(0))
        return Neighbourhood(before, after, profiles, self.attributes.only_profile, asks)

    def _dense_queries(self, probe: Probe) -> list[FloatVector]:
        """What the vector arm looks for: the question, without its framing where all passages are of a chat."""
        if probe.vector is None:
            return []
        if probe.unframed is None or not probe.centred:
            return [probe.vector]
        only_chat = not any(self.holds(profile) for profile in Profile if profile is not Profile.CHAT)
        return [probe.unframed] if only_chat else [probe.vector, probe.unframed]

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

    def _cosines(
        self, rows: NDArray[np.int64], probe: Probe, centre: FloatVector
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Centred and plain cosine of the query with the rows; zeros without a query vector."""
        if probe.vector is None:
            return np.zeros(len(rows)), np.zeros(len(rows))
        vectors = self.vectors.rows(rows)
        dense, similarity = _centred_cosines(vectors, probe.vector, centre)
        if probe.unframed is not None:
            chat = self.attributes.profiles[rows] == Profile.CHAT
            dense[chat] = _centred_cosines(vectors[chat], probe.unframed, centre)[0]
        return dense, similarity

    def nearest(self, vectors: FloatVector, *, filters: Filters) -> tuple[int, float] | None:
        """The owner most similar to a text of these passages (m, dim), and how similar it is.

        Similarity is the mean over the text's passages of their best cosine with one of the owner's: 1.0 means that
        everything the text says stands there. Facts are not looked at: that one stands there says nothing of the rest.
        """
        with self.lock.read():
            allowed, texts = self.attributes.allowed(filters, None), self.attributes.texts()
            allowed = texts if allowed is None else allowed if texts is None else allowed & texts
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

    def near(self, owner_ids: Sequence[int], count: int) -> dict[int, list[tuple[int, float]]]:
        """Of each of these owners, the others whose passages are nearest to its one passage, with the cosines."""
        with self.lock.read():
            found: dict[int, list[tuple[int, float]]] = {}
            for row in np.flatnonzero(np.isin(self.attributes.owners, owner_ids)).tolist():
                vector = self.vectors.rows(np.array([row]))[0]
                rows = self.vectors.search(vector, count + 1, None)
                rows = rows[rows != row]
                cosines = (self.vectors.rows(rows) @ vector).tolist()
                others = self.attributes.owners[rows].tolist()
                found[int(self.attributes.owners[row])] = list(zip(others, cosines, strict=True))
            return found

    def problems(self, truth: Iterable[tuple[Passage, FloatVector]], analyse: Callable[[Passage], Chunks]) -> list[str]:
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
                found += self._row_problems(row, passage, vector, analyse(passage))
            found += self.attributes.problems()
            if seen != len(self) or len(self.vectors) != len(self) or len(self.words) != len(self):
                found.append(
                    f"{seen} passages stored, {len(self)} rows, {len(self.vectors)} vectors, {len(self.words)} texts"
                )
        return found

    def _row_problems(self, row: int, passage: Passage, vector: FloatVector, chunks: Chunks) -> Iterable[str]:
        if not self.vectors.agrees(row, vector):
            yield f"passage {passage.id} has another vector"
        held, stated = (
            sorted(sorted(one.items()) for one in of) for of in (self.words.chunks_of(row), map(Counter, chunks))
        )
        if held != stated:
            yield f"passage {passage.id} has other terms"
        if not self.attributes.agrees(row, passage):
            yield f"passage {passage.id} has other attributes"


@dataclass(frozen=True, slots=True)
class _Asked:
    """:param talk: Turns of talks, (n,). :param named: Code of the one speaker whom the question names."""

    words: WordQuery
    repairs: Mapping[str, str]
    talk: NDArray[np.bool_]
    named: int | None


@dataclass(frozen=True, slots=True)
class _Searched:
    """The rows that a search sees, (n,), None being all, and what is known of them together."""

    rows: NDArray[np.bool_] | None
    corpus: Corpus
    mean: FloatVector
    asked: _Asked


def _top(
    lexical: NDArray[np.float32], fields: FieldScores, masks: Sequence[NDArray[np.bool_]], count: int
) -> NDArray[np.int64]:
    """Rows of the `count` greatest sums that are not zero, in no order, where all masks (n,) hold."""
    scores = reduce(np.add, fields.values(), lexical)
    rows = np.flatnonzero(reduce(np.logical_and, masks, scores != 0))
    if len(rows) > count:
        rows = rows[np.argpartition(scores[rows], len(rows) - count)[-count:]]
    return rows


def _centred_cosines(
    vectors: FloatVector, query: FloatVector, centre: FloatVector
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centred and plain cosine of a query (dim,) with unit vectors (n, dim)."""
    # `vecdot` stays on this thread: for so few rows, waking a second one costs more than it brings.
    similarity, along_centre = (np.vecdot(vectors, other).astype(np.float64) for other in (query, centre))
    # The rows have length 1, so both parts of the centred cosine follow from these two products.
    centre_square = float(centre @ centre)
    products = similarity - along_centre - float(centre @ query) + centre_square
    lengths = np.sqrt(np.maximum(1.0 - 2.0 * along_centre + centre_square, 0.0)) * np.linalg.norm(query - centre)
    return np.divide(products, lengths, out=np.zeros(len(vectors)), where=lengths > 0), similarity


def _union(parts: Sequence[NDArray[np.int64]], count: int) -> NDArray[np.int64]:
    """The rows, of `count`, that stand in any of the parts, in ascending order."""
    found = np.zeros(count, dtype=np.bool_)
    for part in parts:
        found[part] = True
    return np.flatnonzero(found)
