"""The JSON Schema of an export: what of it memories fill as they are, and the shape of what a language model fills.

A list named `memories` of texts, and a list of objects whose fields are those of a memory, among them `memory`, hold
every selected memory as it is stored. Every other property needs a model. The shape has the types, enums, numbers and
lengths of the schema; patterns and formats are not checked. A property that is not required may be null in the shape,
and is then left out of the export, or has its default.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, Field, create_model

from souvenir.core.errors import InvalidRequest
from souvenir.core.types import JsonObject

MAX_SCHEMA_CHARS = 20_000
MAX_LEVELS = 16
MAX_PARTS = 500
"""Maximum number of types in a schema, those that references repeat included."""

TEXTS = "memories"
"""The name of a list of texts that holds the texts of memories."""

RECORD: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("id", "memory", "agent_id", "hash", "created_at", "updated_at"), frozenset({"string"})),
    **dict.fromkeys(("user_id", "app_id", "run_id", "expiration_date"), frozenset({"string", "null"})),
    "metadata": frozenset({"object"}),
    "categories": frozenset({"array"}),
}
"""The fields of a memory that an export has, and the JSON types of their values."""

_SCALARS = {"string": str, "integer": int, "number": float, "boolean": bool, "null": type(None)}
_BOUNDS = {
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
}
_UNIONS = ("anyOf", "oneOf")


def read_schema(given: str | JsonObject) -> dict[str, Any]:
    """Return a schema, which clients also send as a text.

    :raises InvalidRequest: If it is no object with properties.
    """
    try:
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, allow_nan=False)
        if len(text) > MAX_SCHEMA_CHARS:
            raise InvalidRequest(f"The schema is longer than {MAX_SCHEMA_CHARS:,} characters; shorten it")
        read = json.loads(text)
        json.dumps(read, ensure_ascii=False, allow_nan=False).encode()  # a text may have escapes of what is no Unicode
    except (ValueError, RecursionError) as error:
        raise InvalidRequest("The schema is not JSON; send a JSON Schema with properties") from error
    if not isinstance(read, dict) or not isinstance(read.get("properties"), dict) or not read["properties"]:
        raise InvalidRequest("The schema has no properties; send a JSON Schema of an object, as pydantic makes it")
    return read


@dataclass(frozen=True, slots=True)
class ExportShape:
    """:param lists: The fields of each list of memories, by its name; None for a list of texts.

    :param shape: What a model fills; None if there is nothing else. :param names: The names of its properties.
    :param defaults: The values of properties that are left out.
    """

    lists: Mapping[str, Sequence[str] | None]
    shape: type[BaseModel] | None
    names: Sequence[str]
    defaults: JsonObject

    @classmethod
    def of(cls, schema: JsonObject) -> ExportShape:
        """:raises InvalidRequest: If the schema has something that cannot be filled, or is too large."""
        reader = _SchemaReader(schema)
        lists = {
            name: fields for name, one in schema["properties"].items() for fields in reader.memory_fields(name, one)
        }
        rest = {name: one for name, one in schema["properties"].items() if name not in lists}
        shape = reader.model({**schema, "properties": rest}, levels=0) if rest else None
        return cls(lists, shape, tuple(rest), {name: one["default"] for name, one in rest.items() if "default" in one})

    def memories_of(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the lists of memories, with the fields that the schema names."""
        return {
            name: [one["memory"] if fields is None else {key: one[key] for key in fields} for one in records]
            for name, fields in self.lists.items()
        }

    def values_of(self, answer: BaseModel) -> dict[str, Any]:
        """Return the properties that a model filled."""
        filled: dict[str, Any] = answer.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return {**self.defaults, **filled}


