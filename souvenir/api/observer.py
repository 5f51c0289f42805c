"""What happens around every request: it gets an id, is counted, logged in one line, and answered even if we fail.

The line holds no text, key, query string or address: method, route template, status, duration, id, namespace, error.
"""

from __future__ import annotations

import re
import time
import uuid
from typing import Any

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from souvenir.access.audit import Denial
from souvenir.access.door import Caller
from souvenir.api.counters import RequestCounters, RouteName
from souvenir.api.errors import error_response
from souvenir.api.service import Service
from souvenir.errors import TooManyAttempts

REQUEST_ID_HEADER = "X-Request-ID"
UNMATCHED = "unmatched"
CLIENT_LEFT = 499
"""Logged for a request that ended without an answer."""

_SANE_ID = re.compile(r"[A-Za-z0-9._:+/=-]{1,100}")
_DENIED = frozenset({401, 403})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

log = structlog.get_logger(__name__)


class RequestObserver:
    """ASGI middleware, outside of all others of ours."""

    def __init__(self, app: ASGIApp, counters: RequestCounters) -> None:
        self._app = app
        self._counters = counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id_of(scope)
        status = 0

        async def observed_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                # The SDK of MCP sends a name of it, which a log would show as such.
                status = int(message["status"])
                MutableHeaders(scope=message)[REQUEST_ID_HEADER] = state["request_id"]
            await send(message)

        started = time.perf_counter()
        self._counters.begin()
        with structlog.contextvars.bound_contextvars(request_id=state["request_id"]):
            try:
                await self._app(scope, receive, observed_send)
            except Exception as error:  # the boundary of a request, where what nobody expected is reported
                state["error_code"] = "internal"
                log.error("request_failed", exc_info=error)
                if status:
                    raise
                response = error_response(state, 500, "internal", "Internal server error")
                await response(scope, receive, observed_send)
            finally:
                self._finish(scope, status, 1000 * (time.perf_counter() - started))

    def _finish(self, scope: Scope, status: int, duration_ms: float) -> None:
        status = status or CLIENT_LEFT
        method, template = method_of(scope), template_of(scope)
        code = scope["state"].get("error_code")
        self._counters.finish(RouteName(method, template), status, duration_ms, code)
        if status in _DENIED or code == TooManyAttempts.code:
            _note_denial(scope, method, template, status, str(code))
        fields: dict[str, Any] = {"method": method, "route": template, "status": status}
        fields["duration_ms"] = round(duration_ms, 2)
        for name in ("namespace", "error_code"):
            if name in scope["state"]:
                fields[name] = scope["state"][name]
        log.log(40 if status >= 500 else 20, "request", **fields)


def method_of(scope: Scope) -> str:
    """One of a closed set."""
    return scope["method"] if scope["method"] in _METHODS else "OTHER"


def template_of(scope: Scope) -> str:
    """The template of the route that the request came to, once it is over."""
    template: str = getattr(scope.get("route"), "path", UNMATCHED)
    return template


def _note_denial(scope: Scope, method: str, template: str, status: int, code: str) -> None:
    """Tell the audit. Not who the request says that it is, unless it was let in as that."""
    state, client = scope["state"], scope.get("client")
    caller: Caller | None = state.get("caller")
    actor, address = caller.actor if caller else "unknown", client[0] if client else "unknown"
    service: Service = scope["app"].state.service
    service.audit.deny(Denial(actor, state.get("namespace"), method, template, status, address, code))


def request_id_of(scope: Scope) -> str:
    """The caller's own id if it is one that a header and a log line can hold, else a new one."""
    given = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
    return given if _SANE_ID.fullmatch(given) else uuid.uuid4().hex
