"""The coarse scan of many vectors: its rows after any changes, its candidates, filters, and snapshots."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from souvenir.core.types import FloatVector
from souvenir.index import vector
from souvenir.index.coarse_scan import GROWTH, CoarseScan
from souvenir.index.vector import VectorIndex
from tests.index.arrays import partly_in_file, whole
from tests.index.test_vector import DIM, best_first, filled, steps, stored, units


def scan_of(vectors: FloatVector) -> CoarseScan:
    return CoarseScan.of(DIM, vectors, [vectors[:3], vectors[3:3], vectors[3:]])


@given(steps=steps, snapshot_after=st.integers(0, 40))
def test_rows_follow_additions_and_removals(steps: list[int | float], snapshot_after: int):
    rows = list(units(7))
    scan = scan_of(np.array(rows))
    for number, step in enumerate(steps):
        if isinstance(step, int):
            scan.add(units(step, seed=number + 1))
            rows += list(units(step, seed=number + 1))
        elif rows:
            row = int(step * len(rows))
            scan.remove(row)
            rows[row] = rows[-1]
            rows.pop()
        if number == snapshot_after:
            again = CoarseScan.from_arrays(scan.to_arrays(), DIM, len(rows))
            assert again is not None
            scan = again
    assert all(scan.agrees(row, one) for row, one in enumerate(rows))
    query = units(1, seed=99)[0]
    assert sorted(scan.candidates(query, len(rows) or 5).tolist()) == list(range(len(rows)))


def test_a_row_with_another_code_does_not_agree():
    vectors = units(50)
    scan = scan_of(vectors)
    assert not scan.agrees(3, -vectors[3])


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> VectorIndex:
    """An index of 6,000 vectors that is searched coarsely."""
    monkeypatch.setattr(vector, "COARSE_FROM_ROWS", 1_000)
    index = filled(units(6_000))
    index.make_coarse_scan()
    return index


@pytest.mark.parametrize("share", [None, 1.0, 0.6, 0.3])
def test_the_nearest_are_found_under_filters(index: VectorIndex, share: float | None):
    vectors, dice = stored(index), np.random.default_rng(1)
    allowed = None if share is None else dice.random(len(vectors)) < share
    hits = 0
    for query in units(30, seed=2):
        found = index.search(query, 50, allowed).tolist()
        assert len(found) == len(set(found)) == 50
        assert allowed is None or allowed[found].all()
        hits += len(set(best_first(vectors, query, 10, allowed)) & set(found))
    assert hits >= 0.99 * 300


def test_filters_that_leave_only_distant_rows_are_searched_by_the_finer_codes(index: VectorIndex):
    vectors, query = stored(index), units(1, seed=3)[0]
    farthest_half = vectors @ query < np.median(vectors @ query)
    found = index.search(query, 50, farthest_half)
    assert farthest_half[found].all()
    best = vectors[best_first(vectors, query, 50, farthest_half)] @ query
    # The codes are off by some thousandths, and there are many rows at the median.
    assert (vectors[found] @ query).min() > best.min() - 0.01


def test_the_scan_is_made_again_when_it_is_outdated(index: VectorIndex):
    scan = index._coarse
    index.make_coarse_scan()
    assert index._coarse is scan
    index.extend(units(6_000 * (GROWTH - 1) + 1, seed=5))
    index.make_coarse_scan()
    assert index._coarse is not None
    assert index._coarse is not scan
    assert all(index.agrees(row, one) for row, one in enumerate(stored(index)[:200]))
    scan = index._coarse
    while len(index) > 11_000:
        index.remove(len(index) // 2)
    index.make_coarse_scan()
    assert index._coarse is not scan
    assert set(best_first(stored(index), units(1)[0], 10, None)) <= set(index.search(units(1)[0], 50, None).tolist())


@pytest.mark.parametrize("read", [whole, partly_in_file])
def test_a_snapshot_contains_the_scan(index: VectorIndex, read: Any):
    index.remove(17)
    again = VectorIndex.from_arrays(read(index.to_arrays()), DIM)
    query = units(1, seed=3)[0]
    assert again.search(query, 40, None).tolist() == index.search(query, 40, None).tolist()
    again.extend(units(3, seed=9))
    assert all(again.agrees(row, one) for row, one in enumerate(again.rows(None)))


def test_a_few_rows_have_no_scan():
    index = filled(units(900))
    index.make_coarse_scan()
    assert index._coarse is None


@pytest.mark.parametrize(
    "damage",
    [
        {"coarse_index": np.arange(100, dtype=np.uint8)},
        {"coarse_index": faiss.serialize_index(faiss.IndexFlatIP(DIM))},
        {"coarse_rows": np.arange(39, dtype=np.int32)},
        {"coarse_rows": np.zeros(40, dtype=np.int32)},
        {"coarse_rows": np.arange(40, dtype=np.int64)},
    ],
)
def test_inconsistent_arrays_are_refused(damage: dict[str, NDArray[Any]]):
    arrays = {**scan_of(units(40)).to_arrays(), **damage}
    with pytest.raises(ValueError, match="coarse scan"):
        CoarseScan.from_arrays(arrays, DIM, 40)
    with pytest.raises(ValueError, match="coarse scan"):
        CoarseScan.from_arrays(scan_of(units(40)).to_arrays(), DIM, 41)
    assert CoarseScan.from_arrays(CoarseScan.nothing(), DIM, 41) is None
