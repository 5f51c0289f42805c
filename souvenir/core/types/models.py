"""Interfaces of embedding models and cross-encoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatVector = NDArray[np.float32]
"""Shape (dim,) or (n, dim), float32; rows of embedded texts have length 1."""


class Embedder(Protocol):
    """Turns text into vectors. Thread-safe."""

    @property
    def model_id(self) -> str:
        """Identifies the vector space: vectors of two ids are never compared. Known without loading the model."""

    @property
    def dim(self) -> int: ...

    @property
    def ready(self) -> bool:
        """Whether the model is loaded, so that the next call does not have to wait for it."""

    @property
    def max_tokens(self) -> int:
        """Maximum number of content tokens of a passage."""

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        """Return unit vectors (n, dim) of texts that each fit in one passage."""

    def embed_query(self, text: str) -> FloatVector:
        """Return the unit vector (dim,) of a query of any length."""

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the character spans of the content tokens, in order."""

    def known_share(self, text: str) -> float:
        """Return the share of content tokens that the model knows, in [0, 1]; 1 for a text without any."""


class LoadableEmbedder(Embedder, Protocol):
    """An embedder whose owner loads and closes it. It also loads on first use; `close` is final."""

    def load(self) -> None:
        """Load the model; idempotent.

        :raises EmbeddingUnavailable: If that fails; the message says what to do.
        """

    def close(self) -> None:
        """Fail waiting requests; later ones raise `ServiceClosing`."""


class Reranker(Protocol):
    """Scores a query and a passage together. Thread-safe."""

    def scores(self, query: str, passages: Sequence[str], *, timeout_s: float) -> Sequence[float]:
        """Return how well each passage answers the query, in order; higher is better, and any number is possible.

        :raises TimeoutError: If not all are scored in time; the work stops soon after.
        """

    def close(self) -> None:
        """Free the model's memory; later calls raise `ServiceClosing`."""
