"""A first scan of many vectors by 2-bit codes, which finds a few times as many candidates as are wanted.

The four levels of a dimension are those of the quantiser of a normal distribution with the least squared error (Max
1960, table I), for the mean and the spread of this dimension; so nothing is trained, and vectors can be added later.
Two dimensions form a subquantiser of 16 centroids, for which FAISS looks up the products in registers: a scan takes a
sixth of the time of one by 8-bit codes.

FAISS's rows are slots here: they are never moved, and the slot of a removed row stays empty.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from souvenir.core.array_file import Rows, in_memory
from souvenir.core.types import FloatVector

LEVELS = (-1.510, -0.4528, 0.4528, 1.510)
"""In standard deviations from the mean."""

GROWTH = 4
"""Once there are so many times the rows whose mean and spread the levels come from, it is made again."""

_EMPTY = -1


class CoarseScan:
    """:param index: The codes by slot. :param row_of: The row of each slot. :param made_of: The rows it was made of."""

    def __init__(self, index: faiss.IndexPQFastScan, row_of: NDArray[np.int32], made_of: int) -> None:
        self._index = index
        self._made_of = made_of
        self._row_of = array("i", row_of.tobytes())
        slots = np.flatnonzero(row_of != _EMPTY).astype(np.int32)
        slot_of = np.empty(len(slots), dtype=np.int32)
        slot_of[row_of[slots]] = slots
        self._slot_of = array("i", slot_of.tobytes())

    @classmethod
    def of(cls, dim: int, sample: FloatVector, blocks: Iterable[FloatVector]) -> CoarseScan:
        """:param dim: Even. :param sample: Some of the vectors. :param blocks: All of them, in the order of rows."""
        index = faiss.IndexPQFastScan(dim, dim // 2, 4, faiss.METRIC_INNER_PRODUCT)
        levels = sample.mean(axis=0)[:, None] + sample.std(axis=0)[:, None] * np.array(LEVELS, dtype=np.float32)
        first, second = np.divmod(np.arange(16), 4)
        centroids = np.stack([levels[0::2, first], levels[1::2, second]], axis=-1).astype(np.float32)
        faiss.copy_array_to_vector(centroids.reshape(-1), index.pq.centroids)
        index.is_trained = True
        for block in blocks:
            _add(index, block)
        return cls(index, np.arange(index.ntotal, dtype=np.int32), index.ntotal)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return len(self._row_of) * (self._index.d // 4 + 4) + 4 * len(self._slot_of)

    @property
    def is_outdated(self) -> bool:
        """True if it should be made again: most slots are empty, or the rows are several times those it was made of."""
        return len(self._slot_of) < len(self._row_of) / 2 or len(self._slot_of) > GROWTH * self._made_of

    def add(self, vectors: FloatVector) -> None:
        """Append rows (n, dim)."""
        first_slot, first_row = len(self._row_of), len(self._slot_of)
        _add(self._index, vectors)
        self._row_of.extend(range(first_row, first_row + len(vectors)))
        self._slot_of.extend(range(first_slot, first_slot + len(vectors)))

    def remove(self, row: int) -> None:
        """Remove a row; the last row takes its number."""
        self._row_of[self._slot_of[row]] = _EMPTY
        slot = self._slot_of.pop()
        if row < len(self._slot_of):
            self._slot_of[row], self._row_of[slot] = slot, row

    def candidates(self, query: FloatVector, count: int) -> NDArray[np.int64]:
        """Return up to `count` rows, of those with the greatest inner products with `query` (dim,) as far as known."""
        faiss.omp_set_num_threads(1)  # one query gains nothing from a second thread, and waking one costs time
        if not len(self._slot_of):
            return np.empty(0, dtype=np.int64)
        wanted = min(len(self._row_of), -(-count * len(self._row_of) // len(self._slot_of)))
        _, slots = self._index.search(np.ascontiguousarray(query[None, :], dtype=np.float32), wanted)
        rows = np.frombuffer(self._row_of, np.int32)[slots[0][slots[0] >= 0]].astype(np.int64)
        held: NDArray[np.int64] = rows[rows != _EMPTY]
        return held

    def agrees(self, row: int, vector: FloatVector) -> bool:
        """Return whether the slot of the row holds the code of this vector (dim,)."""
        held = self._index.reconstruct(self._slot_of[row])
        return np.array_equal(held, self._index.sa_decode(self._index.sa_encode(vector[None, :]))[0])

    # --- snapshot ----------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "coarse_index": faiss.serialize_index(self._index),
            "coarse_rows": np.array(self._row_of, np.int32),
            "coarse_made_of": np.array([self._made_of]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Rows], dim: int, count: int) -> CoarseScan | None:
        """:param count: The number of rows.

        :return: None if the arrays are those of `nothing`.
        :raises ValueError: If they are inconsistent.
        """
        serialised, row_of = in_memory(arrays, "coarse_index"), in_memory(arrays, "coarse_rows")
        if not len(serialised):
            return None
        try:
            index = faiss.deserialize_index(serialised)
        except RuntimeError as error:
            raise ValueError(f"coarse scan: {error}") from error
        if not isinstance(index, faiss.IndexPQFastScan) or index.d != dim or index.ntotal != len(row_of):
            raise ValueError(f"coarse scan: it is not one of {dim} dimensions and {len(row_of)} slots")
        if row_of.dtype != np.int32 or not np.array_equal(np.sort(row_of[row_of != _EMPTY]), np.arange(count)):
            raise ValueError("coarse scan: the rows of its slots are not those of the vectors")
        return cls(index, row_of, int(in_memory(arrays, "coarse_made_of")[0]))

    @staticmethod
    def nothing() -> dict[str, NDArray[Any]]:
        """Return the arrays of an index without a coarse scan."""
        return {
            "coarse_index": np.zeros(0, np.uint8),
            "coarse_rows": np.zeros(0, np.int32),
            "coarse_made_of": np.zeros(1, np.int64),
        }


def _add(index: faiss.IndexPQFastScan, vectors: FloatVector) -> None:
    faiss.omp_set_num_threads(1)  # searches need the other cores
    index.add(np.ascontiguousarray(vectors, dtype=np.float32))
