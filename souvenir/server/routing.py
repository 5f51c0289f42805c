"""Routes: their declaration and their discovery.

A route declares its path, cost, access level, SDK name and idempotency next to its function. FastAPI analyses the
function when the route is first used.

A module of a resource exports `routes = Routes("tag")` and decorates its functions with `@routes.get(...)`; the
application finds it by that name, and the OpenAPI document carries what it declares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, Protocol, Required, TypedDict, TypeVar, Unpack

from fastapi import Response
from starlette.convertors import PathConvertor
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from souvenir.server.load_shedding import MAX_BODY_BYTES_OF, CostClass
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
    plain_errors: bool
    """True if the `detail` of invalid fields is one sentence, as the clients of another system expect."""
    vendor_api: bool
    """True if it is part of a vendor's API: its credentials may be the vendor's, and its errors have their form."""
    summary: str
    status_code: int
    errors: Sequence[int]
    """The statuses of its errors in addition to those that every guarded route has."""
    responses: Responses
    response_model: Any
    response_class: type[Response]
    openapi_extra: dict[str, Any]
    include_in_schema: bool


class DeclaredRoute(Route):
    """A route by its path and method. `JsonRoute` is made of it at its first request, or for the OpenAPI document.

    FastAPI takes some 5 ms to analyse a function, which for all of them would be a third of the start.

    :ivar max_body_bytes: Maximum size of a body below MAX_BODY_BYTES, if there is one.
    :ivar vendor_api: Whether errors have the form that a vendor's clients read.
    """

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        method: str,
        *,
        cost: CostClass,
        large_body: bool = False,
        **declared: Any,
    ) -> None:
        super().__init__(path, endpoint)
        self.methods = {method}
        self.cost = cost
        self.max_body_bytes = None if large_body else MAX_BODY_BYTES_OF.get(cost)
        self.vendor_api: bool = declared.get("vendor_api", False)
        self.app = self._answer_first
        self._declared = declared

    @cached_property
    def analysed(self) -> JsonRoute:
        """:raises ValueError: If the declaration is incomplete."""
        return JsonRoute(self.path, self.endpoint, methods=self.methods, cost=self.cost, **self._declared)

    async def _answer_first(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.app = self.analysed.app
        await self.app(scope, receive, send)


def analysed(routes: Iterable[BaseRoute]) -> list[BaseRoute]:
    """Return the routes as FastAPI documents them."""
    return [route.analysed if isinstance(route, DeclaredRoute) else route for route in routes]


class Routes:
    """The routes of one resource, in declaration order."""

    def __init__(self, tag: str) -> None:
        self.routes: list[DeclaredRoute] = []
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
            self.routes.append(DeclaredRoute(path, endpoint, method, tags=[tag], **declared))
            return endpoint

        return add


@cache
def discovered_routes(*packages: ModuleType) -> tuple[DeclaredRoute, ...]:
    """The routes of every module in the packages, in the order in which paths are matched.

    Segment by segment, literal text comes before a parameter: `/memory/conflicts` before `/memory/{memory_id}`.
    """
    found = (route for package in packages for route in _routes_in(package))
    return tuple(sorted(found, key=_matching_order))


def _routes_in(package: ModuleType) -> Iterator[DeclaredRoute]:
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        found = getattr(import_module(module.name), "routes", None)
        if isinstance(found, Routes):
            yield from found.routes


def _matching_order(route: DeclaredRoute) -> list[tuple[int, str]]:
    def key(segment: str) -> tuple[int, str]:
        name = segment.strip("{}").partition(":")[0]
        if not segment.startswith("{"):
            return 0, segment
        return (2 if isinstance(route.param_convertors[name], PathConvertor) else 1), ""

    return [key(segment) for segment in route.path.split("/")]
