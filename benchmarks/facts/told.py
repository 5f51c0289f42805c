"""Any number of memories with five facts, tags, and vectors that resemble the real model's but are cheaper.

A fact is a sentence of benchmarks.load. The real model embeds the first 2,000; every text gets the vector of one of
these, turned at random so far that its cosine with it is about 0.8. Questions are embedded by the real model.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from benchmarks.load.sentences import memories
from souvenir.core.types import Embedder, FloatVector, MemoryDraft, PlainEmbedder

FACTS_EACH = 5
EMBEDDED = 2_000
NOISE = 0.75
"""Length of what is added to a unit vector, at about a right angle: the cosine is ``1 / sqrt(1 + NOISE ** 2)``."""

COMMON, RARE = "household", "urgent"
"""Tags of every second memory, and of one in a hundred."""

SOURCE = "benchmark/facts"


def drafts(seed: int = 0) -> Iterator[MemoryDraft]:
    """Without end."""
    sentences, number = memories(seed), 0
    while True:
        facts = tuple(islice(sentences, FACTS_EACH))
        tags = [COMMON] * (number % 2 == 0) + [RARE] * (number % 100 == 0)
        yield MemoryDraft(" ".join(facts), SOURCE, tags=tuple(tags), facts=facts)
        number += 1


class TurnedEmbedder(PlainEmbedder):
    """Gives a text the vector of a real one, turned; takes the place of the real model while a folder is filled."""

    ready = True

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.model_id, self.dim, self.max_tokens = embedder.model_id, embedder.dim, embedder.max_tokens
        self._vectors = embedder.embed_documents(list(islice(memories(seed=0), EMBEDDED)))

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        turned = np.stack([self._turned(zlib.crc32(text.encode())) for text in texts])
        return np.asarray(turned / np.linalg.norm(turned, axis=1, keepdims=True), dtype=np.float32)

    def embed_query(self, text: str) -> FloatVector:
        return self._embedder.embed_query(text)

    def known_share(self, text: str) -> float:
        return self._embedder.known_share(text)

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        return self._embedder.token_offsets(text)

    def _turned(self, seed: int) -> FloatVector:
        noise = np.random.default_rng(seed).standard_normal(self.dim, dtype=np.float32)
        turned: FloatVector = self._vectors[seed % EMBEDDED] + NOISE * noise / np.linalg.norm(noise)
        return turned
