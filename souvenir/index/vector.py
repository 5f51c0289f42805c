"""Vectors of passages: float32 ones, and an 8-bit code of each, by which a large index is searched.

A scan is bound by memory bandwidth, so it reads the codes, which are a quarter of the size and in memory; results are
scored from the vectors. Those of a large snapshot stay in its file and are read for candidates only; later ones are in
memory until the next snapshot.

Rows are dense and numbered like those of the other arrays of a namespace; the last row replaces a removed one. A write
is not safe during reads: the namespace's lock excludes that. Vectors must be finite and of length 1.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import faiss
import numpy as np
from numpy.typing import NDArray

from souvenir.core.array_file import Rows, Streamed, in_memory, take
from souvenir.core.types import FloatVector
from souvenir.index.coarse_scan import CoarseScan
from souvenir.index.selection import greatest

MEAN_PRIOR_ROWS = 32
"""Prior rows at the origin in the mean, so that centring fades out in a namespace of a few texts."""

BLOCK_ROWS = 8_192
"""Rows copied at once, for a partial sum or to write them: some megabytes."""

FLOAT_BYTES = 4

GATHER_SHARE = 0.1
"""Below this share of allowed rows, copying them is cheaper than letting FAISS skip the others."""

SCORED_WHOLE_ROWS = 2_048
"""Up to so many rows, scoring all of them exactly is faster than finding the best and then reading these once more: at
1,000 rows it takes half of the time."""

CODES_FROM_ROWS = 4_096
"""From this many rows, a search uses the codes, which is more than twice as fast. Among 29,000 real vectors the 200
nearest were all among the 256 found so; below this number an exact scan takes less than a millisecond."""


COARSE_FROM_ROWS = 16_384
"""From this many rows on, a coarse scan finds the candidates."""

COARSE_SHARE = 0.25
"""Below this share of allowed rows, the coarse scan would have to find too many candidates."""

OVERSAMPLING = 8
"""Candidates of the coarse scan for each row that is wanted."""

SAMPLED_ROWS = 16_384
"""Rows from which the levels of the coarse scan are computed."""


class VectorIndex:
    """Unit vectors by row, searched by inner product.

    :param base: The vectors of a snapshot (n, dim), which are only read. :param codes: Theirs (n, dim), and the sum
        (dim,) of the vectors; None: computed.
    """

    def __init__(
        self,
        dim: int,
        base: Rows | None = None,
        codes: NDArray[np.uint8] | None = None,
        total: NDArray[np.float64] | None = None,
    ) -> None:
        self._dim = dim
        self._scan = _code_index(dim)
        self._base: Rows = np.empty((0, dim), dtype=np.float32)
        self._memory = bytearray()
        self._places = array("i")
        """The place of each row: a row of the file, or the length of the file plus a row in memory."""
        self._row_at = array("i")
        """The row of each place in memory. Without a file, places are rows."""
        self._codes = bytearray()
        self._coarse: CoarseScan | None = None
        self._sum = np.zeros(dim, dtype=np.float64)
        self._mean: FloatVector | None = None
        self._from_mean: FromCentre | None = None
        if base is not None and codes is not None and total is not None:
            self._codes, self._sum = bytearray(codes.data), total
            self.rebase(base)
            self._changed()

    def __len__(self) -> int:
        return len(self._places)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        coarse = 0 if self._coarse is None else self._coarse.nbytes
        return len(self._memory) + len(self._codes) + 4 * (len(self._places) + len(self._row_at)) + coarse

    @property
    def mean(self) -> FloatVector:
        """The mean vector (dim,), shrunk towards the origin by `MEAN_PRIOR_ROWS`."""
        if self._mean is None:
            self._mean = shrunk_mean(self._sum, len(self))
        return self._mean

    def from_mean(self) -> FromCentre:
        """Return how the rows lie to the mean; computed once as long as nothing is written."""
        if self._from_mean is None:
            self._from_mean = FromCentre.of(self.rows(None), self.mean)
        return self._from_mean

    def sum_of(self, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the sum (dim,) of the rows selected by a mask (n,)."""
        if rows.all():
            return np.array(self._sum)
        chosen = np.flatnonzero(rows)
        total = np.zeros(self._dim, dtype=np.float64)
        for start in range(0, len(chosen), BLOCK_ROWS):
            total += self.rows(chosen[start : start + BLOCK_ROWS]).sum(axis=0, dtype=np.float64)
        return total

    def extend(self, vectors: FloatVector) -> None:
        """Append rows (n, dim)."""
        if vectors.shape[1:] != (self._dim,):
            raise ValueError(f"vectors of shape {vectors.shape} do not have {self._dim} dimensions")
        rows = np.ascontiguousarray(vectors, dtype=np.float32)
        first = len(self)
        self._places.extend(range(len(self._base) + len(self._row_at), len(self._base) + len(self._row_at) + len(rows)))
        self._row_at.extend(range(first, first + len(rows)))
        self._memory += rows.tobytes()
        self._codes += self._scan.sa_encode(rows).tobytes()
        if self._coarse is not None:
            self._coarse.add(rows)
        self._sum += vectors.sum(axis=0, dtype=np.float64)
        self._changed()

    def remove(self, row: int) -> None:
        """Remove a row; the last row moves to its place."""
        last = len(self) - 1
        if not 0 <= row <= last:
            raise IndexError(f"row {row} of {last + 1}")
        self._sum -= self.rows(np.array([row]))[0]
        self._release(self._places[row])
        place = self._places.pop()
        if row != last:
            self._places[row] = place
            if place >= len(self._base):
                self._row_at[place - len(self._base)] = row
            codes = self._stored_codes()
            codes[row] = codes[last]
            del codes
        del self._codes[last * self._scan.code_size :]
        if self._coarse is not None:
            self._coarse.remove(row)
        self._changed()

    def _release(self, place: int) -> None:
        """Free a place in memory; the last one moves there."""
        at, last = place - len(self._base), len(self._row_at) - 1
        if at < 0:
            return
        memory = self._in_memory()
        memory[at] = memory[last]
        del memory
        moved = self._row_at.pop()
        if at != last:
            self._row_at[at] = moved
            self._places[moved] = place
        del self._memory[last * self._dim * FLOAT_BYTES :]

    def agrees(self, row: int, vector: FloatVector) -> bool:
        """Return whether the row holds this vector (dim,) and its code."""
        code = self._scan.sa_encode(vector[None, :])[0]
        held = self.rows(np.array([row]))[0]
        same = np.array_equal(held, vector) and np.array_equal(self._stored_codes()[row], code)
        return same and (self._coarse is None or self._coarse.agrees(row, vector))

    def rows(self, rows: NDArray[np.integer] | None) -> FloatVector:
        """Return copies of the given rows, (len(rows), dim), or for None all, perhaps as a view until rows change."""
        in_file = len(self._base)
        if not in_file:
            return self._in_memory() if rows is None else self._in_memory().take(rows, axis=0)
        places = np.array(self._places, np.int32) if rows is None else np.frombuffer(self._places, np.int32)[rows]
        if not len(self._row_at):
            return take(self._base, places)
        found = np.empty((len(places), self._dim), dtype=np.float32)
        is_in_file = places < in_file
        found[is_in_file] = take(self._base, places[is_in_file])
        found[~is_in_file] = self._in_memory()[places[~is_in_file] - in_file]
        return found

    def search(self, query: FloatVector, count: int, allowed: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """Return the rows with the greatest inner product with `query` (dim,), best first, at most `count`.

        From `CODES_FROM_ROWS` on the products are off by some thousandths: callers that need the exact order recompute
        them.

        :param allowed: Shape (n,); rows that may be returned. None allows all.
        """
        reachable = len(self) if allowed is None else int(np.count_nonzero(allowed))
        if len(self) < CODES_FROM_ROWS or reachable <= GATHER_SHARE * len(self):
            chosen = None if allowed is None else np.flatnonzero(allowed)
            best = _best_first(products(self.rows(chosen), query), count)
            return best if chosen is None else chosen[best]
        found = self._search_coarsely(query, count, allowed, reachable)
        if found is not None:
            return found
        parameters = None
        if allowed is not None:
            bits = np.packbits(allowed, bitorder="little")
            selector = faiss.IDSelectorBitmap(bits)  # type: ignore[call-arg, arg-type]  # FAISS stubs show the C++ side
            parameters = faiss.SearchParameters(sel=selector)  # type: ignore[call-arg]  # the same
        return self._search(query, min(count, reachable), parameters)

    def _search_coarsely(
        self, query: FloatVector, count: int, allowed: NDArray[np.bool_] | None, reachable: int
    ) -> NDArray[np.int64] | None:
        """Return the best of the candidates of a coarse scan by their codes; None if too few of them are allowed."""
        wanted = OVERSAMPLING * count
        if self._coarse is None or reachable < COARSE_SHARE * len(self) or wanted >= reachable:
            return None
        rows = self._coarse.candidates(query, wanted * len(self) // reachable)
        if allowed is not None:
            rows = rows[allowed[rows]]
        if len(rows) < wanted // 2:
            return None
        # The codes are even steps, so their products with the query are in the order of those of the vectors.
        codes = self._stored_codes().take(rows, axis=0).astype(np.float32)
        return rows[_best_first(products(codes, query), count)]

    def make_coarse_scan(self) -> None:
        """Make what speeds up searches of many rows, if it is missing or outdated: some 10 s for a million.

        Searches may run meanwhile, but no write.
        """
        if len(self) < COARSE_FROM_ROWS or self._dim % 2 or not (self._coarse is None or self._coarse.is_outdated):
            return
        sample = self.rows(np.sort(np.random.default_rng(0).permutation(len(self))[:SAMPLED_ROWS]))
        self._coarse = CoarseScan.of(self._dim, sample, self._blocks())

    def _search(self, query: FloatVector, count: int, parameters: faiss.SearchParameters | None) -> NDArray[np.int64]:
        if not count:
            return np.empty(0, dtype=np.int64)
        faiss.omp_set_num_threads(1)  # one query gains nothing from a second thread, and waking one costs time
        _, rows = self._scan.search(np.ascontiguousarray(query[None, :], dtype=np.float32), count, params=parameters)
        return np.asarray(rows[0], dtype=np.int64)

    def _in_memory(self) -> FloatVector:
        """Return a view (k, dim) of the vectors in memory; valid until rows change."""
        return np.frombuffer(self._memory, np.float32).reshape(-1, self._dim)

    def _stored_codes(self) -> NDArray[np.uint8]:
        """Return a view (n, dim) of the codes, as `_in_memory`."""
        return np.frombuffer(self._codes, np.uint8).reshape(-1, self._scan.code_size)

    def _changed(self) -> None:
        """Let FAISS scan the codes as they are now, in our memory, and forget what followed from the former rows."""
        self._mean = self._from_mean = None
        held: Any = self._scan.codes  # the stubs do not know that it can be a view
        codes = self._stored_codes().reshape(-1)
        held.is_owned = False
        held.view_data = held.c_ptr = faiss.swig_ptr(codes) if len(codes) else None
        held.view_size = held.c_size = len(codes)
        self._scan.ntotal = len(self)

    # --- snapshot ----------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, NDArray[Any] | Streamed]:
        """Return everything except the dimension; valid until rows change."""
        vectors = Streamed(np.dtype(np.float32), (len(self), self._dim), self._blocks)
        coarse = CoarseScan.nothing() if self._coarse is None else self._coarse.to_arrays()
        return {"vectors": vectors, "vector_codes": self._stored_codes(), "vector_sum": self._sum, **coarse}

    def rebase(self, base: Rows) -> None:
        """Use the file to which `to_arrays` was written instead of memory."""
        self._places = array("i", np.arange(len(base), dtype=np.int32).tobytes())
        if isinstance(base, np.ndarray):
            self._memory, self._row_at = bytearray(base.data), array("i", self._places)
        else:
            self._base, self._memory, self._row_at = base, bytearray(), array("i")

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Rows], dim: int) -> VectorIndex:
        """:raises ValueError: If the arrays are inconsistent, or of another dimension."""
        vectors, codes, total = arrays["vectors"], in_memory(arrays, "vector_codes"), in_memory(arrays, "vector_sum")
        if vectors.dtype != np.float32 or codes.dtype != np.uint8 or total.dtype != np.float64:
            raise ValueError("vectors: the arrays have other types")
        if vectors.ndim != 2 or vectors.shape != codes.shape or vectors.shape[1:] != (dim,) or total.shape != (dim,):
            raise ValueError(f"vectors: the arrays do not have {dim} dimensions, or not the same rows")
        index = cls(dim, vectors, codes, total)
        index._coarse = CoarseScan.from_arrays(arrays, dim, len(index))
        return index

    def _blocks(self) -> Iterator[FloatVector]:
        for start in range(0, len(self), BLOCK_ROWS):
            yield self.rows(np.arange(start, min(start + BLOCK_ROWS, len(self))))


