"""Cases in one test: each is tried, and each that fails is named."""

from __future__ import annotations

from inspect import signature

import pytest

from tests.cases import for_all


def test_every_case_is_tried_and_those_that_fail_are_named():
    tried = []

    @for_all("shape", ["round", "flat"])
    @for_all("number", [1, 2, 3])
    def is_even(shape: str, number: int, limit: int) -> None:
        tried.append((shape, number))
        if number > limit:
            pytest.fail("too large")
        assert number % 2 == 0

    assert list(signature(is_even).parameters) == ["limit"]
    with pytest.raises(BaseExceptionGroup, match="2 of 2 cases fail") as of_shapes:
        is_even(limit=2)
    assert tried == [(shape, number) for shape in ("round", "flat") for number in (1, 2, 3)]
    for shape, of_numbers in zip(("round", "flat"), of_shapes.value.exceptions, strict=True):
        assert isinstance(of_numbers, BaseExceptionGroup)
        assert of_numbers.__notes__ == [f"shape: {shape}"]
        assert [one.__notes__ for one in of_numbers.exceptions] == [["number: 1"], ["number: 3"]]


def test_a_case_of_several_names_is_a_tuple_and_cases_that_all_hold_pass():
    @for_all("number, half", [(2, 1), (4, 2)])
    def is_twice(number: int, half: int) -> None:
        assert number == 2 * half

    assert not signature(is_twice).parameters
    is_twice()
