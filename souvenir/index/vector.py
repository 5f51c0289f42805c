"""Vectors in memory: FAISS `IndexFlatIP`, with deletion by moving the last row into the hole.

An 8-bit code of every vector is kept in addition. A scan is bound by memory bandwidth, so a large index is searched by
the codes, which are a quarter of the size; results are scored from the vectors.

Rows are dense and numbered like those of the other arrays of a namespace. A write is not safe during reads: the
namespace's lock excludes that. Vectors must be finite and of length 1.
"""

from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from souvenir.core.types import FloatVector

MEAN_PRIOR_ROWS = 32
"""Prior rows at the origin in the mean, so that centring fades out in a namespace of a few texts."""

SUM_BLOCK_ROWS = 8_192
"""Rows copied at once for a partial sum: some megabytes."""

GATHER_SHARE = 0.1
"""Below this share of allowed rows, copying them is cheaper than letting FAISS skip the others."""

CODES_FROM_ROWS = 4_096
"""From this many rows, a search uses the codes, which is more than twice as fast. Among 29,000 real vectors the 200
nearest were all among the 256 found so; below this number an exact scan takes less than a millisecond."""


class VectorIndex:
    """Unit vectors by row, searched by inner product."""

    def __init__(self, dim: int, index: faiss.IndexFlat | None = None) -> None:
        self._dim = dim
        self._index = faiss.IndexFlatIP(dim) if index is None else index
        self._codes = _code_index(dim)
        self._codes.add(self._stored())
        self._sum = self._stored().sum(axis=0, dtype=np.float64)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def nbytes(self) -> int:
        return len(self) * self._dim * 5

    @property
    def mean(self) -> FloatVector:
        """The mean vector (dim,), shrunk towards the origin by `MEAN_PRIOR_ROWS`."""
        return shrunk_mean(self._sum, len(self))

    def sum_of(self, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the sum (dim,) of the rows selected by a mask (n,)."""
        if rows.all():
            return np.array(self._sum)
        chosen = np.flatnonzero(rows)
        total = np.zeros(self._dim, dtype=np.float64)
        for start in range(0, len(chosen), SUM_BLOCK_ROWS):
            total += self.rows(chosen[start : start + SUM_BLOCK_ROWS]).sum(axis=0, dtype=np.float64)
        return total

    def extend(self, vectors: FloatVector) -> None:
        """Append rows (n, dim)."""
        rows = np.ascontiguousarray(vectors, dtype=np.float32)
        self._index.add(rows)
        self._codes.add(rows)
        self._sum += vectors.sum(axis=0, dtype=np.float64)

    def remove(self, row: int) -> None:
        """Remove a row; the last row moves to its place."""
        last = len(self) - 1
        if not 0 <= row <= last:
            raise IndexError(f"row {row} of {last + 1}")
        stored, codes = self._stored(), self._stored_codes()
        self._sum -= stored[row]
        stored[row], codes[row] = stored[last], codes[last]
        for index in (self._index, self._codes):
            index.codes.resize(last * index.code_size)
            index.ntotal = last

    def agrees(self, row: int, vector: FloatVector) -> bool:
        """Return whether the row holds this vector (dim,) and its code."""
        code = self._codes.sa_encode(vector[None, :])[0]
        return np.array_equal(self._stored()[row], vector) and np.array_equal(self._stored_codes()[row], code)

    def rows(self, rows: NDArray[np.integer]) -> FloatVector:
        """Return copies of the given rows, (len(rows), dim)."""
        return self._stored().take(rows, axis=0)

    def search(self, query: FloatVector, count: int, allowed: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """Return the rows with the greatest inner product with `query` (dim,), best first, at most `count`.

        From `CODES_FROM_ROWS` on the products are off by some thousandths: callers that need the exact order recompute
        them.

        :param allowed: Shape (n,); rows that may be returned. None allows all.
        """
        if allowed is None:
            return self._search(query, min(count, len(self)), None)
        chosen = np.flatnonzero(allowed)
        if len(chosen) <= GATHER_SHARE * len(self):
            products = self.rows(chosen) @ query
            return np.asarray(chosen[np.argsort(-products, kind="stable")[:count]], dtype=np.int64)
        bits = np.packbits(allowed, bitorder="little")
        selector = faiss.IDSelectorBitmap(bits)  # type: ignore[call-arg, arg-type]  # FAISS stubs show the C++ side
        return self._search(query, min(count, len(chosen)), faiss.SearchParameters(sel=selector))  # type: ignore[call-arg]  # the same

    def _search(self, query: FloatVector, count: int, parameters: faiss.SearchParameters | None) -> NDArray[np.int64]:
        if not count:
            return np.empty(0, dtype=np.int64)
        faiss.omp_set_num_threads(1)  # one query gains nothing from a second thread, and waking one costs time
        index = self._index if len(self) < CODES_FROM_ROWS else self._codes
        _, rows = index.search(np.ascontiguousarray(query[None, :], dtype=np.float32), count, params=parameters)
        return np.asarray(rows[0], dtype=np.int64)

    def _stored(self) -> FloatVector:
        """Return a view (n, dim) of FAISS's own memory; valid until rows are added."""
        if not len(self):
            return np.empty((0, self._dim), dtype=np.float32)
        flat: FloatVector = faiss.rev_swig_ptr(self._index.get_xb(), len(self) * self._dim)
        return flat.reshape(len(self), self._dim)

    def _stored_codes(self) -> NDArray[np.uint8]:
        """Return a view of the codes, as `_stored`."""
        if not len(self):
            return np.empty((0, self._codes.code_size), dtype=np.uint8)
        flat: NDArray[np.uint8] = faiss.rev_swig_ptr(self._codes.codes.data(), len(self) * self._codes.code_size)
        return flat.reshape(len(self), self._codes.code_size)

    def write(self, path: Path) -> None:
        faiss.write_index(self._index, str(path))

    @classmethod
    def read(cls, path: Path, dim: int) -> VectorIndex:
        """:raises ValueError: If the file holds an index of another kind or width."""
        index = faiss.read_index(str(path))
        if not isinstance(index, faiss.IndexFlat) or index.metric_type != faiss.METRIC_INNER_PRODUCT or index.d != dim:
            raise ValueError(f"{path.name} is not a flat inner-product index of {dim} dimensions")
        return cls(dim, index)


def shrunk_mean(total: NDArray[np.float64], count: int) -> FloatVector:
    """Return the mean (dim,) of `count` rows with this sum, shrunk towards the origin by `MEAN_PRIOR_ROWS`."""
    return np.asarray(total / (count + MEAN_PRIOR_ROWS), dtype=np.float32)


def _code_index(dim: int) -> faiss.IndexScalarQuantizer:
    """Return an empty index of codes: 256 even steps from -1 to 1, the range of unit vectors of any model."""
    index = faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_8bit_uniform, faiss.METRIC_INNER_PRODUCT)
    index.train(np.array([[-1.0] * dim, [1.0] * dim], dtype=np.float32))
    return index
