"""The rows of passage ids: sorted arrays, at 12 bytes an id, and a dictionary of what changed since they were made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_REMOVED = -1


class RowNumbers:
    """A map from ids to rows."""

    def __init__(self) -> None:
        self.reset(np.zeros(0, dtype=np.int64))

    def reset(self, ids: NDArray[np.int64]) -> None:
        """Set it to these ids, those of the rows from 0 on; a copy is kept."""
        order = np.argsort(ids)
        self._ids, self._rows = ids[order], order.astype(np.int32)
        self._changed: dict[int, int] = {}

    @property
    def nbytes(self) -> int:
        """Approximate memory, with some 100 bytes for a change."""
        return self._ids.nbytes + self._rows.nbytes + 100 * len(self._changed)

    def get(self, id_: int) -> int | None:
        """Return the row of an id; None if it has none."""
        row = self._changed.get(id_)
        if row is None:
            row = self._sorted_row(id_)
        return None if row == _REMOVED else row

    def __setitem__(self, id_: int, row: int) -> None:
        self._changed[id_] = row

    def __delitem__(self, id_: int) -> None:
        if self._sorted_row(id_) == _REMOVED:
            del self._changed[id_]
        else:
            self._changed[id_] = _REMOVED

    def _sorted_row(self, id_: int) -> int:
        at = int(self._ids.searchsorted(id_)) if len(self._ids) else 0
        return int(self._rows[at]) if at < len(self._ids) and self._ids[at] == id_ else _REMOVED
