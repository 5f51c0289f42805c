"""Typed rows: the columns of a query become a dataclass, a named tuple, a tuple or a single value.

This is the only place where SQLite's untyped columns get types. Columns are assigned to fields in order. Fields after
the last column keep their defaults, and a field that is itself a record takes as many columns as it has fields, or, if
it is the last one, the remaining columns.
The type of a field determines the conversion: microseconds to `datetime`, 0 and 1 to `bool`, a value to its enum, JSON
to mappings and tuples. Other values are passed through.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache, partial
from itertools import chain, starmap
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import apsw

from souvenir.core.timestamps import from_us

R = TypeVar("R")

_Convert = Callable[[Any], Any]

PASSAGE_COLUMNS = (
    "id, kind, owner_id, ordinal, text, profile, source, occurred_at, archived, dated, "
    "session_id, position, role, user_id, speaker, fact_id"
)
"""Columns of a `Passage`."""

MEMORY_COLUMNS = (
    "id, text, source, created_at, updated_at, metadata, key, document_at, pinned, archived, origin_class, valid_to"
)
"""Columns of a `Memory` without its facts and tags."""


def select(connection: apsw.Connection, shape: type[R], query: str, parameters: apsw.Bindings = ()) -> Iterator[R]:
    """Run a statement and yield its rows one by one, each as a value of the shape.

    :param shape: A dataclass, a named tuple, `tuple[int, str | None]`, or the type of the only column.
    """
    untyped: Any = shape
    rows: Iterator[R] = _reader(untyped)(connection.execute(query, parameters))
    return rows


def first(connection: apsw.Connection, shape: type[R], query: str, parameters: apsw.Bindings = ()) -> R | None:
    """Return the first row of a statement; None if there is none."""
    return next(select(connection, shape, query, parameters), None)


def only(connection: apsw.Connection, shape: type[R], query: str, parameters: apsw.Bindings = ()) -> R:
    """Return the row of a statement that always has one."""
    return next(select(connection, shape, query, parameters))


def ids_parameter(ids: Iterable[int]) -> str:
    """Encode any number of ids as one SQL parameter, for `IN (SELECT value FROM json_each(?))`."""
    return json.dumps(list(ids))


@cache
def _reader(shape: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function that turns rows into values of the shape; without conversions, no Python code runs per row."""
    is_tuple = get_origin(shape) is tuple
    if not is_tuple and not _is_record(shape):
        convert = _conversion(shape)
        return chain.from_iterable if convert is None else lambda rows: map(convert, chain.from_iterable(rows))
    layout = _Layout.of(get_args(shape) if is_tuple else get_type_hints(shape).values())
    if layout.is_plain:
        return iter if is_tuple else partial(starmap, shape)
    make = tuple if is_tuple else lambda values: shape(*values)
    return lambda rows: (make(layout.convert(list(row))) for row in rows)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The mapping of the columns of a row to the fields of a record.

    :param conversions: By column. :param records: Column ranges that form one field, the last ones first.
    """

    width: int
    conversions: tuple[tuple[int, _Convert], ...]
    records: tuple[tuple[int, int, _Convert], ...]

    @classmethod
    def of(cls, types: Iterable[Any]) -> _Layout:
        width = 0
        conversions: list[tuple[int, _Convert]] = []
        records: list[tuple[int, int, _Convert]] = []
        for one in types:
            kind = _without_none(one)
            if _is_record(kind):
                inner = cls.of(get_type_hints(kind).values())
                records.insert(0, (width, width + inner.width, inner.maker(kind, can_be_none=kind is not one)))
                width += inner.width
                continue
            convert = _conversion(kind)
            if convert is not None:
                conversions.append((width, convert if kind is one else partial(_unless_none, convert)))
            width += 1
        return cls(width, tuple(conversions), tuple(records))

    @property
    def is_plain(self) -> bool:
        return not self.conversions and not self.records

    def convert(self, values: list[Any]) -> list[Any]:
        """Convert columns to fields, in place; there may be fewer columns than fields."""
        for at, convert in self.conversions:
            if at < len(values):
                values[at] = convert(values[at])
        for begin, end, make in self.records:
            if begin < len(values):
                values[begin:end] = [make(values[begin:end])]
        return values

    def maker(self, kind: Callable[..., Any], *, can_be_none: bool) -> _Convert:
        """Return the constructor of a field that is a record; NULL in its first column means None."""
        return lambda values: None if can_be_none and values[0] is None else kind(*self.convert(values))


def _is_record(kind: Any) -> bool:
    return is_dataclass(kind) or hasattr(kind, "_make")


def _without_none(kind: Any) -> Any:
    if not isinstance(kind, UnionType):
        return kind
    rest = [one for one in get_args(kind) if one is not type(None)]
    return rest[0] if len(rest) == 1 else kind


def _conversion(kind: Any) -> _Convert | None:
    """Return the conversion of a column to this type; None if it needs none."""
    if kind is datetime:
        return from_us
    if kind is bool:
        return bool
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {member.value: member for member in kind}.__getitem__
    if get_origin(kind) is Mapping:
        return json.loads
    if get_origin(kind) is tuple:
        return lambda value: tuple(json.loads(value))
    return None


def _unless_none(convert: _Convert, value: Any) -> Any:
    return None if value is None else convert(value)
