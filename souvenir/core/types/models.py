"""Interfaces of embedding models and cross-encoders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

FloatVector = NDArray[np.float32]
"""Shape (dim,) or (n, dim), float32; rows of embedded texts have length 1."""

TOKEN_SCALE = 127
"""A component of a unit token vector times this, rounded, is its code."""

MAX_PASSAGE_TOKEN_VECTORS = 64
"""Token vectors of a passage; content tokens after these have none."""


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """The content tokens of a passage, in order, at most `MAX_PASSAGE_TOKEN_VECTORS`.

    :param ids: Their ids in the model's vocabulary, (t,). :param codes: Their unit vectors times `TOKEN_SCALE`, (t, d).
    """

    ids: NDArray[np.uint16]
    codes: NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Embedded:
    """:param vectors: Unit vectors of n texts, (n, dim).

    :param tokens: The token vectors of each text; None: the model has no token output.
    """

    vectors: FloatVector
    tokens: Sequence[TokenVectors] | None


@dataclass(frozen=True, slots=True)
class QueryTokens:
    """The content tokens of a query, in order; of one longer than the window, those of its first window.

    :param vectors: Unit vectors, (t, d). :param ids: Ids in the model's vocabulary, (t,).
    :param spans: Their characters in the query: start and end.
    """

    vectors: FloatVector
    ids: NDArray[np.uint16]
    spans: Sequence[tuple[int, int]]


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

    @property
    def token_space(self) -> str | None:
        """Identifies the space of the token vectors, in 8 hex digits; None: the model has no token output.

        Token vectors of two spaces are never compared. Known without loading the model.
        """

    @property
    def scoring(self) -> Mapping[str, Any]:
        """Constants of scoring that were measured with this model, as JSON; empty: those of the code."""

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        """Return unit vectors (n, dim) of texts that each fit in one passage."""

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        """Return what `embed_documents` returns, with the token vectors from the same run of the model."""

    def embed_query(self, text: str) -> FloatVector:
        """Return the unit vector (dim,) of a query of any length."""

    def query_tokens(self, text: str) -> QueryTokens | None:
        """Return the content tokens of a query; None: the model has no token output.

        They are made and cached with the vector of `embed_query`.
        """

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the character spans of the content tokens, in order."""

    def token_count(self, text: str) -> int:
        """Return the number of content tokens of a text; quick for lines that were counted before."""

    def known_share(self, text: str) -> float:
        """Return the share of content tokens that the model knows, in [0, 1]; 1 for a text without any."""


class PlainEmbedder(ABC):
    """The parts of `Embedder` that a model may lack: token vectors, and constants of its own."""

    @property
    def token_space(self) -> str | None:
        return None

    @property
    def scoring(self) -> Mapping[str, Any]:
        return {}

    @abstractmethod
    def embed_documents(self, texts: Sequence[str]) -> FloatVector: ...

    @abstractmethod
    def token_offsets(self, text: str) -> list[tuple[int, int]]: ...

    def token_count(self, text: str) -> int:
        return len(self.token_offsets(text))

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        return Embedded(self.embed_documents(texts), None)

    def query_tokens(self, text: str) -> QueryTokens | None:
        return None


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
