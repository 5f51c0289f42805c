"""Client of an OpenAI-compatible `/embeddings`: a batch of texts in, its unit vectors out.

OpenAI and Ollama share this API. A call ends within `timeout_s`, including retries. No error or log line contains a
text or a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from http import HTTPStatus
from threading import Event
from time import monotonic
from typing import Any

import numpy as np

from souvenir.core.errors import EmbeddingUnavailable
from souvenir.core.settings import MAX_DIM
from souvenir.core.types import FloatVector
from souvenir.models.embedding.query_cache import mean_direction
from souvenir.models.embedding.wire import vectors_of
from souvenir.models.providers.circuit_breaker import CircuitBreaker
from souvenir.models.providers.client import ProviderClient
from souvenir.models.providers.endpoints import EmbeddingEndpoint, bearer
from souvenir.models.providers.retry import AnswerTooLarge, AnswerTooLate, ProviderFailure, is_transient, retrying

MAX_NUMBER_BYTES = 64
"""Bytes of an answer per number of its vectors; some servers write them with 20 digits."""

_REFUSED = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY})


class RequestRefused(EmbeddingUnavailable):
    """The provider rejected this request; it may accept the next one."""


class _TextTooLong(RequestRefused):
    """A text of the batch has more tokens than the model accepts."""


class Vendor:
    """Thread-safe.

    :param dim: Expected dimension of the vectors; None if it is not known yet.
    :param shorten: True if that dimension must be requested from the model.
    """

    def __init__(self, endpoint: EmbeddingEndpoint, model: str, dim: int | None, *, shorten: bool) -> None:
        self._endpoint = endpoint
        self._name = f"The embedding provider ({endpoint.provider.value})"
        self._model = model
        self._dim = dim
        self._shorten = shorten
        self._breaker = CircuitBreaker(
            "embedding", EmbeddingUnavailable, _open_error, rest_s=endpoint.rest_s, unless=RequestRefused
        )
        self._closing = Event()
        self._client = ProviderClient(endpoint.base_url, bearer(endpoint.api_key))

    def stop_retrying(self) -> None:
        """End calls in progress after their current attempt."""
        self._closing.set()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def encode(self, texts: Sequence[bytes]) -> FloatVector:
        """Return unit vectors (n, dim) of texts in UTF-8.

        :raises EmbeddingUnavailable: The message says what to do.
        """
        return self._vectors([text.decode() for text in texts])

    def _vectors(self, texts: Sequence[str]) -> FloatVector:
        """Embed texts.

        If a text is too long, its vector is the direction of the mean of its halves; nothing is truncated.
        """
        try:
            with self._breaker.watch():
                return self._ask(texts)
        except _TextTooLong:
            if len(texts) > 1:
                middle = len(texts) // 2
                return np.concatenate([self._vectors(texts[:middle]), self._vectors(texts[middle:])])
            [text] = texts
            if len(text) < 2:
                raise
            return mean_direction(self._vectors([text[: len(text) // 2], text[len(text) // 2 :]]))[None]

    def _ask(self, texts: Sequence[str]) -> FloatVector:
        deadline = monotonic() + self._endpoint.timeout_s
        body = retrying(
            lambda: self._ask_once(texts, deadline),
            lambda failure: (self._error_of(failure), is_transient(failure.status)),
            left_s=lambda: deadline - monotonic(),
            closing=self._closing,
        )
        return vectors_of(body, count=len(texts), dim=self._dim)

    def _ask_once(self, texts: Sequence[str], deadline: float) -> bytes | ProviderFailure:
        body: dict[str, Any] = {"model": self._model, "input": list(texts), "encoding_format": "base64"}
        if self._shorten:
            body["dimensions"] = self._dim
        max_bytes = 65_536 + len(texts) * (self._dim or MAX_DIM) * MAX_NUMBER_BYTES
        try:
            return self._client.post(
                "/embeddings", body, timeout_s=max(0.001, deadline - monotonic()), max_bytes=max_bytes
            )
        except ProviderFailure as failure:
            return failure
        except AnswerTooLarge:
            return b""
        except AnswerTooLate:
            pass
        # Outside of the except block, so that the error has no chained exception.
        raise EmbeddingUnavailable(
            f"{self._name} did not answer within {self._endpoint.timeout_s:g} s; try again later, or raise "
            "EMBED_TIMEOUT_S"
        )

    def _error_of(self, failure: ProviderFailure) -> EmbeddingUnavailable:
        status = failure.status
        if status in _REFUSED:
            kind = _TextTooLong if "context length" in failure.words else RequestRefused
            return kind(f"{self._name} refused the text (status {status}); see that EMBED_MODEL is an embedding model")
        match status:
            case 0:
                advice = "cannot be reached; try again later, or correct EMBED_BASE_URL"
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
                advice = "refused the key; correct EMBED_API_KEY"
            case HTTPStatus.NOT_FOUND:
                advice = f"has no model {self._model!r}; fetch it there, or correct EMBED_MODEL or EMBED_BASE_URL"
            case HTTPStatus.TOO_MANY_REQUESTS:
                advice = "takes no more requests now; try again later, or raise its limits"
            case _:
                advice = f"failed with status {status}; try again later, or look at its log"
        return EmbeddingUnavailable(f"{self._name} {advice}")


def asked_dim(endpoint: EmbeddingEndpoint, model: str) -> int:
    """Ask the provider for one vector and return its dimension.

    :raises EmbeddingUnavailable: If it gives none.
    """
    with closing(Vendor(endpoint, model, None, shorten=False)) as vendor:
        return int(vendor.encode([b"dimension"]).shape[1])


def _open_error(failure: EmbeddingUnavailable, left_s: float) -> EmbeddingUnavailable:
    return EmbeddingUnavailable(failure.message)
