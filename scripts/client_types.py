"""Schemas of an OpenAPI document as Python types and docstrings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]

WIDTH = 120
PLAIN: Mapping[str, str] = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


class Schemas(Mapping[str, Json]):
    """The models of a document by their names."""

    def __init__(self, document: Json) -> None:
        self._schemas: Mapping[str, Json] = document["components"]["schemas"]

    def __getitem__(self, name: str) -> Json:
        return self._schemas[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._schemas)

    def __len__(self) -> int:
        return len(self._schemas)

    def is_enum(self, name: str) -> bool:
        return "enum" in self[name]

    def is_record(self, name: str) -> bool:
        return self[name].get("type") == "object"

    def resolved(self, schema: Json) -> Json:
        """Follow a reference; a nullable schema becomes its non-null variant."""
        if "$ref" in schema:
            return self.resolved(self[name_of(schema)])
        choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
        return self.resolved(choices[0]) if len(choices) == 1 else schema

    def closure(self, names: Iterable[str]) -> set[str]:
        """Return these schemas and all that they contain."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += names_in(self[name])
        return found


def name_of(reference: Json) -> str:
    return str(reference["$ref"]).rsplit("/", 1)[-1]


def names_in(value: Any) -> set[str]:
    """Return the names of all models that it refers to."""
    if isinstance(value, Mapping):
        own = {name_of(value)} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(names_in(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*map(names_in, value))
    return set()


def written_type(schemas: Schemas, schema: Json, *, argument: bool = False) -> str:
    """Return the schema as a type annotation.

    :param argument: Whether it is the type of an argument: a record is any mapping then, and a list any sequence.
    """
    open_type = "object" if argument else "Any"
    if "$ref" in schema:
        name = name_of(schema)
        if schemas.is_enum(name):
            return name
        if schemas.is_record(name):
            return "Mapping[str, object]" if argument else name
        return written_type(schemas, schemas[name], argument=argument)
    if "anyOf" in schema:
        kinds = dict.fromkeys(written_type(schemas, choice, argument=argument) for choice in schema["anyOf"])
        return " | ".join(sorted(kinds, key=lambda kind: kind == "None"))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return f"Literal[{', '.join(map(repr, values))}]"
    if schema.get("type") == "array":
        return f"{'Sequence' if argument else 'list'}[{written_type(schemas, schema['items'], argument=argument)}]"
    if schema.get("type") == "object":
        held = schema.get("additionalProperties")
        kind = written_type(schemas, held, argument=argument) if isinstance(held, Mapping) else open_type
        return f"Mapping[str, {kind}]"
    return PLAIN.get(schema.get("type", ""), open_type)


def doc(text: str, place: str = "", *, summary: str = "", indent: int) -> str:
    """Return the text as a wrapped docstring: its first sentence as the summary, and the place on a separate line.

    It is one line if all of it fits.

    :param summary: Replaces a first sentence that is longer than a line.
    """
    margin = " " * indent
    text = " ".join(text.replace("\\", "\\\\").split())
    if len(f'{margin}"""{text} {place}"""') <= WIDTH:
        return f'{margin}"""{f"{text} {place}".strip()}"""'
    sentence, _, further = text.partition(". ")
    first = sentence if not further else f"{sentence}."
    if len(first) + indent + 3 > WIDTH:
        first, further = f"{summary}.", text
    paragraphs = [textwrap.wrap(part, WIDTH - indent - 3) for part in (first, further, place) if part]
    lines = [line for paragraph in paragraphs for line in ("", *paragraph)][1:]
    body = "\n".join(f"{margin}{line}" if line else "" for line in lines[1:])
    return f'{margin}"""{lines[0]}\n{body}\n{margin}"""' if body else f'{margin}"""{lines[0]}"""'
