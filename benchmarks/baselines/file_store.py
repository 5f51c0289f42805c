"""A typical small memory store: FAISS and BM25 in memory and two files on disk, all rewritten by every write.

This is the design that the service grew out of, written to its advantage: the texts stay tokenised, a delete shifts
the vectors in place instead of building a new index, and nothing waits for the disk (so a write may be lost in a power
cut, which ours may not). It has no embedder: vectors come with the texts.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from pathlib import Path

import faiss
import numpy as np
from rank_bm25 import BM25Okapi

from souvenir.core.types import FloatVector

RRF_K = 60
CANDIDATES_PER_HIT = 3

_WORD = re.compile(r"\w+")


class FileStore:
    """Ids are positions, 0 to n - 1: a delete moves all later memories down by one."""

    def __init__(self, folder: Path, dim: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._index_path = folder / "index.faiss"
        self._metadata_path = folder / "metadata.json"
        self._index = faiss.IndexFlatIP(dim)
        self._metadata: list[dict[str, str]] = []
        self._tokens: list[list[str]] = []
        self._bm25: BM25Okapi | None = None

    def __len__(self) -> int:
        return len(self._metadata)

    def add(self, texts: list[str], vectors: FloatVector, source: str) -> None:
        self._index.add(vectors)
        self._metadata += [{"text": text, "source": source, "timestamp": "2026-01-01T00:00:00Z"} for text in texts]
        self._tokens += [_tokens(text) for text in texts]
        self._renew()

    def update(self, position: int, text: str, vector: FloatVector) -> None:
        vectors = self._index.reconstruct_n(0, len(self))
        vectors[position] = vector
        self._index.reset()
        self._index.add(vectors)
        self._metadata[position]["text"] = text
        self._tokens[position] = _tokens(text)
        self._renew()

    def delete(self, position: int) -> None:
        self._index.remove_ids(np.array([position]))  # type: ignore[arg-type]  # FAISS stubs show the C++ side
        del self._metadata[position]
        del self._tokens[position]
        self._renew()

    def search(self, text: str, vector: FloatVector, top_k: int) -> list[tuple[int, float]]:
        """(position, score) by reciprocal rank fusion of both arms, best first."""
        if self._bm25 is None:
            return []
        count = min(CANDIDATES_PER_HIT * top_k, len(self))
        by_vector = self._index.search(vector[None, :], count)[1][0]
        scores = self._bm25.get_scores(_tokens(text))
        by_words = np.argsort(-scores)[:count]
        fused: defaultdict[int, float] = defaultdict(float)
        for ranking in (by_vector, by_words[scores[by_words] > 0]):
            for rank, position in enumerate(ranking.tolist(), 1):
                fused[position] += 1.0 / (RRF_K + rank)
        return sorted(fused.items(), key=lambda item: (-item[1], item[0]))[:top_k]

    def settle(self) -> None:
        """Wait for the disk, so that what this store left to the kernel is not paid for by whoever writes next."""
        for path in (self._index_path, self._metadata_path):
            with path.open("rb") as file:
                os.fsync(file.fileno())

    def _renew(self) -> None:
        self._bm25 = BM25Okapi(self._tokens) if self._tokens else None
        faiss.write_index(self._index, str(self._partial(self._index_path)))
        with self._partial(self._metadata_path).open("w", encoding="utf-8") as file:
            json.dump(self._metadata, file, ensure_ascii=False)
        for path in (self._index_path, self._metadata_path):
            os.replace(self._partial(path), path)

    @staticmethod
    def _partial(path: Path) -> Path:
        return path.with_name(path.name + ".partial")


def _tokens(text: str) -> list[str]:
    return _WORD.findall(text.lower())
