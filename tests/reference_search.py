"""Search worked out slowly, one passage at a time, which the service's search must equal.

Nothing here is incremental, cut off or in float32. Terms, vectors and passages come from the service's own analyser,
embedder and cutting, which have tests of their own; everything after them is written again, from the formulas.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from souvenir.index.analyser import Analyser, QueryWord, WordKind
from souvenir.search.passages import split_passages
from souvenir.types import (
    Embedder,
    Filters,
    Memory,
    Profile,
    SearchQuery,
    SearchResult,
    SourceFilter,
    SourceMatch,
)

TOLERANCE = 1e-5

# k1, b and the weight of the cosine, as the retrieval page states them.
CONSTANTS = {Profile.FACT: (0.9, 0.4, 1.3), Profile.DOC: (1.2, 0.75, 1.3)}
FACT_BELOW_TOKENS = 60
MEAN_PRIOR_ROWS = 32
CONFIDENCE_HALF_LIFE_DAYS = 90.0


@dataclass(frozen=True, slots=True)
class SlowPassage:
    terms: tuple[str, ...]
    vector: NDArray[np.float64]
    profile: Profile


@dataclass(frozen=True, slots=True)
class SlowHit:
    memory_id: int
    score: float


class ReferenceSearch:
    """Remembers the passages of a text, and nothing else."""

    def __init__(self, embedder: Embedder, analyser: Analyser) -> None:
        self._embedder = embedder
        self._analyser = analyser
        self._passages: dict[str, tuple[SlowPassage, ...]] = {}

    def passages(self, text: str) -> tuple[SlowPassage, ...]:
        if text not in self._passages:
            windows, tokens = split_passages(text, self._embedder.token_offsets, max_tokens=self._embedder.max_tokens)
            profile = Profile.FACT if tokens < FACT_BELOW_TOKENS else Profile.DOC
            self._passages[text] = tuple(
                SlowPassage(
                    tuple(self._analyser.terms(window)),
                    self._embedder.embed_documents([window])[0].astype(np.float64),
                    profile,
                )
                for window in windows
            )
        return self._passages[text]

    def rank(self, memories: Sequence[Memory], query: SearchQuery, now: datetime) -> list[SlowHit]:
        """Every memory that the filters allow, best first; statistics are those of all memories."""
        stored = [(memory, passage) for memory in memories for passage in self.passages(memory.text)]
        if not stored:
            return []
        asked = self._embedder.embed_query(query.text).astype(np.float64)
        mean = np.sum([passage.vector for _, passage in stored], axis=0) / (len(stored) + MEAN_PRIOR_ROWS)
        bm25 = Bm25([passage for _, passage in stored])
        terms = bm25.repaired(self._analyser.query_words(query.text))
        best: dict[int, float] = {}
        for memory, passage in stored:
            similarity = cosine(passage.vector, asked)
            if not allowed(memory, query.filters) or (query.threshold is not None and similarity < query.threshold):
                continue
            if query.hybrid:
                dense = cosine(passage.vector - mean, asked - mean)
                score = hybrid_score(query, passage.profile, bm25.score(passage, terms), dense, memory, now)
            else:
                score = similarity
            best[memory.id] = max(score, best.get(memory.id, score))
        return sorted((SlowHit(*item) for item in best.items()), key=lambda hit: (-hit.score, hit.memory_id))

    def similarities(self, memories: Iterable[Memory], text: str) -> dict[int, float]:
        """Of every living memory: how much of the text stands there, as a cosine."""
        parts = self.passages(text)
        return {
            memory.id: sum(
                max(float(part.vector @ passage.vector) for passage in self.passages(memory.text)) for part in parts
            )
            / len(parts)
            for memory in memories
            if not memory.archived
        }


class Bm25:
    """L(j) = sum_t idf_t w_t(j) / sum_t idf_t over the known terms of a query."""

    def __init__(self, passages: Sequence[SlowPassage]) -> None:
        self._count = len(passages)
        self._average_length = sum(len(passage.terms) for passage in passages) / len(passages)
        self._df = Counter(term for passage in passages for term in set(passage.terms))

    def score(self, passage: SlowPassage, terms: Iterable[str]) -> float:
        k1, b, _ = CONSTANTS[passage.profile]
        tf = Counter(passage.terms)
        total = idf_total = 0.0
        for term in terms:
            df = self._df[term]
            if df:
                idf = math.log(1 + (self._count - df + 0.5) / (df + 0.5))
                length = len(passage.terms) / self._average_length
                total += idf * tf[term] * (k1 + 1) / (tf[term] + k1 * (1 - b + b * length))
                idf_total += idf
        return total / idf_total if idf_total else 0.0

    def repaired(self, words: Iterable[QueryWord]) -> list[str]:
        """The distinct terms of a query; a plain word that no passage holds becomes the known word most like it."""
        terms = [
            self._nearest(word.term) if word.kind is WordKind.PLAIN and not self._df[word.term] else word.term
            for word in words
        ]
        return list(dict.fromkeys(terms))

    def _nearest(self, term: str) -> str:
        swapped = [term[:at] + term[at + 1] + term[at] + term[at + 2 :] for at in range(len(term) - 1)]
        similar = {known: 1.0 for known in swapped if self._df[known]} if len(term) >= 5 else {}
        if not similar:
            similar = {known: jaccard(trigrams(term), trigrams(known)) for known in self._df if self._df[known]}
        near = [(-similarity, -self._df[known], known) for known, similarity in similar.items() if similarity >= 0.45]
        return min(near)[2] if near else term


def hybrid_score(
    query: SearchQuery, profile: Profile, lexical: float, dense: float, memory: Memory, now: datetime
) -> float:
    """The weighted sum. `vector` = 0.7 leaves the measured weights of both arms as they are."""
    weights, dense_weight = query.weights, CONSTANTS[profile][2]
    age_days = max((now - memory.occurred_at).total_seconds(), 0.0) / 86_400
    return (
        (1 - weights.vector) / (1 - 0.7) * lexical
        + weights.vector / 0.7 * dense_weight * dense
        + weights.recency * math.pow(0.5, age_days / weights.recency_half_life_days)
        + weights.confidence * math.pow(0.5, age_days / CONFIDENCE_HALF_LIFE_DAYS)
    )


def cosine(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / lengths if lengths else 0.0


def trigrams(term: str) -> set[str]:
    padded = f"  {term}  "
    return {padded[at : at + 3] for at in range(len(term) + 2)} if term.isalpha() and 4 <= len(term) <= 64 else set()


def jaccard(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0


def allowed(memory: Memory, filters: Filters) -> bool:
    return (
        (filters.include_archived or not memory.archived)
        and (not filters.sources or any(selects(wanted, memory.source) for wanted in filters.sources))
        and (filters.since is None or memory.occurred_at >= filters.since)
        and (filters.until is None or memory.occurred_at <= filters.until)
        and holds(memory.metadata, filters.metadata)
    )


def selects(wanted: SourceFilter, source: str) -> bool:
    if wanted.match is SourceMatch.SUBSTRING:
        return wanted.pattern in source
    if wanted.match is SourceMatch.PATH:
        return source == wanted.pattern or source.startswith(f"{wanted.pattern}/")
    return source.startswith(wanted.pattern)


def holds(metadata: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    """Every wanted key has an equal JSON value: 1, 1.0 and true are three values."""
    return all(key in metadata and json.dumps(metadata[key]) == json.dumps(value) for key, value in wanted.items())


def assert_equals_reference(result: SearchResult, expected: Sequence[SlowHit], top_k: int) -> None:
    """The same memories with the same scores; those whose scores differ by rounding may stand in either order."""
    score_of = {hit.memory_id: hit.score for hit in expected}
    found = [(hit.memory.id, hit.score) for hit in result.hits]
    assert result.degraded == ()
    assert len({memory_id for memory_id, _ in found}) == len(found)
    assert [score for _, score in found] == pytest.approx([hit.score for hit in expected[:top_k]], abs=TOLERANCE)
    assert [score for _, score in found] == pytest.approx([score_of[id_] for id_, _ in found], abs=TOLERANCE)
    for (earlier, score), (later, next_score) in pairwise(found):
        assert score > next_score or (score == next_score and earlier < later), found
