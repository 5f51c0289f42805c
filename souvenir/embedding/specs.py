"""Which model makes the vectors, as a value: what the settings name, and what a database can note of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from souvenir.settings import EmbedProvider, Settings

DEFAULT_MODELS: Mapping[EmbedProvider, str] = MappingProxyType(
    {
        EmbedProvider.ONNX: "models/all-MiniLM-L6-v2",
        EmbedProvider.OPENAI: "text-embedding-3-small",
        EmbedProvider.OLLAMA: "all-minilm",
    }
)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """:param revision: Commit or tag of a Hugging Face model; only `onnx` has a use for it.

    :param dim: Numbers in a vector, where that cannot be known from the model; `onnx` has no use for it.
    """

    provider: EmbedProvider
    model: str
    revision: str | None = None
    dim: int | None = None

    @classmethod
    def of(cls, settings: Settings) -> ModelSpec:
        """The model that the settings name."""
        provider = settings.embed_provider
        return cls(
            provider, settings.embed_model or DEFAULT_MODELS[provider], settings.embed_revision, settings.embed_dim
        )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> ModelSpec:
        """What `to_json` made.

        :raises ValueError: If it names a provider that this release does not know.
        """
        return cls(**{**content, "provider": EmbedProvider(content["provider"])})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
