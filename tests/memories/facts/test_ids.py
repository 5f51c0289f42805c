"""Short text forms of ids."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.errors import FactNotFound, MemoryNotFound, Unavailable
from souvenir.memories.short_ids import Kind, id_of, short_id

NUMBERS = st.integers(0, 2**46 - 1)


@given(st.sampled_from(Kind), NUMBERS)
def test_a_short_id_encodes_one_number(kind: Kind, number: int):
    text = short_id(kind, number)
    assert re.fullmatch(r"[A-Za-z0-9_-]{8}", text)
    assert id_of(kind, text) == number


@pytest.mark.parametrize("number", [-1, 2**46, 2**46 + 42, 2**52, 2**63])
def test_a_number_that_a_short_id_cannot_hold_has_none(number: int):
    with pytest.raises(Unavailable, match="too large for MCP"):
        short_id(Kind.MEMORY, number)


@given(NUMBERS)
def test_a_short_id_is_valid_for_one_kind_only(number: int):
    with pytest.raises(FactNotFound):
        id_of(Kind.FACT, short_id(Kind.MEMORY, number))
    with pytest.raises(MemoryNotFound):
        id_of(Kind.MEMORY, short_id(Kind.FACT, number))


@given(st.from_regex(r"[A-Za-z0-9_-]{8}", fullmatch=True))
def test_a_number_has_exactly_one_short_id(text: str):
    kinds = [kind for kind in Kind if _reads(kind, text)]
    assert len(kinds) <= 1
    assert all(short_id(kind, id_of(kind, text)) == text for kind in kinds)


def _reads(kind: Kind, text: str) -> bool:
    try:
        return id_of(kind, text) >= 0
    except (MemoryNotFound, FactNotFound):
        return False


def test_short_ids_of_consecutive_numbers_differ_much():
    texts = [short_id(Kind.MEMORY, number) for number in range(1, 2001)]
    assert len({text[:4] for text in texts}) > 1950
    assert len({text[4:] for text in texts}) > 1950


def test_short_ids_are_stable_across_releases():
    assert [short_id(kind, number) for kind in Kind for number in (1, 42)] == [
        "IdyvRtEu",
        "06y_GaCT",
        "YFfEuDK9",
        "8YJCpaRI",
    ]


@pytest.mark.parametrize(
    "text", ["", "42", "U2ESeh7", "U2ESeh7Vx", "U2ESeh7=", "U2ES h7V", "U2ESeh7\u00e9", "\ud800" * 8]
)
def test_an_invalid_short_id_is_not_found(text: str):
    with pytest.raises(MemoryNotFound, match=r"Memory ID .*not found") as failure:
        id_of(Kind.MEMORY, text)
    assert failure.value.message.isascii()


def test_a_long_invalid_id_is_truncated_in_the_error():
    with pytest.raises(FactNotFound) as failure:
        id_of(Kind.FACT, "x" * 10_000)
    assert failure.value.message == f"Fact ID {'x' * 32} not found"


def test_surrounding_blanks_of_an_id_are_ignored():
    assert id_of(Kind.MEMORY, f" {short_id(Kind.MEMORY, 42)}\n") == 42
