"""Parse an answer of `/v1/embeddings` to unit vectors. An answer that does not match the request is rejected."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from souvenir.core.errors import EmbeddingUnavailable
from souvenir.core.types import FloatVector


def vectors_of(body: bytes, *, count: int, dim: int | None) -> FloatVector:
    """Return unit vectors (count, dim) in the order of the texts, regardless of the order in the answer.

    :param dim: The expected dimension; None accepts any, if it is the same for all.

    :raises EmbeddingUnavailable: Unless it contains exactly one vector of `dim` finite numbers for each text.
    """
    try:
        data = json.loads(body)["data"]
        rows = {entry["index"]: _numbers(entry["embedding"]) for entry in data}
        in_order = [rows[place] for place in range(count)]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise _unusable() from None
    if len(data) != count:
        raise _unusable()
    expected = in_order[0].shape if dim is None else (dim,)
    if wrong := {row.shape for row in in_order} - {expected}:
        raise EmbeddingUnavailable(
            f"The embedding provider gave a vector of {wrong.pop()[0]} numbers where {expected[0]} were expected; "
            "correct EMBED_MODEL or EMBED_DIM"
        )
    vectors = np.stack(in_order)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(norms) & (norms > 0)).all():
        raise _unusable()
    unit: FloatVector = (vectors / norms).astype(np.float32)
    return unit


def _numbers(embedding: Any) -> NDArray[np.float64]:
    """Parse a list of numbers, or the requested little-endian float32 in base64; some servers send lists anyway."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4").astype(np.float64)
    numbers = np.array(embedding)
    if numbers.ndim != 1 or numbers.dtype.kind not in "fiu":
        raise ValueError("not a list of numbers")
    return numbers.astype(np.float64)


def _unusable() -> EmbeddingUnavailable:
    return EmbeddingUnavailable(
        "The embedding provider gave no usable vectors; see that EMBED_BASE_URL leads to an OpenAI-compatible API "
        "and EMBED_MODEL is an embedding model"
    )
