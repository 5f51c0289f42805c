"""Neighbours in sessions compared with plain lists, and the number of links that a write changes."""

from __future__ import annotations

from bisect import insort
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from souvenir.index.passage_words import NO_ROW, SessionLinks

SESSIONS = "abc"


class Rows:
    """Dense rows as in a namespace's arrays, and the sessions as lists of places: (sort key, id)."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.session_of: dict[int, tuple[str, tuple[int, int]]] = {}
        self.sessions: dict[str, list[tuple[int, int]]] = {session: [] for session in SESSIONS}
        self.links = SessionLinks(lambda id_: self.ids.index(id_) if id_ in self.ids else None)
        self.next_id = 1

    def add(self, session: str, order: int) -> None:
        place = (order, self.next_id)
        self.ids.append(self.next_id)
        self.session_of[self.next_id] = session, place
        self.next_id += 1
        insort(self.sessions[session], place)
        self.links.reserve(len(self.ids))
        self.links.insert(len(self.ids) - 1, session, place)

    def remove(self, row: int) -> None:
        session, place = self.session_of.pop(self.ids[row])
        self.sessions[session].remove(place)
        self.links.remove(row, session, place)
        last = len(self.ids) - 1
        if row != last:
            self.links.move(last, row)
            self.ids[row] = self.ids[last]
        self.ids.pop()

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        before, after = self.links.arrays(len(self.ids))
        return before.copy(), after.copy()

    def expected(self) -> tuple[list[int], list[int]]:
        before, after = ([NO_ROW] * (len(self.ids) + 1) for _ in range(2))
        for places in self.sessions.values():
            rows = [self.ids.index(id_) for _, id_ in places]
            for first, second in pairwise(rows):
                before[second], after[first] = first, second
        return before, after


steps = st.one_of(
    st.tuples(st.sampled_from(SESSIONS), st.integers(0, 9)),
    st.integers(0, 99),
)


@given(st.lists(steps, max_size=60))
def test_neighbours_equal_those_of_plain_lists(written: list[tuple[str, int] | int]):
    rows = Rows()
    for step in written:
        if isinstance(step, tuple):
            rows.add(*step)
        elif rows.ids:
            rows.remove(step % len(rows.ids))
        assert tuple(one.tolist() for one in rows.arrays()) == rows.expected()


@given(st.integers(100, 300), st.integers(0, 99), st.booleans())
def test_a_write_changes_only_the_links_of_its_neighbours(count: int, place: int, adds: bool):
    """A removal also changes the last row, which takes the number of the removed one, and the links to it."""
    rows = Rows()
    for number in range(count):
        rows.add("a", 10 * number)
    earlier = rows.arrays()
    if adds:
        rows.add("a", 10 * place + 5)
    else:
        rows.remove(place)
    kept = min(count, len(rows.ids))
    changed = sum(
        int(np.count_nonzero(old[:kept] != new[:kept])) for old, new in zip(earlier, rows.arrays(), strict=True)
    )
    assert changed <= (2 if adds else 6)
