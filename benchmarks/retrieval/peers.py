"""Simple baselines over the same texts and vectors: BM25, FAISS, and both fused by rank.

BM25 is rank_bm25's Okapi with its own constants, once over words as the classic examples cut them and once over the
service's own terms. FAISS compares every vector; a text is embedded as far as it fits in the model's window.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import faiss
import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from benchmarks.report import percentile_ms
from benchmarks.retrieval.data_sets import DataSet, Question
from benchmarks.retrieval.metrics import Found
from benchmarks.retrieval.rankings import Rankings, depth_of
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.index.analyser import Analyser

RRF_K = 60
BM25, BM25_TERMS, FAISS, RRF, RRF_TERMS = (
    "BM25",
    "BM25, our terms",
    "FAISS",
    "RRF of BM25 and FAISS",
    "RRF, our terms",
)

Scores = NDArray[np.float64]
"""One a document of the scope."""


@dataclass(frozen=True, slots=True)
class _Words:
    """BM25 over one scope."""

    index: BM25Okapi
    terms: Callable[[str], list[str]]

    @classmethod
    def of(cls, texts: Sequence[str], terms: Callable[[str], list[str]]) -> _Words:
        # A text without a term would have rank_bm25 divide by zero if all were such.
        return cls(BM25Okapi([terms(text) or [""] for text in texts]), terms)

    def scores(self, question: str) -> Scores:
        scores: Scores = self.index.get_scores(self.terms(question))
        return scores


@dataclass(frozen=True, slots=True)
class _Vectors:
    """FAISS over one scope."""

    index: faiss.IndexFlatIP
    embedder: CachedEmbedder

    @classmethod
    def of(cls, texts: Sequence[str], embedder: CachedEmbedder) -> _Vectors:
        index = faiss.IndexFlatIP(embedder.dim)
        index.add(embedder.embed_documents([embedder.first_window(text) for text in texts]))
        return cls(index, embedder)

    def scores(self, question: str) -> Scores:
        found, rows = self.index.search(self.embedder.embed_query(question)[None, :], self.index.ntotal)
        scores = np.empty(self.index.ntotal)
        scores[rows[0]] = found[0]
        return scores


def measure_peers(data_set: DataSet, embedder: CachedEmbedder) -> Iterator[Rankings]:
    """The five of them, each with what a question cost; what is shared is searched once and counted for each."""
    analyser = Analyser()
    found: dict[str, list[Found]] = {name: [] for name in (BM25, BM25_TERMS, FAISS, RRF, RRF_TERMS)}
    seconds: dict[str, list[float]] = {name: [] for name in found}
    indexes: dict[str, Mapping[str, _Words | _Vectors]] = {}
    depth = depth_of(data_set)
    for question in data_set.questions:
        if question.scope not in indexes:
            texts = [document.text for document in data_set.documents[question.scope]]
            indexes[question.scope] = {
                BM25: _Words.of(texts, _split),
                BM25_TERMS: _Words.of(texts, analyser.terms),
                FAISS: _Vectors.of(texts, embedder),
            }
        ids = [document.id for document in data_set.documents[question.scope]]
        for name, (scores, took) in _search_all(indexes[question.scope], question).items():
            found[name].append(_best(ids, scores, depth))
            seconds[name].append(took)
    for name, answers in found.items():
        costs = {f"search p{percent} ms": percentile_ms(seconds[name], percent) for percent in (50, 95)}
        yield Rankings(name, answers, costs)


def _search_all(indexes: Mapping[str, _Words | _Vectors], question: Question) -> Mapping[str, tuple[Scores, float]]:
    answers: dict[str, tuple[Scores, float]] = {}
    for name, index in indexes.items():
        begin = time.perf_counter()
        answers[name] = index.scores(question.text), time.perf_counter() - begin
    for name, words in ((RRF, BM25), (RRF_TERMS, BM25_TERMS)):
        (lexical, lexical_s), (dense, dense_s) = answers[words], answers[FAISS]
        begin = time.perf_counter()
        joined = fused(lexical, dense)
        answers[name] = joined, lexical_s + dense_s + time.perf_counter() - begin
    return answers


def fused(lexical: Scores, dense: Scores) -> Scores:
    """Reciprocal ranks (Cormack et al. 2009), from 1; words rank only what holds one of them."""
    matched = np.flatnonzero(lexical > 0)
    by_words = matched[np.argsort(-lexical[matched], kind="stable")]
    scores = np.zeros(len(lexical))
    scores[by_words] += 1.0 / (RRF_K + np.arange(1, len(by_words) + 1))
    scores[np.argsort(-dense, kind="stable")] += 1.0 / (RRF_K + np.arange(1, len(dense) + 1))
    return scores


def _best(ids: Sequence[str], scores: Scores, depth: int) -> Found:
    return [(ids[row], float(scores[row])) for row in np.argsort(-scores, kind="stable")[:depth]]


def _split(text: str) -> list[str]:
    return text.lower().split()
