"""Re-ranking in the engine: its effect, its limits, and its failures and timeouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from souvenir.core.concurrency import deadline
from souvenir.core.settings import Settings
from souvenir.core.telemetry import Instruments
from souvenir.core.types import Embedder, Fusion, SearchQuery, SearchResult, Weights
from souvenir.memories.engine import MemoryEngine
from souvenir.models.reranking.onnx_reranker import OnnxReranker
from souvenir.retrieval.reranking import logistic
from souvenir.store.memories import reads
from tests.fake_embedder import FakeEmbedder
from tests.memories.engine.conftest import BreakableEmbedder
from tests.memories.engine.verbs import ANN, DEFAULT, add
from tests.models.reranking.models import write_cross_encoder

Open = Callable[..., MemoryEngine]

TEXTS = ["the red fox", "a fox a fox a fox", "red red red red red bird", "the fox sleeps", "a blue whale"]
"""For `red fox` in the order of the words; a cross-encoder of tests/models/reranking scores them 0, 1, 3, -1 and -2."""


@pytest.fixture
def open_engine(settings: Settings, tmp_path: Path) -> Iterator[Open]:
    """Opens an engine with a cross-encoder; settings and instruments are keywords."""
    with ExitStack() as opened:
        reranker = opened.enter_context(closing(OnnxReranker(str(write_cross_encoder(tmp_path / "cross-encoder")))))

        def open_it(
            instruments: Instruments | None = None, embedder: Embedder | None = None, **changes: Any
        ) -> MemoryEngine:
            chosen = settings.model_copy(update={"rerank_deadline_ms": 60_000.0, **changes})
            engine = MemoryEngine.open(chosen, embedder or FakeEmbedder(), instruments, reranker=reranker)
            return opened.enter_context(closing(engine))

        yield open_it


def ask(engine: MemoryEngine, text: str = "red fox", **fields: Any) -> SearchResult:
    return engine.search(DEFAULT, SearchQuery(text, **fields))


def found(result: SearchResult) -> list[str]:
    return [hit.memory.text for hit in result.hits]


def test_hits_are_ordered_by_the_cross_encoder(open_engine: Open):
    engine = open_engine()
    for text in TEXTS:
        add(engine, text)
    result = ask(engine)
    assert found(result) == [TEXTS[2], TEXTS[1], TEXTS[0], TEXTS[3], TEXTS[4]]
    assert [hit.parts.rerank_score for hit in result.hits] == [3.0, 1.0, 0.0, -1.0, -2.0]
    assert result.degraded == ()


@pytest.mark.parametrize("fusion", Fusion)
def test_scores_descend_and_are_the_sum_of_their_parts_under_either_fusion(open_engine: Open, fusion: Fusion):
    engine = open_engine(search_fusion=fusion, rerank_candidates=3)
    for text in TEXTS:
        add(engine, text)
    hits = ask(engine).hits
    raw = [hit.parts.raw_score for hit in hits]
    assert raw == sorted(raw, reverse=True)
    assert [score > 0 for score in raw] == [True, True, True, False, False]
    assert [sum(hit.parts.parts.values()) for hit in hits] == pytest.approx(raw)


def test_the_score_is_the_logistic_of_the_cross_encoder_and_never_rises(open_engine: Open):
    engine = open_engine(rerank_candidates=3)
    for text in TEXTS:
        add(engine, text)
    hits = ask(engine).hits
    expected = [logistic(hit.parts.rerank_score or 0.0) for hit in hits[:3]]
    assert [hit.score for hit in hits[:3]] == pytest.approx(expected, abs=1e-6)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert len(ask(engine, min_score=0.9).hits) == 1


def test_without_the_cross_encoder_in_time_the_minimum_score_still_holds(open_engine: Open):
    engine = open_engine(rerank_deadline_ms=50.0)
    for text in [*TEXTS, "slow red fox"]:
        add(engine, text)
    every = ask(engine)
    least = every.hits[1].score
    assert every.degraded == ("rerank",)
    assert [hit.memory.id for hit in ask(engine, min_score=least).hits] == [
        hit.memory.id for hit in every.hits if hit.score >= least
    ]


def test_hits_beyond_the_candidates_keep_their_first_order(open_engine: Open):
    engine = open_engine(rerank_candidates=2)
    for text in TEXTS:
        add(engine, text)
    read = [hit.parts.rerank_score for hit in ask(engine).hits]
    assert [score is not None for score in read] == [True, True, False, False, False]
    assert read[:2] == sorted((score for score in read if score is not None), reverse=True)
    rest = [hit.parts.parts["lexical"] + hit.parts.parts["dense"] for hit in ask(engine).hits[2:]]
    assert rest == sorted(rest, reverse=True)


def test_fewer_hits_than_candidates_are_chosen_by_the_cross_encoder(open_engine: Open):
    engine = open_engine()
    for text in TEXTS:
        add(engine, text)
    assert found(ask(engine, top_k=1)) == [TEXTS[2]]
    explained = ask(engine, top_k=1, explain=True)
    assert len(explained.lexical_candidates) == 3


def test_a_search_by_meaning_alone_keeps_the_order_of_the_cosines(open_engine: Open):
    engine = open_engine()
    for text in TEXTS:
        add(engine, text)
    hits = ask(engine, hybrid=False).hits
    assert all(hit.parts.rerank_score is None and "rerank" not in hit.parts.parts for hit in hits)
    similarities = [hit.parts.similarity for hit in hits]
    assert similarities == sorted(similarities, reverse=True)


def test_a_query_unknown_to_the_model_is_not_reranked(open_engine: Open):
    embedder = BreakableEmbedder()
    engine = open_engine(embedder=embedder)
    for text in TEXTS:
        add(engine, text)
    embedder.share = 0.0
    result = ask(engine, top_k=2)
    assert [hit.parts.rerank_score for hit in result.hits] == [None, None]
    assert result.degraded == ()
    embedder.share = 1.0
    assert [hit.parts.rerank_score for hit in ask(engine, top_k=2).hits] == [3.0, 1.0]


def test_weights_independent_of_the_text_still_count(open_engine: Open):
    engine = open_engine()
    old, new = datetime(2020, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)
    add(engine, "the red fox sings", document_at=old)
    add(engine, "the red fox sleeps", document_at=new)
    weights = Weights(recency=0.5)
    assert found(ask(engine, weights=weights, now=new)) == ["the red fox sleeps", "the red fox sings"]


def test_a_late_cross_encoder_degrades_the_search_to_the_first_ranking(open_engine: Open):
    instruments = Instruments()
    engine = open_engine(instruments, rerank_deadline_ms=50.0)
    for text in [*TEXTS, "slow red fox"]:
        add(engine, text)
    late = ask(engine, top_k=3)
    assert late.degraded == ("rerank",)
    assert all(hit.parts.rerank_score is None and "rerank" not in hit.parts.parts for hit in late.hits)
    assert [hit.score for hit in late.hits] == sorted((hit.score for hit in late.hits), reverse=True)
    assert len(late.hits) == 3
    degraded = instruments.registry.get_sample_value("souvenir_degraded_searches_total", {"arm": "rerank"})
    assert degraded == 1


def test_a_failed_cross_encoder_degrades_only_that_search(open_engine: Open):
    engine = open_engine()
    broken = add(engine, "broken red fox")
    add(engine, TEXTS[0])
    assert ask(engine).degraded == ("rerank",)
    assert len(ask(engine).hits) == 2
    engine.delete(DEFAULT, broken)
    assert ask(engine).degraded == ()


def test_reranking_respects_the_deadline_of_the_request(open_engine: Open):
    engine = open_engine()
    for text in [*TEXTS, "slow red fox"]:
        add(engine, text)
    with deadline(2.0) as until:
        assert ask(engine).degraded == ("rerank",)
        assert until.left_s > 0


def test_an_empty_namespace_does_not_call_the_cross_encoder(open_engine: Open):
    assert ask(open_engine(rerank_deadline_ms=0.001)).degraded == ()


def test_only_existing_texts_of_the_namespace_are_scored(open_engine: Open):
    engine = open_engine()
    mine, gone = add(engine, TEXTS[0]), add(engine, TEXTS[1])
    add(engine, TEXTS[2], scope=ANN)
    with engine.namespace(DEFAULT) as (connection, namespace):
        assert namespace is not None
        everything = range(1, 100)
        assert sorted(reads.passage_texts(connection, namespace.id, everything).values()) == sorted(TEXTS[:2])
    engine.delete(DEFAULT, gone)
    with engine.namespace(DEFAULT) as (connection, namespace):
        assert namespace is not None
        assert list(reads.passage_texts(connection, namespace.id, everything).values()) == [TEXTS[0]]
    assert [hit.memory.id for hit in ask(engine).hits] == [mine]
