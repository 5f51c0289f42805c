"""Cluster segments of sessions by topic: average-link clustering by meaning and by the terms that they contain.

A pure function of the segments and of their sessions: equal segments give equal clusters. Vectors are centred on the
agent's mean, which takes out what all of its messages share, such as the names of speakers. Weights and
components of vectors are integers, so that no sum depends on its order; segments are processed in the given order.
Segments after the first `BATCH_SEGMENTS` are processed in batches, and clusters of earlier batches are never split, so
that time grows linearly with the segments instead of quadratically. (Average link: Sokal and Michener 1958;
nearest-neighbour chains: Murtagh 1983.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

from souvenir.knowledge.segmentation import UNIT, Floats, Ints, Segment, centred_vectors, unit_vectors

SAME_TOPIC = (0.1, 0.4)
"""Mean similarity of their segments from which two clusters are merged, in a history of few segments and of many: the
more pairs there are, the more of them are similar by chance; measured by `make bench-topics` ..."""

FEW_SEGMENTS, DOUBLING = 20, 0.14
"""... and from so many segments it grows by this with each doubling."""

TERM_SHARE = 0.35
"""The similarity of two segments is the cosine of their vectors, plus this times the cosine of their terms ..."""

TERM_SHARE_ALONE = 1.0
"""... or this times the latter if there are no vectors ..."""

SAME_SESSION = 0.1
"""... less this if they are of one session, which was divided there because the subject seemed to change."""

MEAN_PRIOR = 10
"""The agent's mean counts as if so many more messages of full weight had no direction: a short history has less of a
mean, since it may have one subject only."""

TERMS_OF_SEGMENT = 64
"""Only the terms with the highest weights of a segment count; ties are kept."""

SAID_ONCE = 0.3
"""Factor of the weight of a term that only one segment contains: it links the segment to no other."""

USUAL_SHARE = 0.2
"""Terms that a larger share of the segments contains are ignored, since they distinguish none ..."""

USUAL_SEGMENTS = 5
"""... if it is more than this many."""

BATCH_SEGMENTS = 1_000

OPEN_TOPICS = 1_000
"""Number of the largest clusters that later batches may join."""

_STEPS = 16
"""Weights are rounded to sixteenths before they are scaled to the length `UNIT`."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """Topics are numbered from 0, in the order of their first segments.

    :param topic_of: The topic of each segment; -1 if none of the topic mentions a concept, by which it could be named.
    :param relevance: For each segment, its cosine to the mean of the topic, 0 to 1; 0 without vectors.
    :param means: For each topic, its mean vector as it is, and centred, of the length `UNIT`.
    :param mentions: For each topic, its concepts and how much its segments mention each of them.
    :param topics_of: The number of topics that mention each concept.
    """

    topic_of: Sequence[int]
    relevance: Sequence[float]
    means: Sequence[tuple[Floats, Floats]]
    mentions: Sequence[Mapping[int, int]]
    topics_of: Mapping[int, int]


def clusters_of(segments: Sequence[Segment], sessions: Sequence[int]) -> Clusters:
    """Cluster the segments.

    :param sessions: The session of each; segments of one session follow each other in order.
    """
    terms, (sums, vectors) = _terms(segments), _vectors(segments)
    _, session_of = np.unique(np.array(sessions, np.int64), return_inverse=True)
    of_session = _Rows(np.arange(len(segments)), session_of, np.ones(len(segments)), len(segments))
    topic_of = _numbered(_cluster_of(terms, of_session, vectors), segments)
    mentions: list[Counter[int]] = [Counter() for _ in range(int(topic_of.max(initial=-1)) + 1)]
    for topic, segment in zip(topic_of.tolist(), segments, strict=True):
        if topic >= 0:
            mentions[topic].update(segment.mentions)
    centred = unit_vectors(_summed(vectors, topic_of, len(mentions)))
    return Clusters(
        topic_of.tolist(),
        _relevance(vectors, topic_of, centred),
        list(zip(unit_vectors(_summed(sums, topic_of, len(mentions))), centred, strict=True)),
        mentions,
        Counter(id_ for of_topic in mentions for id_ in of_topic),
    )


class _Rows:
    """Sparse rows of integers: a segment, or a sum of segments.

    :param starts: Index of the first entry of each row, shape (rows + 1,). :param row: Row of each entry; ascending.
    """

    def __init__(self, row: Ints, column: Ints, value: Floats, rows: int) -> None:
        self.row, self.column, self.value, self.rows = row, column, value, rows
        self.columns = int(column.max(initial=-1)) + 1
        self.starts = np.searchsorted(row, np.arange(rows + 1))
        self._by_column = np.argsort(column, kind="stable")
        self._column_starts = np.searchsorted(column[self._by_column], np.arange(self.columns + 1))

    def entries(self, row: int) -> tuple[Ints, Floats]:
        """Return the columns and the values of a row."""
        chosen = slice(self.starts[row], self.starts[row + 1])
        return self.column[chosen], self.value[chosen]

    def dots(self, columns: Ints, values: Floats) -> Floats:
        """Return the dot product with every row."""
        begins = self._column_starts[columns]
        counts = self._column_starts[columns + 1] - begins
        ends = np.cumsum(counts)
        met = self._by_column[np.arange(counts.sum()) + np.repeat(begins - ends + counts, counts)]
        products = self.value[met] * np.repeat(values, counts)
        return np.bincount(self.row[met], weights=products, minlength=self.rows).astype(np.float64)

    def summed(self, into: Ints, rows: int) -> _Rows:
        """Sum rows into fewer rows.

        :param into: The target row of each row; -1 omits it.
        """
        kept = into[self.row] >= 0
        places = into[self.row[kept]] * self.columns + self.column[kept]
        placed, place = np.unique(places, return_inverse=True)
        value = np.bincount(place, weights=self.value[kept], minlength=len(placed)).astype(np.float64)
        width = max(self.columns, 1)
        return _Rows(placed // width, placed % width, value, rows)


def _terms(segments: Sequence[Segment]) -> _Rows:
    """Return the unit vectors of the weights of their terms; a segment without distinctive ones has no entries."""
    counts = np.concatenate([np.empty(0), *(one.counts for one in segments)])
    row = np.repeat(np.arange(len(segments), dtype=np.int64), [len(one.terms) for one in segments])
    terms = np.concatenate([np.empty(0, np.uint32), *(one.terms for one in segments)])
    column = np.unique(terms, return_inverse=True)[1]
    weight = _weights(counts, column, len(segments), sum(one.messages for one in segments))
    kept = _heaviest(row, weight, len(segments))
    row, column, weight = row[kept], column[kept], weight[kept]
    length = np.sqrt(np.bincount(row, weights=weight * weight, minlength=len(segments)))
    return _Rows(row, column, np.rint(UNIT * weight / length[row]), len(segments))


def _vectors(segments: Sequence[Segment]) -> tuple[Floats, Floats]:
    """Return the weighted sums of the segments' vectors, and their centred unit vectors; zeros without vectors."""
    dim = max((len(one.mean) for one in segments), default=0)
    weights, means = np.zeros((len(segments), 1)), np.zeros((len(segments), dim))
    for index, one in enumerate(segments):
        weights[index] = one.weight
        means[index, : len(one.mean)] = one.mean
    sums = weights * means
    return sums, centred_vectors(sums, weights, MEAN_PRIOR)


