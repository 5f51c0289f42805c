"""Mem0's filters, read into conditions on memories.

An object is all of its members; AND, OR and NOT take a list of objects. A field takes a value, a list of values, `*`
for any value, or an object of operators. `agent_id` names namespaces: a filter without it is about the caller's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from souvenir.api.fields import MAX_ID
from souvenir.compat.mem0.models import time_of
from souvenir.compat.mem0.stored import AGENT_ID, USERS, stored_name
from souvenir.core.errors import InvalidFilter
from souvenir.core.labels import APP_ID, RUN_ID, USER_ID
from souvenir.core.timestamps import to_us
from souvenir.store.memories.conditions import (
    ALWAYS,
    NEVER,
    Column,
    Compares,
    Condition,
    Every,
    Metadata,
    Not,
    Scalar,
    Some,
    SourceBelow,
    Tags,
    Test,
)

MAX_DEPTH = 10
MAX_TESTS = 200
MAX_VALUES = 1_000
MAX_TEXT_CHARS = 2_000
ANY = "*"

_ORDERS = {"gt": Compares.GT, "gte": Compares.GTE, "lt": Compares.LT, "lte": Compares.LTE}
_SUBSTRINGS = {"contains": Compares.CONTAINS, "icontains": Compares.ICONTAINS}
OPERATORS = frozenset({"eq", "ne", "in", "nin", *_ORDERS, *_SUBSTRINGS})
FIELDS = (
    USER_ID,
    AGENT_ID,
    APP_ID,
    RUN_ID,
    "created_at",
    "updated_at",
    "categories",
    "metadata",
    "keywords",
    "memory_ids",
)
_TIMES = {"created_at": Column.OCCURRED_AT, "updated_at": Column.UPDATED_AT}
_OF_TIMES = frozenset({"eq", "ne", "in", "nin", *_ORDERS})


Positive = Callable[[str, Any], Condition]
"""Reads an operator that is not negated, with its value."""


@dataclass(slots=True)
class Agents:
    """The agents that a filter names.

    :param names: By `eq` or `in`. :param every: Whether it asks for all by `*`.
    """

    names: set[str] = field(default_factory=set)
    every: bool = False


class FilterReader:
    """Reads one filter for one agent: a test of `agent_id` is decided then, so the condition is about the others."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self.tests = 0
        self.agents = Agents()

    def read(self, filters: Any, depth: int = 0) -> Condition:
        """:raises InvalidFilter: If it is not a filter, or larger than it may be."""
        if not isinstance(filters, dict):
            raise InvalidFilter("A filter takes an object, such as {'user_id': 'alice'}")
        if depth > MAX_DEPTH:
            raise InvalidFilter(f"A filter takes at most {MAX_DEPTH} levels of AND, OR and NOT; nest it less")
        return _every([self._member(str(name), value, depth) for name, value in filters.items()])

    def _member(self, name: str, value: Any, depth: int) -> Condition:
        if (word := name.upper()) in ("AND", "OR", "NOT"):
            parts = [self.read(one, depth + 1) for one in (value if isinstance(value, list) else [value])]
            if word == "AND":
                return _every(parts)
            return _some(parts) if word == "OR" else _not(_some(parts))
        if name.startswith("metadata."):
            return self._at(tuple(name.removeprefix("metadata.").split(".")), value)
        if name not in FIELDS:
            raise InvalidFilter(f"The filter field {name[:100]!r} is unknown; use one of {', '.join(FIELDS)}")
        if name == "metadata":
            return self._metadata((), value)
        return _every([self._field(name, operator, held) for operator, held in _operators(name, value)])

    def _metadata(self, path: tuple[str, ...], value: Any) -> Condition:
        """A member of the object is a name, whose value is a test or, if it is an object of other names, nested."""
        if not isinstance(value, dict) or not value:
            raise InvalidFilter("metadata takes an object of names and their values, such as {'color': 'red'}")
        return _every([self._at((*path, name), held) for name, held in value.items()])

    def _at(self, path: tuple[str, ...], held: Any) -> Condition:
        if len(path) > MAX_DEPTH:
            raise InvalidFilter(f"A filter takes at most {MAX_DEPTH} levels of names in metadata; nest it less")
        if isinstance(held, dict) and not OPERATORS & held.keys():
            return self._metadata(path, held)
        first, *rest = map(_plain, path)
        test = partial(_of_metadata, (stored_name(first), *rest))
        operators = _operators(f"metadata.{path[-1][:100]}", held)
        return _every([self._negatable(test, operator, one) for operator, one in operators])

    def _field(self, name: str, operator: str, value: Any) -> Condition:
        if name == AGENT_ID:
            self._count()
            return self._of_agent(operator, value)
        if name in _TIMES:
            return self._negatable(partial(_of_time, name), operator, value, _OF_TIMES)
        allowed = OPERATORS - _ORDERS.keys()
        match name:
            case "memory_ids":
                return self._negatable(_of_ids, operator, value, frozenset({"eq", "ne", "in", "nin"}))
            case "keywords":
                if isinstance(value, list):
                    self._count(len(value) - 1)
                return self._negatable(_of_words, operator, value, allowed)
            case "categories":
                return self._negatable(_of_tags, operator, value, allowed - {"icontains"})
            case _:
                return self._negatable(partial(_of_entity, name), operator, value, allowed)

    def _negatable(
        self, positive: Positive, operator: str, value: Any, allowed: frozenset[str] = OPERATORS
    ) -> Condition:
        self._count()
        if operator not in allowed:
            raise InvalidFilter(
                f"The operator {operator!r} is not for this field; use one of {', '.join(sorted(allowed))}"
            )
        if value is None and operator in ("eq", "ne"):
            held = positive("eq", ANY)
            return _not(held) if operator == "eq" else held
        if operator in ("ne", "nin"):
            return _not(positive("eq" if operator == "ne" else "in", value))
        return positive(operator, value)

    def _count(self, tests: int = 1) -> None:
        self.tests += tests
        if self.tests > MAX_TESTS:
            raise InvalidFilter(f"A filter takes at most {MAX_TESTS} tests; split the request")

    def _of_agent(self, operator: str, value: Any) -> Condition:
        if operator not in ("eq", "ne", "in", "nin"):
            raise InvalidFilter(f"The operator {operator!r} is not for agent_id; use eq, ne, in or nin")
        names = None if value == ANY else set(_names(AGENT_ID, value))
        if operator in ("eq", "in"):
            self.agents.every |= names is None
            self.agents.names |= names or set()
        is_one = names is None or self._agent in names
        return ALWAYS if is_one is (operator in ("eq", "in")) else NEVER


