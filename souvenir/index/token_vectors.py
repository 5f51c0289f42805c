"""Token vectors of passages: 8-bit codes, some 1.2 KB for a turn of a talk, and the best match of a query's tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from souvenir.core.array_file import Rows, Streamed, in_memory
from souvenir.core.passages import TokenCodes
from souvenir.core.types import TOKEN_SCALE, FloatVector
from souvenir.index.ragged_rows import RaggedRows

MISSING = -1
"""The number of tokens of a passage whose token vectors are missing, or of another space."""

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
    """:param space: Of which token vectors are kept; None: of none. :param rows: The codes, a row for each passage."""

    def __init__(self, space: str | None, rows: RaggedRows | None = None) -> None:
        self._space = space
        self._rows = RaggedRows(np.int8, 0) if rows is None else rows

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._rows)

    @property
    def lengths(self) -> NDArray[np.int32]:
        """The number of tokens of every row (n,), or `MISSING`; a copy."""
        return self._rows.counts

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self._rows.nbytes

    def append(self, tokens: TokenCodes | None) -> None:
        """Append a row."""
        if tokens is None or tokens.space != self._space:
            self._rows.append_nothing(MISSING)
        else:
            self._rows.append(tokens.codes)

    def replace(self, row: int, tokens: TokenCodes) -> None:
        """Set the token vectors of a row that has none; a row that has some keeps them."""
        if self._rows.count_of(row) == MISSING and tokens.space == self._space:
            self._rows.replace(row, tokens.codes)

    def remove(self, row: int) -> None:
        """Remove a row; the last row takes its number."""
        self._rows.remove(row)

    def agrees(self, row: int, tokens: TokenCodes | None) -> bool:
        """Return whether a row has these token vectors."""
        if tokens is None or tokens.space != self._space:
            return self._rows.count_of(row) == MISSING
        return self._rows.count_of(row) == len(tokens.codes) and np.array_equal(
            self._rows.items_of(row).reshape(-1), tokens.codes.reshape(-1)
        )

    def missing(self, rows: NDArray[np.int64]) -> bool:
        """Return whether token vectors of some of the rows are missing."""
        return bool((self._rows.counts_of(rows) == MISSING).any())

    def codes(self, rows: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return the codes of the rows (tokens, dim), row by row."""
        return self._rows.items(rows)

    def matches(self, rows: NDArray[np.int64], vectors: FloatVector) -> FloatVector:
        """Return the greatest cosine of each query token (t, dim) with a token of each row, at least 0: (rows, t)."""
        found = np.zeros((len(rows), len(vectors)), dtype=np.float32)
        lengths = self._rows.counts_of(rows)
        held = np.flatnonzero(lengths > 0)
        if len(held):
            products = _products(self.codes(rows[held]), vectors / np.float32(TOKEN_SCALE))
            counts = lengths[held].astype(np.int64)
            found[held] = np.maximum.reduceat(products, np.cumsum(counts) - counts, axis=0)
        return np.maximum(found, 0.0, out=found)

    # --- snapshot ----------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, NDArray[Any] | Streamed]:
        """Return everything except the space."""
        return {"token_lengths": self.lengths, "tokens": self._rows.streamed()}

    def rebase(self, arrays: Mapping[str, Rows]) -> None:
        """Use the file to which `to_arrays` was written instead of memory."""
        self._rows.rebase(arrays["tokens"])

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Rows], space: str | None) -> TokenVectors:
        """:raises ValueError: If the arrays are inconsistent."""
        lengths, codes = in_memory(arrays, "token_lengths"), arrays["tokens"]
        if lengths.dtype != np.int32 or codes.dtype != np.int8 or lengths.ndim != 1 or codes.ndim != 2:
            raise ValueError("token vectors: the arrays have other types or shapes")
        if len(codes) != np.maximum(lengths, 0).sum(dtype=np.int64):
            raise ValueError("token vectors: the file holds another number of them")
        return cls(space, RaggedRows(np.int8, codes.shape[1], codes, lengths))
