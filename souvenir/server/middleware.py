"""Around every request: the outermost middleware, the dispatch to routes, and refusals before a request begins.

The middleware gives a request its id, traces, counts and logs it in one line, and answers it after internal errors. It
refuses requests that must not reach a route: connections beyond the limit, unknown host names, and unsafe requests from
foreign pages (`souvenir.server.origins`). Host names are not checked by starlette's TrustedHostMiddleware, whose
refusal is plain text with status 400 and cannot be replaced, and which reads the first of several Host headers.

The log line holds no text, key, query string or address: method, route template, status, duration, id, namespace and
error. A span holds method, route template and status.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from secrets import token_hex
from typing import Any

import structlog
from fastapi import APIRouter
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from souvenir.access.audit import Denial
from souvenir.access.authenticator import Caller
from souvenir.core.errors import (
    Overloaded,
    PayloadTooLarge,
    ServiceClosing,
    SouvenirError,
    TooManyAttempts,
    TooManyConnections,
    Unauthorized,
)
from souvenir.core.settings import Settings
from souvenir.core.telemetry import Tracing, bill, fail, server_timing, trace_id_of
from souvenir.server.admission import Places
from souvenir.server.errors import HANDLED, REQUEST_ID_HEADER, error_response, handled
from souvenir.server.load_shedding import CLIENT_LEFT
from souvenir.server.origins import SAFE_METHODS, HostCheck, OriginCheck
from souvenir.server.request_guards import presumed_caller
from souvenir.server.service import Service
from souvenir.server.usage import AnsweredCall

UNMATCHED = "unmatched"
HEALTH_PATHS = frozenset({"/health", "/health/ready"})

OVER_LIMIT = "over_connection_limit"
"""Set in the state of a request whose connection exceeds the limit; only health is answered then."""

ANSWERED_AT = "answered_at"
"""Set in the state of a request when an answer without an end begins: the request is measured until then."""

SECURITY_HEADERS: Sequence[tuple[bytes, bytes]] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
)
"""Headers of every response, unless the route sets its own: no page rendering, no framing, and no referrer."""

TIMING_HEADER = b"server-timing"

_NO_SPAN = nullcontext()
_ID_HEADER = REQUEST_ID_HEADER.lower().encode()
_SANE_ID = re.compile(rb"[A-Za-z0-9._:+/=-]{1,100}")
REFUSALS_LOGGED_PER_S = 10
"""Maximum number of individually logged refusals per second, so that a flood writes few lines."""

_REFUSALS = frozenset({Unauthorized.code, TooManyConnections.code, ServiceClosing.code})
_DENIED = frozenset({401, 403})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

log = structlog.get_logger(__name__)

RawHeaders = Sequence[tuple[bytes, bytes]]
"""Header names in lower case, and values as sent."""


class RequestMiddleware:
    """ASGI middleware.

    The state of a request contains its id, its raw headers by name, the service, and its status once it has one.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._max_connections = settings.max_connections
        self._hosts = HostCheck(settings)
        self._origins = OriginCheck(settings)
        self._refusals_since = 0.0
        self._refusals = self._unlogged = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        service: Service = scope["app"].state.service
        # The first of equal headers wins, as in starlette.
        headers = dict(reversed(scope["headers"]))
        given_id = headers.get(b"x-request-id")
        request_id = token_hex(16) if given_id is None else request_id_of(given_id)
        state = scope.setdefault("state", {})
        state["headers"], state["request_id"], state["service"] = headers, request_id, service

        async def observed_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                # The MCP SDK sends an HTTPStatus member, whose name a log would show.
                state["status"] = int(message["status"])
                own = list(message.get("headers", ()))
                added = [(name, value) for name, value in SECURITY_HEADERS if all(name != one for one, _ in own)]
                timing = server_timing(time.perf_counter() - started)
                if all(name != _ID_HEADER for name, _ in own):
                    added.append((_ID_HEADER, request_id.encode()))
                message = {**message, "headers": [*own, *added, (TIMING_HEADER, timing)]}
            await send(message)

        started = time.perf_counter()
        bill.set({})
        service.metrics.active += 1
        # Each request runs in a separate context, so this ends with it.
        structlog.contextvars.bind_contextvars(request_id=request_id)
        is_known = (
            headers.get(b"host") in self._hosts.allowed
            and len(headers) == len(scope["headers"])
            and OVER_LIMIT not in state
            and (scope["method"] in SAFE_METHODS or not (b"origin" in headers or b"sec-fetch-site" in headers))
        )
        tracing = service.instruments.tracing
        with _span(tracing, scope) if tracing.on else _NO_SPAN:
            try:
                if is_known or (refusal := self._refusal(service, scope, headers)) is None:
                    await self._app(scope, receive, observed_send)
                else:
                    await handled(state, refusal)(scope, receive, observed_send)
            except Exception as error:  # the boundary of a request, where unexpected errors are reported
                state["error_code"] = "internal"
                log.error("request_failed", exc_info=error)
                if "status" in state:
                    raise
                await error_response(state, 500, "internal", "Internal server error")(scope, receive, observed_send)
            finally:
                self._finish(service, scope, state.get(ANSWERED_AT, time.perf_counter()) - started)

    def _refusal(self, service: Service, scope: Scope, headers: Mapping[bytes, bytes]) -> SouvenirError | None:
        """Return the error for a request that must not reach a route."""
        if OVER_LIMIT in scope["state"] and scope["path"] not in HEALTH_PATHS:
            return TooManyConnections(self._max_connections)
        try:
            self._hosts.require_allowed(scope, headers, needs_key=not service.authenticator.is_open)
            self._origins.require_allowed(scope, headers)
        except SouvenirError as error:
            return error
        return None

    def _finish(self, service: Service, scope: Scope, duration_s: float) -> None:
        state = scope["state"]
        method, template = method_of(scope), template_of(scope)
        status, code = state.get("status", CLIENT_LEFT), state.get("error_code")
        service.metrics.finish(method, template, status, duration_s, code)
        if status < 400 and code is None and "caller" in state and "namespace" in state:
            _note_call(service, state, state.get("operation") or scope["route"].name)
        if status in _DENIED or code == TooManyAttempts.code:
            _note_denial(service, scope, method, template, status, str(code))
        fields: dict[str, Any] = {"method": method, "route": template, "status": status}
        if (status == Overloaded.status or code in _REFUSALS) and not self._logs_refusal(fields):
            return
        fields["duration_ms"] = round(1000 * duration_s, 2)
        for name in ("namespace", "error_code"):
            if name in state:
                fields[name] = state[name]
        log.log(40 if status >= 500 else 20, "request", **fields)

    def _logs_refusal(self, fields: dict[str, Any]) -> bool:
        """Return whether to log a refusal individually; the next logged one states how many were skipped."""
        now = time.monotonic()
        if now - self._refusals_since >= 1.0:
            self._refusals_since, self._refusals = now, 0
        self._refusals += 1
        if self._refusals > REFUSALS_LOGGED_PER_S:
            self._unlogged += 1
            return False
        if self._unlogged:
            fields["unlogged_refusals"], self._unlogged = self._unlogged, 0
        return True


