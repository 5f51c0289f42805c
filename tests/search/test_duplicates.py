"""The sweep for duplicates against a plain double loop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.search import duplicates as duplicates_module
from souvenir.search.duplicates import duplicates
from souvenir.types import FloatVector

THRESHOLD = 0.8
# Directions in the plane, in steps of 10 degrees: no cosine of two of them is near the threshold.
angles = st.integers(0, 11)
texts = st.lists(st.tuples(angles, st.sampled_from(["a", "b"]), st.integers(1, 2)), max_size=30)


def vectors_of(steps: Sequence[int]) -> FloatVector:
    radians = np.radians(np.array(steps, dtype=np.float64) * 10)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32).reshape(len(steps), 2)


def found(
    items: Sequence[tuple[int, str, int]], *, keep: frozenset[int] = frozenset(), threshold: float = THRESHOLD
) -> list[tuple[int, int, float]]:
    return duplicates(
        np.arange(100, 100 + len(items)),
        [source for _, source, _ in items],
        np.array([count for _, _, count in items], dtype=np.int64),
        vectors_of([step for step, _, _ in items]),
        threshold=threshold,
        keep=keep,
    )


def slowly(items: Sequence[tuple[int, str, int]], keep: frozenset[int]) -> list[tuple[int, int, float]]:
    pairs, removed = [], set[int]()
    for one, (step, *same) in enumerate(items):
        if one in removed:
            continue
        for other in range(one + 1, len(items)):
            other_step, *other_same = items[other]
            cosine = float(np.cos(np.radians(10 * (step - other_step))))
            if same == other_same and other not in removed and 100 + other not in keep and cosine >= THRESHOLD:
                removed.add(other)
                pairs.append((100 + one, 100 + other, cosine))
    return sorted(pairs)


@given(items=texts, keep=st.frozensets(st.integers(100, 130), max_size=4), block=st.integers(1, 7))
def test_the_sweep_finds_what_a_double_loop_finds(items: list[tuple[int, str, int]], keep: frozenset[int], block: int):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duplicates_module, "BLOCK_ROWS", block)
        pairs = found(items, keep=keep)
    expected = slowly(items, keep)
    assert [pair[:2] for pair in pairs] == [pair[:2] for pair in expected]
    assert [pair[2] for pair in pairs] == pytest.approx([pair[2] for pair in expected], abs=1e-6)


def test_a_chain_of_small_changes_does_not_collapse_into_its_first_link():
    """Each repeats the one before it, but only the second repeats the first, and the fourth the third."""
    assert [pair[:2] for pair in found([(0, "a", 1), (3, "a", 1), (6, "a", 1), (9, "a", 1)])] == [
        (100, 101),
        (102, 103),
    ]


def test_texts_of_other_sources_or_passage_counts_are_no_duplicates():
    assert found([(0, "a", 1), (0, "b", 1), (0, "a", 2)]) == []


def test_a_kept_text_is_no_duplicate_but_makes_duplicates():
    items = [(0, "a", 1), (0, "a", 1), (0, "a", 1)]
    assert [pair[:2] for pair in found(items, keep=frozenset({101}))] == [(100, 102)]
    assert [pair[:2] for pair in found(items, keep=frozenset({100}))] == [(100, 101), (100, 102)]


def test_no_texts_have_no_duplicates():
    assert found([]) == []