class _SchemaReader:
    def __init__(self, schema: JsonObject) -> None:
        self._definitions = {
            f"#/{place}/{name}": one
            for place in ("$defs", "definitions")
            if isinstance(schema.get(place), dict)
            for name, one in schema[place].items()
        }
        self._parts = count(1)

    def memory_fields(self, name: str, schema: Any) -> Iterator[Sequence[str] | None]:
        """Yield the fields of a list of memories once, or nothing if a property is no such list."""
        listed = self._resolved(schema)
        if listed.get("type") != "array":
            return
        item = self._resolved(listed.get("items"))
        properties = item.get("properties")
        if item.get("type") == "string" and name == TEXTS and "enum" not in item:
            yield None
        elif isinstance(properties, dict) and "memory" in properties and self._is_record(properties):
            yield tuple(properties)

    def _is_record(self, properties: JsonObject) -> bool:
        """Return whether all properties are fields of a memory, and admit all of their values."""
        return all(name in RECORD and RECORD[name] <= self._kinds(one) for name, one in properties.items())

    def model(self, schema: JsonObject, levels: int) -> type[BaseModel]:
        """Return the shape of an object. Its fields have numbers, since a name may be one that pydantic uses."""
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not properties:
            raise InvalidRequest("An object of the schema has no properties; name those that the export has")
        required = _names(schema.get("required", []))
        fields: dict[str, Any] = {}
        for name, one in properties.items():
            type_ = self._type(one, levels + 1)
            description = one.get("description") if isinstance(one, dict) else None
            more: dict[str, Any] = {"description": description} if isinstance(description, str) else {}
            if name not in required:
                type_, more = type_ | None, {**more, "default": None}
            fields[f"field_{len(fields)}"] = (type_, Field(alias=name, **more))
        return create_model(f"Object{next(self._parts)}", **fields)

    def _type(self, schema: Any, levels: int) -> Any:
        if levels > MAX_LEVELS:
            raise InvalidRequest(f"The schema is recursive, or deeper than {MAX_LEVELS} levels; make it flatter")
        if next(self._parts) > MAX_PARTS:
            raise InvalidRequest(f"The schema has more than {MAX_PARTS} types; split the export")
        one = self._resolved(schema)
        for union in _UNIONS:
            if isinstance(one.get(union), list) and one[union]:
                return Union[tuple(self._type(part, levels + 1) for part in one[union])]  # noqa: UP007 - of any number
        if isinstance(values := [one["const"]] if "const" in one else one.get("enum"), list):
            if not values or not all(isinstance(value, str | int | bool | None) for value in values):
                raise InvalidRequest("An enum of the schema has values other than texts, integers, booleans and null")
            return Literal[tuple(values)]
        match one.get("type"):
            case list() as kinds if kinds:
                return Union[tuple(self._type({**one, "type": kind}, levels + 1) for kind in kinds)]  # noqa: UP007
            case "array":
                return _bounded(list[self._type(one.get("items"), levels + 1)], one)  # type: ignore[misc]
            case "object":
                return self.model(one, levels)
            case str() as kind if kind in _SCALARS:
                return _bounded(_SCALARS[kind], one)
        raise InvalidRequest("A part of the schema has no type that JSON has; give every property a type")

    def _resolved(self, schema: Any) -> JsonObject:
        """Follow references and `allOf` with one member; what is no schema is an empty one."""
        for _ in range(MAX_LEVELS):
            if isinstance(schema, dict) and "$ref" in schema:
                schema = self._definitions.get(str(schema["$ref"]))
                if schema is None:
                    raise InvalidRequest("The schema refers to something that is not in its $defs; add it there")
            elif isinstance(schema, dict) and isinstance(schema.get("allOf"), list) and len(schema["allOf"]) == 1:
                [schema] = schema["allOf"]
            else:
                break
        return schema if isinstance(schema, dict) else {}

    def _kinds(self, schema: Any) -> frozenset[str]:
        """Return the JSON types of a schema, in which an enum stands for nothing."""
        one = self._resolved(schema)
        if "enum" in one or "const" in one:
            return frozenset()
        for union in _UNIONS:
            if isinstance(one.get(union), list):
                return frozenset(kind for part in one[union] for kind in self._kinds(part))
        kinds = one.get("type")
        return _names(kinds if isinstance(kinds, list) else [kinds])


def _names(given: Any) -> frozenset[str]:
    return frozenset(one for one in given if isinstance(one, str)) if isinstance(given, list) else frozenset()


def _bounded(type_: Any, schema: JsonObject) -> Any:
    bounds = {
        ours: schema[theirs]
        for theirs, ours in _BOUNDS.items()
        if isinstance(schema.get(theirs), int | float) and not isinstance(schema[theirs], bool)
    }
    if any(name.endswith("length") and (type(value) is not int or value < 0) for name, value in bounds.items()):
        raise InvalidRequest("A length of the schema is no number from 0")
    allowed = {"ge", "le", "gt", "lt"} if type_ in (int, float) else {"min_length", "max_length"}
    if type_ in (bool, type(None)):
        allowed = set()
    kept = {name: value for name, value in bounds.items() if name in allowed}
    return Annotated[type_, Field(**kept)] if kept else type_
