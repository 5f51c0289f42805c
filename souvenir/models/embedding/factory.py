"""Embedders from the settings.

Nothing is loaded and no request is sent before first use, with one exception: Ollama is asked for the dimension of a
model that is not known here.
"""

from __future__ import annotations

from dataclasses import replace

from souvenir.core.errors import EmbeddingUnavailable, InvalidRequest
from souvenir.core.settings import EmbedProvider, Settings
from souvenir.core.telemetry import Instruments
from souvenir.core.types import LoadableEmbedder
from souvenir.models.embedding.onnx_embedder import OnnxEmbedder
from souvenir.models.embedding.remote import RemoteEmbedder
from souvenir.models.embedding.specs import ModelSpec, known_model
from souvenir.models.providers.endpoints import EmbeddingEndpoint


def embedder_of(
    settings: Settings, spec: ModelSpec | None = None, *, instruments: Instruments | None = None
) -> LoadableEmbedder:
    """Return an embedder that is not loaded yet; the caller closes it.

    :param spec: The model, if it is not the one of the settings.
    :param instruments: Receive the figures of its queue and its query cache.
    :raises InvalidRequest: If a setting is missing, which the sentence names, or Ollama does not give the dimension.
    """
    chosen = spec or ModelSpec.of(settings)
    if chosen.provider is EmbedProvider.ONNX:
        return OnnxEmbedder(
            chosen.model,
            revision=chosen.revision,
            threads=settings.embed_threads,
            query_cache_size=settings.query_cache_size,
            max_waiting_tokens=settings.embed_queue_tokens,
            instruments=instruments,
        )
    endpoint = EmbeddingEndpoint.of(settings, chosen)
    return RemoteEmbedder(
        _with_dim(chosen, endpoint),
        endpoint,
        batch_size=settings.embed_batch_size,
        concurrency=settings.embed_concurrency,
        query_cache_size=settings.query_cache_size,
        max_waiting_tokens=settings.embed_queue_tokens,
        instruments=instruments,
    )


def _with_dim(spec: ModelSpec, endpoint: EmbeddingEndpoint) -> ModelSpec:
    if spec.provider is not EmbedProvider.OLLAMA or spec.dim or known_model(spec.model).dim:
        return spec
    from souvenir.models.embedding.vendor import asked_dim

    try:
        return replace(spec, dim=asked_dim(endpoint, spec.model))
    except EmbeddingUnavailable as error:
        raise InvalidRequest(
            f"The dimension of {spec.model!r} is not known here and Ollama did not give it; set EMBED_DIM, or mend "
            f"this: {error.message}"
        ) from error