def _summed(vectors: Floats, into: Ints, rows: int) -> Floats:
    """Sum rows into fewer rows.

    :param into: The target row of each row; -1 omits it.
    """
    summed = np.zeros((rows, vectors.shape[1]))
    kept = into >= 0
    np.add.at(summed, into[kept], vectors[kept])
    return summed


def _cluster_of(terms: _Rows, of_session: _Rows, vectors: Floats) -> Ints:
    """Return a cluster of each segment, or -1 if it has neither terms nor a vector."""
    least = least_similarity(terms.rows)
    speaking = np.flatnonzero((np.diff(terms.starts) > 0) | vectors.any(axis=1))
    cluster_of = np.full(terms.rows, -1)
    open_, sizes, alike, made = np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 0)), 0
    for begin in range(0, len(speaking), BATCH_SEGMENTS):
        batch = speaking[begin : begin + BATCH_SEGMENTS]
        known = len(open_)
        clusters = np.concatenate([open_, np.arange(made, made + len(batch))])
        cluster_of[batch] = clusters[known:]
        made += len(batch)
        item_of_cluster = np.full(made, -1)
        item_of_cluster[clusters] = np.arange(len(clusters))
        item_of = np.where(cluster_of >= 0, item_of_cluster[cluster_of], -1)
        sizes = np.concatenate([sizes, np.ones(len(batch))])
        items = terms.summed(item_of, len(clusters)), of_session.summed(item_of, len(clusters))
        alike = _grown(*items, _summed(vectors, item_of, len(clusters)), alike, sizes)
        into = average_link(alike, sizes, least)
        cluster_of = np.where(item_of >= 0, clusters[into[item_of]], cluster_of)
        # The largest clusters stay open, ties broken by the newest.
        left = np.unique(into)
        left = np.sort(left[np.lexsort((-clusters[left], -sizes[left]))[:OPEN_TOPICS]])
        open_, sizes, alike = clusters[left], sizes[left], alike[np.ix_(left, left)]
    return cluster_of


