"""One data set through the engine: stored once, then every question asked of every arm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.retrieval.data_sets import DataSet
from benchmarks.retrieval.metrics import TOP_K, Scores, mean, scores_of
from memory_engine import MemoryEngine
from souvenir.settings import Settings
from souvenir.types import Embedder, Fusion, MemoryDraft, Scope, SearchQuery, Weights

BATCH = 500


@dataclass(frozen=True, slots=True)
class Arm:
    """A way to search: what a caller sets in the query, and what the operator sets in the settings."""

    name: str
    hybrid: bool = True
    weights: Weights = field(default_factory=Weights)
    fusion: Fusion = Fusion.SUM


HYBRID, LEXICAL, VECTOR = (
    Arm("hybrid"),
    Arm("lexical alone", weights=Weights(vector=0.0)),
    Arm("vector alone", hybrid=False),
)
RRF = Arm("hybrid, SEARCH_FUSION=rrf", fusion=Fusion.RRF)
ARMS = (HYBRID, LEXICAL, VECTOR, RRF)


def measure(data_set: DataSet, embedder: Embedder, data_dir: Path) -> dict[str, Scores]:
    """Mean scores by the arm's name."""
    found: dict[str, Scores] = {}
    with _engine(data_dir, embedder, Fusion.SUM) as engine:
        names = _store(data_set, engine)
    for fusion in Fusion:
        with _engine(data_dir, embedder, fusion) as engine:
            for arm in ARMS:
                if arm.fusion is fusion:
                    found[arm.name] = _ask(data_set, engine, arm, names)
    return {arm.name: found[arm.name] for arm in ARMS}


@contextmanager
def _engine(data_dir: Path, embedder: Embedder, fusion: Fusion) -> Iterator[MemoryEngine]:
    engine = MemoryEngine.open(Settings(data_dir=data_dir, search_fusion=fusion), embedder)
    try:
        yield engine
    finally:
        engine.close()


def _store(data_set: DataSet, engine: MemoryEngine) -> dict[int, str]:
    """Every scope as a namespace of its own; the document that each memory came from."""
    names: dict[int, str] = {}
    for scope, documents in data_set.documents.items():
        for start in range(0, len(documents), BATCH):
            batch = documents[start : start + BATCH]
            drafts = [MemoryDraft(document.text, scope, document_at=document.occurred_at) for document in batch]
            ids = engine.add_batch(Scope(scope), drafts)
            names.update(zip(ids, (document.id for document in batch), strict=True))
    return names


def _ask(data_set: DataSet, engine: MemoryEngine, arm: Arm, names: Mapping[int, str]) -> Scores:
    scores: list[Scores] = []
    for question in data_set.questions:
        query = SearchQuery(question.text, top_k=TOP_K, hybrid=arm.hybrid, weights=arm.weights)
        result = engine.search(Scope(question.scope), query)
        if result.degraded:
            raise RuntimeError(f"an arm did not run: {result.degraded}")
        scores.append(scores_of([names[hit.memory.id] for hit in result.hits], question.relevant))
    return mean(scores)


def hybrid_margin(scores: Mapping[str, Scores]) -> float:
    """Recall@10 of the hybrid less that of the better of the two arms alone."""
    alone = max(scores[arm.name].recall_10 for arm in (LEXICAL, VECTOR))
    return scores[HYBRID.name].recall_10 - alone
