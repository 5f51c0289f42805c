"""Specifications of embedding models: named by the settings, stored with a database.

Known models are listed by their names at OpenAI, in Ollama's library and on Hugging Face, so that a service starts
without a request to a provider, and knows the prefixes of models whose files do not contain them. Dimensions, windows,
prefixes and pooling are those of the model cards; if Ollama uses a smaller window, that one is listed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from souvenir.core.settings import EmbedProvider, Settings
from souvenir.core.stored_json import StoredJson

DEFAULT_MODELS: Mapping[EmbedProvider, str] = MappingProxyType(
    {
        EmbedProvider.ONNX: "models/all-MiniLM-L6-v2",
        EmbedProvider.OPENAI: "text-embedding-3-small",
        EmbedProvider.OLLAMA: "all-minilm",
    }
)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """:param revision: Commit or tag of a Hugging Face model; ignored by other providers.

    :param dim: Dimension of a vector, if it is not known from the model; ignored by `onnx`.
    """

    provider: EmbedProvider
    model: str
    revision: str | None = None
    dim: int | None = None

    @classmethod
    def of(cls, settings: Settings) -> ModelSpec:
        """Return the model of the settings."""
        provider = settings.embed_provider
        return cls(
            provider, settings.embed_model or DEFAULT_MODELS[provider], settings.embed_revision, settings.embed_dim
        )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> ModelSpec:
        """Return the inverse of `to_json`.

        :raises ValueError: If the provider is unknown to this release.
        """
        return _SPEC_JSON.load(content)

    def to_json(self) -> dict[str, Any]:
        return _SPEC_JSON.dump(self)


_SPEC_JSON = StoredJson(ModelSpec)


SHORTENABLE = "text-embedding-3-"
"""Models with this prefix return fewer dimensions on request."""

_SEARCH_PASSAGES = "Represent this sentence for searching relevant passages: "


class Pooling(StrEnum):
    """Pooling of token vectors; named as in sentence-transformers' `pooling_mode`."""

    MEAN = "mean"
    CLS = "cls"
    MAX = "max"
    LAST_TOKEN = "lasttoken"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """:param window: Maximum number of tokens, including special tokens and prefix.

    :param pooling: None: not known, or not needed, since the model is only available from a provider.
    """

    dim: int | None
    window: int
    query_prefix: str = ""
    document_prefix: str = ""
    pooling: Pooling | None = None


UNKNOWN = KnownModel(dim=None, window=512)
"""Few models have a smaller window."""

_NOMIC = ("search_query: ", "search_document: ")
_GEMMA = ("task: search result | query: ", "title: none | text: ")
_E5 = ("query: ", "passage: ")
_E5_NAME = re.compile(r"(^|[_-])e5[_-](?!.*instruct)")
"""All of them were trained with these prefixes, which their configuration rarely contains."""

_QWEN3 = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"

