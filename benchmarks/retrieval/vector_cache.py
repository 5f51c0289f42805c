"""An embedder with a cache on disk, so that a second run measures only the search."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

import numpy as np

from souvenir.core.types import Embedded, Embedder, FloatVector, QueryTokens, TokenVectors

PROBE = "When did Anna move to Lisbon?"
SAME_COSINE = 0.9999


class CachedEmbedder:
    """Gives what the embedder gives; `save` keeps it. Passages and questions are kept apart.

    A cache whose vectors of a probe differ from the model's (it was rebuilt, or has other prefixes) is not used.
    `model_s` counts the seconds that the model itself took. Safe to call from many threads.
    """

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self._embedder = embedder
        self.model_id = embedder.model_id
        self.token_space = embedder.token_space
        self.scoring = embedder.scoring
        self.dim = embedder.dim
        self.max_tokens = embedder.max_tokens
        self.model_s = 0.0
        self._lock = Lock()
        self._path = folder / f"vectors_{_digest(self.model_id)}.npz"
        self._tokens_path = folder / f"tokens_{_digest(f'{self.model_id} {self.token_space}')}.npz"
        self._probes = {
            _key("document", PROBE): embedder.embed_documents([PROBE])[0],
            _key("query", PROBE): embedder.embed_query(PROBE),
        }
        self._vectors, self._tokens = self._stored()
        self._query_tokens: dict[str, QueryTokens | None] = {}
        self._saved = len(self._vectors), len(self._tokens)

    @property
    def ready(self) -> bool:
        return self._embedder.ready

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        keys = [_key("document", text) for text in texts]
        with self._lock:
            new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._vectors}
            if new:
                begin = time.perf_counter()
                self._vectors.update(zip(new, self._embedder.embed_documents(list(new.values())), strict=True))
                self.model_s += time.perf_counter() - begin
            return np.stack([self._vectors[key] for key in keys])

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        if self.token_space is None:
            return Embedded(self.embed_documents(texts), None)
        keys = [_key("document", text) for text in texts]
        with self._lock:
            new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._tokens}
            if new:
                begin = time.perf_counter()
                embedded = self._embedder.embed_passages(list(new.values()))
                self.model_s += time.perf_counter() - begin
                self._vectors.update(zip(new, embedded.vectors, strict=True))
                self._tokens.update(zip(new, embedded.tokens or (), strict=True))
            return Embedded(np.stack([self._vectors[key] for key in keys]), [self._tokens[key] for key in keys])

    def embed_query(self, text: str) -> FloatVector:
        key = _key("query", text)
        with self._lock:
            if key not in self._vectors:
                begin = time.perf_counter()
                self._vectors[key] = self._embedder.embed_query(text)
                self.model_s += time.perf_counter() - begin
            return self._vectors[key]

    def query_tokens(self, text: str) -> QueryTokens | None:
        """Kept until the process ends."""
        if self.token_space is None:
            return None
        with self._lock:
            if text not in self._query_tokens:
                begin = time.perf_counter()
                self._query_tokens[text] = self._embedder.query_tokens(text)
                self.model_s += time.perf_counter() - begin
            return self._query_tokens[text]

    def timed_query(self, text: str) -> float:
        """Seconds that the model takes for a question, whether its vector is known or not."""
        begin = time.perf_counter()
        self._embedder.embed_query(text)
        return time.perf_counter() - begin

    def known_share(self, text: str) -> float:
        return self._embedder.known_share(text)

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        return self._embedder.token_offsets(text)

    def token_count(self, text: str) -> int:
        return self._embedder.token_count(text)

    def first_window(self, text: str) -> str:
        """What of a text fits in the model's window."""
        spans = self._embedder.token_offsets(text)
        return text if len(spans) <= self.max_tokens else text[: spans[self.max_tokens - 1][1]]

    def save(self) -> None:
        """Keep what is new, together with what another run has kept since."""
        if (len(self._vectors), len(self._tokens)) == self._saved:
            return
        self._path.parent.mkdir(exist_ok=True)
        stored_vectors, stored_tokens = self._stored()
        vectors, tokens = stored_vectors | self._vectors, stored_tokens | self._tokens
        _write(self._path, keys=_joined(vectors), vectors=np.stack(list(vectors.values())))
        if tokens:
            _write(
                self._tokens_path,
                keys=_joined(tokens),
                lengths=np.array([len(one.ids) for one in tokens.values()]),
                ids=np.concatenate([one.ids for one in tokens.values()]),
                codes=np.concatenate([one.codes for one in tokens.values()]),
            )
        self._saved = len(self._vectors), len(self._tokens)

    def _stored(self) -> tuple[dict[bytes, FloatVector], dict[bytes, TokenVectors]]:
        vectors = _stored_vectors(self._path)
        if all(key in vectors and vectors[key] @ probe >= SAME_COSINE for key, probe in self._probes.items()):
            return vectors, _stored_tokens(self._tokens_path)
        return dict(self._probes), {}


def _stored_vectors(path: Path) -> dict[bytes, FloatVector]:
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as stored:
        return {key.tobytes(): row for key, row in zip(stored["keys"], stored["vectors"], strict=True)}


def _stored_tokens(path: Path) -> dict[bytes, TokenVectors]:
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as stored:
        ends = np.cumsum(stored["lengths"])[:-1]
        parts = (np.split(stored[name], ends) for name in ("ids", "codes"))
        return {
            key.tobytes(): TokenVectors(*one) for key, one in zip(stored["keys"], zip(*parts, strict=True), strict=True)
        }


def _write(path: Path, **arrays: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> None:
    written = path.with_suffix(f".{os.getpid()}.npz")
    np.savez(written, allow_pickle=False, **arrays)
    written.replace(path)


def _joined(kept: Mapping[bytes, object]) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.frombuffer(b"".join(kept), np.uint8).reshape(len(kept), -1)


def _key(kind: str, text: str) -> bytes:
    return hashlib.sha256(f"{kind}\0{text}".encode()).digest()


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:12]
