"""A query with mostly unknown tokens is ranked by its words alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Scope, SearchQuery, Weights
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.onnx_embedder import OnnxEmbedder


@pytest.fixture(scope="module")
def embedder() -> Iterator[OnnxEmbedder]:
    with closing(OnnxEmbedder()) as embedder:
        yield embedder


@pytest.fixture
def engine(embedder: OnnxEmbedder, tmp_path: Path) -> Iterator[MemoryEngine]:
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path / "data"), embedder)) as engine:
        yield engine


@pytest.fixture(scope="module")
def filled(embedder: OnnxEmbedder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryEngine]:
    """With the memories of STORED, for tests that only search."""
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path_factory.mktemp("filled")), embedder)) as engine:
        engine.add_batch(Scope(), [MemoryDraft(one, "s") for one in STORED])
        yield engine


def test_a_query_in_an_unknown_script_is_ranked_by_its_words(engine: MemoryEngine):
    engine.add_batch(
        Scope(), [MemoryDraft(text, "s") for text in ("金融科技论坛在北京。", "我的上司叫赵雅琳。", "今天下雨了。")]
    )
    result = engine.search(Scope(), SearchQuery("上司是做什么工作的呢？"))
    assert result.hits[0].memory.text == "我的上司叫赵雅琳。"
    assert {hit.parts.parts["dense"] for hit in result.hits} == {0.0}
    assert result.hits[0].parts.raw_score == result.hits[0].parts.parts["lexical"]
    assert result.degraded == ()


@pytest.mark.parametrize(
    "identifier",
    ["c6849b025d71be491a608102d500a386", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "ERR_0x8007045D", "4929175620"],
)
def test_a_query_for_an_identifier_is_ranked_by_its_words(engine: MemoryEngine, identifier: str):
    others = [
        "b7710f92ee0c4d1aa9c2f3d5e6071825",
        "8c1d7e42-90ab-4f3e-b1c6-5d2e8f7a9b03",
        "ERR_0x80070005",
        "4929175621",
    ]
    texts = [f"The harbour ferry was late: {other}" for other in others] + [f"Rain and lighthouses, {identifier}"]
    engine.add_batch(Scope(), [MemoryDraft(text, "s") for text in texts])
    result = engine.search(Scope(), SearchQuery(f"where is {identifier}"))
    assert result.hits[0].memory.text == texts[-1]
    assert {hit.parts.parts["dense"] for hit in result.hits} == {0.0}
    assert result.degraded == ()


def test_a_query_known_to_the_model_is_ranked_by_meaning_too(engine: MemoryEngine):
    engine.add_batch(
        Scope(), [MemoryDraft(text, "s") for text in ("The cat sleeps.", "Rates rise again.", "It rained.")]
    )
    result = engine.search(Scope(), SearchQuery("kitten napping"))
    assert result.hits[0].memory.text == "The cat sleeps."
    assert result.hits[0].parts.parts["dense"] > 0


IDENTIFIER = "8f3a9c12b7e04d55"
STORED = [
    "The dog sleeps on the sofa",
    "We deploy to fly.io on Fridays",
    "ERR-4042 means that the disk of the server is full",
    "Anna likes tea",
    f"Ticket {IDENTIFIER} was closed",
    "Our cat hates water",
]


@pytest.mark.parametrize("text", [IDENTIFIER, "ERR-4042", "fly.io", f"where is {IDENTIFIER}"])
@pytest.mark.parametrize("vector_weight", [0.0, 0.3, 0.99, 1.0])
def test_a_query_for_an_identifier_has_an_order_at_every_weight(filled: MemoryEngine, text: str, vector_weight: float):
    hits = filled.search(Scope(), SearchQuery(text, weights=Weights(vector=vector_weight))).hits
    assert hits[0].memory.text == next(one for one in STORED if text.removeprefix("where is ") in one)
    assert len({hit.parts.raw_score for hit in hits}) > 1
    assert hits[0].score > hits[-1].score


@pytest.mark.parametrize("text", [IDENTIFIER, f"where is {IDENTIFIER}"])
def test_an_illegible_query_by_meaning_alone_is_ordered_by_similarity(filled: MemoryEngine, text: str):
    hits = filled.search(Scope(), SearchQuery(text, weights=Weights(vector=1.0))).hits
    scores = [hit.parts.raw_score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)
    assert all(hit.parts.parts["lexical"] == 0.0 for hit in hits)
    plain = filled.search(Scope(), SearchQuery(text, hybrid=False)).hits
    similarity = [hit.parts.parts["similarity"] for hit in plain]
    assert similarity == sorted(similarity, reverse=True)
    assert len(set(similarity)) == len(similarity)
    assert plain[0].memory.id == hits[0].memory.id


def test_an_illegible_query_is_not_judged_by_meaning_at_any_weight(filled: MemoryEngine):
    by_default, by_meaning = (
        filled.search(Scope(), SearchQuery("0b51c7d2e9f3a684", weights=weights))
        for weights in (Weights(), Weights(vector=1.0))
    )
    assert by_default.relevance == by_meaning.relevance
