"""The JSON Schema of a shape, in the subset that every vendor accepts: types, enums, lists, nested objects.

All fields are required and no others allowed; bounds and patterns are omitted, because vendors differ in them. The
answer is validated against the shape itself afterwards, so nothing is lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

JsonSchema = dict[str, Any]

_KEPT = ("type", "description", "enum", "const")


def schema_of(shape: type[BaseModel], name: str) -> JsonSchema:
    """Return the schema.

    :param name: The schema's title, which tells the model its purpose.
    :raises TypeError: If the shape has a dictionary with arbitrary keys, or is no object.
    """
    whole = shape.model_json_schema()
    definitions = whole.pop("$defs", {})
    if "$ref" in whole:
        whole = definitions[whole["$ref"].rpartition("/")[2]]
    schema = {"title": name, **_strict(whole)}
    if schema.get("type") != "object":
        raise TypeError(f"{shape.__name__} is not an object")
    if definitions:
        schema["$defs"] = {key: _strict(value) for key, value in definitions.items()}
    return schema


def instructions(schema: JsonSchema) -> str:
    """Return the schema as instructions, for servers that may not enforce it."""
    written = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return f"Answer with one JSON object and nothing else, no prose and no code fence. Its JSON Schema is:\n{written}"


def _strict(schema: Mapping[str, Any]) -> JsonSchema:
    if "$ref" in schema:
        # A reference must have no siblings.
        return {"$ref": schema["$ref"]}
    strict = {key: schema[key] for key in _KEPT if key in schema}
    for key in ("anyOf", "oneOf"):
        if key in schema:
            strict["anyOf"] = [_strict(one) for one in schema[key]]
    if "items" in schema:
        strict["items"] = _strict(schema["items"])
    if schema.get("type") == "object":
        if "properties" not in schema or schema.get("additionalProperties"):
            raise TypeError("a shape's objects have named fields only")
        strict["properties"] = {key: _strict(value) for key, value in schema["properties"].items()}
        strict["required"] = list(schema["properties"])
        strict["additionalProperties"] = False
    return strict
