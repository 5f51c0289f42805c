"""Which passage comes before and after which in its session: a linked list a session, over the rows of a namespace.

Rows are dense; removing one moves the last into its place, as in the other arrays of a namespace. Adding and removing
cost the same however long the history is, but for a search in the order of one session. A passage that is taken out
makes its neighbours adjacent.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import NDArray

_MIN_CAPACITY = 64

NOBODY = -1
"""Stands for the row of a neighbour that is not there."""

Place = tuple[int, int]
"""Where in its session a passage is: what orders it there, and its id, which no other has."""


class SessionLinks:
    """`row_of` says which row a passage id has now."""

    def __init__(self, row_of: Callable[[int], int | None]) -> None:
        self._row_of = row_of
        self._before = np.full(_MIN_CAPACITY, NOBODY, dtype=np.int64)
        self._after = np.full(_MIN_CAPACITY, NOBODY, dtype=np.int64)
        self._order: dict[Hashable, list[Place]] = {}

    def arrays(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows before and after each of `count` rows, and `NOBODY` at the end, which is where `NOBODY` points."""
        return self._before[: count + 1], self._after[: count + 1]

    @property
    def any(self) -> bool:
        return bool(self._order)

    @property
    def nbytes(self) -> int:
        """About what is held: the arrays, and some 130 bytes a passage of a session."""
        return self._before.nbytes + self._after.nbytes + 130 * sum(map(len, self._order.values()))

    def insert(self, row: int, session: Hashable, place: Place) -> None:
        """Link a row that is in no session yet."""
        order = self._order.setdefault(session, [])
        at = bisect_left(order, place)
        self._join(self._row(order, at - 1), row)
        self._join(row, self._row(order, at))
        insort(order, place)

    def remove(self, row: int, session: Hashable, place: Place) -> None:
        """Take a row out of its session."""
        self._join(int(self._before[row]), int(self._after[row]))
        self._before[row] = self._after[row] = NOBODY
        order = self._order[session]
        del order[bisect_left(order, place)]
        if not order:
            del self._order[session]

    def move(self, row: int, to: int) -> None:
        """Let a row have another number; what had it before is in no session."""
        before, after = int(self._before[row]), int(self._after[row])
        self._before[row] = self._after[row] = NOBODY
        self._join(before, to)
        self._join(to, after)

    def _row(self, order: list[Place], at: int) -> int:
        if not 0 <= at < len(order):
            return NOBODY
        row = self._row_of(order[at][1])
        return NOBODY if row is None else row

    def _join(self, first: int, second: int) -> None:
        if first != NOBODY:
            self._after[first] = second
        if second != NOBODY:
            self._before[second] = first

    def reserve(self, rows: int) -> None:
        """Make room for so many rows; before any of them is linked, and before `arrays` of so many."""
        if rows < len(self._before):
            return
        size = max(rows + 1, 2 * len(self._before))
        for name in ("_before", "_after"):
            grown = np.full(size, NOBODY, dtype=np.int64)
            old = getattr(self, name)
            grown[: len(old)] = old
            setattr(self, name, grown)
