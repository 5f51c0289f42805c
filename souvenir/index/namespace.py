"""The index of a namespace's passages of one kind: vectors, words and attributes with common rows.

The lock is held only while arrays are accessed: queries are analysed and embedded before, and passages prepared.
Updates are idempotent, since a namespace that is being loaded may receive a write that its load has already included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from souvenir.core.array_file import Rows, Streamed
from souvenir.core.concurrency import Pace, ReadersWriterLock
from souvenir.core.labels import is_visible
from souvenir.core.passages import (
    IndexChange,
    OwnerChanged,
    PassageAdded,
    PassageRemoved,
    TokensAdded,
)
from souvenir.core.timestamps import to_us
from souvenir.core.types import Filters, FloatVector, Profile
from souvenir.index.attributes import Contents, PassageAttributes, row_of
from souvenir.index.candidates import (
    ArmSeconds,
    Candidates,
    PastState,
    PastStatistics,
    Probe,
    ResolvedQuery,
    SearchScope,
)
from souvenir.index.late_interaction import LateQuery, late_interaction
from souvenir.index.lexical import Corpus, idf
from souvenir.index.passage_words import Neighbourhood, PassageWords, WordQuery, WordRules
from souvenir.index.selection import nearest, top, union
from souvenir.index.speakers import Speakers
from souvenir.index.token_vectors import TokenVectors
from souvenir.index.vector import SCORED_WHOLE_ROWS, FromCentre, VectorIndex, products, shrunk_mean

READ_FOR_CANDIDATES = ("vectors", "tokens", "row_terms")
"""The arrays that may stay in the file of a large snapshot."""

CHANGES_PER_LOCK = 256
"""Changes made while searches wait: some tens of milliseconds at most."""

NEAREST_PASSAGES = 32
"""Candidate passages for each passage of a new text in the search for the most similar stored text."""


MOST_TOKEN_WEIGHT = 6.0
"""Maximum weight of a query token, about that of a word in one of 400 passages."""

PARTS_KEPT = 64
"""Maximum number of path lists whose vector sums are cached."""


@dataclass(slots=True)
class _Part:
    """The sum (dim,) and the number of the vectors visible under a list of paths."""

    total: NDArray[np.float64]
    count: int


class NamespaceIndex:
    """Search and update of one namespace. `change_seq` is the last write that it contains.

    A caller with limited visibility gets the same answers as if the visible part were all: statistics are computed over
    that part too, since a rare word's weight or a mean would disclose the rest.
    """

    def __init__(
        self,
        dim: int,
        rules: Mapping[Profile, WordRules],
        analyse: Callable[[str], Sequence[str]],
        *,
        token_space: str | None = None,
        arrays: Mapping[str, Rows] | None = None,
    ) -> None:
        """:param arrays: What `to_arrays` returned; None: the index is empty.

        :raises ValueError: If the arrays are inconsistent.
        """
        self.lock = ReadersWriterLock()
        self.change_seq = 0
        self.pace = Pace()
        self._parts: dict[tuple[str, ...], _Part] = {}
        if arrays is None:
            self.vectors = VectorIndex(dim)
            self.words = PassageWords(rules)
            self.tokens = TokenVectors(token_space)
            self.attributes = PassageAttributes(analyse)
            return
        self.vectors = VectorIndex.from_arrays(arrays, dim)
        self.words = PassageWords.from_arrays(arrays, rules)
        self.tokens = TokenVectors.from_arrays(arrays, token_space)
        self.attributes = PassageAttributes.from_arrays(arrays, analyse)
        if not len(self.vectors) == len(self.words) == len(self.tokens) == len(self.attributes):
            raise ValueError("its parts hold different numbers of rows")

    def __len__(self) -> int:
        return len(self.attributes)

    def has(self, passage_id: int) -> bool:
        return self.attributes.row_of(passage_id) is not None

    def owner_count(self) -> int:
        with self.lock.read():
            owners = np.sort(self.attributes.owners)
        return len(owners[:1]) + int(np.count_nonzero(np.diff(owners)))

    @property
    def nbytes(self) -> int:
        return self.vectors.nbytes + self.words.nbytes + self.tokens.nbytes + self.attributes.nbytes

    def to_arrays(self) -> dict[str, NDArray[Any] | Streamed]:
        """Return everything that `arrays` needs; valid until the index changes."""
        parts = (self.vectors, self.words, self.tokens, self.attributes)
        return {name: array for part in parts for name, array in part.to_arrays().items()}

    def rebase(self, arrays: Mapping[str, Rows]) -> None:
        """Use the file to which `to_arrays` was written instead of memory, as far as that is possible."""
        with self.lock.write():
            self.vectors.rebase(arrays["vectors"])
            self.words.chunks.rebase(arrays)
            self.tokens.rebase(arrays)
            self.attributes.compact()

    def apply(self, changes: Iterable[IndexChange], change_seq: int) -> None:
        """Apply the changes of a write; searches run between the batches of a large one."""
        remaining = iter(changes)
        while part := list(islice(remaining, CHANGES_PER_LOCK)):
            with self.lock.write():
                self._apply_all(part)
        self.change_seq = max(self.change_seq, change_seq)

    def _apply_all(self, changes: Sequence[IndexChange]) -> None:
        """Apply changes; the vectors of consecutive new passages are added together, which is faster."""
        new: list[FloatVector] = []
        for change in changes:
            is_new = isinstance(change, PassageAdded) and not self.has(change.passage.id)
            if new and not is_new:
                self.vectors.extend(np.stack(new))
                new = []
            if isinstance(change, PassageAdded) and is_new:
                new.append(change.embedding.vector)
            self._apply(change)
        if new:
            self.vectors.extend(np.stack(new))

    def _apply(self, change: IndexChange) -> None:
        match change:
            case PassageAdded(passage, (vector, tokens), chunks):
                row = self.attributes.row_of(passage.id)
                if row is None:
                    self.words.add(chunks, passage.profile)
                    self.tokens.append(tokens)
                    self.attributes.append(row_of(passage))
                    self._count_in_parts(passage.source, vector, 1)
                else:  # an earlier write of its owner may be applied again
                    self._parts.clear()
                    occurred_us = to_us(passage.occurred_at)
                    self.attributes.change(row, passage.source, occurred_us, passage.archived, passage.dated)
            case PassageRemoved(passage_id):
                row = self.attributes.row_of(passage_id)
                if row is not None:
                    self._count_in_parts(self.attributes.source_of(row), self.vectors.rows(np.array([row]))[0], -1)
                    self.vectors.remove(row)
                    self.words.remove(row)
                    self.tokens.remove(row)
                    self.attributes.remove(row)
            case TokensAdded(passage_id, _, tokens):
                row = self.attributes.row_of(passage_id)
                if row is not None:
                    self.tokens.replace(row, tokens)
            case OwnerChanged():
                if self.attributes.change_owner(change):
                    self._parts.clear()

    def holds(self, profile: Profile) -> bool:
        """Return whether there is a passage of this profile."""
        return self.attributes.holds(profile)

    def search(self, probe: Probe) -> Candidates:
        """Return the passages among the first `candidate_count` of either arm, under the filters, scored exactly.

        The words' arm ranks by everything except the cosine.
        """
        arrived_s = perf_counter()
        with self.lock.read():
            times = arrived_s, perf_counter()
            visible = self.attributes.visible(probe.filters.visible)
            if probe.past is not None:
                return self._search_past(probe.past, probe, visible, times)
            corpus = self._corpus(visible)
            mean = self._mean(probe.filters.visible, visible)
            resolved = self._resolved(probe, corpus, self.attributes.speakers)
            contents = self.attributes.contents(None)
            return self._search(probe, SearchScope(visible, corpus, mean, resolved, contents, times))

    def late_scores(
        self, probe: Probe, rows: NDArray[np.int64], passage_ids: NDArray[np.int64]
    ) -> NDArray[np.float64] | None:
        """Return the late interaction of the probe with passages, (n,); that of a passage deleted meanwhile is 0.

        :param rows: The rows that the passages had when they were found.

        A token weighs as much as the rarest term of its word, at most `MOST_TOKEN_WEIGHT`; names of speakers are left
        out. None if there is nothing to compare: token vectors of some of the passages are missing, for instance since
        they are not made yet, or the query has no tokens other than names.
        """
        if probe.late is None:
            return None
        with self.lock.read():
            visible = self.attributes.visible(probe.filters.visible)
            if probe.past is None:
                weights = self._token_weights(probe.late, self._corpus(visible), self.attributes.speakers)
                return self._late_scores(probe.late, weights, rows, passage_ids, visible)
            then = self._then(probe.past, visible)
            weights = self._token_weights(probe.late, then.corpus, then.speakers)
            former = probe.past.former
            is_former = np.array([former.has(id_) for id_ in passage_ids.tolist()], dtype=np.bool_)
            found = np.zeros(len(rows))
            for index, mask, standing in ((self, ~is_former, then.stood), (former, is_former, None)):
                scores = index._late_scores(probe.late, weights, rows[mask], passage_ids[mask], standing)
                if scores is None:
                    return None
                found[mask] = scores
            return found

    def _late_scores(
        self,
        query: LateQuery,
        weights: NDArray[np.float32],
        rows: NDArray[np.int64],
        passage_ids: NDArray[np.int64],
        visible: NDArray[np.bool_] | None,
    ) -> NDArray[np.float64] | None:
        rows, held = self._rows_now(rows, passage_ids)
        counted = weights > 0
        if self.tokens.missing(rows[held]) or not counted.any():
            return None
        found = np.zeros(len(rows))
        found[held] = late_interaction(
            self.tokens,
            rows[held],
            query.vectors[counted],
            weights[counted],
            self._neighbourhood(),
            self.words.shares,
            visible,
        )
        return found

    def _rows_now(
        self, rows: NDArray[np.int64], passage_ids: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the present rows of passages, and which of the passages there still are."""
        ids = self.attributes.ids
        if len(rows) and rows.max() < len(ids) and np.array_equal(ids[rows], passage_ids):
            return rows, np.ones(len(rows), dtype=np.bool_)
        found = [self.attributes.row_of(id_) for id_ in passage_ids.tolist()]
        held = np.array([row is not None for row in found], dtype=np.bool_)
        return np.array([row or 0 for row in found], dtype=np.int64), held

    def _token_weights(self, query: LateQuery, corpus: Corpus, speakers: Speakers) -> NDArray[np.float32]:
        """Return the weight of each token of a query, 0 for names of speakers."""
        frequency, names = self.words.chunks.document_frequency, speakers.names
        rarity = {term: idf(frequency(term, corpus), corpus) for terms in query.terms for term in terms}
        return np.array(
            [
                0.0
                if not names.isdisjoint(terms)
                else min(MOST_TOKEN_WEIGHT, max([rarity[term] for term in terms], default=0.0))
                for terms in query.terms
            ],
            dtype=np.float32,
        )

    def _search_past(
        self, past: PastState, probe: Probe, visible: NDArray[np.bool_] | None, times: tuple[float, float]
    ) -> Candidates:
        former, then = past.former, self._then(past, visible)
        total = self.vectors.sum_of(then.stood) + former.vectors.sum_of(np.ones(len(former), dtype=np.bool_))
        mean = shrunk_mean(total, int(np.count_nonzero(then.stood)) + len(former))
        resolved = self._resolved(probe, then.corpus, then.speakers)
        here = self._search(probe, SearchScope(then.stood, then.corpus, mean, resolved, then.contents, times))
        if not len(former):
            return here
        talk = former.attributes.profiles == Profile.TALK
        of_former = replace(resolved, talk=talk, named=then.named_in_former(resolved.named))
        there = former._search(
            probe,
            SearchScope(None, then.of_former, mean, of_former, then.contents, (perf_counter(),) * 2),
        )
        return here.joined(replace(there, speakers=then.codes_of_former[there.speakers]), len(self))

    def _then(self, past: PastState, visible: NDArray[np.bool_] | None) -> PastStatistics:
        stood = np.isin(self.attributes.owners, past.owner_ids)
        stood = stood if visible is None else stood & visible
        former = past.former
        corpus, of_former = self.words.corpora_with(former.words, stood)
        here, there = self.attributes, former.attributes
        contents = Contents(*map(any, zip(here.contents(stood), there.contents(None), strict=True)))
        if contents.facts:
            of_texts = (self.words.lengths[stood & (here.fact_ids == 0)], former.words.lengths[there.fact_ids == 0])
            lengths = np.concatenate(of_texts)
            average = float(lengths.mean()) if len(lengths) else 0.0
            corpus, of_former = (replace(one, average_length=average) for one in (corpus, of_former))
        turns, turns_there = here.turns_of_speakers(stood), there.turns_of_speakers(None)
        speakers, codes = here.speakers.joined(turns, there.speakers, turns_there)
        return PastStatistics(stood, corpus, of_former, speakers, np.array(codes, dtype=np.int32), contents)

    def _search(self, probe: Probe, part: SearchScope) -> Candidates:
        visible, corpus, resolved = part.rows, part.corpus, part.resolved
        allowed = self.attributes.allowed(probe.filters, probe.owner_ids)
        if probe.past is not None and visible is not None:
            allowed = visible if allowed is None else allowed & visible
        # Only a blank text has no terms: it answers no query, and its vector is near to that of any short text.
        ranked = self.words.lengths > 0
        if not ranked.all():
            allowed = ranked if allowed is None else allowed & ranked
        evidence = self.words.score(resolved.words, corpus, self._neighbourhood(), resolved.talk)
        columns = self.attributes.columns(self.words.lengths, resolved.named, has_answers=part.contents.answers)
        fields = {} if probe.fields is None else probe.fields(columns)
        centre = part.mean if probe.centred else np.zeros_like(part.mean)
        count = probe.candidate_count
        # Alone, the words' arm returns only passages with a match; with the other arm, everything is a candidate.
        matched = evidence.scores > 0 if probe.vector is None else None
        found = [top(evidence.scores, fields, [one for one in (allowed, matched) if one is not None], count)]
        with_words_s = perf_counter()
        if len(self) <= SCORED_WHOLE_ROWS and probe.vector is not None:
            dense, similarity = self._cosines(None, probe, centre)
            found.append(nearest(dense, allowed, count))
            rows = union(found, len(self))
            rows = self._with_siblings(rows, allowed) if part.contents.facts else rows
            dense, similarity = dense[rows], similarity[rows]
        else:
            found += [self.vectors.search(one - centre, count, allowed) for one in self._dense_queries(probe)]
            rows = union(found, len(self))
            rows = self._with_siblings(rows, allowed) if part.contents.facts else rows
            dense, similarity = self._cosines(rows, probe, centre)
        (arrived_s, began_s), with_vectors_s = part.times, perf_counter()
        reachable = len(self) if allowed is None else int(np.count_nonzero(allowed))
        seen = int(np.count_nonzero(ranked if visible is None else ranked & visible))
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
            named=resolved.named,
            known=evidence.known_share,
            rarest=idf(0, corpus),
            count=corpus.count,
            lacking=evidence.lacking(probe.names, rows),
            greatest_lexical=float(evidence.scores.max(initial=0.0, where=True if allowed is None else allowed)),
            terms=tuple(map(evidence.explain, rows.tolist())) if probe.explain else (),
            repairs=resolved.repairs,
            complete=all(len(part) < count for part in found) or len(rows) == reachable,
            excluded=seen - reachable,
            seconds=ArmSeconds(began_s - arrived_s, with_words_s - began_s, with_vectors_s - with_words_s),
        )

    def _corpus(self, visible: NDArray[np.bool_] | None) -> Corpus:
        """Return the visible corpus. Its average length excludes facts: next to them every text would be long."""
        corpus, texts = self.words.corpus(visible), self.attributes.texts()
        if texts is None:
            return corpus
        lengths = self.words.lengths[texts if visible is None else texts & visible]
        return replace(corpus, average_length=float(lengths.mean()) if len(lengths) else 0.0)

    def _with_siblings(self, rows: NDArray[np.int64], allowed: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """Add all passages of these rows' owners, which are scored together if owners have facts."""
        owners = self.attributes.owners
        found = np.isin(owners, owners[rows])
        return np.flatnonzero(found if allowed is None else found & allowed)

    def _resolved(self, probe: Probe, corpus: Corpus, speakers: Speakers) -> ResolvedQuery:
        """Return the terms to search for, and the only speaker that they name."""
        former = None if probe.past is None else probe.past.former.words.chunks
        repaired = self.words.chunks.repair(probe.words or (), corpus, former)
        names = frozenset(speakers.names & repaired.terms)
        talk = self.attributes.profiles == Profile.TALK
        named = speakers.only_one_named(names)
        return ResolvedQuery(WordQuery(repaired.terms, names), repaired.repairs, talk, named)

    def _neighbourhood(self) -> Neighbourhood | None:
        """Return the inputs of the spread; None if nothing spreads."""
        if not self.attributes.linked or not any(map(self.words.spreads, self.attributes.held_profiles)):
            return None
        before, after = self.attributes.neighbours()
        # One additional entry, for a missing neighbour.
        profiles = np.append(self.attributes.profiles, np.uint8(0))
        return Neighbourhood(before, after, profiles, self.attributes.only_profile, self.attributes.flags)

    def _dense_queries(self, probe: Probe) -> list[FloatVector]:
        """Return the query vectors: the query, and for chats the query without its framing."""
        if probe.vector is None:
            return []
        if probe.unframed is None:
            return [probe.vector]
        only_chat = self.attributes.only_profile is Profile.CHAT
        return [probe.unframed] if only_chat else [probe.vector, probe.unframed]

    def _mean(self, paths: tuple[str, ...] | None, visible: NDArray[np.bool_] | None) -> FloatVector:
        """Return the mean vector of the visible passages."""
        if paths is None or visible is None:
            return self.vectors.mean
        part = self._parts.get(paths)
        if part is None:
            if len(self._parts) >= PARTS_KEPT:
                self._parts.clear()
            part = self._parts[paths] = _Part(self.vectors.sum_of(visible), int(np.count_nonzero(visible)))
        return shrunk_mean(part.total, part.count)

    def _count_in_parts(self, source: str, vector: FloatVector, sign: int) -> None:
        for paths, part in self._parts.items():
            if is_visible(source, paths):
                part.total += sign * vector.astype(np.float64)
                part.count += sign

    def _cosines(
        self, rows: NDArray[np.int64] | None, probe: Probe, centre: FloatVector
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the centred and plain cosine of the query with the rows (None: all); zeros without a query vector."""
        vectors = self.vectors.rows(rows)
        if probe.vector is None:
            return np.zeros(len(vectors)), np.zeros(len(vectors))
        is_whole = rows is None and centre is self.vectors.mean
        from_centre = self.vectors.from_mean() if is_whole else FromCentre.of(vectors, centre)
        similarity = products(vectors, probe.vector)
        dense = from_centre.cosines(probe.vector, similarity)
        if probe.unframed is not None:
            profiles = self.attributes.profiles
            chat = (profiles if rows is None else profiles[rows]) == Profile.CHAT
            dense[chat] = from_centre.only(chat).cosines(probe.unframed, products(vectors[chat], probe.unframed))
        return dense, similarity

    def nearest(self, vectors: FloatVector, *, filters: Filters) -> tuple[int, float] | None:
        """Return the owner most similar to a text of these passages (m, dim), and its similarity.

        Similarity is the mean, over the text's passages, of their best cosine with one of the owner's: 1.0 means that
        the owner contains the whole text. Facts are excluded, since one of them says nothing about the rest of the
        text.
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
