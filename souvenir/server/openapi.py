"""The OpenAPI document: FastAPI's own, with composed examples and with path parameters in the order of the path.

A field declares its example (`Field(examples=[...])`); the examples of bodies are composed of those of their fields. A
field without an example gets one by its name or its type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

TIME = "2025-04-02T09:30:00.000000+00:00"
BY_NAME: Mapping[str, str] = {
    "agent_id": "6f1c2b1e-8d5e-4c7e-9a4f-0f3f6f3f2b7a",
    "agent_name": "my_agent",
    "category": "preference",
    "content": "My favourite colour is blue.",
    "job_id": "0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d",
    "key": "favorite color",
    "message_id": "0f8f5b0a-64a3-4c88-9d3b-0a6a5a0b8c11",
    "model": "qwen3:4b",
    "query": "Which database does billing use?",
    "relationship_type": "works_for",
    "session_id": "2025-04-02",
    "source": "claude-code/billing",
    "text": "The billing service uses Postgres 16.",
    "title": "Colours",
    "user": "alice",
    "value": "blue",
}
"""Examples of fields that have the same meaning in every schema."""
BY_TYPE: Mapping[str, Any] = {"integer": 1, "number": 0.5, "boolean": True, "object": {}, "null": None}


def complete(document: dict[str, Any]) -> None:
    """Add an example to each body, and put path parameters into the order of the path."""
    schemas, bodies = document["components"]["schemas"], set[str]()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            operation.get("parameters", []).sort(key=lambda one: _place_in(path, one))
            bodies |= set(_bodies_of(operation))
    # A schema also has the example of the one that it extends, without its own fields.
    for name, schema in schemas.items():
        if name in bodies or "examples" in schema:
            schema["examples"] = [example_of(schema, schemas)]


def _place_in(path: str, parameter: Schema) -> int:
    """Sort key: path parameters in the order of the path, followed by all others."""
    return path.index(f"{{{parameter['name']}}}") if parameter["in"] == "path" else len(path)


def _bodies_of(operation: Schema) -> Iterator[str]:
    """The names of the schemas that the operation takes and returns."""
    for body in (operation.get("requestBody", {}), *operation["responses"].values()):
        for content in body.get("content", {}).values():
            if "$ref" in content.get("schema", {}):
                yield content["schema"]["$ref"].rpartition("/")[2]


def example_of(schema: Schema, schemas: Mapping[str, Schema], name: str = "") -> Any:
    """An example of a value.

    :param name: The field's name.
    :raises LookupError: If it is a text without an example.
    """
    if "properties" in schema:
        return _object(schema, schemas)
    if "examples" in schema:
        return schema["examples"][0]
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas, name)
    if "anyOf" in schema:
        kinds = [one for one in schema["anyOf"] if one.get("type") != "null"]
        is_nullable = len(kinds) < len(schema["anyOf"])
        is_unknown = kinds[0].get("type") == "string" and name not in BY_NAME and not name.endswith("_at")
        return None if is_nullable and is_unknown else example_of(kinds[0], schemas, name)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "array":
            return [example_of(schema["items"], schemas, name.removesuffix("s"))]
        case "string" if name in BY_NAME:
            return BY_NAME[name]
        case "string" if name.endswith("_at"):
            return TIME
        case str(kind) if kind in BY_TYPE:
            return BY_TYPE[kind]
    raise LookupError(f"The field {name!r} needs an example: Field(examples=[...])")


def _object(schema: Schema, schemas: Mapping[str, Schema]) -> dict[str, Any]:
    """The given example completed with required fields, or the required fields and those with an example."""
    fields, given = schema["properties"], schema.get("examples", [None])[0]
    shown = set(schema.get("required", ()))
    if given is None:
        shown |= {name for name, field in fields.items() if "examples" in field}
        shown = shown or {name for name, field in fields.items() if field.get("default", ...) is not None}
    given = given or {}
    missing = {name: fields[name] for name in fields if name in shown and name not in given}
    return {**given, **{name: example_of(field, schemas, name) for name, field in missing.items()}}
