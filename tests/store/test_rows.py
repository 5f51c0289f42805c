"""Rows are converted to the requested shape, column by column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

import apsw
import pytest

from souvenir.core.timestamps import from_us
from souvenir.store.rows import first, only, select

AT_US = 1_700_000_000_123_456


class Colour(StrEnum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


class Line(NamedTuple):
    begin: Point
    end: Point | None


@dataclass(frozen=True)
class Everything:
    at: datetime
    ended: datetime | None
    flag: bool
    colour: Colour
    metadata: Mapping[str, Any]
    parts: tuple[str, ...] | None
    point: Point | None
    text: str | None = None
    not_selected: int = 7


@pytest.fixture
def connection() -> apsw.Connection:
    return apsw.Connection(":memory:")


def test_columns_are_converted_by_the_types_of_the_fields(connection: apsw.Connection) -> None:
    query = """SELECT ?1, NULL, 1, 'red', '{"a":[1]}', '["x","y"]', 3, 4, 'text'"""
    expected = Everything(from_us(AT_US), None, True, Colour.RED, {"a": [1]}, ("x", "y"), Point(3, 4), "text")
    assert list(select(connection, Everything, query, (AT_US,))) == [expected]


def test_null_is_none_in_optional_fields_and_nested_records(connection: apsw.Connection) -> None:
    found = only(connection, Everything, "SELECT ?, NULL, 0, 'red', '{}', NULL, NULL, NULL, NULL", (AT_US,))
    assert (found.ended, found.flag, found.parts, found.point, found.text) == (None, False, None, None, None)


def test_a_tuple_may_contain_nested_records(connection: apsw.Connection) -> None:
    query = "SELECT 1, 2, 3, 4, 5, 'b' UNION ALL SELECT 1, 2, 3, NULL, NULL, 'b'"
    rows = list(select(connection, tuple[int, Line, str], query))
    assert rows == [(1, Line(Point(2, 3), Point(4, 5)), "b"), (1, Line(Point(2, 3), None), "b")]


def test_a_plain_tuple_and_a_single_column_are_not_converted(connection: apsw.Connection) -> None:
    assert list(select(connection, tuple[int, str], "SELECT 1, 'a' UNION ALL SELECT 2, 'b'")) == [(1, "a"), (2, "b")]
    assert list(select(connection, int, "SELECT 1 UNION ALL SELECT 2")) == [1, 2]
    assert list(select(connection, Colour, "SELECT 'red'")) == [Colour.RED]
    assert list(select(connection, Point, "SELECT 1, 2")) == [Point(1, 2)]


def test_first_is_none_without_rows(connection: apsw.Connection) -> None:
    assert first(connection, int, "SELECT 1 WHERE 0") is None
    assert first(connection, int, "SELECT 1 UNION ALL SELECT 2") == 1


def test_a_value_outside_of_an_enum_is_an_error(connection: apsw.Connection) -> None:
    with pytest.raises(KeyError):
        list(select(connection, Colour, "SELECT 'blue'"))
