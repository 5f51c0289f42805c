"""The declaration of a route determines its admission, access control and OpenAPI entry."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from starlette.routing import Match

from souvenir.core.types import Role
from souvenir.mcp.tools import Arguments, Result, Tool
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import EVERYTHING, NOTHING, SAID, Reader
from souvenir.server.route import JsonRoute
from souvenir.server.routing import Routes, analysed
from tests.api.operations import OPERATIONS, Operation, described, routes_of
from tests.cases import for_all

ROUTES = routes_of(described())


@for_all("operation", OPERATIONS)
def test_the_path_of_an_operation_matches_its_own_route(operation: Operation):
    request = {"type": "http", "method": operation.method, "path": operation.path, "headers": []}
    first = next(route for route in ROUTES if route.matches(request)[0] is Match.FULL)
    assert first.path_format == operation.template


def test_a_declaration_is_emitted_with_its_operation():
    routes = Routes("test")

    @routes.get("/said/{path:path}", cost=CostClass.LIGHT, access=SAID, sdk="test.said")
    def said(path: str, scope: Reader) -> None: ...

    [route] = routes.routes
    assert route.analysed.openapi_extra == {
        "x-sdk-name": "test.said",
        "x-cost": "light",
        "x-role": "read-only",
        "x-access": ["logs"],
        "x-idempotency": "safe",
        "x-multi-segment": ["path"],
    }


def test_an_operation_without_an_sdk_name_cannot_be_made():
    routes = Routes("test")
    routes.get("/health", cost=CostClass.LIGHT)(lambda: None)
    with pytest.raises(ValueError, match="needs an SDK name"):
        analysed(routes.routes)


def test_every_route_of_the_application_is_declared():
    assert undeclared(described()) == []


def test_a_route_without_a_declaration_would_be_noticed():
    app = described()
    app.get("/throwaway")(lambda: None)
    assert undeclared(app) == ["/throwaway"]


def undeclared(app: FastAPI) -> list[str]:
    """Paths of routes without a declared role, cost, access level and scope."""
    return [route.path for route in routes_of(app) if not isinstance(route, JsonRoute)]


def test_a_route_without_a_role_cannot_be_made():
    routes = Routes("test")

    @routes.get("/said", cost=CostClass.LIGHT, sdk="test.said")
    def said() -> None: ...

    with pytest.raises(ValueError, match="said declares no role"):
        analysed(routes.routes)


def test_a_route_without_a_cost_cannot_be_made():
    with pytest.raises(TypeError, match="cost"):

        @Routes("test").get("/said", sdk="test.said")  # type: ignore[call-arg]
        def said(scope: Reader) -> None: ...


def test_a_route_that_reads_needs_every_level_unless_it_declares_others():
    routes = Routes("test")

    @routes.get("/said", cost=CostClass.LIGHT, sdk="test.said")
    def said(scope: Reader) -> None: ...

    [route] = routes.routes
    assert route.analysed.access == EVERYTHING


TOOL = {
    "name": "throwaway",
    "title": "T",
    "description": "D",
    "arguments": Arguments,
    "result": Result,
    "run": lambda call, arguments: Result(),
    "cost": CostClass.LIGHT,
    "role": Role.READ_WRITE,
    "of_agent": False,
    "needs": NOTHING,
}


@pytest.mark.parametrize("left_out", ["cost", "role", "of_agent", "needs"])
def test_a_tool_without_a_declaration_cannot_be_made(left_out: str):
    Tool(**TOOL)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=left_out):
        Tool(**{name: value for name, value in TOOL.items() if name != left_out})  # type: ignore[arg-type]


def test_a_tool_that_reads_has_to_declare_its_levels():
    with pytest.raises(ValueError, match="has to declare the access levels"):
        Tool(**{**TOOL, "role": Role.READ_ONLY})  # type: ignore[arg-type]
