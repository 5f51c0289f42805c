"""An embedder whose vectors can be worked out by hand: a word is a direction, a text the sum of its words.

Two texts of n and m different words that share s of them have the cosine s / sqrt(n m), unless two words fall into one
of the 256 directions. It needs no model, so it is quick, and the same on every machine.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from souvenir.core.types import (
    MAX_PASSAGE_TOKEN_VECTORS,
    TOKEN_SCALE,
    Embedded,
    FloatVector,
    PlainEmbedder,
    QueryTokens,
    TokenVectors,
)
from souvenir.models.embedding.specs import ModelSpec

_WORD = re.compile(r"\w+")


class FakeEmbedder(PlainEmbedder):
    model_id = "fake@1"
    dim = 256
    ready = True
    max_tokens = 128
    seed = 0

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        return np.array([self._vector(text) for text in texts], dtype=np.float32).reshape(len(texts), self.dim)

    def embed_query(self, text: str) -> FloatVector:
        return self._vector(text)

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in _WORD.finditer(text)]

    def known_share(self, text: str) -> float:
        return 1.0

    def load(self) -> None:
        return None

    def close(self) -> None:
        return None

    def _vector(self, text: str) -> FloatVector:
        vector = np.zeros(self.dim, dtype=np.float32)
        for word in _WORD.findall(text.casefold()):
            vector[zlib.crc32(word.encode(), self.seed) % self.dim] += 1.0
        if not vector.any():
            vector[0] = 1.0
        return vector / np.float32(np.linalg.norm(vector))


class FakeTokenEmbedder(FakeEmbedder):
    """Also makes token vectors: the direction of each word, of 64, and as its id the word's checksum."""

    token_space = "fa4e0001"
    token_dim = 64

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        return Embedded(self.embed_documents(texts), [self._tokens(text) for text in texts])

    def query_tokens(self, text: str) -> QueryTokens:
        ids, vectors = self._words(text)
        return QueryTokens(vectors, ids, self.token_offsets(text))

    def _tokens(self, text: str) -> TokenVectors:
        ids, vectors = self._words(text)
        codes = (TOKEN_SCALE * vectors[:MAX_PASSAGE_TOKEN_VECTORS]).astype(np.int8)
        return TokenVectors(ids[:MAX_PASSAGE_TOKEN_VECTORS], codes)

    def _words(self, text: str) -> tuple[NDArray[np.uint16], FloatVector]:
        sums = [zlib.crc32(word.encode(), self.seed) for word in _WORD.findall(text.casefold())]
        ids = (np.array(sums, dtype=np.int64) % (1 << 16)).astype(np.uint16)
        return ids, np.eye(self.token_dim, dtype=np.float32)[ids % self.token_dim]


def fake_of(spec: ModelSpec) -> FakeEmbedder:
    """Replaces every model."""
    return FakeEmbedder()
