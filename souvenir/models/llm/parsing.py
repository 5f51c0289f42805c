"""Parse a model's text to a value of a shape. Tolerant of the wrapping of an answer, never of its content.

Code fences, prose around one JSON value, leading reasoning, trailing commas, and a bare list for a shape with a single
list are accepted. An ambiguous text is rejected, and the model is asked again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, NoReturn, get_origin

from pydantic import BaseModel, ValidationError

from souvenir.models.llm.prompts import Shape

MAX_INT = 2**63 - 1
"""Larger numbers fit no database column."""

MAX_FAULTS = 20
"""Maximum number of faults reported to the model in a repair."""

MAX_CHARS = 1_000_000

_THINKS = re.compile(r"\s*<(think|thinking|reasoning)>")
_THOUGHTS = re.compile(r"\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
_OPENING = re.compile(r"[\[{]")
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
_STRING_OR_COMMA = re.compile(r'("(?:[^"\\]++|\\.)*+")|,(\s*[\]}])', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an answer is rejected.

    :param reason: For people; contains no part of the answer.
    :param details: For the model that wrote it.
    """

    reason: str
    details: str


class Unreadable(Exception):
    def __init__(self, reason: str, details: str | None = None) -> None:
        super().__init__(reason)
        self.fault = Fault(reason, details or reason)


def value_of(text: str, shape: type[Shape]) -> Shape:
    """Parse the text into the shape.

    :raises Unreadable: Unless it contains exactly one value that fits.
    """
    value = _loaded(_json_in(text))
    if isinstance(value, list) and (field := _only_list_of(shape)):
        value = {field: value}
    if not isinstance(value, dict):
        raise Unreadable("it is not a JSON object")
    check_characters(value)
    if missing := [key for key in _lists_of(shape) if key not in value]:
        # An empty list is an answer; a missing one is not.
        raise Unreadable("a list is missing in it", f"the list {missing[0]} is missing")
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        # Not chained, because it repeats the answer.
        unfit = _unfit(error, shape)
    except RecursionError:
        unfit = Unreadable("it is nested too deeply")
    raise unfit


def _json_in(text: str) -> str:
    """Return the one JSON value of the text, as written; code fences count as prose."""
    if len(text) > MAX_CHARS:
        raise Unreadable("it is too long")
    if _THINKS.match(text) and not _THOUGHTS.match(text):
        raise Unreadable("it breaks off")
    groups = list(_groups(_THOUGHTS.sub("", text, count=1) if _THINKS.match(text) else text))
    if not groups:
        raise Unreadable("it holds no JSON" if text.strip() else "it is empty")
    if len(groups) > 1:
        raise Unreadable("it holds more than one JSON value")
    return groups[0]


def _groups(text: str) -> Iterator[str]:
    """Yield all outermost bracketed parts. Quotation marks count only inside brackets."""
    end = 0
    while opened := _OPENING.search(text, end):
        depth, start, end = 1, opened.start(), opened.end()
        while depth:
            found = _STRING_OR_BRACKET.search(text, end)
            if found is None:
                raise Unreadable("it breaks off")
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found.group(), 0)
            end = found.end()
        yield text[start:end]


def _loaded(written: str) -> Any:
    try:
        return DECODER.decode(written.strip())
    except json.JSONDecodeError as error:
        fault = Unreadable(f"it is not JSON (at character {error.pos})", f"it is not JSON: {error.msg}, at {error.pos}")
    except (ValueError, RecursionError) as error:
        raise _unloadable(error) from None
    without = _STRING_OR_COMMA.sub(lambda match: match[1] or match[2], written)
    if without == written:
        raise fault
    try:
        return DECODER.decode(without.strip())
    except json.JSONDecodeError:
        raise fault from None
    except (ValueError, RecursionError) as error:
        raise _unloadable(error) from None


def _unloadable(error: Exception) -> Unreadable:
    if isinstance(error, RecursionError):
        return Unreadable("it is nested too deeply")
    return Unreadable("it holds a number that is none or too large, or one key twice")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key twice")
    return value


def _integer(digits: str) -> int:
    number = int(digits)
    if abs(number) > MAX_INT:
        raise ValueError("too large")
    return number


def _number(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError("too large")
    return number


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


# Line breaks in strings are accepted.
DECODER = json.JSONDecoder(
    object_pairs_hook=_once, parse_int=_integer, parse_float=_number, parse_constant=_no_number, strict=False
)


def check_characters(value: Any) -> None:
    """Reject text that no column can hold: unpaired surrogates, and NUL."""
    rest = [value]
    while rest:
        match rest.pop():
            case str() as text:
                if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
                    raise Unreadable("it holds characters that are none")
            case dict() as pairs:
                rest += [*pairs.keys(), *pairs.values()]
            case list() as items:
                rest += items


def _lists_of(shape: type[BaseModel]) -> list[str]:
    """Return the keys of the shape's lists."""
    return [
        field.alias or name
        for name, field in shape.model_fields.items()
        if get_origin(field.annotation) in (list, tuple, Sequence)
    ]


def _only_list_of(shape: type[BaseModel]) -> str | None:
    """Return the key of the shape's list, if nothing else is required."""
    lists = _lists_of(shape)
    needed = {field.alias or name for name, field in shape.model_fields.items() if field.is_required()}
    return lists[0] if len(lists) == 1 and needed <= set(lists) else None


def _unfit(error: ValidationError, shape: type[BaseModel]) -> Unreadable:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    details = [f"{'.'.join(map(str, fault['loc'])) or 'the object'}: {fault['msg']}" for fault in faults[:MAX_FAULTS]]
    return Unreadable(
        f"it does not fit {shape.__name__} ({len(faults)} faults, the first: {faults[0]['type']})", "\n".join(details)
    )
