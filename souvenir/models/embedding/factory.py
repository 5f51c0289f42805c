"""Create embedders from the settings. Nothing is loaded or sent before first use."""

from __future__ import annotations

from souvenir.core.settings import EmbedProvider, Settings
from souvenir.core.telemetry import Instruments
from souvenir.core.types import LoadableEmbedder
from souvenir.models.embedding.onnx_embedder import OnnxEmbedder
from souvenir.models.embedding.remote import RemoteEmbedder
from souvenir.models.embedding.specs import ModelSpec
from souvenir.models.providers.endpoints import EmbeddingEndpoint


def embedder_of(
    settings: Settings, spec: ModelSpec | None = None, *, instruments: Instruments | None = None
) -> LoadableEmbedder:
    """Return an embedder that is not loaded yet; the caller closes it.

    :param spec: Another model than that of the settings.
    :param instruments: Receives metrics of its queue and its query cache.
    :raises InvalidRequest: If a required setting is missing; the message names it.
    """
    chosen = spec or ModelSpec.of(settings)
    if chosen.provider is EmbedProvider.ONNX:
        return OnnxEmbedder(
            chosen.model,
            revision=chosen.revision,
            threads=settings.embed_threads,
            query_cache_size=settings.query_cache_size,
            instruments=instruments,
        )
    return RemoteEmbedder(
        chosen,
        EmbeddingEndpoint.of(settings, chosen),
        batch_size=settings.embed_batch_size,
        concurrency=settings.embed_concurrency,
        query_cache_size=settings.query_cache_size,
        instruments=instruments,
    )
