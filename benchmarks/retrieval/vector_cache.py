"""An embedder with a cache on disk, so that a second run measures only the search."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import numpy as np

from souvenir.core.types import Embedder, FloatVector


class CachedEmbedder:
    """Gives what the embedder gives; `save` keeps it. Passages and questions are kept apart.

    `model_s` counts the seconds that the model itself took. Safe to call from many threads.
    """

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self._embedder = embedder
        self.model_id = embedder.model_id
        self.dim = embedder.dim
        self.max_tokens = embedder.max_tokens
        self.model_s = 0.0
        self._lock = Lock()
        self._path = folder / f"vectors_{hashlib.sha256(self.model_id.encode()).hexdigest()[:12]}.npz"
        self._vectors = self._stored()
        self._saved = len(self._vectors)

    @property
    def ready(self) -> bool:
        return self._embedder.ready

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        keys = [_key("document", text) for text in texts]
        with self._lock:
            new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._vectors}
            begin = time.perf_counter()
            self._vectors.update(zip(new, self._embedder.embed_documents(list(new.values())), strict=True))
            self.model_s += time.perf_counter() - begin
            return np.stack([self._vectors[key] for key in keys])

    def embed_query(self, text: str) -> FloatVector:
        key = _key("query", text)
        with self._lock:
            if key not in self._vectors:
                begin = time.perf_counter()
                self._vectors[key] = self._embedder.embed_query(text)
                self.model_s += time.perf_counter() - begin
            return self._vectors[key]

    def timed_query(self, text: str) -> float:
        """Seconds that the model takes for a question, whether its vector is known or not."""
        begin = time.perf_counter()
        self._embedder.embed_query(text)
        return time.perf_counter() - begin

    def known_share(self, text: str) -> float:
        return self._embedder.known_share(text)

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        return self._embedder.token_offsets(text)

    def first_window(self, text: str) -> str:
        """What of a text fits in the model's window."""
        spans = self._embedder.token_offsets(text)
        return text if len(spans) <= self.max_tokens else text[: spans[self.max_tokens - 1][1]]

    def save(self) -> None:
        """Keep what is new, beside what another run has kept since."""
        if len(self._vectors) == self._saved:
            return
        self._path.parent.mkdir(exist_ok=True)
        kept = self._stored() | self._vectors
        keys = np.frombuffer(b"".join(kept), np.uint8).reshape(len(kept), -1)
        written = self._path.with_suffix(f".{os.getpid()}.npz")
        np.savez(written, allow_pickle=False, keys=keys, vectors=np.stack(list(kept.values())))
        written.replace(self._path)
        self._saved = len(self._vectors)

    def _stored(self) -> dict[bytes, FloatVector]:
        if not self._path.exists():
            return {}
        with np.load(self._path, allow_pickle=False) as stored:
            return {key.tobytes(): row for key, row in zip(stored["keys"], stored["vectors"], strict=True)}


def _key(kind: str, text: str) -> bytes:
    return hashlib.sha256(f"{kind}\0{text}".encode()).digest()