def _best_first(scores: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Return the places of the `count` greatest scores, best first; of equal ones the first."""
    places = greatest(scores, count) if count < len(scores) else np.arange(len(scores))
    places.sort()
    return places[np.argsort(-scores[places], kind="stable")]


class FromCentre(NamedTuple):
    """The place of unit vectors relative to a centre (dim,).

    :param along: Their products with it, (n,). :param nearness: 1 / their distances from it, (n,); 0 for the centre.
    """

    centre: FloatVector
    along: NDArray[np.float64]
    nearness: NDArray[np.float64]

    @classmethod
    def of(cls, rows: FloatVector, centre: FloatVector) -> FromCentre:
        along = products(rows, centre)
        distances = np.sqrt(np.maximum(1.0 - 2.0 * along + float(centre @ centre), 0.0))
        return cls(centre, along, np.divide(1.0, distances, out=np.zeros(len(along)), where=distances > 0))

    def only(self, chosen: NDArray[np.bool_]) -> FromCentre:
        """Return it for those of the vectors that a mask (n,) selects."""
        return FromCentre(self.centre, self.along[chosen], self.nearness[chosen])

    def cosines(self, query: FloatVector, similarity: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the cosines with a query (dim,) as seen from the centre, (n,), given the products with it (n,)."""
        # The vectors have length 1, so both parts of the cosine follow from the products.
        away = query - self.centre
        distance = math.sqrt(away @ away)
        if not distance:
            return np.zeros(len(similarity))
        centred = similarity - self.along
        centred -= float(away @ self.centre)
        return centred * self.nearness * (1.0 / distance)


def products(rows: FloatVector, vector: FloatVector) -> NDArray[np.float64]:
    """Return the inner product of each row (n, dim) with a vector (dim,), (n,).

    `vecdot` stays on this thread: for so few rows, waking a second one costs more than it saves.
    """
    found: NDArray[np.float64] = np.vecdot(rows, vector).astype(np.float64)
    return found


def shrunk_mean(total: NDArray[np.float64], count: int) -> FloatVector:
    """Return the mean (dim,) of `count` rows with this sum, shrunk towards the origin by `MEAN_PRIOR_ROWS`."""
    return np.asarray(total / (count + MEAN_PRIOR_ROWS), dtype=np.float32)


def _code_index(dim: int) -> faiss.IndexScalarQuantizer:
    """Return an empty index of codes: 256 even steps from -1 to 1, the range of unit vectors of any model."""
    index = faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_8bit_uniform, faiss.METRIC_INNER_PRODUCT)
    index.train(np.array([[-1.0] * dim, [1.0] * dim], dtype=np.float32))
    return index
