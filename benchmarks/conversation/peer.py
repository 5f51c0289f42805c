"""Message search of typical small memory servers: every vector is read from its row, unpacked and compared.

A row a message, its vector as `np.save` writes it; the query is embedded by the same model as ours. Ranking is by
cosine alone, among the newest 1,000 messages as such servers do, or among all.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import apsw
import numpy as np

from souvenir.core.types import Embedder, FloatVector

NEWEST = 1_000


class BlobScan:
    def __init__(self, path: Path, embedder: Embedder) -> None:
        self._embedder = embedder
        path.unlink(missing_ok=True)
        self._connection = apsw.Connection(str(path))
        self._connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, content TEXT, embedding BLOB)")

    def fill(self, database: Path) -> None:
        """Take the messages and their vectors from one of our databases."""
        ours = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
        rows = ours.execute(
            "SELECT p.owner_id, p.text, v.vector FROM passages p JOIN vectors v ON v.passage_id = p.id "
            "WHERE p.kind = 'message' AND p.ordinal = 0 ORDER BY p.owner_id"
        )
        with self._connection:
            self._connection.executemany(
                "INSERT INTO messages VALUES (?, ?, ?)",
                ((id_, text, _saved(np.frombuffer(vector, dtype=np.float32))) for id_, text, vector in rows),
            )
        ours.close()

    def search(self, query: str, *, limit: int, newest: int | None) -> list[tuple[int, float]]:
        """(id, cosine), best first.

        :param newest: How many of the newest messages are looked at; None: all.
        """
        wanted = self._embedder.embed_query(query)
        scored = [(id_, float(np.dot(vector, wanted))) for id_, vector in self._vectors(newest)]
        scored.sort(key=lambda item: -item[1])
        return scored[:limit]

    def close(self) -> None:
        self._connection.close()

    def _vectors(self, newest: int | None) -> Iterator[tuple[int, FloatVector]]:
        rows = self._connection.execute(
            "SELECT id, embedding FROM messages ORDER BY id DESC LIMIT ?", (-1 if newest is None else newest,)
        )
        for id_, blob in rows:
            yield id_, np.load(io.BytesIO(blob), allow_pickle=False)


def _saved(vector: FloatVector) -> bytes:
    written = io.BytesIO()
    np.save(written, vector)
    return written.getvalue()
