"""The one place that makes an embedder of the settings. Nothing is loaded and nobody is asked before it is used."""

from __future__ import annotations

from onnx_embedder import OnnxEmbedder
from souvenir.embedding.specs import ModelSpec
from souvenir.settings import Settings
from souvenir.types import LoadableEmbedder


def embedder_of(settings: Settings, spec: ModelSpec | None = None) -> LoadableEmbedder:
    """An embedder that is not loaded yet; the caller closes it.

    :param spec: Another model than the one that the settings name.
    """
    chosen = spec or ModelSpec.of(settings)
    return OnnxEmbedder(
        chosen.model,
        revision=chosen.revision,
        threads=settings.embed_threads,
        query_cache_size=settings.query_cache_size,
    )
