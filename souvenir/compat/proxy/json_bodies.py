"""The JSON object of a request, some of whose values can be replaced without touching the rest of its text.

What is not replaced keeps its form: numbers (`1.0`, `1e400`), escapes, white space, repeated names. Its members and the
elements of its lists are parsed one by one: a single call of the parser would stop all other threads for as long as the
whole text takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from json.decoder import WHITESPACE, scanstring  # type: ignore[attr-defined]  # missing in typeshed
from typing import Any

MAX_ELEMENTS = 10_000
"""Longer lists are parsed as a whole, which is seven times as fast, and written again if something is added to them."""

_scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # as above

Span = tuple[int, int]


class JsonBody:
    """`values` are its members; of those with the same name, the last one.

    :raises ValueError: If it is no JSON object. :raises RecursionError: If it is nested too deeply.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.values: dict[str, Any] = {}
        self._spans: dict[str, Span] = {}
        self._elements: dict[int, tuple[object, Span]] = {}
        """The objects in its lists by their identity, which is theirs as long as they are kept here."""
        self._end = self._read(self._text())

    def replaced(self, values: Mapping[str, Any]) -> bytes:
        """Return its text with other values.

        :param values: All members: those of `values`, new values of some of them, and new members.
        :raises ValueError: If a new value holds a number that JSON has no form for.
        """
        changed = {name: value for name, value in values.items() if value is not self.values.get(name, self)}
        if not changed:
            return self.content
        text, parts, at = self._text(), [], 0
        for (start, end), name in sorted((self._spans[name], name) for name in changed if name in self._spans):
            parts += [text[at:start], self._written(text, changed[name])]
            at = end
        added = [f"{_dumped(name)}:{_dumped(value)}" for name, value in changed.items() if name not in self._spans]
        comma = "," if added and self._spans else ""
        parts += [text[at : self._end], comma, ",".join(added), text[self._end :]]
        return "".join(parts).encode("utf-8", "surrogatepass")

    def _text(self) -> str:
        return self.content.decode(json.detect_encoding(self.content), "surrogatepass")

    def _written(self, text: str, value: object) -> str:
        """Return a new value as JSON, in which objects of the original lists are as they were written."""
        if not isinstance(value, list):
            return _dumped(value)
        spans = (self._elements.get(id(one)) for one in value)
        parts = (
            _dumped(one) if kept is None else text[slice(*kept[1])] for one, kept in zip(value, spans, strict=True)
        )
        return f"[{','.join(parts)}]"

    def _read(self, text: str) -> int:
        """Read the members; return where the last one ends, or the first one would begin."""
        at = _expected(text, _skipped(text, 0), "{")
        end, at = at, _skipped(text, at)
        while text[at : at + 1] != "}":
            if self._spans:
                at = _skipped(text, _expected(text, at, ","))
            name, at = scanstring(text, _expected(text, at, '"'), True)
            start = _skipped(text, _expected(text, _skipped(text, at), ":"))
            self.values[name], end = self._value(text, start)
            self._spans[name] = start, end
            at = _skipped(text, end)
        if _skipped(text, at + 1) != len(text):
            raise ValueError("There is more after the JSON object")
        return end

    def _value(self, text: str, start: int) -> tuple[Any, int]:
        if text[start : start + 1] != "[":
            return _scanned(text, start)
        found: list[Any] = []
        at = _skipped(text, start + 1)
        while text[at : at + 1] != "]":
            if len(found) == MAX_ELEMENTS:
                return _scanned(text, start)
            if found:
                at = _skipped(text, _expected(text, at, ","))
            value, end = _scanned(text, at)
            if isinstance(value, dict | list):
                self._elements[id(value)] = value, (at, end)
            found.append(value)
            at = _skipped(text, end)
        return found, at + 1


def _scanned(text: str, at: int) -> tuple[Any, int]:
    try:
        return _scan(text, at)
    except StopIteration:
        raise ValueError(f"There is no JSON value at {at}") from None


def _skipped(text: str, at: int) -> int:
    """Return where the white space ends."""
    end: int = WHITESPACE.match(text, at).end()
    return end


def _expected(text: str, at: int, character: str) -> int:
    """:raises ValueError: If the text has another character there."""
    if text[at : at + 1] != character:
        raise ValueError(f"There is no {character} at {at}")
    return at + 1


def _dumped(value: object) -> str:
    """The JSON of a value, in ASCII: a string may hold half of a character."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
