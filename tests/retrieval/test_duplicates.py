"""The scan for duplicates compared with a plain double loop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from souvenir.core.types import FloatVector
from souvenir.memories import similarity as duplicates_module
from souvenir.memories.similarity import duplicates

THRESHOLD = 0.8
# Directions in the plane, in steps of 10 degrees: no cosine of two of them is near the threshold.
texts = st.lists(st.integers(0, 11), max_size=30)


def vectors_of(steps: Sequence[int]) -> FloatVector:
    radians = np.radians(np.array(steps, dtype=np.float64) * 10)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32).reshape(len(steps), 2)


def found(
    steps: Sequence[int], *, keep: frozenset[int] = frozenset(), threshold: float = THRESHOLD
) -> list[tuple[int, int, float]]:
    vectors = vectors_of(steps)
    return duplicates(
        np.arange(100, 100 + len(steps)),
        lambda ids: vectors[ids - 100],
        threshold=threshold,
        keep=keep,
        between_blocks=lambda done: None,
    )


def slowly(steps: Sequence[int], keep: frozenset[int]) -> list[tuple[int, int, float]]:
    pairs, removed = [], set[int]()
    for one, step in enumerate(steps):
        if one in removed:
            continue
        for other in range(one + 1, len(steps)):
            cosine = float(np.cos(np.radians(10 * (step - steps[other]))))
            if other not in removed and 100 + other not in keep and cosine >= THRESHOLD:
                removed.add(other)
                pairs.append((100 + one, 100 + other, cosine))
    return sorted(pairs)


@given(steps=texts, keep=st.frozensets(st.integers(100, 130), max_size=4), block=st.integers(1, 7))
def test_the_scan_equals_a_double_loop(steps: list[int], keep: frozenset[int], block: int):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duplicates_module, "BLOCK_ROWS", block)
        pairs = found(steps, keep=keep)
    expected = slowly(steps, keep)
    assert [pair[:2] for pair in pairs] == [pair[:2] for pair in expected]
    assert [pair[2] for pair in pairs] == pytest.approx([pair[2] for pair in expected], abs=1e-6)


def test_a_chain_of_small_changes_does_not_collapse_into_its_first_link():
    """Each is similar to the one before it, but only the second duplicates the first, and the fourth the third."""
    assert [pair[:2] for pair in found([0, 3, 6, 9])] == [(100, 101), (102, 103)]


def test_a_kept_text_is_never_a_duplicate_but_has_duplicates():
    assert [pair[:2] for pair in found([0, 0, 0], keep=frozenset({101}))] == [(100, 102)]
    assert [pair[:2] for pair in found([0, 0, 0], keep=frozenset({100}))] == [(100, 101), (100, 102)]


def test_no_texts_have_no_duplicates():
    assert found([]) == []


def test_the_scan_reads_two_blocks_of_vectors_at_once_and_reports_their_ends():
    asked: list[int] = []
    told: list[int] = []
    vectors = vectors_of([0, 10, 20, 30, 0])

    def vectors_in(ids: NDArray[np.int64]) -> FloatVector:
        asked.append(len(ids))
        return vectors[ids - 100]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duplicates_module, "BLOCK_ROWS", 2)
        pairs = duplicates(np.arange(100, 105), vectors_in, threshold=THRESHOLD, keep=(), between_blocks=told.append)
    assert [pair[:2] for pair in pairs] == [(100, 104)]
    assert max(asked) == 2
    assert told[-1] == 5
    assert told == sorted(told)
