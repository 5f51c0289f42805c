"""The translation of statements from the SQL that both engines share to PostgreSQL's.

What differs in names only is defined in the schema (`functions.sql`); here is what differs in syntax (parameters, and
casts to bytes), and lists of ids, which the planner takes for few only if they are arrays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from souvenir.store.sql import Parameters

_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|::|\?(\d*)|:([a-z_][a-z_0-9]*)", re.ASCII)
"""Literals, names and comments, in which nothing is replaced, and parameters."""

_TEXT_AS_BYTES = re.compile(r"\bCAST\((\w+(?:\.\w+)?(?: ->> '\w+')?) AS BLOB\)")
_HINTS = ((re.compile(r"\bCROSS JOIN (\S+(?: \w+)?) ON\b"), r"JOIN \1 ON"), (re.compile(r" INDEXED BY \w+"), ""))
"""How statements keep SQLite's planner to an order of joins, or to an index."""

_PART = re.compile(r"\b(\w+)\.value (?=->)")
"""`value` of an element of `json_each` that is an array or object is its JSON."""

_CHOSEN = re.compile(r"(?<!NOT )\bIN \(SELECT value FROM json_each\((\?\d*)\)\)")
_ARRAY = r"= ANY ((SELECT translate(\1, '[]', '{}')::bigint[])::bigint[])"
"""A list of ids is an array that is parsed once: an index finds the rows, whatever the planner knows of the table."""

_BYTES_LITERAL = re.compile(r"\bx'([0-9a-fA-F]*)'")


@dataclass(frozen=True, slots=True)
class Translated:
    """A statement with parameters `$1` to `$n`.

    :param names: The names of its parameters, in order, if they have names.
    """

    text: str
    names: tuple[str, ...]

    def arguments(self, parameters: Parameters) -> list[Any]:
        """Return the values of `$1` to `$n`; truth values are stored as 0 and 1."""
        if isinstance(parameters, Mapping):
            values: Sequence[Any] = [parameters[name] for name in self.names]
        else:
            values = parameters
        return [int(value) if isinstance(value, bool) else value for value in values]


@lru_cache(maxsize=2048)
def translate(statement: str) -> Translated:
    names: dict[str, int] = {}
    last = 0

    def parameter(found: re.Match[str]) -> str:
        nonlocal last
        number, name = found[1], found[2]
        if name is not None:
            return f"${names.setdefault(name, len(names) + 1)}"
        if number is None:
            return found[0]
        at = int(number) if number else last + 1
        last = max(last, at)
        return f"${at}"

    for hint, plain in _HINTS:
        statement = hint.sub(plain, statement)
    statement = _CHOSEN.sub(_ARRAY, statement)
    statement = _with_json_objects(_PART.sub(r"\1.part ", statement))
    text = _BYTES_LITERAL.sub(r"'\\x\1'::bytea", _TEXT_AS_BYTES.sub(r"convert_to(\1, 'UTF8')", statement))
    return Translated(_TOKEN.sub(parameter, text), tuple(names))


def _with_json_objects(statement: str) -> str:
    """Write `json_object(...)`, which is other syntax in PostgreSQL, as a function whose result is text."""
    name, built = "json_object(", ""
    while (at := statement.find(name)) >= 0:
        depth, end = 1, at + len(name)
        while depth:
            depth += {"(": 1, ")": -1}.get(statement[end], 0)
            end += 1
        inside = _with_json_objects(statement[at + len(name) : end])
        built += f"{statement[:at]}json_build_object({inside}::text"
        statement = statement[end:]
    return built + statement
