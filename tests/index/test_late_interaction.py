"""Token vectors by row: appended, removed, mapped from a file, and their late interaction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from souvenir.core.passages import TokenCodes, TurnFlag
from souvenir.index import ragged_rows
from souvenir.index.late_interaction import late_interaction
from souvenir.index.passage_words import Neighbourhood, SpreadShares
from souvenir.index.token_vectors import MISSING, TokenVectors
from tests.index.arrays import partly_in_file, whole

SPACE, DIM = "0a0b0c0d", 4


def codes(tokens: int, seed: int = 0, space: str = SPACE) -> TokenCodes:
    random = np.random.default_rng(seed)
    return TokenCodes(space, random.integers(-127, 128, (tokens, DIM)).astype(np.int8))


def assert_holds(index: TokenVectors, rows: list[TokenCodes | None]) -> None:
    assert len(index) == len(rows)
    assert [index.agrees(row, tokens) for row, tokens in enumerate(rows)] == [True] * len(rows)
    present = [tokens.codes for tokens in rows if tokens is not None]
    expected = np.concatenate(present) if present else np.zeros((0, 1))
    assert index.codes(np.arange(len(rows))).tolist() == expected.tolist()


def test_stored_codes_are_read_as_written():
    for tokens in (codes(3), codes(0)):
        again = TokenCodes.from_bytes(tokens.to_bytes())
        assert (again.space, again.codes.tolist()) == (SPACE, tokens.codes.tolist())


rows_of_codes = st.lists(
    st.one_of(st.none(), st.builds(codes, st.integers(0, 5), st.integers(0, 1_000))), min_size=1, max_size=12
)


@given(
    before=rows_of_codes,
    after=rows_of_codes,
    removals=st.lists(st.integers(0, 1_000), max_size=20),
    in_file=st.booleans(),
)
def test_rows_of_a_file_and_of_memory_are_read_alike(
    before: list[TokenCodes | None], after: list[TokenCodes | None], removals: list[int], in_file: bool
):
    written = TokenVectors(SPACE)
    for tokens in before:
        written.append(tokens)
    index = TokenVectors.from_arrays((partly_in_file if in_file else whole)(written.to_arrays()), SPACE)
    rows = list(before)
    assert_holds(index, rows)
    for tokens in after:
        index.append(tokens)
        rows.append(tokens)
    for removal in removals:
        if rows:
            row = removal % len(rows)
            index.remove(row)
            last = rows.pop()
            if row < len(rows):
                rows[row] = last
    assert_holds(index, rows)
    index.rebase(partly_in_file(index.to_arrays()))
    assert_holds(index, rows)


def test_removed_rows_are_cleared_from_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ragged_rows, "COMPACTED_FROM", 0)
    index = TokenVectors(SPACE)
    rows: list[TokenCodes | None] = [codes(5, seed) for seed in range(40)]
    for tokens in rows:
        index.append(tokens)
    while len(rows) > 3:
        index.remove(0)
        rows[0] = rows.pop() if len(rows) > 1 else rows[0]
    assert_holds(index, rows)
    assert index.nbytes < 40 * 5 * DIM


def test_token_vectors_of_another_space_are_missing():
    index = TokenVectors(SPACE)
    for tokens in (codes(2), codes(2, space="ffffffff"), None):
        index.append(tokens)
    assert index.lengths.tolist() == [2, MISSING, MISSING]
    assert [index.missing(np.array([row])) for row in range(3)] == [False, True, True]
    index.replace(1, codes(3, seed=5))
    index.replace(0, codes(3, seed=5))
    assert_holds(index, [codes(2), codes(3, seed=5), None])


@pytest.mark.parametrize(
    "damage",
    [
        {"tokens": np.zeros((2, DIM), np.int8)},
        {"tokens": np.zeros((3, DIM), np.uint8)},
        {"tokens": np.zeros(3, np.int8)},
        {"token_lengths": np.array([3], np.int64)},
        {"token_lengths": np.array([[3]], np.int32)},
    ],
)
def test_inconsistent_arrays_are_refused(damage: dict[str, NDArray[Any]]):
    index = TokenVectors(SPACE)
    index.append(codes(3))
    with pytest.raises(ValueError, match="token vectors"):
        TokenVectors.from_arrays({**whole(index.to_arrays()), **damage}, SPACE)


def test_the_best_match_of_each_token_counts_by_its_weight():
    index = TokenVectors(SPACE)
    unit = 127 * np.eye(DIM, dtype=np.int8)
    for directions in ([0, 1], [1], []):
        index.append(TokenCodes(SPACE, unit[directions]))
    query = np.eye(DIM, dtype=np.float32)[:2]
    shares = SpreadShares(*(np.zeros((0, 1), np.float32),) * 2, np.zeros(1, np.float32))
    found = late_interaction(index, np.arange(3), query, np.array([3.0, 1.0], np.float32), None, shares, None)
    assert found.tolist() == pytest.approx([1.0, 0.25, 0.0])


def test_a_match_reaches_visible_neighbours():
    index = TokenVectors(SPACE)
    for tokens in ([[127, 0, 0, 0]], [], []):
        index.append(TokenCodes(SPACE, np.array(tokens, np.int8).reshape(-1, DIM)))
    near = Neighbourhood(
        before=np.array([-1, 0, 1, -1]),
        after=np.array([1, 2, -1, -1]),
        profiles=np.zeros(4, np.uint8),
        only_profile=None,
        flags=np.array([TurnFlag.QUESTION, 0, 0], np.uint8),
    )
    shares = SpreadShares(
        np.array([[0.5], [0.4]], np.float32), np.array([[0.3], [0.2]], np.float32), np.array([0.9], np.float32)
    )
    query, weights = np.eye(DIM, dtype=np.float32)[:1], np.ones(1, np.float32)
    rows = np.array([2, 0, 1])
    assert late_interaction(index, rows, query, weights, near, shares, None).tolist() == pytest.approx([0.4, 1.0, 0.9])
    seen = np.array([False, True, True])
    assert late_interaction(index, rows[[0, 2]], query, weights, near, shares, seen).tolist() == [0.0, 0.0]
