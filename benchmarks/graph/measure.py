"""The score of the service with graph support added, for every tested graph walk.

The ways are chosen on one half of the scopes (of the questions, where there is one scope) and scored on the other one.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.graph.walking import ConceptGraph
from benchmarks.retrieval.certainty import Estimate, Table, differences, estimates
from benchmarks.retrieval.data_sets import DataSet, Document, Question
from benchmarks.retrieval.metrics import DOCUMENT_METRICS, TOP_K, document_scores
from benchmarks.retrieval.own import EngineSearcher, opened, store
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.core.types import PassageKind
from souvenir.knowledge.recognition.extraction import keys_in_question, mentions_in

METRICS = DOCUMENT_METRICS[:4]
WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.3)
SEEDS = 10
"""Of the other arms' best documents, weighted by how much they score above the one that follows."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Way:
    """How the graph is walked.

    :param hits: Which share of the walks start at the other arms' best documents; the others start at the concepts of
        the question.
    :param max_share: Concepts that more of the documents mention are left out.
    """

    hits: float
    damping: float
    max_share: float

    def __str__(self) -> str:
        start = {0.0: "the question's concepts", 0.5: "both", 1.0: "the best hits"}[self.hits]
        return f"from {start}, damping {self.damping:g}, concepts of at most {self.max_share:.0%}"


WAYS = tuple(Way(*one) for one in product((0.0, 0.5, 1.0), (0.5, 0.85), (0.02, 0.1)))


@dataclass(frozen=True, slots=True)
class Measured:
    """One data set. Tables hold all metrics of all questions, by way and weight.

    :param kept_back: Which questions nothing is chosen by.
    """

    name: str
    tables: Mapping[tuple[Way, float], Table]
    kept_back: NDArray[np.bool_]
    concepts_a_document: float
    concepts: int
    shared: int

    def gain(self, way: Way, weight: float, *, kept_back: bool) -> list[Estimate]:
        """What the graph adds to each metric."""
        chosen = self.kept_back if kept_back else ~self.kept_back
        return differences(self.tables[way, weight][chosen], self.tables[way, 0.0][chosen])

    def means(self, way: Way, weight: float, *, kept_back: bool) -> list[Estimate]:
        return estimates(self.tables[way, weight][self.kept_back if kept_back else ~self.kept_back])


def measure(data_set: DataSet, embedder: CachedEmbedder) -> Measured:
    places = {scope: {one.id: at for at, one in enumerate(of)} for scope, of in data_set.documents.items()}
    mentions = {scope: [_keys(one) for one in of] for scope, of in data_set.documents.items()}
    graphs = {
        (scope, share): ConceptGraph.of(keys, share)
        for scope, keys in mentions.items()
        for share in {way.max_share for way in WAYS}
    }
    tables: defaultdict[tuple[Way, float], list[list[float]]] = defaultdict(list)
    for question, scores in _rankings(data_set, embedder, places):
        ids = list(places[question.scope])
        for way in WAYS:
            support = support_of(graphs[question.scope, way.max_share], question.text, scores, way)
            for weight in WEIGHTS:
                found = _best(scores + weight * support, ids)
                tables[way, weight].append(document_scores(found, question.relevant)[: len(METRICS)])
    keys = [key for of_scope in mentions.values() for one in of_scope for key in one]
    return Measured(
        data_set.name,
        {one: np.array(rows) for one, rows in tables.items()},
        kept_back(data_set),
        len(keys) / len(data_set),
        sum(len({key for one in of_scope for key in one}) for of_scope in mentions.values()),
        sum(len(graphs[scope, max(way.max_share for way in WAYS)].concepts) for scope in mentions),
    )


def support_of(graph: ConceptGraph, question: str, scores: Floats, way: Way) -> Floats:
    """The graph's part of the score of every document, in [0, 1]."""
    concepts = np.zeros(len(graph.concepts))
    named = [graph.concepts[key] for key in keys_in_question(question) if key in graph.concepts]
    concepts[named] = 1.0
    documents = np.zeros(len(scores))
    order = np.argsort(-scores, kind="stable")[: SEEDS + 1]
    documents[order[:SEEDS]] = scores[order[:SEEDS]] - scores[order[-1]]
    starts = [(documents, way.hits), (concepts, 1.0 - way.hits)]
    sums = [share * (start.sum() > 0) for start, share in starts]
    if not sum(sums):
        return np.zeros(len(scores))
    documents, concepts = (
        start * share / (start.sum() * sum(sums)) if share and start.sum() > 0 else 0.0 * start
        for start, share in starts
    )
    return graph.support(documents, concepts, damping=way.damping)


def kept_back(data_set: DataSet) -> NDArray[np.bool_]:
    scopes = sorted(data_set.documents)
    if len(scopes) == 1:
        return np.array([place % 2 == 1 for place in range(len(data_set.questions))], dtype=np.bool_)
    return np.array([scopes.index(question.scope) % 2 == 1 for question in data_set.questions])


def _keys(document: Document) -> list[str]:
    if document.kind is PassageKind.MESSAGE:
        message = document.message()
        return [one.key for one in mentions_in(message.content, message.role)]
    return [one.key for one in mentions_in(document.memory().text, None)]


def _rankings(
    data_set: DataSet, embedder: CachedEmbedder, places: Mapping[str, Mapping[str, int]]
) -> Iterator[tuple[Question, Floats]]:
    """The score of every document of its scope, of each question."""
    with (
        tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder,
        opened(Path(folder) / "data", embedder) as engine,
    ):
        searcher = EngineSearcher(engine, data_set.kind, store(data_set, engine))
        for question in data_set.questions:
            place = places[question.scope]
            found = dict(searcher.search(question, len(place)))
            # One that no arm found is below all others.
            least = min(found.values(), default=0.0)
            yield question, np.array([found.get(id_, least) for id_ in place])


def _best(scores: Floats, ids: Sequence[str]) -> list[tuple[str, float]]:
    return [(ids[place], float(scores[place])) for place in np.argsort(-scores, kind="stable")[:TOP_K].tolist()]
