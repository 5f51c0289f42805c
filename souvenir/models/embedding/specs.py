"""Specifications of embedding models: named by the settings, stored with a database.

Remote models are listed by their names at OpenAI and in Ollama's library, so that a service starts without a request to
them. Dimensions, windows and prefixes are the vendors'; if Ollama uses a smaller window, that one is listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class KnownModel:
    """:param window: Maximum number of tokens, including special tokens and prefix."""

    dim: int | None
    window: int
    query_prefix: str = ""
    document_prefix: str = ""


UNKNOWN = KnownModel(dim=None, window=512)
"""Few models have a smaller window."""

KNOWN_MODELS: Mapping[str, KnownModel] = MappingProxyType(
    {
        "text-embedding-3-small": KnownModel(1536, 8191),
        "text-embedding-3-large": KnownModel(3072, 8191),
        "text-embedding-ada-002": KnownModel(1536, 8191),
        "all-minilm": KnownModel(384, 256),
        "nomic-embed-text": KnownModel(768, 2048, "search_query: ", "search_document: "),
        "mxbai-embed-large": KnownModel(1024, 512, _SEARCH_PASSAGES),
        "snowflake-arctic-embed": KnownModel(1024, 512, _SEARCH_PASSAGES),
        "snowflake-arctic-embed:22m": KnownModel(384, 512, _SEARCH_PASSAGES),
        "snowflake-arctic-embed:33m": KnownModel(384, 512, _SEARCH_PASSAGES),
        "snowflake-arctic-embed:110m": KnownModel(768, 512, _SEARCH_PASSAGES),
        "snowflake-arctic-embed:137m": KnownModel(768, 2048, _SEARCH_PASSAGES),
        "snowflake-arctic-embed2": KnownModel(1024, 8192, "query: "),
        "bge-m3": KnownModel(1024, 8192),
        "bge-large": KnownModel(1024, 512, _SEARCH_PASSAGES),
        "embeddinggemma": KnownModel(768, 2048, "task: search result | query: ", "title: none | text: "),
        "granite-embedding": KnownModel(384, 512),
        "granite-embedding:278m": KnownModel(768, 512),
    }
)


def known_model(name: str) -> KnownModel:
    """Return the model by its name, with or without the tag; `UNKNOWN` for any other."""
    return KNOWN_MODELS.get(name) or KNOWN_MODELS.get(name.partition(":")[0], UNKNOWN)