class Dispatcher:
    """ASGI application: bounds the body, finds the route of a request, and answers handled errors.

    Routes are found by the first segment of their path; FastAPI's router tries all of them. It is the fallback for
    unknown paths (404) and plain FastAPI routes.
    """

    def __init__(self, router: APIRouter, *, max_body_bytes: int, max_bytes_of: Mapping[str, int]) -> None:
        """:param max_body_bytes: The limit of a body; routes may have a lower one of their own (`max_body_bytes`).

        :param max_bytes_of: The limit by path, where it is higher.
        """
        self._router: ASGIApp = AsyncExitStackMiddleware(router)
        self._max_body_bytes = max_body_bytes
        self._routes: dict[str, list[tuple[Route, int]]] = {}
        for route in router.routes:
            if isinstance(route, Route) and not isinstance(route, APIRoute):
                own: int | None = getattr(route, "max_body_bytes", None)
                self._routes.setdefault(route.path.split("/", 2)[1], []).append(
                    (route, max_bytes_of.get(route.path, min(own or max_body_bytes, max_body_bytes)))
                )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._router(scope, receive, send)
        state, path = scope["state"], scope["path"]
        try:
            app, allowed, max_bytes = self._router, set[str](), self._max_body_bytes
            for route, its_max_bytes in self._routes.get(path[1:].partition("/")[0], ()):
                match, found = route.matches(scope)
                if match is Match.FULL:
                    scope.update(found, route=route)
                    state["vendor_api"] = getattr(route, "vendor_api", False)
                    app, allowed, max_bytes = route.app, set(), its_max_bytes
                    break
                if match is Match.PARTIAL:
                    allowed |= route.methods or set()
                    scope["route"] = route
            state["max_body_bytes"] = max_bytes
            declared = state["headers"].get(b"content-length", b"")
            if declared.isdigit() and (len(declared) > 18 or int(declared) > max_bytes):
                raise PayloadTooLarge(max_bytes)
            if allowed:
                raise HTTPException(405, headers={"Allow": ", ".join(sorted(allowed))})
            await app(scope, receive, send)
        except HANDLED as error:
            if "status" in state:
                raise
            await handled(state, error)(scope, receive, send)


