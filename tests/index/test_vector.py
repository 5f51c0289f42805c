"""Exact vectors compared with a plain matrix: additions and removals, filters before top-k, the mean, and snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from souvenir.core.types import FloatVector
from souvenir.index.vector import GATHER_SHARE, MEAN_PRIOR_ROWS, VectorIndex
from tests.index.arrays import partly_in_file, whole

DIM = 24


def units(count: int, seed: int = 0) -> FloatVector:
    """Return random unit vectors (count, DIM)."""
    vectors = np.random.default_rng(seed).normal(size=(count, DIM)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def filled(vectors: FloatVector) -> VectorIndex:
    index = VectorIndex(DIM)
    index.extend(vectors)
    return index


def stored(index: VectorIndex) -> FloatVector:
    return index.rows(np.arange(len(index)))


def best_first(vectors: FloatVector, query: FloatVector, count: int, allowed: NDArray[np.bool_] | None) -> list[int]:
    rows = range(len(vectors)) if allowed is None else np.flatnonzero(allowed).tolist()
    return sorted(rows, key=lambda row: -float(vectors[row].astype(np.float64) @ query))[:count]


# A step adds that many rows, or removes the row at that share of the index.
steps = st.lists(st.integers(1, 5) | st.floats(0, 1, exclude_max=True), max_size=40)


@given(steps=steps)
def test_rows_equal_those_of_a_list_whose_holes_are_filled_from_the_end(steps: list[int | float]):
    index, rows = VectorIndex(DIM), []
    for number, step in enumerate(steps):
        if isinstance(step, int):
            new = units(step, seed=number)
            index.extend(new)
            rows += list(new)
        elif rows:
            row = int(step * len(rows))
            index.remove(row)
            rows[row] = rows[-1]
            rows.pop()
        expected = np.array(rows, dtype=np.float32).reshape(len(rows), DIM)
        assert len(index) == len(rows)
        assert np.array_equal(stored(index), expected)
        assert index.mean == pytest.approx(expected.sum(axis=0) / (len(rows) + MEAN_PRIOR_ROWS), abs=1e-6)
    query = units(1, seed=99)[0]
    assert index.search(query, 7, None).tolist() == best_first(stored(index), query, 7, None)


@pytest.mark.parametrize("share", [0.0, 0.02, GATHER_SHARE, GATHER_SHARE + 0.01, 0.5, 1.0])
@pytest.mark.parametrize("count", [1, 10, 1000])
def test_filters_apply_before_top_k(share: float, count: int):
    vectors = units(517)
    index = filled(vectors)
    chosen = np.random.default_rng(1).permutation(len(vectors))[: int(share * len(vectors))]
    allowed = np.zeros(len(vectors), dtype=np.bool_)
    allowed[chosen] = True
    for query in units(5, seed=2):
        found = index.search(query, count, allowed).tolist()
        assert len(found) == min(count, len(chosen))
        assert found == best_first(vectors, query, count, allowed)


@pytest.mark.parametrize("count", [1, 10, 1000])
def test_without_filters_the_search_is_exact(count: int):
    vectors = units(517)
    index = filled(vectors)
    for query in units(5, seed=2):
        assert index.search(query, count, None).tolist() == best_first(vectors, query, count, None)


def test_a_search_by_codes_finds_the_nearest_among_a_few_more(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("souvenir.index.vector.CODES_FROM_ROWS", 1)
    vectors = units(3000)
    index = filled(vectors)
    allowed = np.arange(len(vectors)) % 2 == 0
    for query in units(20, seed=2):
        for mask in (None, allowed):
            found = index.search(query, 30, mask).tolist()
            assert len(found) == 30
            assert set(best_first(vectors, query, 20, mask)) <= set(found)


def test_codes_follow_additions_and_removals_and_are_checked():
    index = filled(units(40))
    for number in range(60):
        index.remove(number * 7 % len(index))
        index.extend(units(1, seed=number))
    assert all(index.agrees(row, vector) for row, vector in enumerate(stored(index)))
    index._stored_codes()[3] += 1
    assert [row for row, vector in enumerate(stored(index)) if not index.agrees(row, vector)] == [3]
    assert not index.agrees(5, stored(index)[6])


def test_an_empty_index_finds_nothing():
    index = VectorIndex(DIM)
    query = units(1)[0]
    assert index.search(query, 5, None).tolist() == []
    assert index.search(query, 5, np.zeros(0, dtype=np.bool_)).tolist() == []
    assert index.mean.tolist() == [0.0] * DIM
    assert index.nbytes == 0


def test_the_mean_stays_exact_over_many_changes():
    index = filled(units(50))
    for number in range(2000):
        index.extend(units(1, seed=number))
        index.remove(number % len(index))
    expected = stored(index).astype(np.float64).sum(axis=0) / (len(index) + MEAN_PRIOR_ROWS)
    assert index.mean == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("row", [-1, 3, 100])
def test_removing_a_row_that_is_not_there_changes_nothing(row: int):
    vectors = units(3)
    index = filled(vectors)
    with pytest.raises(IndexError):
        index.remove(row)
    assert np.array_equal(stored(index), vectors)


def test_returned_rows_are_copies():
    index = filled(units(3))
    copies = index.rows(np.array([0, 1]))
    before = copies.copy()
    index.remove(0)
    index.extend(units(100, seed=1))
    assert np.array_equal(copies, before)


def of_a_large_snapshot(index: VectorIndex) -> VectorIndex:
    return VectorIndex.from_arrays(partly_in_file(index.to_arrays()), DIM)


def of_a_small_snapshot(index: VectorIndex) -> VectorIndex:
    return VectorIndex.from_arrays(whole(index.to_arrays()), DIM)


@pytest.mark.parametrize("reopened", [of_a_large_snapshot, of_a_small_snapshot])
@given(steps=steps, again=st.booleans())
def test_an_index_can_be_changed_after_it_was_written_and_read(
    reopened: Callable[[VectorIndex], VectorIndex], steps: list[int | float], again: bool
):
    index, rows = reopened(filled(units(7))), list(units(7))
    for number, step in enumerate(steps):
        if isinstance(step, int):
            index.extend(units(step, seed=number + 1))
            rows += list(units(step, seed=number + 1))
        elif rows:
            row = int(step * len(rows))
            index.remove(row)
            rows[row] = rows[-1]
            rows.pop()
        if again and number == len(steps) // 2:
            index.rebase(partly_in_file(index.to_arrays())["vectors"])
            index = reopened(index)
    expected = np.array(rows, dtype=np.float32).reshape(len(rows), DIM)
    assert np.array_equal(index.rows(None), expected)
    assert np.array_equal(stored(index), expected)
    assert all(index.agrees(row, vector) for row, vector in enumerate(expected))
    assert index.mean == pytest.approx(expected.sum(axis=0) / (len(rows) + MEAN_PRIOR_ROWS), abs=1e-6)
    query = units(1, seed=99)[0]
    assert index.search(query, 7, None).tolist() == best_first(expected, query, 7, None)


def test_vectors_of_a_large_snapshot_are_not_in_memory():
    index = filled(units(1000))
    assert of_a_large_snapshot(index).nbytes < index.nbytes / 2
    index.rebase(partly_in_file(index.to_arrays())["vectors"])
    assert index.nbytes < 1000 * DIM * 2
    assert np.array_equal(stored(index), units(1000))


@pytest.mark.parametrize(
    "damage",
    [
        {"vectors": units(2).astype(np.float64)},
        {"vectors": units(2)},
        {"vectors": units(3)[:, :-1]},
        {"vector_codes": np.zeros((3, DIM), dtype=np.int8)},
        {"vector_codes": np.zeros(3, dtype=np.uint8)},
        {"vector_sum": np.zeros(DIM - 1)},
    ],
)
def test_inconsistent_arrays_are_refused(damage: dict[str, NDArray[Any]]):
    arrays = {**whole(filled(units(3)).to_arrays()), **damage}
    with pytest.raises(ValueError, match="vectors"):
        VectorIndex.from_arrays(arrays, DIM)
    with pytest.raises(ValueError, match="do not have 8 dimensions"):
        VectorIndex.from_arrays(whole(filled(units(3)).to_arrays()), 8)


def test_vectors_of_another_dimension_are_refused_before_anything_changes():
    index = filled(units(3))
    with pytest.raises(ValueError, match="24 dimensions"):
        index.extend(units(2)[:, :5])
    assert len(index) == 3
