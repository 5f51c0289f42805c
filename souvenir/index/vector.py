"""Vectors in memory: of passages, in FAISS's IndexFlatIP, and of their tokens; the last row replaces a removed one.

An 8-bit code of every vector is kept in addition. A scan is bound by memory bandwidth, so a large index is searched by
the codes, which are a quarter of the size; results are scored from the vectors.

Token vectors are 8-bit codes, some 1.2 KB for a turn of a talk. Those of a snapshot stay in its file, mapped into
memory; later ones are appended in memory.

Rows are dense and numbered like those of the other arrays of a namespace. A write is not safe during reads: the
namespace's lock excludes that. Vectors must be finite and of length 1.
"""

from __future__ import annotations

import math
from array import array
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import numpy as np
from numpy.typing import NDArray

from souvenir.core.passages import TokenCodes
from souvenir.core.types import TOKEN_SCALE, FloatVector

MEAN_PRIOR_ROWS = 32
"""Prior rows at the origin in the mean, so that centring fades out in a namespace of a few texts."""

SUM_BLOCK_ROWS = 8_192
"""Rows copied at once for a partial sum: some megabytes."""

GATHER_SHARE = 0.1
"""Below this share of allowed rows, copying them is cheaper than letting FAISS skip the others."""

SCORED_WHOLE_ROWS = 2_048
"""Up to so many rows, scoring all of them exactly is faster than finding the best and then reading these once more: at
1,000 rows it takes half of the time."""

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
        self._mean: FloatVector | None = None
        self._from_mean: FromCentre | None = None

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def nbytes(self) -> int:
        return len(self) * self._dim * 5

    @property
    def mean(self) -> FloatVector:
        """The mean vector (dim,), shrunk towards the origin by `MEAN_PRIOR_ROWS`."""
        if self._mean is None:
            self._mean = shrunk_mean(self._sum, len(self))
        return self._mean

    def from_mean(self) -> FromCentre:
        """Return how the rows lie to the mean; computed once as long as nothing is written."""
        if self._from_mean is None:
            self._from_mean = FromCentre.of(self._stored(), self.mean)
        return self._from_mean

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
        self._mean = self._from_mean = None

    def remove(self, row: int) -> None:
        """Remove a row; the last row moves to its place."""
        last = len(self) - 1
        if not 0 <= row <= last:
            raise IndexError(f"row {row} of {last + 1}")
        stored, codes = self._stored(), self._stored_codes()
        self._sum -= stored[row]
        self._mean = self._from_mean = None
        stored[row], codes[row] = stored[last], codes[last]
        for index in (self._index, self._codes):
            index.codes.resize(last * index.code_size)
            index.ntotal = last

    def agrees(self, row: int, vector: FloatVector) -> bool:
        """Return whether the row holds this vector (dim,) and its code."""
        code = self._codes.sa_encode(vector[None, :])[0]
        return np.array_equal(self._stored()[row], vector) and np.array_equal(self._stored_codes()[row], code)

    def rows(self, rows: NDArray[np.integer] | None) -> FloatVector:
        """Return copies of the given rows, (len(rows), dim), or for None a view of all, valid until rows change."""
        return self._stored() if rows is None else self._stored().take(rows, axis=0)

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
        # Into a file of Python's, since FAISS does not report that closing its own failed, as on a full disk.
        with path.open("wb") as file:
            faiss.write_index(self._index, faiss.PyCallbackIOWriter(file.write))  # type: ignore[attr-defined]  # not in the stubs

    @classmethod
    def read(cls, path: Path, dim: int) -> VectorIndex:
        """:raises ValueError: If the file holds an index of another kind or width."""
        index = faiss.read_index(str(path))
        if not isinstance(index, faiss.IndexFlat) or index.metric_type != faiss.METRIC_INNER_PRODUCT or index.d != dim:
            raise ValueError(f"{path.name} is not a flat inner-product index of {dim} dimensions")
        return cls(dim, index)


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


MISSING = -1
"""The number of tokens of a passage whose token vectors are missing, or of another space."""

BLOCK_ROWS = 4_096
"""Rows written to a file at once."""

COMPACTED_FROM = 1 << 22
"""Bytes of removed rows in memory from which the rest may be moved together."""

ONE_THREAD_PRODUCTS = 1 << 18
"""Multiplications of one matrix product that the numeric library (OpenBLAS) computes on the calling thread."""


