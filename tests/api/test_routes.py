"""What a route declares follows it to admission, to access control and into the OpenAPI document."""

from __future__ import annotations

import pytest
from starlette.routing import Match

from souvenir.server.access_policy import SAID
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import Reader
from souvenir.server.routing import Routes
from tests.api.operations import OPERATIONS, Operation, described, routes_of

ROUTES = routes_of(described())


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_the_path_of_an_operation_matches_its_own_route(operation: Operation):
    request = {"type": "http", "method": operation.method, "path": operation.path, "headers": []}
    first = next(route for route in ROUTES if route.matches(request)[0] is Match.FULL)
    assert first.path_format == operation.template


def test_a_declaration_is_emitted_with_its_operation():
    routes = Routes("test")

    @routes.get("/said/{path:path}", cost=CostClass.LIGHT, access=SAID, sdk="test.said")
    def said(path: str, scope: Reader) -> None: ...

    [route] = routes.routes
    assert route.openapi_extra == {
        "x-sdk-name": "test.said",
        "x-cost": "light",
        "x-role": "read-only",
        "x-access": ["logs"],
        "x-idempotency": "safe",
        "x-multi-segment": ["path"],
    }


def test_an_operation_without_an_sdk_name_cannot_be_made():
    with pytest.raises(ValueError, match="needs an SDK name"):
        Routes("test").get("/x", cost=CostClass.LIGHT)(lambda: None)
