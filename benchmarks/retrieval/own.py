"""A data set in the engine, through its public methods: stored once, then searched."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.report import percentile_ms
from benchmarks.retrieval.data_sets import DataSet, Document, Question
from benchmarks.retrieval.metrics import TOP_K, Found
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.conversations.message_search import MessageQuery
from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.core.types import Fusion, PassageKind, Scope, SearchQuery, Weights
from souvenir.memories.engine import MemoryEngine
from souvenir.retrieval.profiles import PROFILES, Profiles

BATCH = 500
TIMED = 200
"""Questions whose searches are timed, the first of them to warm up."""


@dataclass(frozen=True, slots=True)
class Arm:
    """A way to search: what a caller sets in the query, and what the operator sets in the settings."""

    name: str
    hybrid: bool = True
    weights: Weights = field(default_factory=Weights)
    fusion: Fusion = Fusion.SUM


SOUVENIR = Arm("souvenir")
ARMS = (
    Arm("lexical arm alone", weights=Weights(vector=0.0)),
    Arm("vector arm alone", hybrid=False),
    Arm("SEARCH_FUSION=rrf", fusion=Fusion.RRF),
)


@contextmanager
def opened(
    data_dir: Path, embedder: CachedEmbedder, fusion: Fusion = Fusion.SUM, profiles: Profiles = PROFILES
) -> Iterator[MemoryEngine]:
    settings = Settings(data_dir=data_dir, search_fusion=fusion)
    with closing(MemoryEngine.open(settings, embedder, profiles=profiles)) as engine:
        yield engine


def store(data_set: DataSet, engine: MemoryEngine) -> Mapping[int, str]:
    """Every scope as an agent; which document each message or memory is."""
    names: dict[int, str] = {}
    conversations = Conversations(engine)
    for scope, documents in data_set.documents.items():
        for start in range(0, len(documents), BATCH):
            batch = documents[start : start + BATCH]
            ids = _store_batch(Scope(scope), batch, data_set.kind, engine, conversations)
            names.update(zip(ids, (document.id for document in batch), strict=True))
    return names


def _store_batch(
    scope: Scope, batch: Sequence[Document], kind: PassageKind, engine: MemoryEngine, conversations: Conversations
) -> Sequence[int]:
    if kind is PassageKind.MESSAGE:
        return [message.id for message in conversations.add(scope, [document.message() for document in batch])]
    return engine.add_batch(scope, [document.memory() for document in batch])


@dataclass(frozen=True, slots=True)
class EngineSearcher:
    """:param names: Which document each message or memory is."""

    engine: MemoryEngine
    kind: PassageKind
    names: Mapping[int, str]
    arm: Arm = SOUVENIR

    def search(self, question: Question, top_k: int) -> Found:
        query = SearchQuery(question.text, top_k=top_k, hybrid=self.arm.hybrid, weights=self.arm.weights)
        found = self.engine.recall(Scope(question.scope), self.kind, query)
        if found is None or found.degraded:
            raise RuntimeError(f"{question.scope}: an arm did not run: {None if found is None else found.degraded}")
        return [(self.names[ranked.owner_id], ranked.score) for ranked in found.ranked]


def costs_of(data_set: DataSet, engine: MemoryEngine, embedder: CachedEmbedder) -> dict[str, float]:
    """Milliseconds of whole searches with their rows read, once without embedding and once with; and what it takes."""
    questions = data_set.questions[: TIMED + 1]
    searches, models = [], []
    for question in questions:
        begin = time.perf_counter()
        _search_whole(question, data_set.kind, engine)
        searches.append(time.perf_counter() - begin)
        models.append(embedder.timed_query(question.text))
    vitals = engine.vitals()
    with_model = [search + model for search, model in zip(searches[1:], models[1:], strict=True)]
    return {
        "search p50 ms": percentile_ms(searches[1:], 50),
        "search p95 ms": percentile_ms(searches[1:], 95),
        "search with embedding p50 ms": percentile_ms(with_model, 50),
        "search with embedding p95 ms": percentile_ms(with_model, 95),
        "index MB": vitals.index_bytes / 1e6,
        "index bytes a passage": vitals.index_bytes / vitals.index_rows,
        "database MB": (vitals.database_bytes + vitals.log_bytes) / 1e6,
    }


def _search_whole(question: Question, kind: PassageKind, engine: MemoryEngine) -> None:
    scope = Scope(question.scope)
    if kind is PassageKind.MESSAGE:
        Conversations(engine).search(scope, MessageQuery(question.text, TOP_K))
    else:
        engine.search(scope, SearchQuery(question.text, top_k=TOP_K))
