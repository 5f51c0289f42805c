"""Split a session into segments: runs of messages on one subject (in the manner of TextTiling, Hearst 1997).

A pure function of the session's messages, so that a segment changes only with its session. The messages are grouped
into units (an answer belongs to the question, a greeting to its neighbour); the segmentation with the highest sum of
the segments' coherence, less a cost for each segment, is found by dynamic programming (Utiyama and Isahara 2001). The
coherence of a segment is the length of the sum of its units' vectors. These are centred on the session's mean, and
those of units that begin with few words are shorter. A segment that begins with many words costs less. Vectors are
rounded to integers, whose sums depend on no order, so that every machine finds the same segments. The mean of a segment
that begins with few words is shrunk towards that of the segment before it, since such a segment often continues it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

UNIT = 1_024
"""Vectors are scaled by this and rounded."""

SEGMENT_COST = 0.65
"""Coherence that one more segment must add if it begins with `FULL_BYTES`; measured by `make bench-topics` ..."""

LENGTH_DISCOUNT, LONG_BYTES = 0.3, 300
"""... less this times its further bytes by `LONG_BYTES`, of which no more count; a shorter one costs more. Who begins
a subject must explain it, and writes more than who goes on with the last one."""

LONGEST = 60
"""Maximum units of a segment, so that time grows linearly with the session; clustering joins longer runs again."""

SHORT_BYTES = 15
"""A shorter message ("thanks") has no subject of its own and belongs to its neighbour."""

FULL_BYTES = 80
"""The weight of a message grows with its length up to this one ..."""

LEAST_WEIGHT = 4
"""... from this one."""

LEAST_UNIT = 0.5
"""Length of the vector of a unit that begins with an empty message; it grows to 1 at `FULL_BYTES`. A short opening
("and in winter?") usually continues the subject, so that such a unit alone seldom pays the cost of a segment."""

SESSION_PRIOR = 12
"""The session's mean counts as if so many more messages of full weight had no direction: a short session has less of a
mean, since it may have one subject only."""

USUAL_LIKENESS, LEAST_PRIOR = 0.3, 0.2
"""If messages are more alike than this on average, as all are in a language that the model hardly knows, what they
share says little of their subject: the prior of their mean is multiplied by the cube of the ratio, at least by this."""

OF_USER, OF_OPENING = 2, 2
"""A user says the subject, above all where a segment begins; an answer more often says its details."""

OPENING_COUNTS = 2
"""The first message of a segment counts so many times in its mean, since it says the subject."""

PREVIOUS_WEIGHT = 105
"""Weight of the mean of the segment before in that of a segment that begins with an empty message; it falls to 0 at
`LONG_BYTES`. Chosen with `OPENING_COUNTS` by `make bench-topics`, on whole histories and on samples of them."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a session.

    :param is_answer: Not from a user. :param vector: None if it is not embedded. :param terms: The numbers of its
        distinct terms. :param concept_ids: Those it mentions.
    """

    position: int
    is_answer: bool
    size_bytes: int
    at_us: int
    vector: NDArray[np.float32] | None
    terms: tuple[int, ...]
    concept_ids: tuple[int, ...]

    @property
    def weight(self) -> int:
        return LEAST_WEIGHT + min(self.size_bytes, FULL_BYTES)


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of messages.

    :param first: The position of its first message; `last` of its last one.
    :param weight: The sum of the weights of its messages with a vector.
    :param mean: The weighted mean of its vectors, of its first one again, and of the mean of the segment before, times
        `UNIT`, rounded; empty without vectors.
    :param terms: Ascending. :param counts: How many of its messages contain each of them.
    :param mentions: How much it mentions each of its concepts: 1 for each answer that does, `OF_USER` for each other
        message, and `OF_OPENING` in addition for the first one.
    """

    first: int
    last: int
    messages: int
    first_at_us: int
    last_at_us: int
    weight: int
    mean: NDArray[np.int16]
    terms: NDArray[np.uint32]
    counts: NDArray[np.uint16]
    mentions: Mapping[int, int]


def segments_of(turns: Sequence[Turn]) -> list[Segment]:
    """Return the segments of a session, in order.

    :param turns: By position; at least one.
    """
    units = _unit_begins(turns)
    weights, vectors = _vectors(turns)
    openings = np.array([turns[begin].size_bytes for begin in units.tolist()], np.float64)
    chosen = _segment_begins(_unit_evidence(weights, vectors, units, openings), _costs(openings))
    begins = units[chosen]
    means = np.rint(_means(weights, vectors, begins, openings[chosen])).astype(np.int16)
    ends = [*begins[1:].tolist(), len(turns)]
    return [_segment(turns[begin:end], mean) for begin, end, mean in zip(begins.tolist(), ends, means, strict=True)]


def unit_vectors(vectors: Floats) -> Floats:
    """Return vectors of the length `UNIT` with integer components; zeros stay zeros."""
    scaled = np.rint(UNIT * vectors)
    lengths = np.sqrt((scaled * scaled).sum(axis=1, keepdims=True))
    units: Floats = np.rint(UNIT * scaled / np.maximum(lengths, 1.0))
    return units


