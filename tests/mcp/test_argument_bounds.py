"""Bounds of the arguments of tools: every list and text has a maximum length, and few errors are built for a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from souvenir.core.errors import InvalidRequest
from souvenir.mcp.registry import TIERS
from souvenir.mcp.tools import Tool

TOOLS = [tool for tools in TIERS.values() for tool in tools]
LISTS = [
    (tool, name)
    for tool in TOOLS
    for name, schema in tool.input_schema["properties"].items()
    if schema.get("type") == "array"
]
MANY = 20_000


def schemas_in(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for one in schema.values():
            yield from schemas_in(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from schemas_in(one)


def refusal(tool: Tool[Any], arguments: dict[str, Any]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as raised:
        tool.read(arguments)
    return raised.value


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_list_and_text_of_a_tool_has_a_maximum_length(tool: Tool[Any]):
    for schema in schemas_in(tool.input_schema):
        if schema.get("type") == "array":
            assert "maxItems" in schema, schema
        if schema.get("type") == "string" and "enum" not in schema and "const" not in schema:
            assert "maxLength" in schema, schema


@pytest.mark.parametrize(("tool", "name"), LISTS, ids=lambda one: getattr(one, "name", one))
def test_a_list_that_is_too_long_is_validated_only_up_to_its_maximum(tool: Tool[Any], name: str):
    cause = refusal(tool, {name: [1] * MANY}).__cause__
    assert isinstance(cause, ValidationError)
    assert cause.error_count() <= 5


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_many_unknown_arguments_are_refused_before_validation(tool: Tool[Any]):
    error = refusal(tool, {f"unknown_{number}": 1 for number in range(MANY)})
    assert error.__cause__ is None
    assert error.message.startswith(f"{tool.name} has no 20,000 arguments; it takes ")
    assert len(error.message) < 1000


def test_many_errors_within_an_argument_are_counted_and_not_built():
    [tool] = [one for one in TOOLS if one.name == "create_entities"]
    error = refusal(tool, {"entities": [{}] * 900})
    assert error.message == "create_entities cannot be called so: its arguments have 2,700 errors; see its schema"
