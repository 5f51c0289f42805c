"""A span around every request, if traces are on. It holds method, route template and status, and no path or address."""

from __future__ import annotations

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from souvenir.api.observer import CLIENT_LEFT, method_of, template_of
from souvenir.observation.tracing import Tracing, fail, trace_id_of


class RequestTraces:
    """ASGI middleware, outermost. Log lines of a traced request carry its `trace_id`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        tracing: Tracing = scope["app"].state.service.instruments.tracing
        if not tracing.on:
            return await self._app(scope, receive, send)
        status = CLIENT_LEFT

        async def observed_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        method = method_of(scope)
        with (
            tracing.request(method, Headers(scope=scope)) as span,
            structlog.contextvars.bound_contextvars(trace_id=trace_id_of(span)),
        ):
            await self._app(scope, receive, observed_send)
            template = template_of(scope)
            span.update_name(f"{method} {template}")
            span.set_attributes({"http.route": template, "http.response.status_code": status})
            if status >= 500:
                fail(span, scope["state"].get("error_code", str(status)))