def centred_vectors(sums: Floats, weights: Floats, prior: float) -> Floats:
    """Return the means of runs of messages, less the mean of all, of the length `UNIT`; zeros without vectors.

    :param sums: The weighted sums of their vectors times `UNIT`, shape (runs, dim).
    :param weights: Those of the messages with a vector, shape (runs, 1).
    :param prior: The mean of all counts as if so many more messages of full weight had no direction.
    """
    total, weight = sums.sum(axis=0), weights.sum()
    pairs = max(weight**2 - (weights**2).sum(), 1.0)
    likeness = ((total**2).sum() - (sums**2).sum()) / pairs / UNIT**2
    # Rounded, so that it is stable.
    share = round(max((USUAL_LIKENESS / max(likeness, USUAL_LIKENESS)) ** 3, LEAST_PRIOR), 2)
    centre = total / (weight + prior * share * (LEAST_WEIGHT + FULL_BYTES))
    return unit_vectors(np.where(weights > 0, sums / np.maximum(weights, 1.0) - centre, 0.0))


def _unit_begins(turns: Sequence[Turn]) -> Ints:
    begins: list[int] = []
    size_bytes = 0
    for index, turn in enumerate(turns):
        if not begins or not (turn.is_answer or min(turn.size_bytes, size_bytes) < SHORT_BYTES):
            begins.append(index)
            size_bytes = 0
        size_bytes += turn.size_bytes
    return np.array(begins)


def _vectors(turns: Sequence[Turn]) -> tuple[Floats, Floats]:
    """Return the weights of the messages, 0 without a vector, and their vectors times `UNIT`."""
    dim = max((len(turn.vector) for turn in turns if turn.vector is not None), default=0)
    weights, vectors = np.zeros((len(turns), 1)), np.zeros((len(turns), dim))
    for index, turn in enumerate(turns):
        if turn.vector is not None:
            weights[index], vectors[index] = turn.weight, turn.vector
    return weights, np.rint(UNIT * vectors)


def _means(weights: Floats, vectors: Floats, begins: Ints, openings: Floats) -> Floats:
    """Return the means of segments, given by their first indexes; zeros without vectors.

    :param openings: The bytes of the first message of each segment.
    """
    counted = weights.copy()
    counted[begins] *= OPENING_COUNTS
    totals, sums = np.add.reduceat(counted, begins), np.add.reduceat(counted * vectors, begins)
    means: Floats = sums / np.maximum(totals, 1.0)
    previous = PREVIOUS_WEIGHT * (1 - np.minimum(openings, LONG_BYTES) / LONG_BYTES)[1:, None]
    shares = np.where((totals[1:] > 0) & (totals[:-1] > 0), previous / (previous + np.maximum(totals[1:], 1.0)), 0.0)
    shrunk = means.copy()
    shrunk[1:] += shares * (means[:-1] - means[1:])
    return shrunk


def _unit_evidence(weights: Floats, vectors: Floats, begins: Ints, openings: Floats) -> Floats:
    """Return the centred vectors of the units, of the length `UNIT` or shorter; zeros without vectors.

    :param openings: The bytes of the first message of each unit.
    """
    sums, totals = np.add.reduceat(weights * vectors, begins), np.add.reduceat(weights, begins)
    centred = centred_vectors(sums, totals, SESSION_PRIOR)
    lengths = LEAST_UNIT + (1 - LEAST_UNIT) * np.minimum(openings, FULL_BYTES) / FULL_BYTES
    evidence: Floats = np.rint(centred * lengths[:, None])
    return evidence


def _costs(openings: Floats) -> Floats:
    """Return the cost of a segment that begins with each unit, times `UNIT`."""
    costs: Floats = UNIT * (
        SEGMENT_COST - LENGTH_DISCOUNT * (np.minimum(openings, LONG_BYTES) - FULL_BYTES) / LONG_BYTES
    )
    return costs


def _segment_begins(units: Floats, costs: Floats) -> list[int]:
    """Return the index of the first unit of each segment.

    :param units: The vectors of the units, shape (units, dim). :param costs: That of a segment that begins with each.
    """
    sums = np.concatenate([np.zeros((1, units.shape[1])), np.cumsum(units, axis=0)])
    best, begin_of = np.zeros(len(units) + 1), np.zeros(len(units) + 1, np.int64)
    for end in range(1, len(units) + 1):
        least = max(0, end - LONGEST)
        spans = sums[end] - sums[least:end]
        values = best[least:end] + np.sqrt((spans * spans).sum(axis=1)) - costs[least:end]
        begin_of[end] = least + int(np.argmax(values))
        best[end] = values[begin_of[end] - least]
    begins = [int(begin_of[-1])]
    while begins[-1]:
        begins.append(int(begin_of[begins[-1]]))
    return begins[::-1]


def _segment(turns: Sequence[Turn], mean: NDArray[np.int16]) -> Segment:
    terms, counts = np.unique(np.array([one for turn in turns for one in turn.terms], np.uint32), return_counts=True)
    mentions = Counter(dict.fromkeys(turns[0].concept_ids, OF_OPENING))
    for turn in turns:
        mentions.update(dict.fromkeys(turn.concept_ids, 1 if turn.is_answer else OF_USER))
    return Segment(
        first=turns[0].position,
        last=turns[-1].position,
        messages=len(turns),
        first_at_us=min(turn.at_us for turn in turns),
        last_at_us=max(turn.at_us for turn in turns),
        weight=sum(turn.weight for turn in turns if turn.vector is not None),
        mean=mean,
        terms=terms,
        counts=counts.astype(np.uint16),
        mentions=mentions,
    )
