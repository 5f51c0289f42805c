"""What is known of models that are asked over the network, so that a service starts without asking them.

Names are those of OpenAI and of Ollama's library. Dimensions, windows and prefixes are the makers' own; Ollama may be
set to a smaller window than a model was made for, and then that one stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

SHORTENABLE = "text-embedding-3-"
"""Models of this name give fewer dimensions when they are asked to."""

_SEARCH_PASSAGES = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True)
class KnownModel:
    """:param window: Tokens that it reads, special tokens and prefix included."""

    dim: int | None
    window: int
    query_prefix: str = ""
    document_prefix: str = ""


UNKNOWN = KnownModel(dim=None, window=512)
"""Few models read less."""

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
    """By its name with the tag, or else without; `UNKNOWN` for any other."""
    return KNOWN_MODELS.get(name) or KNOWN_MODELS.get(name.partition(":")[0], UNKNOWN)
