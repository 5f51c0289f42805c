"""OnnxEmbedder: texts to unit vectors, on the CPU, with ONNX Runtime and a Rust tokenizer.

It supports any sentence-embedding model with an ONNX file, in a local folder or on Hugging Face; pooling, window and
prefixes are read from the model's own files. Nothing is truncated silently: a document longer than the window is
rejected (the engine splits it first), a long query is embedded in several windows.

A vector depends on its text alone, not on the texts it was batched with: equal to within a cosine of 0.9999.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Event, RLock
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from souvenir.core.errors import EmbeddingUnavailable, ServiceClosing
from souvenir.core.settings import EmbedProvider
from souvenir.core.telemetry import Instruments
from souvenir.core.types import MAX_PASSAGE_TOKEN_VECTORS, TOKEN_SCALE, Embedded, FloatVector, QueryTokens, TokenVectors
from souvenir.models.embedding.batching import Batcher, Kind
from souvenir.models.embedding.model_folder import ModelFiles
from souvenir.models.embedding.query_cache import EmbeddedQuery, QueryCache
from souvenir.models.embedding.session import EncodedText, EncoderSession, available_cores
from souvenir.models.embedding.specs import DEFAULT_MODELS
from souvenir.models.embedding.tokens import ModelTokenizer, TokenIds

MAX_WAITING_TOKENS = 300_000
"""About a minute of work for two cores."""

WARM_UP_TEXT = "Hello"

RETRY_AFTER_S = 10.0
"""Back-off after a failed load, so that searches fail fast while a download cannot succeed."""


class OnnxEmbedder:
    """Loads on first use, or with `load`. Thread-safe; two runs at once if there are cores for them.

    :param model: A folder (`souvenir.core.files.resource` finds relative ones) or a Hugging Face id, ``org/name``.
    :param revision: Commit, tag or branch of a Hugging Face model.
    :param threads: Threads of one run; 0 means half of the cores that the process may use, at least one.
    :param query_cache_size: Capacity of the LRU cache of query vectors; 0 disables it.
    :param cache_dir: Folder for Hugging Face models; None for the client's default (`HF_HOME`).
    :param max_waiting_tokens: Tokens that may wait for the model (`Batcher`).
    :param instruments: Receives metrics of its queue and its query cache.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODELS[EmbedProvider.ONNX],
        *,
        revision: str | None = None,
        threads: int = 0,
        query_cache_size: int = 1024,
        cache_dir: Path | None = None,
        max_waiting_tokens: int = MAX_WAITING_TOKENS,
        instruments: Instruments | None = None,
    ) -> None:
        self._model = model
        self._revision = revision
        self._threads = threads
        self._cache_dir = cache_dir
        self._max_waiting_tokens = max_waiting_tokens
        self._instruments = instruments or Instruments()
        self._queries = QueryCache(query_cache_size, self._instruments)
        self._known_share = lru_cache(query_cache_size)(self._share_of_known)
        self._loading = RLock()
        self._loaded: tuple[Batcher[TokenIds, EncodedText], int] | None = None
        self._failure: tuple[float, EmbeddingUnavailable] | None = None
        self._ready = Event()
        self._closed = False

    # --- properties --------------------------------------------------------------------------------------------

    @cached_property
    def model_id(self) -> str:
        """The id of the vector space; known without loading the model.

        ``<name>@<12 hex digits>``: of the source weights' sha256 if the folder has a manifest (so a build that
        requantises the same weights keeps its id), else of the ONNX file's; for Hugging Face, of the commit.
        """
        return self._files.model_id()

    @cached_property
    def token_space(self) -> str | None:
        """The id of the space of the token vectors; None for a model without token output."""
        return self._files.token_space()

    @cached_property
    def scoring(self) -> Mapping[str, Any]:
        """The constants of scoring that the model's folder contains."""
        return self._files.settings.scoring

    @cached_property
    def dim(self) -> int:
        """Dimension of a vector. A model with neither a manifest nor a `dim` in souvenir.json is loaded to find it."""
        if self._files.config.dim is not None:
            return self._files.config.dim
        if self._files.manifest is not None:
            return self._files.manifest.dim
        return self._load()[1]

    @cached_property
    def max_tokens(self) -> int:
        """Content tokens of a window, without special tokens and the model's prefix."""
        return self._tokenizer.max_tokens

    # --- embedding ---------------------------------------------------------------------------------------------

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        """Return unit vectors (n, dim), float32, in the order of the texts.

        :raises InvalidRequest: If a text is longer than the window; split it at `token_offsets` first.
        :raises EmbeddingUnavailable: If the model cannot be loaded or run.
        """
        return self._encoded(texts)[1]

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        """Return unit vectors and token vectors; they take one run of the model."""
        rows, vectors, encoded = self._encoded(texts)
        if self.token_space is None:
            return Embedded(vectors, None)
        outputs = (one.tokens for one in encoded if one.tokens is not None)
        return Embedded(vectors, [self._token_vectors(row, found) for row, found in zip(rows, outputs, strict=True)])

    def embed_query(self, text: str) -> FloatVector:
        """Return the unit vector (dim,) of a query of any length; read-only, because it is shared with the cache.

        A query longer than the window is split into windows of equal length; its vector is the direction of their mean.
        """
        return self._queries.get(text, lambda: self._embed_windows(text)).vector

    def query_tokens(self, text: str) -> QueryTokens | None:
        """Return the content tokens of a query's first window; read-only, because they are shared with the cache."""
        if self.token_space is None:
            return None
        return self._queries.get(text, lambda: self._embed_windows(text), counted=False).tokens

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """Return character spans (start, end) of a text's content tokens, at any length; needs the tokenizer only."""
        return self._tokenizer.offsets(text)

    def token_count(self, text: str) -> int:
        """Return the number of content tokens of a text; needs the tokenizer only. The last lines are cached."""
        return self._tokenizer.count(text)

    def known_share(self, text: str) -> float:
        """Return the share of the content tokens that are words to the model, in [0, 1]; needs the tokenizer only."""
        return self._known_share(text)

    def _share_of_known(self, text: str) -> float:
        return self._tokenizer.known_share(text)

    # --- lifecycle ---------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Load the model and run it once; idempotent.

        :raises EmbeddingUnavailable: If that fails; the message says what to do.
        """
        self._load()

    @property
    def ready(self) -> bool:
        """True if the model is loaded."""
        return self._ready.is_set()

    def wait_ready(self, timeout_s: float) -> bool:
        """Wait until another thread has loaded the model; False after the timeout."""
        return self._ready.wait(timeout_s)

    def close(self) -> None:
        """Fail waiting requests, and release the model's memory. Later requests raise `ServiceClosing`."""
        with self._loading:
            self._closed = True
            self._ready.clear()
            loaded, self._loaded = self._loaded, None
        if loaded is not None:
            loaded[0].close()

    def _encoded(self, texts: Sequence[str]) -> tuple[Sequence[TokenIds], FloatVector, Sequence[EncodedText]]:
        """Return the token ids of texts, their unit vectors (n, dim), and the outputs of the model."""
        if not texts:
            return [], np.empty((0, self.dim), dtype=np.float32), []
        batcher, _ = self._load()
        rows = self._tokenizer.documents(texts)
        encoded = batcher.embed(rows, Kind.DOCUMENT)
        return rows, np.stack([one.vector for one in encoded]), encoded

    def _token_vectors(self, row: TokenIds, found: FloatVector) -> TokenVectors:
        of_text = self._tokenizer.without_frame(row)
        ids = np.asarray(row[of_text], dtype=np.uint16)
        kept = np.flatnonzero(self._content[ids])[:MAX_PASSAGE_TOKEN_VECTORS]
        return TokenVectors(ids[kept], np.rint(TOKEN_SCALE * found[of_text][kept]).astype(np.int8))

    def _embed_windows(self, query: str) -> EmbeddedQuery:
        # The model first: a failed load is not retried immediately, but creating the tokenizer would be.
        batcher, _ = self._load()
        windows = self._tokenizer.query_windows(query)
        encoded = batcher.embed(windows.rows, Kind.QUERY)
        vectors = np.stack([one.vector for one in encoded])
        if encoded[0].tokens is None:
            return EmbeddedQuery.of_windows(vectors)
        end = windows.start + len(windows.spans)
        ids = np.asarray(windows.rows[0][windows.start : end], dtype=np.uint16)
        kept = np.flatnonzero(self._content[ids])
        tokens = QueryTokens(
            encoded[0].tokens[windows.start + kept], ids[kept], [windows.spans[place] for place in kept.tolist()]
        )
        return EmbeddedQuery.of_windows(vectors, tokens)

    @cached_property
    def _content(self) -> NDArray[np.bool_]:
        """Whether the vector of a token is kept, by its id in the vocabulary."""
        output = self._files.settings.token_vectors
        return self._tokenizer.content_tokens(frozenset() if output is None else output.dropped)

    @cached_property
    def _files(self) -> ModelFiles:
        return ModelFiles.find(self._model, self._revision, self._cache_dir)

    @cached_property
    def _tokenizer(self) -> ModelTokenizer:
        return ModelTokenizer(self._files)

    def _load(self) -> tuple[Batcher[TokenIds, EncodedText], int]:
        """Return the batcher of the loaded model, and the dimension."""
        loaded = self._loaded
        if loaded is not None:
            return loaded
        with self._loading:
            if self._closed:
                raise ServiceClosing
            if self._loaded is not None:
                return self._loaded
            if self._failure is not None and monotonic() < self._failure[0] + RETRY_AFTER_S:
                raise EmbeddingUnavailable(self._failure[1].message) from self._failure[1]
            try:
                self._loaded = self._started()
            except EmbeddingUnavailable as error:
                self._failure = (monotonic(), error)
                raise
            self._ready.set()
            return self._loaded

    def _started(self) -> tuple[Batcher[TokenIds, EncodedText], int]:
        warm_up = self._tokenizer.documents([WARM_UP_TEXT])
        session = EncoderSession(self._files, self._threads)
        batcher = Batcher(
            session.encode,
            max_waiting=self._max_waiting_tokens,
            workers=2 if available_cores() >= 2 * session.threads else 1,
            keeps_one_for_queries=False,
            instruments=self._instruments,
        )
        try:
            [encoded] = batcher.submit(warm_up, Kind.DOCUMENT).result()
            return batcher, len(encoded.vector)
        except EmbeddingUnavailable:
            batcher.close()
            raise
