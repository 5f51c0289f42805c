"""RemoteEmbedder: texts to unit vectors by OpenAI, Ollama or a server with OpenAI's API.

It can be created without the server; calls raise `EmbeddingUnavailable` until it answers. The server's tokenizer is
unknown, so text length is estimated by a rule that overestimates tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np

from souvenir.core.errors import InvalidRequest, ServiceClosing
from souvenir.core.telemetry import Instruments
from souvenir.core.types import FloatVector, PlainEmbedder
from souvenir.models.embedding.batching import Batcher, BatchSize, Kind
from souvenir.models.embedding.query_cache import EmbeddedQuery, QueryCache
from souvenir.models.embedding.specs import SHORTENABLE, ModelSpec, known_model
from souvenir.models.embedding.tokens import not_unicode
from souvenir.models.providers.endpoints import EmbeddingEndpoint

if TYPE_CHECKING:
    from souvenir.models.embedding.vendor import Vendor

BYTES_PER_TOKEN = 4
"""In English prose; rows of texts are measured in bytes here."""

MAX_BATCH_BYTES = 250_000
"""OpenAI accepts 300,000 tokens per request, and a token has at least one byte."""

MAX_PASSAGE_TOKENS = 510
"""Longer passages would fit some windows, but contain too many statements for one vector."""

TOKENS_PER_TOKEN = 1.5
"""Upper bound of model tokens per estimated token: measured with WordPiece, 0.7 to 1.2 in prose and code, 1.1 in hex
digits, 1.4 in base64. A text that still does not fit (Korean for an English model: 1.6, random letters: 2.6) is
embedded in halves.
"""

_TOKEN = re.compile(r"[A-Za-z]{1,4}|\d{1,2}|[^\W\dA-Za-z]|[^\w\s]")


class RemoteEmbedder(PlainEmbedder):
    """Loads on first use, or with `load`, which sends nothing. Thread-safe.

    :param batch_size: Texts per request to the provider.
    :param concurrency: Concurrent requests to the provider.
    :param max_waiting_tokens: Approximate number of tokens that may wait for the provider (`Batcher`).
    :param instruments: Receives metrics of its queue and its query cache.
    :raises InvalidRequest: If the dimension of the model's vectors is unknown.
    """

    def __init__(
        self,
        spec: ModelSpec,
        endpoint: EmbeddingEndpoint,
        *,
        batch_size: int,
        concurrency: int,
        query_cache_size: int,
        max_waiting_tokens: int,
        instruments: Instruments | None = None,
    ) -> None:
        self._spec = spec
        self._endpoint = endpoint
        self._batch_size = batch_size
        self._concurrency = concurrency
        self._max_waiting_tokens = max_waiting_tokens
        self._known = known_model(spec.model)
        self._instruments = instruments or Instruments()
        self._queries = QueryCache(query_cache_size, self._instruments)
        self._loading = RLock()
        self._loaded: tuple[Batcher[bytes, FloatVector], Vendor] | None = None
        self._closed = False
        self.dim = self._checked_dim()
        self.model_id = f"{spec.provider.value}/{spec.model}/{self.dim}"
        prefix_tokens = max(
            len(self.token_offsets(prefix)) for prefix in (self._known.query_prefix, self._known.document_prefix)
        )
        fitting = int((self._known.window - 2) / TOKENS_PER_TOKEN) - prefix_tokens
        self.max_tokens = min(MAX_PASSAGE_TOKENS, fitting)

    # --- embedding ---------------------------------------------------------------------------------------------

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        """Return unit vectors (n, dim), float32, in the order of the texts.

        :raises EmbeddingUnavailable: If the provider fails.
        """
        return self._embed(self._known.document_prefix, texts, Kind.DOCUMENT)

    def embed_query(self, text: str) -> FloatVector:
        """Return the unit vector (dim,) of a query of any length; read-only, because it is shared with the cache.

        A query longer than the window is split into windows of equal length; its vector is the direction of their mean.
        """
        return self._queries.get(text, lambda: self._embed_windows(text)).vector

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """Return character spans of parts of words, numbers and signs; about as many as the model's own tokens."""
        return [match.span() for match in _TOKEN.finditer(text)]

    def known_share(self, text: str) -> float:
        """Return 1, because the model's vocabulary is unknown."""
        return 1.0

    # --- lifecycle ---------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Prepare the client; no request is sent before the first text."""
        self._load()

    @property
    def ready(self) -> bool:
        """True if the client is prepared, even if the provider does not answer: searches work without it."""
        return self._loaded is not None

    def close(self) -> None:
        """Fail waiting requests, and close the connections. Later requests raise `ServiceClosing`."""
        with self._loading:
            self._closed = True
            loaded, self._loaded = self._loaded, None
        if loaded is not None:
            batcher, vendor = loaded
            vendor.stop_retrying()
            batcher.close()
            vendor.close()

    # --- internal ----------------------------------------------------------------------------------------------

    def _checked_dim(self) -> int:
        dim, known = self._spec.dim or self._known.dim, self._known.dim
        if dim is None:
            raise InvalidRequest(
                f"How many numbers a vector of {self._spec.model!r} has is not known here; say it in EMBED_DIM"
            )
        if known is not None and self._spec.model.startswith(SHORTENABLE) and dim > known:
            raise InvalidRequest(f"A vector of {self._spec.model} has {known} numbers at most; correct EMBED_DIM")
        return dim

    def _load(self) -> Batcher[bytes, FloatVector]:
        with self._loading:
            if self._closed:
                raise ServiceClosing
            if self._loaded is None:
                from souvenir.models.embedding.vendor import Vendor

                shorten = self._spec.model.startswith(SHORTENABLE) and self.dim != self._known.dim
                vendor = Vendor(self._endpoint, self._spec.model, self.dim, shorten=shorten)
                batcher = Batcher[bytes, FloatVector](
                    vendor.encode,
                    max_waiting=BYTES_PER_TOKEN * self._max_waiting_tokens,
                    fits=self._fits,
                    workers=self._concurrency,
                    instruments=self._instruments,
                )
                self._loaded = batcher, vendor
            return self._loaded[0]

    def _fits(self, size: BatchSize) -> bool:
        return size.rows <= self._batch_size and size.tokens <= MAX_BATCH_BYTES

    def _embed_windows(self, query: str) -> EmbeddedQuery:
        return EmbeddedQuery.of_windows(self._embed(self._known.query_prefix, self._windows(query), Kind.QUERY))

    def _embed(self, prefix: str, texts: Sequence[str], kind: Kind) -> FloatVector:
        """Embed the texts. A blank text gets a fixed vector, because providers reject it."""
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        written = [place for place, text in enumerate(texts) if text.strip()]
        vectors[:, 0] = 1.0
        if written:
            try:
                rows = [(prefix + texts[place]).encode() for place in written]
            except UnicodeEncodeError as error:
                raise not_unicode() from error
            vectors[written] = np.stack(self._load().embed(rows, kind))
        return vectors

    def _windows(self, text: str) -> list[str]:
        offsets = self.token_offsets(text)
        windows = max(1, -(-len(offsets) // self.max_tokens))
        cuts = [offsets[len(offsets) * window // windows][0] for window in range(1, windows)]
        return [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]
