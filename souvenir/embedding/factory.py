"""The one place that makes an embedder of the settings. Nothing is loaded and nobody is asked before it is used."""

from __future__ import annotations

from onnx_embedder import OnnxEmbedder
from souvenir.embedding.endpoint import Endpoint
from souvenir.embedding.remote import RemoteEmbedder
from souvenir.embedding.specs import ModelSpec
from souvenir.observation.instruments import Instruments
from souvenir.settings import EmbedProvider, Settings
from souvenir.types import LoadableEmbedder


def embedder_of(
    settings: Settings, spec: ModelSpec | None = None, *, instruments: Instruments | None = None
) -> LoadableEmbedder:
    """An embedder that is not loaded yet; the caller closes it.

    :param spec: Another model than the one that the settings name.
    :param instruments: Where its queue and its query cache are seen.
    :raises InvalidRequest: If the settings do not suffice for it; the sentence names the one that is missing.
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
        Endpoint.of(settings, chosen),
        batch_size=settings.embed_batch_size,
        concurrency=settings.embed_concurrency,
        query_cache_size=settings.query_cache_size,
        instruments=instruments,
    )
