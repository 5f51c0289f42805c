"""Decode JSON values to records, by the types that the records declare.

Unknown fields are dropped, unless the record has `extra`, which then contains them; so a newer service can add fields.
A value of the wrong type is an error and is never converted.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

EXTRA = "extra"
"""The field of a record for further fields of the caller, such as a memory's metadata."""

Kind = TypeVar("Kind")
Read = Callable[[Any], Any]


class Undecodable(ValueError):
    """A value does not match the record."""


def decode(kind: type[Kind], value: Any) -> Kind:
    """Decode the value to that type: a record, a list or mapping of such, or plain JSON.

    :raises Undecodable: If it is not of that type.
    """
    return cast(Kind, _reader(cast(Any, kind))(value))


@cache
def _reader(kind: Any) -> Read:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any or kind is object:
        return lambda value: value
    if origin in (Union, types.UnionType):
        return _one_of(arguments)
    if origin is Literal:
        return _exactly(str)
    if origin is list:
        return _list_of(_reader(arguments[0]))
    if origin in (dict, Mapping):
        return _mapping_of(_reader(arguments[1]))
    if dataclasses.is_dataclass(kind):
        return _record(cast(type[Any], kind))
    if kind is float:
        return _number
    return _exactly(type(None) if kind is None else kind)


def _exactly(kind: type[Any]) -> Read:
    def read(value: Any) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise Undecodable(f"{_shown(value)} where {kind.__name__} was expected")
        return value

    return read


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise Undecodable(f"{_shown(value)} where a number was expected")
    return float(value)


def _list_of(read_item: Read) -> Read:
    def read(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise Undecodable(f"{_shown(value)} where a list was expected")
        return [read_item(item) for item in value]

    return read


def _mapping_of(read_item: Read) -> Read:
    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Undecodable(f"{_shown(value)} where an object was expected")
        return {name: read_item(item) for name, item in value.items()}

    return read


def _one_of(kinds: tuple[Any, ...]) -> Read:
    """Return the first match; null is tried first, because it is the most common."""
    readers = [_reader(kind) for kind in kinds if kind is not type(None)]
    nullable = len(readers) < len(kinds)

    def read(value: Any) -> Any:
        if value is None and nullable:
            return None
        wrong: Undecodable | None = None
        for read_as in readers:
            try:
                return read_as(value)
            except Undecodable as error:
                wrong = error
        raise wrong or Undecodable(f"{_shown(value)} where nothing was expected")

    return read


def _record(kind: type[Any]) -> Read:
    hints = get_type_hints(kind)
    readers = {field.name: _reader(hints[field.name]) for field in dataclasses.fields(kind) if field.name != EXTRA}
    required = {field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING} - {EXTRA}
    keeps_extra = EXTRA in hints

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Undecodable(f"{_shown(value)} where a {kind.__name__} was expected")
        if missing := required - value.keys():
            raise Undecodable(f"a {kind.__name__} without {', '.join(sorted(missing))}")
        known = {}
        for name, read_field in readers.items():
            if name in value:
                try:
                    known[name] = read_field(value[name])
                except Undecodable as error:
                    raise Undecodable(f"{kind.__name__}.{name}: {error}") from error
        if keeps_extra:
            known[EXTRA] = {name: item for name, item in value.items() if name not in readers}
        return kind(**known)

    return read


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {str(value)[:40]!r}"