def _operators(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return the operators of a field with their values; a bare value is `eq`, a list is `in`."""
    if isinstance(value, list):
        return [("in", value)]
    if not isinstance(value, Mapping):
        return [("eq", value)]
    unknown = sorted(set(map(str, value)) - OPERATORS)
    if unknown or not value:
        asked = repr(unknown[0][:100]) if unknown else "{}"
        raise InvalidFilter(f"{name} has no operator {asked}; use one of {', '.join(sorted(OPERATORS))}")
    return list(value.items())


def _plain(name: str) -> str:
    if not name or name[0] in "$[" or '"' in name or "\\" in name or "\0" in name:
        raise InvalidFilter(
            "A name in a metadata filter takes no quote and no backslash, and does not begin with $ or ["
        )
    return name


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS or "\0" in value or not value:
        raise InvalidFilter(f"{name} takes a text of 1 to {MAX_TEXT_CHARS} characters")
    return value


def _names(name: str, value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if len(values) > MAX_VALUES:
        raise InvalidFilter(f"{name} takes at most {MAX_VALUES} values; split the request")
    return [_text(name, one) for one in values]


def _scalar(value: Any) -> Scalar:
    if isinstance(value, str):
        return value if not value else _text("metadata", value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < 1e300 and math.isfinite(value):
        return value
    raise InvalidFilter("A value of a metadata filter takes a text, a finite number, true, false or null")


def _of_metadata(path: tuple[str, ...], operator: str, value: Any) -> Condition:
    at = Metadata(path)
    if value == ANY and operator == "eq":
        return Test(at, Compares.EXISTS)
    if operator in ("eq", "in"):
        values = value if isinstance(value, list) else [value]
        if len(values) > MAX_VALUES:
            raise InvalidFilter(f"metadata takes at most {MAX_VALUES} values; split the request")
        return Test(at, Compares.IN, tuple(map(_scalar, values)))
    if operator in _SUBSTRINGS:
        return Test(at, _SUBSTRINGS[operator], (_text("metadata", value),))
    if isinstance(value, bool) or value is None:
        raise InvalidFilter(f"The operator {operator!r} takes a number or a text")
    return Test(at, _ORDERS[operator], (_scalar(value),))


def named_exactly(name: str, values: Sequence[str]) -> Condition:
    """Return the condition that the entity of a kind has one of these names; `*` is a name like others."""
    return _entity(name, Compares.IN, values)


def _of_entity(name: str, operator: str, value: Any) -> Condition:
    if value == ANY and operator == "eq":
        return _entity(name, Compares.EXISTS, ())
    if operator in _SUBSTRINGS:
        return _entity(name, _SUBSTRINGS[operator], [_text(name, value)])
    return named_exactly(name, _names(name, value))


def _entity(name: str, compares: Compares, values: Sequence[str]) -> Condition:
    """A user is noted in the metadata or, of what a model extracted, in the source."""
    at = Metadata((name,))
    noted = Test(at, compares, tuple(values))
    if name != USER_ID:
        return noted
    below = Test(SourceBelow(USERS), compares, tuple(values))
    return Some((noted, Every((Not(Test(at, Compares.EXISTS)), below))))


def _of_time(name: str, operator: str, value: Any) -> Condition:
    if value == ANY and operator == "eq":
        return ALWAYS
    times = [_time(name, one) for one in (value if isinstance(value, list) else [value])]
    if operator in ("eq", "in"):
        return Test(_TIMES[name], Compares.IN, tuple(times))
    if len(times) != 1:
        raise InvalidFilter(f"The operator {operator!r} takes one time")
    return Test(_TIMES[name], _ORDERS[operator], tuple(times))


def _time(name: str, value: Any) -> int:
    try:
        return to_us(time_of(value))
    except ValueError as error:
        raise InvalidFilter(f"{name} {error}") from error


def _of_ids(operator: str, value: Any) -> Condition:
    """An id that is no number is the id of no memory."""
    if value == ANY and operator == "eq":
        return ALWAYS
    texts = _names("memory_ids", value)
    numbers = [int(text) for text in texts if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_ID))]
    return Test(Column.ID, Compares.IN, tuple(numbers))


def _of_words(operator: str, value: Any) -> Condition:
    if value == ANY and operator == "eq":
        return ALWAYS
    if operator == "in":
        return Some(tuple(_of_words("eq", one) for one in _names("keywords", value)))
    compares = _SUBSTRINGS.get(operator, Compares.CONTAINS)
    return Test(Column.TEXT, compares, (_text("keywords", value),))


def _of_tags(operator: str, value: Any) -> Condition:
    if value == ANY and operator == "eq":
        return Test(Tags(), Compares.EXISTS)
    return Test(Tags(), Compares.IN, tuple(_names("categories", value)))


def _every(parts: list[Condition]) -> Condition:
    if NEVER in parts:
        return NEVER
    left = [part for part in parts if part != ALWAYS]
    return left[0] if len(left) == 1 else Every(tuple(left))


def _some(parts: list[Condition]) -> Condition:
    if ALWAYS in parts:
        return ALWAYS
    left = [part for part in parts if part != NEVER]
    return left[0] if len(left) == 1 else Some(tuple(left))


def _not(part: Condition) -> Condition:
    if part == ALWAYS:
        return NEVER
    return ALWAYS if part == NEVER else Not(part)
