"""The passages of a namespace as an index loads them, or is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from souvenir.core.passages import CommitId, Embedding, OwnerChanged, Passage, TokenCodes
from souvenir.core.types import PassageKind
from souvenir.store import index_changes
from souvenir.store.index_changes import Touched
from souvenir.store.rows import PASSAGE_COLUMNS, ids_parameter, only, readable, select
from souvenir.store.sql import Connection, SqlValue
from souvenir.store.sqlite import generations
from souvenir.store.unreadable import report

_FLOAT_BYTES = np.dtype(np.float32).itemsize
_SAMPLED = 100
_PAGE = 5_000


@dataclass(frozen=True, slots=True)
class NamespaceView:
    """One snapshot of a namespace's passages of one kind, for loading the index of one model's vectors.

    Rows that cannot be read are left out and reported. Token vectors that cannot be read count as missing.

    :param dim: The dimension of the model's vectors.
    """

    connection: Connection
    namespace_id: int
    kind: PassageKind
    model_id: str
    dim: int

    @property
    def change_seq(self) -> int:
        row = self.connection.execute("SELECT change_seq FROM namespaces WHERE id = ?", (self.namespace_id,)).get
        return int(row or 0)

    @property
    def namespace(self) -> str:
        """The name of the namespace."""
        row = self.connection.execute("SELECT name FROM namespaces WHERE id = ?", (self.namespace_id,)).get
        return str(row or "")

    def count(self) -> int:
        """Return the number of passages, with or without an embedding."""
        query = "SELECT count(*) FROM passages WHERE namespace_id = ? AND kind = ?"
        return only(self.connection, int, query, (self.namespace_id, self.kind.value))

    def ids_summary(self) -> tuple[int, int]:
        """Return the number and the sum of the ids of the passages."""
        query = "SELECT count(*), coalesce(sum(id), 0) FROM passages WHERE namespace_id = ? AND kind = ?"
        return only(self.connection, tuple[int, int], query, (self.namespace_id, self.kind.value))

    def includes(self, commit: CommitId) -> bool:
        """Return whether the history of the database contains a commit."""
        return generations.includes(self.connection, commit)

    def ids(self) -> set[int]:
        """Return the ids of the passages."""
        query = "SELECT id FROM passages WHERE namespace_id = ? AND kind = ?"
        return set(select(self.connection, int, query, (self.namespace_id, self.kind.value)))

    def changes_since(self, change_seq: int) -> Touched | None:
        """Return what the writes after a number touched; None if the log does not reach back to it."""
        return index_changes.since(self.connection, self.namespace_id, self.kind, change_seq)

    def owners(self, owner_ids: Iterable[int]) -> Iterator[OwnerChanged]:
        """Yield the present filter attributes of these owners, as far as they have passages."""
        attributes = "kind, owner_id, source, occurred_at, archived, dated"
        rows = readable(
            self.connection,
            tuple[int, OwnerChanged],
            f"SELECT min(id), {attributes} FROM passages WHERE kind = ? AND owner_id IN "
            f"(SELECT value FROM json_each(?)) GROUP BY {attributes}",
            (self.kind.value, ids_parameter(owner_ids)),
            table="passages",
        )
        return (changed for _, changed in rows)

    def passages(self, ids: Iterable[int] | None) -> Iterator[tuple[Passage, Embedding]]:
        """Yield passages embedded by the model with their embeddings, in id order; all, or those among `ids`."""
        if ids is not None:
            yield from self._embedded("id IN (SELECT value FROM json_each(?)) ORDER BY id", [ids_parameter(ids)])
            return
        # In pages, since PostgreSQL sends a whole result at once.
        after = 0
        while (last := self._last_of_page(after)) is not None:
            yield from self._embedded("id > ? AND id <= ? ORDER BY id", [after, last])
            after = last

    def passages_of(self, owner_ids: Iterable[int]) -> Iterator[tuple[Passage, Embedding]]:
        """Yield the passages of these owners that the model has embedded, in id order."""
        yield from self._embedded(
            "owner_id IN (SELECT value FROM json_each(?)) ORDER BY id", [ids_parameter(owner_ids)]
        )

    def _last_of_page(self, after: int) -> int | None:
        """Return the last id of a page of passages; None if there are no more."""
        ids = "SELECT id FROM passages WHERE namespace_id = ? AND kind = ? AND id > ? ORDER BY id LIMIT ?"
        row = f"SELECT max(id) FROM ({ids}) AS page"
        found = self.connection.execute(row, (self.namespace_id, self.kind.value, after, _PAGE)).get
        return None if found is None else int(found)

    def _embedded(self, rest: str, parameters: Sequence[SqlValue]) -> Iterator[tuple[Passage, Embedding]]:
        rows = readable(
            self.connection,
            tuple[Passage, bytes, bytes | None],
            f"SELECT {PASSAGE_COLUMNS}, vector, tokens FROM passages JOIN vectors ON passage_id = id AND model_id = ? "
            f"WHERE namespace_id = ? AND kind = ? AND {rest}",
            [self.model_id, self.namespace_id, self.kind.value, *parameters],
            table="passages",
        )
        token_dim = self._token_dim()
        for passage, vector, tokens in rows:
            found = np.frombuffer(vector, dtype=np.float32) if len(vector) == self.dim * _FLOAT_BYTES else None
            if found is None or not isfinite(found.dot(found)):
                report(self.connection, "vectors", passage.id)
                continue
            if tokens is not None and not TokenCodes.are_sound(tokens, token_dim):
                report(self.connection, "vectors", passage.id)
                tokens = None
            yield passage, Embedding(found, None if tokens is None else TokenCodes.from_bytes(tokens))

    def _token_dim(self) -> int:
        """Return the dimension of the token vectors, by most of the first ones: a single row may be damaged."""
        found = self.connection.execute(
            "SELECT dim FROM (SELECT hex(substr(tokens, 5, 1)) AS dim FROM vectors "
            f"WHERE model_id = ? AND tokens IS NOT NULL LIMIT {_SAMPLED}) GROUP BY 1 ORDER BY count(*) DESC LIMIT 1",
            (self.model_id,),
        ).get
        return int(found or "0", 16)
