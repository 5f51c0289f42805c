"""Facts in typical small memory servers: a row per fact with its vector, and a search that compares all vectors.

Memories, facts, vectors and tags are tables of one SQLite file. A search is by cosine alone: a memory scores what its
best fact scores, times 1.2 if it has a tag that is asked for. The products are NumPy's, in one piece: an interpreter
that adds up one number after another takes far longer, and would say nothing of the design.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import apsw
import numpy as np

from souvenir.core.types import Embedder, FloatVector

TAG_BOOST = 1.2

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE memories (id INTEGER PRIMARY KEY, data TEXT);
CREATE TABLE facts (id INTEGER PRIMARY KEY, memory_id INTEGER, content TEXT);
CREATE TABLE fact_vectors (fact_id INTEGER PRIMARY KEY, vector BLOB);
CREATE TABLE tags (tag TEXT, memory_id INTEGER, PRIMARY KEY (tag, memory_id)) WITHOUT ROWID;
"""


class FactScan:
    """Every add is one transaction that is on the disk when it returns."""

    def __init__(self, path: Path, embedder: Embedder) -> None:
        self._embedder = embedder
        self._connection = apsw.Connection(str(path))
        self._connection.execute(_SCHEMA).fetchall()

    def add(self, text: str, facts: Sequence[str], tags: Iterable[str] = ()) -> None:
        vectors = self._embedder.embed_documents(list(facts))
        with self._connection:
            self._insert(text, facts, vectors, tags)

    def fill(self, rows: Iterable[tuple[str, Sequence[str], FloatVector, Iterable[str]]]) -> None:
        """Texts with their facts, the facts' vectors, and tags, in one transaction."""
        with self._connection:
            for text, facts, vectors, tags in rows:
                self._insert(text, facts, vectors, tags)

    def search(self, query: str, limit: int, tags: Sequence[str] = ()) -> list[tuple[str, float]]:
        """Texts with their scores, best first.

        :param tags: Only memories that have one of them.
        """
        wanted = self._embedder.embed_query(query)
        chosen = "" if not tags else f"WHERE memory_id IN (SELECT memory_id FROM tags WHERE tag IN ({_marks(tags)}))"
        rows = self._connection.execute(
            f"SELECT memory_id, vector FROM facts JOIN fact_vectors ON fact_id = id {chosen}", tuple(tags)
        ).fetchall()
        if not rows:
            return []
        ids, blobs = zip(*rows, strict=True)
        scores = np.frombuffer(b"".join(blobs), np.float32).reshape(len(blobs), -1) @ wanted
        best: dict[int, float] = {}
        for row in np.argsort(-scores):
            best.setdefault(ids[row], float(scores[row]) * (TAG_BOOST if tags else 1.0))
            if len(best) == limit:
                break
        texts = dict(
            self._connection.execute(f"SELECT id, data FROM memories WHERE id IN ({_marks(best)})", tuple(best))
        )
        return [(texts[id_], score) for id_, score in best.items()]

    def close(self) -> None:
        self._connection.close()

    def _insert(self, text: str, facts: Sequence[str], vectors: FloatVector, tags: Iterable[str]) -> None:
        execute = self._connection.execute
        execute("INSERT INTO memories (data) VALUES (?)", (text,))
        memory_id = self._connection.last_insert_rowid()
        for fact, vector in zip(facts, vectors, strict=True):
            execute("INSERT INTO facts (memory_id, content) VALUES (?, ?)", (memory_id, fact))
            execute("INSERT INTO fact_vectors VALUES (last_insert_rowid(), ?)", (vector.tobytes(),))
        for tag in tags:
            execute("INSERT INTO tags VALUES (?, ?)", (tag, memory_id))


def _marks(of: Iterable[object]) -> str:
    return ", ".join("?" for _ in of)
