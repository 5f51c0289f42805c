"""Exact vectors in memory: FAISS `IndexFlatIP`, with deletion by moving the last row into the hole.

Rows are dense and numbered like those of the other arrays of a namespace. Not safe for a writer beside readers: the
namespace's lock sees to that. Vectors must be finite and of length 1.
"""

from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from souvenir.types import FloatVector

MEAN_PRIOR_ROWS = 32
"""Rows at the origin that the mean is taken with, so that centring fades out in a namespace of a few texts."""

GATHER_SHARE = 0.1
"""Below this share of allowed rows it is cheaper to copy them out than to let FAISS skip the rest."""


class VectorIndex:
    """Unit vectors by row, searched by inner product."""

    def __init__(self, dim: int, index: faiss.IndexFlat | None = None) -> None:
        self._dim = dim
        self._index = faiss.IndexFlatIP(dim) if index is None else index
        self._sum = self._stored().sum(axis=0, dtype=np.float64)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def nbytes(self) -> int:
        return len(self) * self._dim * 4

    @property
    def mean(self) -> FloatVector:
        """The mean vector (dim,), drawn towards the origin by `MEAN_PRIOR_ROWS`."""
        return np.asarray(self._sum / (len(self) + MEAN_PRIOR_ROWS), dtype=np.float32)

    def extend(self, vectors: FloatVector) -> None:
        """Append rows (n, dim)."""
        self._index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        self._sum += vectors.sum(axis=0, dtype=np.float64)

    def remove(self, row: int) -> None:
        """Take a row out; the last row moves into its place."""
        last = len(self) - 1
        if not 0 <= row <= last:
            raise IndexError(f"row {row} of {last + 1}")
        stored = self._stored()
        self._sum -= stored[row]
        stored[row] = stored[last]
        self._index.codes.resize(last * self._index.code_size)
        self._index.ntotal = last

    def rows(self, rows: NDArray[np.integer]) -> FloatVector:
        """Copies of the given rows, (len(rows), dim)."""
        return self._stored().take(rows, axis=0)

    def search(self, query: FloatVector, count: int, allowed: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """The rows with the greatest inner product with `query` (dim,), best first, at most `count`.

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
        faiss.omp_set_num_threads(1)  # one query gains nothing from a second thread, and waking it costs
        _, rows = self._index.search(np.ascontiguousarray(query[None, :], dtype=np.float32), count, params=parameters)
        return np.asarray(rows[0], dtype=np.int64)

    def _stored(self) -> FloatVector:
        """A view (n, dim) of FAISS's own memory; valid until rows are added."""
        if not len(self):
            return np.empty((0, self._dim), dtype=np.float32)
        flat: FloatVector = faiss.rev_swig_ptr(self._index.get_xb(), len(self) * self._dim)
        return flat.reshape(len(self), self._dim)

    def write(self, path: Path) -> None:
        faiss.write_index(self._index, str(path))

    @classmethod
    def read(cls, path: Path, dim: int) -> VectorIndex:
        """:raises ValueError: If the file holds an index of another kind or width."""
        index = faiss.read_index(str(path))
        if not isinstance(index, faiss.IndexFlat) or index.metric_type != faiss.METRIC_INNER_PRODUCT or index.d != dim:
            raise ValueError(f"{path.name} is not a flat inner-product index of {dim} dimensions")
        return cls(dim, index)
