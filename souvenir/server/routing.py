"""Routes: their declaration and their discovery.

A route declares its path, cost, access level, SDK name and idempotency next to its function.

A module of a resource exports `routes = Routes("tag")` and decorates its functions with `@routes.get(...)`; the
application finds it by that name, and the OpenAPI document carries what it declares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, Protocol, Required, TypedDict, TypeVar, Unpack

from fastapi import Response
from starlette.convertors import PathConvertor

from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import Needs
from souvenir.server.route import JsonRoute, Responses

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Decorator(Protocol):
    def __call__(self, endpoint: Endpoint) -> Endpoint: ...


class Declaration(TypedDict, total=False):
    """The declaration of a route; the last seven keys are FastAPI's own."""

    cost: Required[CostClass]
    tag: str
    """Its section in the documentation and module of the client; by default the resource's."""
    access: Needs
    """The levels that an agent must grant to the caller's key; by default every level to read, none to write."""
    sdk: str
    """The client's method, `group.verb`; required if the route is in the OpenAPI document."""
    idempotent: bool
    """True if a request can be repeated safely; the default for GET and PUT."""
    large_body: bool
    """True if its body may have MAX_BODY_BYTES, as in the class LONG."""
    summary: str
    status_code: int
    errors: Sequence[int]
    """The statuses of its errors in addition to those that every guarded route has."""
    responses: Responses
    response_model: Any
    response_class: type[Response]
    openapi_extra: dict[str, Any]
    include_in_schema: bool


class Routes:
    """The routes of one resource, in declaration order."""

    def __init__(self, tag: str) -> None:
        self.routes: list[JsonRoute] = []
        self._tag = tag

    def get(self, path: str, **declared: Unpack[Declaration]) -> Decorator:
        return self._add("GET", path, declared)

    def post(self, path: str, **declared: Unpack[Declaration]) -> Decorator:
        return self._add("POST", path, declared)

    def put(self, path: str, **declared: Unpack[Declaration]) -> Decorator:
        return self._add("PUT", path, declared)

    def patch(self, path: str, **declared: Unpack[Declaration]) -> Decorator:
        return self._add("PATCH", path, declared)

    def delete(self, path: str, **declared: Unpack[Declaration]) -> Decorator:
        return self._add("DELETE", path, declared)

    def _add(self, method: str, path: str, declared: Declaration) -> Decorator:
        tag = declared.pop("tag", self._tag)

        def add(endpoint: Endpoint) -> Endpoint:
            self.routes.append(JsonRoute(path, endpoint, methods=[method], tags=[tag], **declared))
            return endpoint

        return add


def discovered_routes(*packages: ModuleType) -> list[JsonRoute]:
    """The routes of every module in the packages, in the order in which paths are matched.

    Segment by segment, literal text comes before a parameter: `/memory/conflicts` before `/memory/{memory_id}`.
    """
    return sorted((route for package in packages for route in _routes_in(package)), key=_matching_order)


def _routes_in(package: ModuleType) -> Iterator[JsonRoute]:
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        found = getattr(import_module(module.name), "routes", None)
        if isinstance(found, Routes):
            yield from found.routes


def _matching_order(route: JsonRoute) -> list[tuple[int, str]]:
    def key(segment: str) -> tuple[int, str]:
        name = segment.strip("{}").partition(":")[0]
        if not segment.startswith("{"):
            return 0, segment
        return (2 if isinstance(route.param_convertors[name], PathConvertor) else 1), ""

    return [key(segment) for segment in route.path.split("/")]
