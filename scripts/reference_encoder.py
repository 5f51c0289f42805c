"""The all-MiniLM-L6-v2 encoder in plain numpy, float32, one text at a time: slow, unpadded and easy to check.

It is what the shipped ONNX model is measured against, and it finds the channels that 8 bits cannot hold. The service
never runs it. The architecture is BERT's (Devlin et al. 2019) with post-layer normalisation; the pooling is the mean
over all tokens, as the model's own 1_Pooling/config.json says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Weights = Mapping[str, NDArray[np.float32]]
Observer = Callable[[int, str, NDArray[np.float32]], None]
"""Called with the layer, the name of what flows into a matrix ("hidden" or "intermediate"), and its rows."""

_erf = np.frompyfunc(math.erf, 1, 1)


@dataclass(frozen=True, slots=True)
class Architecture:
    """The numbers of the model's config.json that the weights alone do not tell."""

    layers: int
    heads: int
    epsilon: float


def encode(
    weights: Weights, architecture: Architecture, token_ids: Sequence[int], observe: Observer | None = None
) -> NDArray[np.float32]:
    """The unit vector (dim,) of one text, given with its special tokens."""
    mean = encode_tokens(weights, architecture, token_ids, observe).mean(axis=0)
    return _float32(mean / np.linalg.norm(mean))


def encode_tokens(
    weights: Weights, architecture: Architecture, token_ids: Sequence[int], observe: Observer | None = None
) -> NDArray[np.float32]:
    """The vectors (length, dim) of the tokens of one text."""
    rows = _layer_norm(weights, "embeddings.LayerNorm", _embedded(weights, token_ids), architecture.epsilon)
    for layer in range(architecture.layers):
        rows = _layer(weights, architecture, layer, rows, observe)
    return rows


def _embedded(weights: Weights, token_ids: Sequence[int]) -> NDArray[np.float32]:
    words = weights["embeddings.word_embeddings.weight"][list(token_ids)]
    positions = weights["embeddings.position_embeddings.weight"][: len(token_ids)]
    return _float32(words + positions + weights["embeddings.token_type_embeddings.weight"][0])


def _layer(
    weights: Weights, architecture: Architecture, layer: int, rows: NDArray[np.float32], observe: Observer | None
) -> NDArray[np.float32]:
    prefix = f"encoder.layer.{layer}"
    attended = _attention(weights, f"{prefix}.attention.self", rows, architecture.heads)
    projected = _linear(weights, f"{prefix}.attention.output.dense", attended)
    middle = _layer_norm(weights, f"{prefix}.attention.output.LayerNorm", projected + rows, architecture.epsilon)
    intermediate = _gelu(_linear(weights, f"{prefix}.intermediate.dense", middle))
    if observe is not None:
        observe(layer, "hidden", rows)
        observe(layer, "hidden", middle)
        observe(layer, "intermediate", intermediate)
    narrowed = _linear(weights, f"{prefix}.output.dense", intermediate)
    return _layer_norm(weights, f"{prefix}.output.LayerNorm", narrowed + middle, architecture.epsilon)


def _attention(weights: Weights, prefix: str, rows: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    query, key, value = (
        _linear(weights, f"{prefix}.{name}", rows).reshape(len(rows), heads, -1).transpose(1, 0, 2)
        for name in ("query", "key", "value")
    )
    logits = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return _float32((shares @ value).transpose(1, 0, 2).reshape(len(rows), -1))


def _linear(weights: Weights, name: str, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return _float32(rows @ weights[f"{name}.weight"].T + weights[f"{name}.bias"])


def _layer_norm(weights: Weights, name: str, rows: NDArray[np.float32], epsilon: float) -> NDArray[np.float32]:
    centred = rows - rows.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return _float32(centred / np.sqrt(variance + epsilon) * weights[f"{name}.weight"] + weights[f"{name}.bias"])


def _gelu(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return _float32(rows * 0.5 * (1.0 + _erf(rows / math.sqrt(2.0)).astype(np.float32)))


def _float32(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Holds the types: numpy's stubs let some of these operations widen."""
    return values.astype(np.float32, copy=False)