def _products(codes: NDArray[np.int8], vectors: FloatVector) -> FloatVector:
    """Return ``codes @ vectors.T`` (tokens, t), computed on this thread.

    For larger matrices the numeric library would wake threads of its own, which costs more than they save, and several
    times as much while searches run on the other cores.
    """
    tokens, dim = codes.shape
    block = max(1, ONE_THREAD_PRODUCTS // (dim * len(vectors)))
    blocks = -(-tokens // block)
    padded = np.empty((blocks * block, dim), dtype=np.float32)
    padded[:tokens], padded[tokens:] = codes, 0.0
    products: FloatVector = padded.reshape(blocks, block, dim) @ vectors.T
    return products.reshape(-1, len(vectors))[:tokens]


class TokenVectors:
    """:param space: Of which token vectors are kept; None: of none.

    :param mapped: The codes of a snapshot (tokens, dim), row by row. :param lengths: The number of tokens of its rows.
    """

    def __init__(
        self,
        space: str | None,
        mapped: NDArray[np.int8] | None = None,
        lengths: NDArray[np.int16] | None = None,
    ) -> None:
        self._space = space
        self._mapped = np.zeros((0, 1), dtype=np.int8) if mapped is None else mapped
        self._appended = array("b")
        self._lengths = array("h", b"" if lengths is None else lengths.tobytes())
        present = np.maximum(self.lengths, 0)
        self._starts = array("q", (np.cumsum(present, dtype=np.int64) - present).tobytes())
        self._dim = 0 if mapped is None or not len(mapped) else mapped.shape[1]
        self._removed_bytes = 0

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._lengths)

    @property
    def lengths(self) -> NDArray[np.int16]:
        """The number of tokens of every row (n,), or `MISSING`; a copy."""
        return np.array(self._lengths, np.int16)

    @property
    def nbytes(self) -> int:
        """Memory in bytes without the mapped file, whose pages the system can drop."""
        return len(self._appended) + 10 * len(self)

    def append(self, tokens: TokenCodes | None) -> None:
        """Append a row."""
        if tokens is None or tokens.space != self._space:
            self._lengths.append(MISSING)
            self._starts.append(0)
            return
        if not self._dim and len(tokens.codes):
            self._dim = tokens.codes.shape[1]
        self._starts.append(len(self._mapped) + (len(self._appended) // self._dim if self._dim else 0))
        self._lengths.append(len(tokens.codes))
        self._appended.frombytes(tokens.codes.tobytes())

    def replace(self, row: int, tokens: TokenCodes) -> None:
        """Set the token vectors of a row that has none; a row that has some keeps them."""
        if self._lengths[row] == MISSING:
            self.append(tokens)
            self._starts[row], self._lengths[row] = self._starts.pop(), self._lengths.pop()

    def remove(self, row: int) -> None:
        """Remove a row; the last row takes its number."""
        if self._starts[row] >= len(self._mapped):
            self._removed_bytes += max(self._lengths[row], 0) * self._dim
        last = self._starts.pop(), self._lengths.pop()
        if row < len(self):
            self._starts[row], self._lengths[row] = last
        if self._removed_bytes > max(COMPACTED_FROM, len(self._appended) // 2):
            self._compact()

    def agrees(self, row: int, tokens: TokenCodes | None) -> bool:
        """Return whether a row has these token vectors."""
        if tokens is None or tokens.space != self._space:
            return self._lengths[row] == MISSING
        return self._lengths[row] == len(tokens.codes) and np.array_equal(
            self.codes(np.array([row])).reshape(-1), tokens.codes.reshape(-1)
        )

    def missing(self, rows: NDArray[np.int64]) -> bool:
        """Return whether token vectors of some of the rows are missing."""
        return bool((np.frombuffer(self._lengths, np.int16)[rows] == MISSING).any()) if len(rows) else False

    def codes(self, rows: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return the codes of the rows (tokens, dim), row by row."""
        lengths = np.maximum(np.frombuffer(self._lengths, np.int16)[rows], 0).astype(np.int64)
        ends = np.cumsum(lengths)
        starts = np.frombuffer(self._starts, np.int64)[rows]
        places = np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)
        if not self._dim:
            return np.zeros((0, 1), dtype=np.int8)
        appended = np.frombuffer(self._appended, np.int8).reshape(-1, self._dim)
        mapped_count = len(self._mapped)
        if not mapped_count:
            return appended.take(places, axis=0)
        in_memory = places >= mapped_count
        if not in_memory.any():
            return self._mapped.take(places, axis=0)
        found = np.empty((len(places), self._dim), dtype=np.int8)
        found[in_memory] = appended[places[in_memory] - mapped_count]
        found[~in_memory] = self._mapped[places[~in_memory]]
        return found

    def matches(self, rows: NDArray[np.int64], vectors: FloatVector) -> FloatVector:
        """Return the greatest cosine of each query token (t, dim) with a token of each row, at least 0: (rows, t)."""
        found = np.zeros((len(rows), len(vectors)), dtype=np.float32)
        lengths = np.frombuffer(self._lengths, np.int16)[rows]
        held = np.flatnonzero(lengths > 0)
        if len(held):
            products = _products(self.codes(rows[held]), vectors / np.float32(TOKEN_SCALE))
            counts = lengths[held].astype(np.int64)
            found[held] = np.maximum.reduceat(products, np.cumsum(counts) - counts, axis=0)
        return np.maximum(found, 0.0, out=found)

    def _compact(self) -> None:
        """Move the rows in memory together."""
        starts, lengths = np.array(self._starts, np.int64), self.lengths
        rows = np.flatnonzero((starts >= len(self._mapped)) & (lengths > 0))
        kept = self.codes(rows)
        ends = np.cumsum(lengths[rows], dtype=np.int64)
        starts[rows] = len(self._mapped) + ends - lengths[rows]
        self._starts, self._appended = array("q", starts.tobytes()), array("b", kept.tobytes())
        self._removed_bytes = 0

    # --- snapshot ----------------------------------------------------------------------------------------------

    def write(self, path: Path) -> None:
        """Write the codes to a file, row by row."""
        with path.open("wb") as file:
            for start in range(0, len(self), BLOCK_ROWS):
                file.write(self.codes(np.arange(start, min(start + BLOCK_ROWS, len(self)))).tobytes())

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything except the space and the codes."""
        return {"token_lengths": self.lengths, "token_dim": np.array(self._dim)}

    @classmethod
    def read(cls, path: Path, arrays: dict[str, NDArray[Any]], space: str | None) -> TokenVectors:
        """:raises ValueError: If the file and the arrays are inconsistent."""
        lengths, dim = arrays["token_lengths"].astype(np.int16), int(arrays["token_dim"])
        count = int(np.maximum(lengths, 0).sum(dtype=np.int64))
        if path.stat().st_size != count * dim:
            raise ValueError(f"{path.name} holds another number of token vectors")
        if not count:
            return cls(space, None, lengths)
        return cls(space, np.memmap(path, np.int8, "r", shape=(count, dim)), lengths)
