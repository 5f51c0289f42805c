"""The embedder chosen by the settings, by our names and by those of other systems."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from souvenir.core.settings import EmbedProvider, Settings
from souvenir.core.types import LoadableEmbedder
from souvenir.models.embedding.factory import embedder_of
from souvenir.models.embedding.onnx_embedder import OnnxEmbedder
from souvenir.models.embedding.specs import ModelSpec, known_model


def test_the_shipped_model_is_the_default():
    assert ModelSpec.of(Settings()) == ModelSpec(EmbedProvider.ONNX, "models/all-MiniLM-L6-v2")
    embedder: LoadableEmbedder = embedder_of(Settings())
    assert isinstance(embedder, OnnxEmbedder)
    assert embedder.model_id == "all-MiniLM-L6-v2@53aa51172d14"
    assert not embedder.ready


def test_a_model_other_than_that_of_the_settings_can_be_requested(tmp_path: Path):
    other = ModelSpec(EmbedProvider.ONNX, str(tmp_path / "elsewhere"))
    with pytest.raises(Exception, match="elsewhere' is neither a folder"):
        embedder_of(Settings(), other).load()


def test_a_model_spec_round_trips_through_json():
    spec = ModelSpec(EmbedProvider.ONNX, "org/name", "v1")
    assert ModelSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


@pytest.mark.parametrize(
    ("name", "dim", "query_prefix", "document_prefix"),
    [
        ("onnx-community/embeddinggemma-300m-ONNX", 768, "task: search result | query: ", "title: none | text: "),
        ("embeddinggemma:300m", 768, "task: search result | query: ", "title: none | text: "),
        ("intfloat/e5-mistral-7b-instruct", None, "", ""),
        ("intfloat/e5-small", None, "query: ", "passage: "),
        ("Snowflake/snowflake-arctic-embed-m-v2.0", 768, "query: ", ""),
        ("snowflake-arctic-embed:137m", 768, "Represent this sentence for searching relevant passages: ", ""),
        ("org/unknown", None, "", ""),
    ],
)
def test_known_models_are_found_by_the_names_they_are_offered_under(name, dim, query_prefix, document_prefix):
    known = known_model(name)
    assert (known.dim, known.query_prefix, known.document_prefix) == (dim, query_prefix, document_prefix)


def test_an_unknown_provider_in_json_is_refused():
    with pytest.raises(ValueError, match="telepathy"):
        ModelSpec.from_json({"provider": "telepathy", "model": "m", "revision": None})


def test_setting_names_of_other_systems_are_recognised(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MEMORY_EMBEDDING_BACKEND", "local")
    monkeypatch.setenv("MEMORY_EMBEDDING_MODEL", "org/theirs")
    assert ModelSpec.of(Settings()) == ModelSpec(EmbedProvider.ONNX, "org/theirs")


def test_our_own_setting_name_takes_precedence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MEMORY_EMBEDDING_BACKEND", "telepathy")
    monkeypatch.setenv("MEMORY_EMBEDDING_MODEL", "org/theirs")
    monkeypatch.setenv("EMBED_PROVIDER", "onnx")
    monkeypatch.setenv("EMBED_MODEL", "org/ours")
    assert ModelSpec.of(Settings()) == ModelSpec(EmbedProvider.ONNX, "org/ours")