class EarlyRefusal:
    """Refuses requests that would wait too long, before their body, their route lookup and logging.

    An application spends about a millisecond on a request that it refuses in the end, all of it on the event loop; five
    times as many requests as can be served would leave no time to serve any. This takes a tenth of that. It knows
    routes without path parameters; `JsonRoute` refuses the others.
    """

    def __init__(self, routes: Iterable[BaseRoute], service: Service) -> None:
        self._service = service
        self._places: Mapping[tuple[bytes, bytes], tuple[str, str, Places]] = {
            (method.encode(), route.path.encode()): (method, route.path, places)
            for route in routes
            if isinstance(route, Route) and not route.param_convertors and (cost := getattr(route, "cost", None))
            for method in route.methods or ()
            if (places := service.admission.places.get(cost)) is not None
        }

    def __call__(self, method: bytes, target: bytes, headers: RawHeaders, address: str) -> ASGIApp | None:
        """Return an application that sends the refusal of the request, or None.

        :param address: Of the connection. Behind a trusted proxy it identifies no caller, and the route refuses.
        """
        found = self._places.get((method, target.partition(b"?")[0]))
        if found is None or found[2].free > 0:
            return None
        caller = presumed_caller(self._service.authenticator, dict(reversed(headers)), address)
        if (overloaded := found[2].refusal(caller)) is None:
            return None
        self._service.metrics.refuse(found[0], found[1], overloaded.status, overloaded.code)
        return _Refused(overloaded, found[2].pause)


class _Refused:
    """An application that sends the error response of one request."""

    def __init__(self, error: Overloaded, pause: Callable[[], Awaitable[None]]) -> None:
        self._error = error
        self._pause = pause

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        await self._pause()
        request_id = request_id_of(dict(scope["headers"]).get(b"x-request-id", b""))
        body = {"detail": self._error.message, "code": self._error.code, "request_id": request_id}
        content = json.dumps(body).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(content)),
            (b"retry-after", b"%d" % self._error.retry_after_s),
            (_ID_HEADER, request_id.encode()),
            (TIMING_HEADER, server_timing(time.perf_counter() - started)),
            *SECURITY_HEADERS,
        ]
        await send({"type": "http.response.start", "status": self._error.status, "headers": headers})
        await send({"type": "http.response.body", "body": content})


@contextmanager
def _span(tracing: Tracing, scope: Scope) -> Iterator[None]:
    """A span of a request; log lines inside carry its `trace_id`."""
    method, state = method_of(scope), scope["state"]
    with (
        tracing.request(method, Headers(scope=scope)) as span,
        structlog.contextvars.bound_contextvars(trace_id=trace_id_of(span)),
    ):
        yield
        template, status = template_of(scope), state.get("status", CLIENT_LEFT)
        span.update_name(f"{method} {template}")
        span.set_attributes({"http.route": template, "http.response.status_code": status})
        if status >= 500:
            fail(span, state.get("error_code", str(status)))


def request_id_of(given: bytes) -> str:
    """Return the caller's id if it is safe in headers and log lines, otherwise a new one."""
    return given.decode("ascii") if _SANE_ID.fullmatch(given) else token_hex(16)


def method_of(scope: Scope) -> str:
    """The method from a closed set."""
    return scope["method"] if scope["method"] in _METHODS else "OTHER"


def template_of(scope: Scope) -> str:
    """The path template of the route of a finished request."""
    template: str = getattr(scope.get("route"), "path", UNMATCHED)
    return template


def _note_denial(service: Service, scope: Scope, method: str, template: str, status: int, code: str) -> None:
    """Record a denial in the audit log, with the claimed identity only if it was authenticated."""
    state, client = scope["state"], scope.get("client")
    caller: Caller | None = state.get("caller")
    actor, address = caller.actor if caller else "unknown", client[0] if client else "unknown"
    service.audit.deny(Denial(actor, state.get("namespace"), method, template, status, address, code))


def _note_call(service: Service, state: Mapping[str, Any], operation: str) -> None:
    """Count a call in the usage, by the source that its body or its parameters name."""
    arguments, header = state.get("arguments", {}), state["headers"].get
    body, get = arguments.get("body"), arguments.get
    source = getattr(body, "source_prefix", None) or getattr(body, "source", None)
    service.usage.answered.append(
        AnsweredCall(
            state["namespace"],
            operation,
            state["caller"].actor,
            source or get("source_prefix") or get("source"),
            header(b"x-memories-client"),
            header(b"x-memories-session-id"),
            header(b"x-memories-invocation"),
        )
    )
