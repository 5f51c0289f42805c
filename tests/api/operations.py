"""Every operation that the API describes, with a request made of its own examples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts

from app import create_app
from souvenir.mcp.endpoint import McpEndpoint
from souvenir.settings import Settings
from tests.fake_embedder import FakeEmbedder

PATH_VALUES = {
    "agent_name": "my_agent",
    "memory_id": "1",
    "target_id": "2",
    "concept_id": "1",
    "concept_name": "alice",
    "user": "ann",
    "session_id": "0c8f0a52-1f0b-4f6e-9d27-5b8d5b4f8e11",
    "message_id": "2f6c9e0a-7a55-4f0a-8f0e-6f1d2c3b4a59",
    "topic_id": "1",
    "label": "human",
    "key": "tone",
    "job_id": "0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d",
    "prefix": "wip/",
    "tag": "proj/billing",
    "key_id": "0b6f3c52-5d0c-4c55-9a0e-3f6a3f0f6a51",
    "name": "manual_20250402_093000",
}
OF_AGENTS = {"agents", "concepts", "locrits", "messages", "blocks", "context", "tiers", "privacy", "conflicts"}
"""Tags of routes that need a key of the whole namespace, such as an agent's."""

QUERIES = {
    ("DELETE", "/agents/{agent_name}/concepts/{concept_id}/relations"): {"to": "2", "type": "works_for"},
    ("GET", "/api/locrits/{agent_name}/memory/search"): {"q": "boat"},
    ("GET", "/api/locrits/{agent_name}/memory/concepts/details"): {"name": "alice"},
    ("GET", "/api/v1/locrits/{agent_name}/memory/ai-search"): {"q": "boat"},
    ("GET", "/agents/{agent_name}/concept"): {"name": "alice"},
    ("GET", "/agents/{agent_name}/concept/related"): {"name": "alice"},
    ("DELETE", "/memories"): {"source": "nobody/writes/here"},
    ("GET", "/memory/extract/{job_id}/diff"): {"other": "7b1e0c9d4f2a4e3b8c6d5a7f9e8b1c20"},
}


@dataclass(frozen=True, eq=False)
class Operation:
    method: str
    template: str
    description: dict[str, Any]
    body: Any
    query: dict[str, str]

    @property
    def path(self) -> str:
        return self.template.format(**PATH_VALUES)

    def __str__(self) -> str:
        return f"{self.method} {self.template}"


def described() -> FastAPI:
    """An application that is only looked at."""
    return create_app(Settings(), FakeEmbedder())


def routes_of(app: FastAPI) -> list[APIRoute]:
    """All but those of MCP, which is no operation of the API; `tests.mcp` is about them."""
    routes = [context.original_route for context in iter_route_contexts(app.routes)]
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
            yield Operation(method.upper(), template, description, body, QUERIES.get((method.upper(), template), {}))


DOCUMENT = described().openapi()
OPERATIONS = list(operations(DOCUMENT))
