"""Extract the valid items of an answer that does not fit its shape, and report the invalid ones.

For answers that are a list. Nothing is skipped silently: an opening bracket without a parsable value is an invalid
item, unless it only opens the answer or its list. Linear in the answer except for nested invalid parts, which are
bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic

from pydantic import ValidationError

from souvenir.models.llm.parsing import DECODER, MAX_CHARS, Unreadable, check_characters
from souvenir.models.llm.prompts import Shape

MAX_UNREADABLE, MAX_FAILURES = 200, 1_000
"""Limits of invalid items and of failed brackets; the search stops after that, and the result says so."""

MAX_DEPTH = 20
"""Depth of nested lists."""

_OPENING = re.compile(r"[\[{]")
_ONLY_OPENS = re.compile(r'\{\s*"[^"]{0,80}"\s*:\s*[\[{]|\[\s*[\[{"]|[\[{]\s*$')
"""An object that begins with a list, or a list."""

_UNREADABLE = "an item cannot be read"


@dataclass(frozen=True, slots=True)
class Broken:
    """An item that does not fit.

    :param reason: For people; contains no part of the answer.
    :param value: The item's value, if it is valid JSON.
    """

    reason: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class Salvaged(Generic[Shape]):
    items: tuple[Shape, ...]
    broken: tuple[Broken, ...]


def salvaged(raw: str, key: str, shape: type[Shape]) -> Salvaged[Shape]:
    """Return the items of a list that fit, in order.

    :param key: The key of the requested list.
    """
    items: list[Shape] = []
    broken: list[Broken] = []
    for value in _values(raw[:MAX_CHARS]):
        if isinstance(value, Broken):
            broken.append(value)
            continue
        for one in _items(value, key, shape):
            fitted = _fitted(one, shape)
            if isinstance(fitted, Broken):
                broken.append(fitted)
            else:
                items.append(fitted)
    if len(raw) > MAX_CHARS:
        broken.append(Broken("the answer is too long to be read to its end"))
    return Salvaged(tuple(items), tuple(broken))


def _values(raw: str) -> Iterator[Any]:
    """Yield every bracketed JSON value that can be parsed, and a `Broken` for each place that cannot."""
    at, failures, reported = 0, 0, 0
    while opening := _OPENING.search(raw, at):
        try:
            value, at = DECODER.raw_decode(raw, opening.start())
        except (ValueError, RecursionError):
            at = opening.end()
            failures += 1
            if not _ONLY_OPENS.match(raw, opening.start()):
                reported += 1
                yield Broken(_UNREADABLE)
            if reported == MAX_UNREADABLE or failures == MAX_FAILURES:
                yield Broken("the rest of the answer cannot be read")
                return
            continue
        yield value


def _items(value: Any, key: str, shape: type[Shape], depth: int = 0) -> Iterator[Any]:
    """Yield candidate items of a value: the list under the key, however it is wrapped."""
    fields = shape.model_fields.keys()
    if isinstance(value, dict) and key in value:
        value = value[key]
        value = value if isinstance(value, list) else [value]
    if isinstance(value, dict) and not fields & value.keys():
        inner = [one for one in value.values() if isinstance(one, list | dict)]
        if inner and depth < MAX_DEPTH:
            for one in inner:
                yield from _items(one, key, shape, depth + 1)
            return
    if isinstance(value, list) and depth < MAX_DEPTH:
        for one in value:
            yield from _items(one, key, shape, depth + 1)
        return
    yield value


def _fitted(value: Any, shape: type[Shape]) -> Shape | Broken:
    try:
        check_characters(value)
        return shape.model_validate(value)
    except ValidationError as error:
        [first, *_] = error.errors(include_url=False, include_context=False, include_input=False)
        place = ".".join(map(str, first["loc"]))
        return Broken(f"{place}: {first['msg']}" if place else first["msg"], value)
    except Unreadable as unreadable:
        return Broken(unreadable.fault.reason)
    except RecursionError:
        return Broken("it is nested too deeply")
