"""Rows of items, any number per row: those of a large snapshot stay in its file, and later ones are in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from souvenir.core.array_file import Rows, Streamed, take

COMPACTED_FROM = 1 << 22
"""Bytes of removed rows in memory from which the rest may be moved together."""

BLOCK_ROWS = 4_096
"""Rows written to a file at once."""


class RaggedRows:
    """Items of shape (width,), in dense rows; the last row replaces a removed one.

    :param width: 0: that of the first items, once there are some.
    :param base: The items of a snapshot (m, width), row by row, which are not changed.
    :param counts: The number of items of its rows. A negative number counts as 0, and is kept.
    """

    def __init__(
        self,
        dtype: DTypeLike,
        width: int,
        base: Rows | None = None,
        counts: NDArray[np.int32] | None = None,
    ) -> None:
        self._dtype = np.dtype(dtype)
        self.width = width
        self._base: Rows = np.zeros((0, width), self._dtype) if base is None else base
        self._memory = bytearray()
        self._counts = array("i", b"" if counts is None else counts.tobytes())
        present = np.maximum(self.counts, 0)
        self._starts = array("q", (np.cumsum(present, dtype=np.int64) - present).tobytes())
        self._removed_bytes = 0

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._counts)

    @property
    def counts(self) -> NDArray[np.int32]:
        """The number of items of every row, (n,); a copy."""
        return np.array(self._counts, np.int32)

    def counts_of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the numbers of items of some rows."""
        return np.frombuffer(self._counts, np.int32)[rows] if len(self) else np.zeros(0, np.int32)

    def count_of(self, row: int) -> int:
        return self._counts[row]

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        read = self._base.nbytes if isinstance(self._base, np.ndarray) else 0
        return len(self._memory) + read + 12 * len(self)

    def append(self, items: NDArray[Any]) -> None:
        """Append a row (k, width)."""
        if not self.width and len(items):
            self.width = items.shape[1]
        self._starts.append(self._end())
        self._counts.append(len(items))
        self._memory += items.astype(self._dtype, copy=False).tobytes()

    def append_nothing(self, count: int) -> None:
        """Append a row without items, marked by a number that is not positive."""
        self._starts.append(0)
        self._counts.append(count)

    def replace(self, row: int, items: NDArray[Any]) -> None:
        """Set the items of a row that has none."""
        self.append(items)
        self._starts[row], self._counts[row] = self._starts.pop(), self._counts.pop()

    def remove(self, row: int) -> None:
        """Remove a row; the last row takes its number."""
        if self._starts[row] >= len(self._base):
            self._removed_bytes += max(self._counts[row], 0) * self.width * self._dtype.itemsize
        last = self._starts.pop(), self._counts.pop()
        if row < len(self):
            self._starts[row], self._counts[row] = last
        if self._removed_bytes > max(COMPACTED_FROM, len(self._memory) // 2):
            self._compact()

    def items_of(self, row: int) -> NDArray[Any]:
        """Return the items (k, width) of a row; valid until the rows change."""
        start, count = self._starts[row], max(self._counts[row], 0)
        in_memory = start - len(self._base)
        if in_memory < 0:
            return take(self._base, np.arange(start, start + count))
        return self._in_memory()[in_memory : in_memory + count]

    def items(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return copies of the items of the rows, (items, width), row by row."""
        if not len(rows) or not self.width:
            return np.zeros((0, self.width), self._dtype)
        counts = np.maximum(self.counts_of(rows), 0).astype(np.int64)
        ends = np.cumsum(counts)
        starts = np.frombuffer(self._starts, np.int64)[rows]
        places = np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1])
        base_count = len(self._base)
        if not base_count:
            return self._in_memory().take(places, axis=0)
        in_memory = places >= base_count
        if not in_memory.any():
            return take(self._base, places)
        found = np.empty((len(places), self.width), self._dtype)
        found[in_memory] = self._in_memory()[places[in_memory] - base_count]
        found[~in_memory] = take(self._base, places[~in_memory])
        return found

    def streamed(self) -> Streamed:
        """Return the items of all rows, (items, width), for a snapshot."""
        shape = int(np.maximum(self.counts, 0).sum(dtype=np.int64)), self.width
        return Streamed(self._dtype, shape, self._blocks)

    def rebase(self, base: Rows) -> None:
        """Use the file to which `streamed` was written instead of memory."""
        self.__init__(self._dtype, self.width, base, self.counts)  # type: ignore[misc]  # the rows are the same

    def _blocks(self) -> Iterator[NDArray[Any]]:
        for start in range(0, len(self), BLOCK_ROWS):
            yield self.items(np.arange(start, min(start + BLOCK_ROWS, len(self))))

    def _end(self) -> int:
        row_bytes = self.width * self._dtype.itemsize
        return len(self._base) + (len(self._memory) // row_bytes if row_bytes else 0)

    def _in_memory(self) -> NDArray[Any]:
        return np.frombuffer(self._memory, self._dtype).reshape(-1, max(self.width, 1))

    def _compact(self) -> None:
        """Move the rows in memory together."""
        starts, counts = np.array(self._starts, np.int64), self.counts
        rows = np.flatnonzero((starts >= len(self._base)) & (counts > 0))
        kept = self.items(rows)
        ends = np.cumsum(counts[rows], dtype=np.int64)
        starts[rows] = len(self._base) + ends - counts[rows]
        self._starts, self._memory = array("q", starts.tobytes()), bytearray(kept.tobytes())
        self._removed_bytes = 0
