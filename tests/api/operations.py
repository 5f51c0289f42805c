"""Every operation in the OpenAPI document, with a request built from its examples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts

from app import create_app
from scripts.build_openapi import OPENAPI
from souvenir.core.settings import Settings
from souvenir.core.types import Role
from souvenir.mcp.endpoint import McpEndpoint
from souvenir.server.routing import analysed
from tests.fake_embedder import FakeEmbedder

OF_AGENTS = {"agents", "concepts", "locrits", "messages", "blocks", "context", "tiers", "privacy", "conflicts"}
"""Tags of routes that need a key of the whole namespace, such as an agent's."""


@dataclass(frozen=True, eq=False, repr=False)
class Operation:
    method: str
    template: str
    description: dict[str, Any]
    body: Any

    @property
    def path(self) -> str:
        return self.template.format(**self._examples("path"))

    @property
    def query(self) -> dict[str, str]:
        """The required parameters."""
        return self._examples("query")

    @property
    def role(self) -> Role | None:
        """The least role that may call it; None if it is open."""
        declared = self.description["x-role"]
        return None if declared == "open" else Role(declared)

    def _examples(self, place: str) -> dict[str, str]:
        return {
            parameter["name"]: str(parameter["schema"]["examples"][0])
            for parameter in self.description.get("parameters", ())
            if parameter["in"] == place and parameter.get("required")
        }

    def __repr__(self) -> str:
        return f"{self.method} {self.template}"


def described() -> FastAPI:
    """An application that is only looked at."""
    return create_app(Settings(), FakeEmbedder())


def routes_of(app: FastAPI) -> list[APIRoute]:
    """All but those of MCP, which is no operation of the API; `tests.mcp` is about them."""
    routes = [context.original_route for context in iter_route_contexts(analysed(app.routes))]
    return [route for route in routes if not isinstance(getattr(route, "app", None), McpEndpoint)]  # type: ignore[misc]


def schema_named(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """The schema itself, or of several the first that is a reference."""
    for choice in (schema, *schema.get("anyOf", ())):
        if "$ref" in choice:
            found: dict[str, Any] = document["components"]["schemas"][choice["$ref"].rsplit("/", 1)[-1]]
            return found
    return schema


def operations(document: dict[str, Any]) -> Iterator[Operation]:
    for template, methods in document["paths"].items():
        for method, description in methods.items():
            content = description.get("requestBody", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema")
            body = schema_named(document, schema)["examples"][0] if schema else None
            yield Operation(method.upper(), template, description, body)


DOCUMENT: dict[str, Any] = json.loads(OPENAPI.read_text(encoding="utf-8"))
"""The committed one, which a test holds equal to that of the code: making it takes seconds in every worker."""

OPERATIONS = list(operations(DOCUMENT))
AGENT = "my_agent"
"""The agent that the examples name."""
