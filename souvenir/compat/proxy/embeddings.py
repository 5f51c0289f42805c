"""Embeddings in OpenAI's form, made by the embedding model of this service."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from souvenir.compat.proxy.routes import ProxyRoutes
from souvenir.core.errors import InvalidRequest
from souvenir.core.types import Embedder
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import NOTHING, Reader, RunningService

routes = ProxyRoutes("proxy")

MAX_TEXTS = 2_048
"""OpenAI's own limit."""

_Text = Annotated[str, Field(min_length=1)]


def _without_tokens(value: Any) -> Any:
    """:raises ValueError: If there are numbers of tokens, which are those of another model."""
    if isinstance(value, list) and any(isinstance(one, int | list) for one in value):
        raise ValueError("numbers of tokens are not accepted; send texts")
    return value


class EmbeddingsRequest(BaseModel):
    """:ivar model: Accepted and ignored, since there is one model; the answer names it."""

    model_config = ConfigDict(extra="ignore")

    input: Annotated[
        _Text | Annotated[list[_Text], Field(min_length=1, max_length=MAX_TEXTS)], BeforeValidator(_without_tokens)
    ]
    model: str = ""
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


@routes.post("/v1/embeddings", cost=CostClass.WRITE, access=NOTHING, large_body=True)
def embed(body: EmbeddingsRequest, scope: Reader, service: RunningService) -> dict[str, Any]:
    """Return the unit vectors of texts of any length."""
    embedder = service.engine.models.serving.embedder
    if body.dimensions not in (None, embedder.dim):
        raise InvalidRequest(f"The model of this service has {embedder.dim} dimensions; leave `dimensions` out")
    texts = [body.input] if isinstance(body.input, str) else body.input
    vectors = _vectors(embedder, texts)
    tokens = sum(embedder.token_count(text) for text in texts)
    packs = body.encoding_format == "base64"
    return {
        "object": "list",
        "model": embedder.model_id,
        "data": [
            {
                "object": "embedding",
                "index": index,
                "embedding": base64.b64encode(vector.tobytes()).decode() if packs else vector.tolist(),
            }
            for index, vector in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _vectors(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return unit vectors (n, dim) in little-endian float32.

    A text that is longer than the model's window is split into windows of equal length; its vector is the direction of
    their mean.
    """
    windows = [_windows(embedder, text) for text in texts]
    made = embedder.embed_documents([window for of_text in windows for window in of_text])
    begins = np.cumsum([0, *(len(of_text) for of_text in windows[:-1])])
    sums = np.add.reduceat(np.asarray(made, dtype=np.float32), begins, axis=0)
    lengths = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return np.asarray(sums / lengths, dtype="<f4")


def _windows(embedder: Embedder, text: str) -> Sequence[str]:
    offsets = embedder.token_offsets(text)
    count = math.ceil(len(offsets) / embedder.max_tokens)
    if count <= 1:
        return [text]
    size = math.ceil(len(offsets) / count)
    parts = [offsets[begin : begin + size] for begin in range(0, len(offsets), size)]
    return [text[part[0][0] : part[-1][1]] for part in parts]