KNOWN_MODELS: Mapping[str, KnownModel] = MappingProxyType(
    {
        # OpenAI
        "text-embedding-3-small": KnownModel(1536, 8191),
        "text-embedding-3-large": KnownModel(3072, 8191),
        "text-embedding-ada-002": KnownModel(1536, 8191),
        # Ollama's library
        "all-minilm": KnownModel(384, 256),
        "nomic-embed-text": KnownModel(768, 2048, *_NOMIC),
        "mxbai-embed-large": KnownModel(1024, 512, _SEARCH_PASSAGES),
        "snowflake-arctic-embed": KnownModel(1024, 512, _SEARCH_PASSAGES),
        "snowflake-arctic-embed:22m": KnownModel(384, 512, _SEARCH_PASSAGES),
        "snowflake-arctic-embed:33m": KnownModel(384, 512, _SEARCH_PASSAGES),
        "snowflake-arctic-embed:110m": KnownModel(768, 512, _SEARCH_PASSAGES),
        "snowflake-arctic-embed:137m": KnownModel(768, 2048, _SEARCH_PASSAGES),
        "snowflake-arctic-embed2": KnownModel(1024, 8192, "query: "),
        "bge-large": KnownModel(1024, 512, _SEARCH_PASSAGES),
        "embeddinggemma": KnownModel(768, 2048, *_GEMMA),
        "granite-embedding": KnownModel(384, 512),
        "granite-embedding:278m": KnownModel(768, 512),
        "qwen3-embedding:0.6b": KnownModel(1024, 32768, _QWEN3),
        # Hugging Face
        "all-minilm-l6-v2": KnownModel(384, 256, pooling=Pooling.MEAN),
        "all-minilm-l12-v2": KnownModel(384, 128, pooling=Pooling.MEAN),
        "all-mpnet-base-v2": KnownModel(768, 384, pooling=Pooling.MEAN),
        "multi-qa-minilm-l6-cos-v1": KnownModel(384, 512, pooling=Pooling.MEAN),
        "paraphrase-multilingual-minilm-l12-v2": KnownModel(384, 128, pooling=Pooling.MEAN),
        "bge-small-en-v1.5": KnownModel(384, 512, _SEARCH_PASSAGES, pooling=Pooling.CLS),
        "bge-base-en-v1.5": KnownModel(768, 512, _SEARCH_PASSAGES, pooling=Pooling.CLS),
        "bge-large-en-v1.5": KnownModel(1024, 512, _SEARCH_PASSAGES, pooling=Pooling.CLS),
        "bge-m3": KnownModel(1024, 8192, pooling=Pooling.CLS),
        "gte-small": KnownModel(384, 512, pooling=Pooling.MEAN),
        "gte-base": KnownModel(768, 512, pooling=Pooling.MEAN),
        "gte-modernbert-base": KnownModel(768, 8192, pooling=Pooling.CLS),
        "e5-small-v2": KnownModel(384, 512, *_E5, pooling=Pooling.MEAN),
        "e5-base-v2": KnownModel(768, 512, *_E5, pooling=Pooling.MEAN),
        "e5-large-v2": KnownModel(1024, 512, *_E5, pooling=Pooling.MEAN),
        "multilingual-e5-small": KnownModel(384, 512, *_E5, pooling=Pooling.MEAN),
        "multilingual-e5-base": KnownModel(768, 512, *_E5, pooling=Pooling.MEAN),
        "multilingual-e5-large": KnownModel(1024, 512, *_E5, pooling=Pooling.MEAN),
        "snowflake-arctic-embed-xs": KnownModel(384, 512, _SEARCH_PASSAGES, pooling=Pooling.CLS),
        "snowflake-arctic-embed-s": KnownModel(384, 512, _SEARCH_PASSAGES, pooling=Pooling.CLS),
        "snowflake-arctic-embed-m": KnownModel(768, 512, _SEARCH_PASSAGES, pooling=Pooling.CLS),
        "snowflake-arctic-embed-m-v1.5": KnownModel(768, 512, _SEARCH_PASSAGES, pooling=Pooling.CLS),
        "snowflake-arctic-embed-m-v2.0": KnownModel(768, 8192, "query: ", pooling=Pooling.CLS),
        "snowflake-arctic-embed-l-v2.0": KnownModel(1024, 8192, "query: ", pooling=Pooling.CLS),
        "nomic-embed-text-v1": KnownModel(768, 8192, *_NOMIC, pooling=Pooling.MEAN),
        "nomic-embed-text-v1.5": KnownModel(768, 8192, *_NOMIC, pooling=Pooling.MEAN),
        "nomic-embed-text-v2-moe": KnownModel(768, 512, *_NOMIC, pooling=Pooling.MEAN),
        "embeddinggemma-300m": KnownModel(768, 2048, *_GEMMA, pooling=Pooling.MEAN),
        "granite-embedding-english-r2": KnownModel(768, 8192, pooling=Pooling.CLS),
        "granite-embedding-small-english-r2": KnownModel(384, 8192, pooling=Pooling.CLS),
        "mxbai-embed-xsmall-v1": KnownModel(384, 4096, pooling=Pooling.MEAN),
        "mxbai-embed-large-v1": KnownModel(1024, 512, _SEARCH_PASSAGES, pooling=Pooling.CLS),
        "qwen3-embedding-0.6b": KnownModel(1024, 32768, _QWEN3, pooling=Pooling.LAST_TOKEN),
    }
)
"""By name in lower case, without the organisation: the same weights are offered under several."""

_SUFFIXES = ("-onnx", "-int8", "-quantized")
"""Ends of the names of exports of a model."""


def known_model(name: str) -> KnownModel:
    """Return the model by its name: with or without organisation, tag, or the suffix of an export; else `UNKNOWN`."""
    name = name.casefold().rpartition("/")[2]
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    if found := KNOWN_MODELS.get(name) or KNOWN_MODELS.get(name.partition(":")[0]):
        return found
    return KnownModel(None, 512, *_E5) if _E5_NAME.search(name) else UNKNOWN
