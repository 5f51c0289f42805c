"""Asks an OpenAI-compatible server for vectors, through the openai SDK: one batch in, its unit vectors out.

OpenAI and Ollama speak the same wire at `/v1/embeddings`. A call ends within `timeout_s`, retries included. No text and
no key stands in an error or a log line: what the server says may repeat them, so its words are not passed on and its
exceptions are not chained. Importing this takes a second; only an embedder that is used does.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus
from threading import Event
from time import monotonic

import httpx2
import numpy as np
import openai

from souvenir.embedding.endpoint import Endpoint
from souvenir.embedding.queries import mean_direction
from souvenir.embedding.wire import vectors_of
from souvenir.errors import EmbeddingUnavailable
from souvenir.types import FloatVector
from souvenir.vendors.addresses import is_loopback
from souvenir.vendors.outage import Outage
from souvenir.vendors.retrying import MAX_ATTEMPTS, asked_delay_s, backoff_s, is_passing

CONNECT_TIMEOUT_S = 5.0
NO_KEY = "none"
"""Sent where there is no key: the SDK wants one, and servers without keys do not look."""

MAX_NUMBER_BYTES = 64
"""An answer may take so much for each number of its vectors; some write them with 20 digits."""

_REFUSED = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY})

# At its finer levels the SDK logs what it sends.
logging.getLogger("openai").setLevel(logging.WARNING)


class RequestRefused(EmbeddingUnavailable):
    """The provider answered that it does not take this request; it may well take the next."""


class _TextTooLong(RequestRefused):
    """A text of the batch has more tokens than the model reads."""


class Vendor:
    """Safe to call from many threads.

    :param dim: Numbers that a vector must have.
    :param shorten: Whether the model has to be asked for that many.
    """

    def __init__(self, endpoint: Endpoint, model: str, dim: int, *, shorten: bool) -> None:
        self._endpoint = endpoint
        self._name = f"The embedding provider ({endpoint.provider.value})"
        self._model = model
        self._dim = dim
        self._shorten = shorten
        self._outage = Outage(
            "embedding", EmbeddingUnavailable, _resting, rest_s=endpoint.rest_s, unless=RequestRefused
        )
        self._closing = Event()
        self._client = openai.OpenAI(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key or NO_KEY,
            max_retries=0,
            http_client=openai.DefaultHttpxClient(
                # A text must not follow to where nobody sent it, nor reach this machine by way of a proxy.
                follow_redirects=False,
                trust_env=not is_loopback(endpoint.base_url),
            ),
        )

    def stop_retrying(self) -> None:
        """Calls under way end with their present attempt."""
        self._closing.set()

    def close(self) -> None:
        """Close the connections, when no call is under way any more."""
        self._client.close()

    def encode(self, texts: Sequence[bytes]) -> FloatVector:
        """Unit vectors (n, dim) of texts in UTF-8.

        :raises EmbeddingUnavailable: The sentence says what to do.
        """
        return self._vectors([text.decode() for text in texts])

    def _vectors(self, texts: Sequence[str]) -> FloatVector:
        """A text that is too long after all gets the direction of its halves' mean; nothing is cut."""
        try:
            with self._outage.watch():
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
        deadline, attempt = monotonic() + self._endpoint.timeout_s, 1
        while True:
            try:
                return self._ask_once(texts, deadline)
            except (openai.OpenAIError, httpx2.HTTPError) as error:
                failure, delay_s = self._failure_of(error), _delay_s(error, attempt)
            # Out of the except block, so that what the server said is not chained.
            if delay_s is None or attempt == MAX_ATTEMPTS or monotonic() + delay_s >= deadline:
                raise failure
            if self._closing.wait(delay_s):
                raise failure
            attempt += 1

    def _ask_once(self, texts: Sequence[str], deadline: float) -> FloatVector:
        remaining_s = max(0.001, deadline - monotonic())
        limit = 65_536 + len(texts) * self._dim * MAX_NUMBER_BYTES
        asking = self._client.embeddings.with_streaming_response.create(
            model=self._model,
            input=list(texts),
            dimensions=self._dim if self._shorten else openai.omit,
            encoding_format="base64",
            timeout=openai.Timeout(remaining_s, connect=min(CONNECT_TIMEOUT_S, remaining_s)),
        )
        body = bytearray()
        with asking as response:
            for chunk in response.iter_bytes():
                body += chunk
                # Each wait for a chunk is bounded; so must be their number and their sum.
                if monotonic() > deadline:
                    raise self._timed_out()
                if len(body) > limit:
                    break
        return vectors_of(bytes(body), count=len(texts), dim=self._dim)

    def _failure_of(self, error: Exception) -> EmbeddingUnavailable:
        match error:
            case openai.APIStatusError():
                return self._failure_of_status(error)
            case openai.APITimeoutError() | httpx2.TimeoutException():
                return self._timed_out()
        return EmbeddingUnavailable(f"{self._name} cannot be reached; try again later, or correct EMBED_BASE_URL")

    def _failure_of_status(self, error: openai.APIStatusError) -> EmbeddingUnavailable:
        status = error.status_code
        if status in _REFUSED:
            kind = _TextTooLong if "context length" in error.message else RequestRefused
            return kind(f"{self._name} refused the text (status {status}); see that EMBED_MODEL is an embedding model")
        match status:
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
                advice = "refused the key; correct EMBED_API_KEY"
            case HTTPStatus.NOT_FOUND:
                advice = f"has no model {self._model!r}; fetch it there, or correct EMBED_MODEL or EMBED_BASE_URL"
            case HTTPStatus.TOO_MANY_REQUESTS:
                advice = "takes no more requests now; try again later, or raise its limits"
            case _:
                advice = f"failed with status {status}; try again later, or look at its log"
        return EmbeddingUnavailable(f"{self._name} {advice}")

    def _timed_out(self) -> EmbeddingUnavailable:
        return EmbeddingUnavailable(
            f"{self._name} did not answer within {self._endpoint.timeout_s:g} s; try again later, or raise "
            "EMBED_TIMEOUT_S"
        )


def _delay_s(error: Exception, attempt: int) -> float | None:
    """How long to wait before the next attempt: what the server asks for, else twice as long each time. None: never."""
    if isinstance(error, openai.APIStatusError):
        if not is_passing(error.status_code):
            return None
        asked_s = asked_delay_s(error.response.headers)
        if asked_s is not None:
            return asked_s
    return backoff_s(attempt)


def _resting(failure: EmbeddingUnavailable, left_s: float) -> EmbeddingUnavailable:
    return EmbeddingUnavailable(failure.message)
