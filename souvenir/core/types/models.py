"""What embeds texts and what reads a question and a passage together, as the rest of the service sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatVector = NDArray[np.float32]
"""Shape (dim,) or (n, dim), float32; rows of embedded texts have length 1."""


class Embedder(Protocol):
    """Turns text into vectors. Safe to call from many threads."""

    @property
    def model_id(self) -> str:
        """Names the vector space: vectors of two ids are never compared. Known without loading the model."""

    @property
    def dim(self) -> int: ...

    @property
    def ready(self) -> bool:
        """Whether the model is loaded, so that the next call does not wait for it."""

    @property
    def max_tokens(self) -> int:
        """Content tokens that one passage may hold."""

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        """Unit vectors (n, dim) of texts that each fit in one passage."""

    def embed_query(self, text: str) -> FloatVector:
        """The unit vector (dim,) of a question, of any length."""

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """Character spans of the content tokens, in order."""

    def known_share(self, text: str) -> float:
        """The share of the content tokens that the model can make something of, in [0, 1]; 1 for a text of none."""


class LoadableEmbedder(Embedder, Protocol):
    """An embedder with a life that somebody owns. It loads on first use too; `close` ends it for good."""

    def load(self) -> None:
        """Make the next call quick; a second time does nothing.

        :raises EmbeddingUnavailable: If that fails; the sentence says what to do.
        """

    def close(self) -> None:
        """Fail the requests that wait; later ones raise `ServiceClosing`."""


class Reranker(Protocol):
    """Reads a question and a passage together. Safe to call from many threads."""

    def scores(self, query: str, passages: Sequence[str], *, timeout_s: float) -> Sequence[float]:
        """How well each passage answers the question, in their order; higher is better, and any number may come.

        :raises TimeoutError: If not all are scored in that time; nothing is worked on any more soon after.
        """

    def close(self) -> None:
        """Give the model's memory back; later calls raise `ServiceClosing`."""
