"""Typed rows: the columns of a query become a dataclass, a named tuple, a tuple or a single value.

This is the only place where SQLite's untyped columns get types. Columns are assigned to fields in order. Fields after
the last column keep their defaults, and a field that is itself a record takes as many columns as it has fields, or, if
it is the last one, the remaining columns.
The type of a field determines the conversion: microseconds to `datetime`, 0 and 1 to `bool`, a value to its enum, JSON
to mappings and tuples. Other values are passed through.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache, partial
from itertools import chain, islice, starmap
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from souvenir.core.timestamps import from_us
from souvenir.store.sql import Connection, Parameters
from souvenir.store.unreadable import report

R = TypeVar("R")
K = TypeVar("K")
V = TypeVar("V")

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


def select(connection: Connection, shape: type[R], query: str, parameters: Parameters = ()) -> Iterator[R]:
    """Run a statement and yield its rows one by one, each as a value of the shape.

    :param shape: A dataclass, a named tuple, `tuple[int, str | None]`, or the type of the only column.
    """
    untyped: Any = shape
    rows: Iterator[R] = _reader(untyped)(connection.execute(query, parameters))
    return rows


UNREADABLE = (ValueError, KeyError, TypeError, OverflowError, IndexError)
"""Errors of the conversion of a damaged row: text that is not UTF-8, JSON that does not parse, a value that no enum
has, a time out of range."""


def readable(
    connection: Connection,
    shape: type[R],
    query: str,
    parameters: Parameters = (),
    *,
    table: str,
) -> Generator[R]:
    """Yield rows as `select`, but leave out and report those that cannot be decoded.

    For reads that show or index content. Where a missing row would change a decision, `select` must raise instead.

    :param shape: A record, or a tuple.
    :param query: Reads only. Its first column is the id of the row in `table`.
    """
    yielded = 0
    try:
        for row in select(connection, shape, query, parameters):
            yield row
            yielded += 1
    except UNREADABLE:
        untyped: Any = shape
        readable_rows = _rows_by_bytes(
            connection, _layout(untyped), query, parameters, lambda row_id: report(connection, table, row_id)
        )
        yield from islice(readable_rows, yielded, None)


def unreadable_ids(connection: Connection, shape: type[Any], query: str) -> list[int]:
    """Return the ids, in the first column, of the rows that cannot be decoded."""
    untyped: Any = shape
    found: list[int] = []
    try:
        deque(select(connection, shape, query), maxlen=0)
    except UNREADABLE:
        deque(_rows_by_bytes(connection, _layout(untyped), query, (), found.append), maxlen=0)
    return found


def _rows_by_bytes(
    connection: Connection,
    layout: _Layout,
    query: str,
    parameters: Parameters,
    leave_out: Callable[[int], None],
) -> Iterator[Any]:
    """Yield the rows that can be decoded. Texts are fetched as bytes, so that SQLite's rows are read in any case."""
    width = len(connection.execute(query, parameters).description)
    names = [f"c{column}" for column in range(width)]
    fetched = ", ".join(f"iif(typeof({name}) = 'text', CAST({name} AS BLOB), {name}), typeof({name})" for name in names)
    rows = connection.execute(f"WITH q ({', '.join(names)}) AS ({query}) SELECT {fetched} FROM q", parameters)
    for row in rows:
        columns = zip(row[::2], row[1::2], strict=True)
        try:
            yield layout.value_of([value.decode() if kind == "text" else value for value, kind in columns])
        except UNREADABLE:
            leave_out(row[0])


def first(connection: Connection, shape: type[R], query: str, parameters: Parameters = ()) -> R | None:
    """Return the first row of a statement; None if there is none."""
    return next(select(connection, shape, query, parameters), None)


def only(connection: Connection, shape: type[R], query: str, parameters: Parameters = ()) -> R:
    """Return the row of a statement that always has one."""
    return next(select(connection, shape, query, parameters))


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the second values by the first ones, both in order of appearance."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def as_text(stored: bytes) -> str:
    """Decode a text that is fetched as bytes because it must be deleted even if it is damaged."""
    return stored.decode(errors="replace")


CHOSEN = "IN (SELECT value FROM json_each(?))"
"""Follows a column that is one of the ids of `ids_parameter`."""


def ids_parameter(ids: Iterable[int]) -> str:
    """Encode any number of ids as one SQL parameter, for `CHOSEN`."""
    return json.dumps(list(ids))


@cache
def _reader(shape: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function that turns rows into values of the shape; without conversions, no Python code runs per row."""
    is_tuple = get_origin(shape) is tuple
    if not is_tuple and not _is_record(shape):
        convert = _conversion(shape)
        return chain.from_iterable if convert is None else lambda rows: map(convert, chain.from_iterable(rows))
    layout = _layout(shape)
    if layout.conversions or layout.records:
        return partial(map, layout.value_of)
    return iter if is_tuple else partial(starmap, shape)


@cache
def _layout(shape: Any) -> _Layout:
    if get_origin(shape) is tuple:
        return _Layout.of(None, get_args(shape))
    return _Layout.of(shape, get_type_hints(shape).values())


@dataclass(frozen=True, slots=True)
class _Layout:
    """The mapping of the columns of a row to the fields of a record, or of a tuple if `kind` is None.

    :param conversions: By column, and whether NULL becomes None.
    :param records: Column ranges that form one field, the last ones first, and whether NULL in the first column of the
        range makes the field None.
    """

    kind: Callable[..., Any] | None
    width: int
    conversions: tuple[tuple[int, _Convert, bool], ...]
    records: tuple[tuple[int, int, _Layout, bool], ...]

    @classmethod
    def of(cls, kind: Callable[..., Any] | None, types: Iterable[Any]) -> _Layout:
        width = 0
        conversions: list[tuple[int, _Convert, bool]] = []
        records: list[tuple[int, int, _Layout, bool]] = []
        for one in types:
            field = _without_none(one)
            is_optional = field is not one
            if _is_record(field):
                inner = cls.of(field, get_type_hints(field).values())
                records.insert(0, (width, width + inner.width, inner, is_optional))
                width += inner.width
                continue
            convert = _conversion(field)
            if convert is not None:
                conversions.append((width, convert, is_optional))
            width += 1
        return cls(kind, width, tuple(conversions), tuple(records))

    def value_of(self, columns: Iterable[Any]) -> Any:
        """Return the record; there may be fewer columns than fields."""
        values = list(columns)
        count = len(values)
        for at, convert, is_optional in self.conversions:
            if at >= count:
                break
            value = values[at]
            if value is not None or not is_optional:
                values[at] = convert(value)
        for begin, end, inner, is_optional in self.records:
            if begin < len(values):
                part = values[begin:end]
                values[begin:end] = [None if is_optional and part[0] is None else inner.value_of(part)]
        return tuple(values) if self.kind is None else self.kind(*values)


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
        return _json_object
    if get_origin(kind) is tuple:
        return lambda value: tuple(json.loads(value))
    return None


def _json_object(value: str) -> dict[str, Any]:
    if value == "{}":
        return {}
    found = json.loads(value)
    if not isinstance(found, dict):
        raise ValueError("the JSON is no object")
    return found
