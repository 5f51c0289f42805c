"""The benchmark of knowledge with a model: the form of its figures, with a scripted vendor."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.knowledge import __main__ as benchmark
from benchmarks.knowledge.labels import Described, Labelled
from benchmarks.knowledge.model import describe
from souvenir.core.settings import Settings
from souvenir.core.types import MessageRole
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.provider import provider_of
from souvenir.store.messages.messages import MessageDraft
from tests.fake_embedder import FakeEmbedder
from tests.knowledge.model_claims_setup import claim
from tests.vendors.llm import LLMRequest, LLMVendor

MOVED, ALSO = "Alice moved to Lisbon with Heron", "Lisbon is where Alice and Heron met Zelda"
AT = datetime(2024, 1, 1, tzinfo=UTC)
CONVERSATION = Labelled(
    "ann",
    [MessageDraft(MessageRole.USER, text, session_id="s", created_at=AT) for text in (MOVED, ALSO)],
    {},
    {},
    [],
    [Described("Alice", 0, MOVED), Described("Heron", 0, MOVED), Described("Zelda", None, None)],
)


def described(request: LLMRequest) -> dict[str, Any]:
    assert re.search(r"^T1: .* \(turns 0, 1\)$", request.user, re.MULTILINE)
    return {
        "claims": [
            claim("description", "Alice", "A person who moved to Lisbon.", MOVED),
            claim("description", "Heron", "A friend of Alice.", ALSO),
            claim("topic_name", "T1", "Life in Lisbon", MOVED),
            claim("kind", "Alice", "person", "an invented quote of nothing"),
        ]
    }


def test_descriptions_and_topics_of_the_model_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    vendor = LLMVendor()
    vendor.start()
    vendor.script(described)
    settings = Settings(data_dir=tmp_path, **vendor.settings("openai"))
    provider = provider_of(settings)
    assert provider is not None
    scores = Counter[str]()
    with closing(provider), closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        graph = KnowledgeServices.open(engine)
        messages = benchmark.measure(engine, graph, CONVERSATION, benchmark.Scores(), show=False)
        describe(engine, graph, provider, CONVERSATION, messages, scores)
    vendor.stop()
    assert scores == {
        "model: descriptions: by the model, from another message": 1,
        "model: descriptions: by the model, from the labelled message": 1,
        "model: descriptions: none": 1,
        "model: topics: all": 1,
        "model: topics: named or summarised by the model": 1,
        "model: claims stored: description": 2,
        "model: claims stored: topic_name": 1,
        "model: claims dropped: kind, quote_not_found": 1,
        "model: questions": 1,
        "model: input_tokens": 100,
        "model: output_tokens": 20,
        "model: failed": 0,
    }
    assert "| Life in Lisbon | Alice moved to Lisbon with Heron" in capsys.readouterr().out


def test_without_a_provider_the_model_cannot_be_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.delenv("EXTRACT_PROVIDER", raising=False)
    monkeypatch.setattr("sys.argv", ["knowledge", "--model"])
    with pytest.raises(SystemExit) as ended:
        benchmark.main()
    assert ended.value.code == 2
    assert (
        "--model needs a language model; set EXTRACT_PROVIDER to anthropic, openai or ollama" in capsys.readouterr().err
    )
