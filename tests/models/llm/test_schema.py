"""The schema for vendors: all properties required, no others allowed, and only commonly supported keywords."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from souvenir.models.llm.prompts import NO_USAGE, TokenUsage, cost_usd
from souvenir.models.llm.schema import instructions, schema_of


class Action(StrEnum):
    ADD = "add"
    NOOP = "noop"


class Add(BaseModel):
    action: Literal["add"]
    text: Annotated[str, Field(min_length=1, max_length=500, pattern="^[a-z]")]


class Delete(BaseModel):
    action: Literal["delete"]
    id: int = Field(ge=1, le=9)


class Everything(BaseModel):
    """A shape with every supported feature."""

    action: Action = Field(description="What to do.", default=Action.NOOP)
    event_time: str | None = None
    span: tuple[int, ...] = ()
    parts: list[Add] = Field(min_length=1, max_length=30)
    either: Annotated[Add | Delete, Field(discriminator="action")]


def nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the schema and all of its nodes."""
    yield schema
    inside = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", [])]
    for one in [*inside, *([schema["items"]] if "items" in schema else [])]:
        yield from nodes(one)


def test_a_schema_uses_only_keywords_supported_by_all_vendors():
    schema = schema_of(Everything, "everything")
    assert schema["title"] == "everything"
    known = {"title", "type", "description", "enum", "const", "anyOf", "items", "$ref", "$defs"}
    known |= {"properties", "required", "additionalProperties"}
    for node in nodes(schema):
        assert set(node) <= known
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert node["required"] == list(node["properties"])
        if "$ref" in node:
            assert list(node) == ["$ref"]
            assert node["$ref"].removeprefix("#/$defs/") in schema["$defs"]
    assert schema["required"] == ["action", "event_time", "span", "parts", "either"]
    assert [one["type"] for one in schema["properties"]["event_time"]["anyOf"]] == ["string", "null"]


def test_an_unsupported_shape_is_refused_at_definition():
    class Open(BaseModel):
        anything: dict[str, str]

    with pytest.raises(TypeError, match="named fields only"):
        schema_of(Open, "open")


def test_the_schema_can_be_rendered_as_text():
    assert '"title":"everything"' in instructions(schema_of(Everything, "everything"))


def test_costs_of_known_models_are_found_with_or_without_a_date():
    assert cost_usd("claude-haiku-4-5-20251001", 1_000_000, 100_000) == pytest.approx(1.5)
    assert cost_usd("gpt-4.1-mini-2025-04-14", 1_000_000, 0) == pytest.approx(0.4)
    assert cost_usd("gpt-4.1-mini", 0, 1_000_000) == pytest.approx(1.6)
    assert cost_usd("llama3.1", 1, 1) is None


def test_a_sum_of_usage_has_a_cost_only_if_every_part_has_one():
    assert NO_USAGE + TokenUsage(1, 2, 0.5) + TokenUsage(3, 4, 0.25) == TokenUsage(4, 6, 0.75)
    assert TokenUsage(1, 2, None) + TokenUsage(3, 4, 0.25) == TokenUsage(4, 6, None)
