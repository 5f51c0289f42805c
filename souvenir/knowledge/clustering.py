"""Cluster sessions by topic: average-link clustering of the concepts that they mention, weighted by rarity.

A pure function of the counts: equal counts give equal clusters, whatever ids the concepts have. Weights are integers,
so that no sum depends on its order; sessions are processed in the given order. Sessions after the first
`BATCH_SESSIONS` are processed in batches, and clusters of earlier batches are never split, so that time grows linearly
with the sessions instead of quadratically. (Average link: Sokal and Michener 1958; nearest-neighbour chains: Murtagh
1983.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SAME_TOPIC = 0.09
"""Mean cosine of their sessions from which two clusters are merged; measured by `make bench-topics`."""

TERMS_OF_SESSION = 64
"""Only the concepts with the highest weights of a session count; ties are kept."""

TERMS_OF_TOPIC = 12

OTHER_TOPICS = 2
"""Maximum number of further topics of a session; each is as similar to it as sessions of one topic are to each other.
"""

SAID_ONCE = 0.3
"""Factor of the weight of a concept that only one session mentions: it links the session to no other."""

USUAL_SHARE = 0.5
"""Concepts that a larger share of the sessions mentions are ignored, since they distinguish none ..."""

USUAL_SESSIONS = 5
"""... if it is more than this many."""

BATCH_SESSIONS = 1_000

OPEN_TOPICS = 1_000
"""Number of the largest clusters that later batches may join."""

_STEPS = 16
"""Weights are rounded to sixteenths before they are scaled to one length ..."""

_UNIT = 1_024
"""... which is this."""


@dataclass(frozen=True, slots=True)
class Counted:
    """How many messages of a session mention each concept; parallel arrays."""

    concept_ids: Ints
    messages: Ints


@dataclass(frozen=True, slots=True)
class Membership:
    """A session, given by its index, in a topic. `relevance` is its cosine to the mean of the topic."""

    session: int
    topic: int
    relevance: float
    is_primary: bool


@dataclass(frozen=True, slots=True)
class Clusters:
    """Topics are numbered from 0, in the order of their first sessions.

    :param terms: For each topic, the concepts that may be among its best with their weights, heaviest first.
    """

    memberships: Sequence[Membership]
    terms: Sequence[Sequence[tuple[int, int]]]


def clusters_of(sessions: Sequence[Counted]) -> Clusters:
    """Cluster the sessions; a session without distinctive concepts is in no topic."""
    said = _said(sessions)
    topic_of = _topic_of(said)
    topics = said.summed(topic_of, int(topic_of.max(initial=-1)) + 1)
    return Clusters(_memberships(said, topic_of, topics), _terms(topics, _concept_ids(sessions)))


class _Rows:
    """Sparse rows of integers: a session, or a sum of sessions.

    :param starts: Index of the first entry of each row, shape (rows + 1,). :param row: Row of each entry; ascending.
    """

    def __init__(self, row: Ints, column: Ints, value: Floats, rows: int, columns: int) -> None:
        self.row, self.column, self.value, self.rows, self.columns = row, column, value, rows, columns
        self.starts = np.searchsorted(row, np.arange(rows + 1))
        self._by_column = np.argsort(column, kind="stable")
        self._column_starts = np.searchsorted(column[self._by_column], np.arange(columns + 1))

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
        return _Rows(placed // width, placed % width, value, rows, self.columns)

    def norms(self) -> Floats:
        norms: Floats = np.sqrt(np.bincount(self.row, weights=self.value * self.value, minlength=self.rows))
        return norms


def _concept_ids(sessions: Sequence[Counted]) -> Ints:
    """Return the concept id of each column."""
    return np.unique(np.concatenate([np.empty(0, np.int64), *(one.concept_ids for one in sessions)]))


def _said(sessions: Sequence[Counted]) -> _Rows:
    """Return the unit vectors of the sessions; a session without mentions has no entries."""
    concept_ids = _concept_ids(sessions)
    row = np.repeat(np.arange(len(sessions), dtype=np.int64), [len(one.concept_ids) for one in sessions])
    ids = np.concatenate([np.empty(0, np.int64), *(one.concept_ids for one in sessions)])
    messages = np.concatenate([np.empty(0, np.int64), *(one.messages for one in sessions)])
    column = np.searchsorted(concept_ids, ids).astype(np.int64)
    weight = _weights(messages, np.bincount(column, minlength=len(concept_ids)), column, len(sessions))
    kept = _heaviest(row, weight, len(sessions))
    row, column, weight = row[kept], column[kept], weight[kept]
    length = np.sqrt(np.bincount(row, weights=weight * weight, minlength=len(sessions)))
    return _Rows(row, column, np.rint(_UNIT * weight / length[row]), len(sessions), len(concept_ids))


def _weights(messages: Ints, sessions_of: Ints, column: Ints, sessions: int) -> Floats:
    """Return integer weights: the logarithm of the frequency times the logarithm of the rarity."""
    rarity = np.log2(1 + sessions / np.maximum(sessions_of, 1))
    rarity[sessions_of == 1] *= SAID_ONCE
    rarity[sessions_of > max(USUAL_SESSIONS, int(USUAL_SHARE * sessions))] = 0.0
    weights: Floats = np.rint(_STEPS * np.log2(1 + messages) * rarity[column])
    return weights


def _heaviest(row: Ints, weight: Floats, sessions: int) -> NDArray[np.bool_]:
    """Return a mask of the entries that are among the heaviest of their session."""
    kept = weight > 0
    starts = np.searchsorted(row, np.arange(sessions + 1))
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if end - begin > TERMS_OF_SESSION:
            least = np.partition(weight[begin:end], -TERMS_OF_SESSION)[-TERMS_OF_SESSION]
            kept[begin:end] &= weight[begin:end] >= least
    return kept


def _topic_of(said: _Rows) -> Ints:
    """Return the topic of each session, or -1."""
    speaking = np.flatnonzero(np.diff(said.starts) > 0)
    topic_of = np.full(said.rows, -1)
    open_, sizes, alike, made = np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 0)), 0
    for begin in range(0, len(speaking), BATCH_SESSIONS):
        batch = speaking[begin : begin + BATCH_SESSIONS]
        known = len(open_)
        topics = np.concatenate([open_, np.arange(made, made + len(batch))])
        topic_of[batch] = topics[known:]
        made += len(batch)
        item_of_topic = np.full(made, -1)
        item_of_topic[topics] = np.arange(len(topics))
        item_of = np.where(topic_of >= 0, item_of_topic[topic_of], -1)
        sizes = np.concatenate([sizes, np.ones(len(batch))])
        alike = _grown(said.summed(item_of, len(topics)), alike, sizes)
        into = average_link(alike, sizes, SAME_TOPIC)
        topic_of = np.where(item_of >= 0, topics[into[item_of]], topic_of)
        # The largest topics stay open, ties broken by the newest.
        left = np.unique(into)
        left = np.sort(left[np.lexsort((-topics[left], -sizes[left]))[:OPEN_TOPICS]])
        open_, sizes, alike = topics[left], sizes[left], alike[np.ix_(left, left)]
    _, firsts, label = np.unique(topic_of[speaking], return_index=True, return_inverse=True)
    topic_of[speaking] = np.argsort(np.argsort(firsts))[label]
    return topic_of


def _grown(items: _Rows, alike: Floats, sizes: Floats) -> Floats:
    """Return the mean cosines of all items; those of the first items are known."""
    known = len(alike)
    grown = np.zeros((items.rows, items.rows))
    grown[:known, :known] = alike
    for item in range(known, items.rows):
        grown[item] = items.dots(*items.entries(item)) / (sizes[item] * sizes * _UNIT**2)
    grown[:known, known:] = grown[known:, :known].T
    return grown


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


def _memberships(said: _Rows, topic_of: Ints, topics: _Rows) -> list[Membership]:
    """Return the topic of each session, and similar further ones; relevance is rounded, so that it is stable."""
    sizes, norms = np.bincount(topic_of[topic_of >= 0], minlength=topics.rows), topics.norms()
    found: list[Membership] = []
    for session in np.flatnonzero(topic_of >= 0).tolist():
        products, own = topics.dots(*said.entries(session)), int(topic_of[session])
        means, cosines = products / (sizes * _UNIT**2), np.minimum(products / (norms * _UNIT), 1.0)
        best = np.argsort(-means, kind="stable")[: OTHER_TOPICS + 1].tolist()
        others = [one for one in best if one != own and means[one] >= SAME_TOPIC][:OTHER_TOPICS]
        found += [Membership(session, one, round(float(cosines[one]), 2), one == own) for one in (own, *others)]
    return found


def _terms(topics: _Rows, concept_ids: Ints) -> list[list[tuple[int, int]]]:
    """Return for each topic all terms that weigh at least as much as the last of the best ones."""
    found: list[list[tuple[int, int]]] = []
    for topic in range(topics.rows):
        columns, weights = topics.entries(topic)
        order = np.argsort(-weights, kind="stable")
        least = weights[order[min(TERMS_OF_TOPIC, len(order)) - 1]]
        best = order[weights[order] >= least]
        found.append(list(zip(concept_ids[columns[best]].tolist(), weights[best].astype(int).tolist(), strict=True)))
    return found