def least_similarity(segments: int) -> float:
    """Return the mean similarity from which clusters are merged in a history of so many segments."""
    few, many = SAME_TOPIC
    return min(few + DOUBLING * log2(max(segments / FEW_SEGMENTS, 1.0)), many)


def _grown(terms: _Rows, of_session: _Rows, vectors: Floats, alike: Floats, sizes: Floats) -> Floats:
    """Return the mean similarities of all items; those of the first items are known."""
    known, share = len(alike), TERM_SHARE if vectors.any() else TERM_SHARE_ALONE
    grown = np.zeros((terms.rows, terms.rows))
    grown[:known, :known] = alike
    products = vectors[known:] @ vectors.T
    for item in range(known, terms.rows):
        products[item - known] += share * terms.dots(*terms.entries(item))
        products[item - known] -= SAME_SESSION * UNIT**2 * of_session.dots(*of_session.entries(item))
        grown[item] = products[item - known] / (sizes[item] * sizes * UNIT**2)
    grown[:known, known:] = grown[known:, :known].T
    return grown


def _weights(counts: Floats, column: Ints, segments: int, messages: int) -> Floats:
    """Return integer weights: the logarithm of the frequency times the logarithm of the rarity among all messages."""
    segments_of = np.bincount(column)
    rarity = np.log2(1 + messages / np.bincount(column, weights=counts))
    rarity[segments_of == 1] *= SAID_ONCE
    rarity[segments_of > max(USUAL_SEGMENTS, int(USUAL_SHARE * segments))] = 0.0
    weights: Floats = np.rint(_STEPS * np.log2(1 + counts) * rarity[column])
    return weights


def _heaviest(row: Ints, weight: Floats, segments: int) -> NDArray[np.bool_]:
    """Return a mask of the entries that are among the heaviest of their segment."""
    kept = weight > 0
    starts = np.searchsorted(row, np.arange(segments + 1))
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if end - begin > TERMS_OF_SEGMENT:
            least = np.partition(weight[begin:end], -TERMS_OF_SEGMENT)[-TERMS_OF_SEGMENT]
            kept[begin:end] &= weight[begin:end] >= least
    return kept


def average_link(alike: Floats, sizes: Floats, least: float) -> Ints:
    """Merge items by average link while the similarity is at least `least`; returns the representative of each item.

    :param alike: Symmetric similarities. Both it and `sizes` are updated in place for the representatives.
    """
    np.fill_diagonal(alike, -1.0)
    into, open_ = np.arange(len(alike)), np.ones(len(alike), bool)
    chain: list[int] = []
    while chain or open_.any():
        chain = chain or [int(np.argmax(open_))]
        last = chain[-1]
        nearest = int(np.argmax(alike[last]))
        if len(chain) > 1 and alike[last, chain[-2]] >= alike[last, nearest]:
            nearest = chain[-2]
        if alike[last, nearest] < least:
            # It stays below: merging others never makes one of them more similar to it than the best one was.
            open_[chain.pop()] = False
        elif len(chain) > 1 and nearest == chain[-2]:
            chain = chain[:-2]
            gone = max(last, nearest)
            _join(alike, sizes, min(last, nearest), gone)
            into[into == gone] = min(last, nearest)
            open_[gone] = False
        else:
            chain.append(nearest)
    return into


def _join(alike: Floats, sizes: Floats, one: int, other: int) -> None:
    both = sizes[one] + sizes[other]
    alike[one] = alike[:, one] = (alike[one] * sizes[one] + alike[other] * sizes[other]) / both
    alike[other] = alike[:, other] = alike[one, one] = -1.0
    sizes[one] = both


def _numbered(cluster_of: Ints, segments: Sequence[Segment]) -> Ints:
    """Number the clusters that mention any concept by their first segments; others are no topics."""
    speaking = np.unique(cluster_of[[bool(one.mentions) for one in segments]])
    topic_of = np.full(len(cluster_of), -1)
    kept = np.flatnonzero(np.isin(cluster_of, speaking) & (cluster_of >= 0))
    _, firsts, label = np.unique(cluster_of[kept], return_index=True, return_inverse=True)
    topic_of[kept] = np.argsort(np.argsort(firsts))[label]
    return topic_of


def _relevance(vectors: Floats, topic_of: Ints, centred: Floats) -> list[float]:
    """Rounded, so that it is stable; 0 without vectors."""
    kept = np.flatnonzero(topic_of >= 0)
    cosines = np.zeros(len(topic_of))
    cosines[kept] = (vectors[kept] * centred[topic_of[kept]]).sum(axis=1) / UNIT**2
    return [round(min(max(one, 0.0), 1.0), 2) for one in cosines.tolist()]
