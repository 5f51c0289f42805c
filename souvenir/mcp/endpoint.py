"""`/mcp` and `/mcp/{agent}`: MCP over streamable HTTP, stateless, with the keys, scopes and limits of every route.

A request passes these steps: method, key or access token, namespace, body, admission in the cost class of the called
tool, and the SDK. The answer is JSON, or an event stream if the client accepts one and requests progress, or accepts
nothing else. A refusal before the SDK is a JSON-RPC error with the same HTTP status as on other routes; the middleware
checks Host and Origin first, as for every route.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from souvenir.access.authenticator import Caller
from souvenir.core.concurrency import deadline
from souvenir.core.errors import Forbidden, InvalidRequest, SouvenirError, Unauthorized
from souvenir.core.settings import Settings
from souvenir.core.types import Role
from souvenir.server.admission import Places
from souvenir.server.errors import CODES, headers_of
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import (
    address_of,
    admit,
    admit_again,
    admit_as,
    charged_caller,
    establish_scope,
    namespace_name,
    sent_key,
    service_of,
    settle_access,
)
from souvenir.server.route import JsonRequest
from souvenir.server.service import Service

if TYPE_CHECKING:
    from souvenir.access.access_tokens import AccessTokens
    from souvenir.mcp.server import McpServer

PATH = "/mcp"
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603
"""JSON-RPC error codes."""

SEND_KEY = "send one as X-API-Key or as Authorization: Bearer KEY (`souvenir mcp` takes it from SOUVENIR_API_KEY)"

MAX_MESSAGE_BYTES = 2 * 1024 * 1024
"""Maximum size of a message; the largest memory with its facts takes less than half of it."""

EVENTS, JSON = "text/event-stream", "application/json"


class McpEndpoint:
    """ASGI application. The SDK is loaded at the first request: it takes most of a second and 25 MB of memory."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loading = asyncio.Lock()
        self._closing = asyncio.Event()
        self._server: McpServer | None = None
        self._tokens: AccessTokens | None = None
        self._running: asyncio.Task[None] | None = None

    def routes(self) -> Sequence[BaseRoute]:
        """The paths of MCP, and those of their metadata if access tokens are accepted."""
        paths = (PATH, f"{PATH}/{{agent}}")
        served: list[BaseRoute] = [_KnownRoute(path, self, include_in_schema=False) for path in paths]
        if self._settings.oauth_issuer is not None:
            served += [
                _KnownRoute(f"{RESOURCE_METADATA}{path}", self._describe, include_in_schema=False)
                for path in ("", *paths)
            ]
        return served

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """A context manager; requests can be answered while it is open."""
        try:
            yield
        finally:
            self._closing.set()
            if self._running is not None:
                await self._running

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = JsonRequest(scope, receive)
        try:
            response = await self._answer(request)
        except Unauthorized as error:
            headers = headers_of(error) | self._challenge(request)
            response = _refusal(request, error.status, error.code, f"{error.message}; {SEND_KEY}", headers)
        except SouvenirError as error:
            response = _refusal(request, error.status, error.code, error.message, headers_of(error))
        except HTTPException as error:
            code = CODES.get(error.status_code, "http_error")
            rpc_code = PARSE_ERROR if isinstance(error, _NotJson) else INVALID_REQUEST
            response = _refusal(request, error.status_code, code, error.detail, error.headers, rpc_code)
        await response(scope, receive, send)

    async def _answer(self, request: JsonRequest) -> Response:
        """:raises HTTPException: If the request cannot be answered."""
        if request.method != "POST":
            raise HTTPException(
                405, "Send messages with POST; no stream of the server's own is kept", {"Allow": "POST"}
            )
        service = service_of(request)
        await self._admit(request, service)
        request.caller = charged_caller(request)
        self._settle_scope(request)
        accepted = _accepted(request)
        bodies, light = service.bodies, _places(service, CostClass.LIGHT)
        if not await request.hold_body(service, light):
            return light.left()
        try:
            server, message = await self._loaded(service), await _message(request)
            if not server.is_message(message):
                raise HTTPException(400, "The body has to be a request or a notification of JSON-RPC 2.0")
            request.state.message_id = message.get("id")
            streams = EVENTS in accepted and (JSON not in accepted or server.wants_progress(message))
            places = _places(service, server.cost_of(message))
        except BaseException:
            bodies.release(request.caller, request.held_bytes or 0)
            raise

        async def begin() -> asyncio.Future[Response]:
            if service.authenticator.keys.generation != request.state.keys:
                self._admit_again(request, service)
                self._settle_scope(request)
            await settle_access(request)
            return asyncio.ensure_future(self._handled(server, request, service, streams=streams))

        return await request.answer_in(places, begin, service)

    def _accepted_tokens(self, service: Service) -> AccessTokens | None:
        if self._settings.oauth_issuer is not None and self._tokens is None:
            module = import_module("souvenir.access.access_tokens")
            self._tokens = module.AccessTokens(self._settings, service.keys, RESOURCE_METADATA)
        return self._tokens

    async def _admit(self, request: Request, service: Service) -> None:
        """Establish the caller by the key or the access token that the request carries.

        :raises Unauthorized: If it is wrong or missing. :raises Forbidden: If no key belongs to the token.
        """
        tokens, sent = self._accepted_tokens(service), sent_key(request.scope["state"]["headers"])
        if tokens is None or sent is None or service.authenticator.is_key(sent) or not tokens.is_token(sent):
            admit(request)
            return
        generation = service.keys.generation
        try:
            request.state.subject = await tokens.subject(sent, request.scope["path"])
        except Unauthorized:
            service.authenticator.count_failure(address_of(request))
            raise
        key = tokens.key_of(request.state.subject)
        admit_as(request, Caller(key.actor, key.role, key), generation)
        service.keys.use(key)
        service.keys.admit(key)

    def _admit_again(self, request: Request, service: Service) -> None:
        """Establish the caller of a request whose key may have changed since.

        :raises Unauthorized: If the key was revoked or replaced. :raises Forbidden: If it was that of a token.
        """
        tokens, subject = self._accepted_tokens(service), getattr(request.state, "subject", None)
        if tokens is None or subject is None:
            admit_again(request)
        else:
            generation, key = service.keys.generation, tokens.key_of(subject)
            admit_as(request, Caller(key.actor, key.role, key), generation)

    def _challenge(self, request: Request) -> dict[str, str]:
        """The header that tells a client without a token where to get one."""
        if self._tokens is None:
            return {}
        return {"WWW-Authenticate": self._tokens.challenge(request.scope["path"])}

    async def _describe(self, request: Request) -> Response:
        """Answer with the metadata of the resource that the path names; without one, of MCP."""
        tokens = self._accepted_tokens(service_of(request))
        if tokens is None:
            raise LookupError("These routes are declared only where tokens are accepted")
        return JSONResponse(tokens.metadata(request.scope["path"].removeprefix(RESOURCE_METADATA) or PATH))

    def _settle_scope(self, request: Request) -> None:
        """:raises Forbidden: If the caller may not see the namespace. :raises InvalidRequest: If it is invalid."""
        caller, agent = request.state.caller, request.path_params.get("agent")
        if agent is not None:
            try:
                named = namespace_name(agent)
            except ValueError as error:
                raise InvalidRequest(f"The agent that the path names cannot be one: {error}") from error
            own = caller.scope(Role.READ_ONLY, None).namespace
            try:
                request.state.namespace = caller.scope(Role.READ_ONLY, named).namespace
            except Forbidden as error:
                raise Forbidden(f"This key is for the namespace {own!r}; use {PATH}/{quote(own, safe='')}") from error
        elif "x-namespace" in request.headers:
            establish_scope(request, caller, Role.READ_ONLY)
        elif caller.key is None or caller.role is Role.ADMIN:
            request.state.namespace = self._settings.mcp_namespace
        else:
            request.state.namespace = caller.scope(Role.READ_ONLY, None).namespace
        request.state.role = caller.role

    async def _handled(self, server: McpServer, request: JsonRequest, service: Service, *, streams: bool) -> Response:
        """Pass the request to the SDK and return its answer: complete, or a stream that the SDK writes."""
        body = await request.body()
        scope = {**request.scope, "headers": _headers_for_sdk(request)}

        async def run(_: Scope, receive: Receive, send: Send) -> None:
            settings = self._settings
            with deadline(
                settings.request_timeout_s, caller=request.caller, max_tokens=settings.max_request_tokens
            ) as until:
                await server.handle(scope, _replayed(body, receive, until.end), send, streams=streams)

        if streams:
            return _Stream(run)
        whole = _Whole()
        await server.handle(scope, _replayed(body, request.receive, lambda: None), whole, streams=False)
        return whole.response()

    async def _loaded(self, service: Service) -> McpServer:
        async with self._loading:
            if self._server is None:
                module = await asyncio.to_thread(import_module, "souvenir.mcp.server")
                server: McpServer = module.McpServer(service)
                ready = asyncio.Event()
                # In a separate context, since it outlives the request.
                self._running = asyncio.create_task(self._run(server, ready), context=Context())
                self._running.add_done_callback(lambda _: ready.set())
                await ready.wait()
                if self._running.done():
                    self._running.result()
                self._server = server
            return self._server

    async def _run(self, server: McpServer, ready: asyncio.Event) -> None:
        async with server.running():
            ready.set()
            await self._closing.wait()


class _KnownRoute(Route):
    """A route that its request refers to, so that it is counted and logged under its template, as FastAPI's are."""

    max_body_bytes = MAX_MESSAGE_BYTES

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, found = super().matches(scope)
        return match, {**found, "route": self}


class _NotJson(HTTPException):
    """Raised if a body is not valid JSON."""


class _Whole:
    """Buffers an answer, so that the request's turn ends before the client has read it."""

    def __init__(self) -> None:
        self._status = 500
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], list(message["headers"])
        else:
            self._body += message.get("body", b"")

    def response(self) -> Response:
        response = Response(bytes(self._body), status_code=self._status)
        response.raw_headers = self._headers
        return response


class _Stream(StreamingResponse):
    """A streaming answer that an application writes."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, send)


def _places(service: Service, cost: CostClass) -> Places:
    places = service.admission.places.get(cost)
    if places is None:
        raise LookupError(f"Nothing of MCP costs {cost}")
    return places


def _accepted(request: Request) -> frozenset[str]:
    """Return the content types of answers that the client accepts.

    :raises HTTPException: If its body is not JSON, or it accepts no supported type.
    """
    kinds = [kind.partition(";")[0].strip().lower() for kind in request.headers.get("accept", "*/*").split(",")]
    accepted = {JSON for kind in kinds if kind in (JSON, "application/*", "*/*")}
    accepted |= {EVENTS for kind in kinds if kind in (EVENTS, "text/*", "*/*")}
    if not accepted:
        raise HTTPException(406, f"Accept {JSON} and {EVENTS}")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise HTTPException(415, f"Send the message as {JSON}")
    return frozenset(accepted)


async def _message(request: JsonRequest) -> dict[str, Any]:
    """:raises HTTPException: If it is not a single JSON object."""
    try:
        message = await request.json()
    except json.JSONDecodeError as error:
        raise _NotJson(400, f"The body is not JSON ({error.msg.removeprefix('Invalid JSON: ')})") from error
    if not isinstance(message, dict):
        raise HTTPException(400, "The body has to be one JSON-RPC message, and no batch of them")
    return message


def _headers_for_sdk(request: Request) -> list[tuple[bytes, bytes]]:
    """The headers of the request, with the chosen content type as the only accepted one.

    The SDK compares `Mcp-Name` with the name in the body; blanks around it are not part of the value (RFC 9110, 5.5).
    """
    others = [
        (name, value.strip(b" \t") if name == b"mcp-name" else value)
        for name, value in request.scope["headers"]
        if name != b"accept"
    ]
    return [*others, (b"accept", f"{JSON}, {EVENTS}".encode())]


def _replayed(body: bytes, receive: Receive, on_disconnect: Callable[[], None]) -> Receive:
    """Replay a body that was read, and then the messages of the connection."""
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def replay() -> Message:
        message = next(messages, None) or await receive()
        if message["type"] == "http.disconnect":
            on_disconnect()
        return message

    return replay


def _refusal(
    request: Request,
    status: int,
    code: str,
    sentence: str,
    headers: Mapping[str, str] | None,
    rpc_code: int | None = None,
) -> JSONResponse:
    """A JSON-RPC error, which clients show to their users, with the id of the request if it was read."""
    request.state.error_code = code
    rpc_code = rpc_code or (INTERNAL_ERROR if status >= 500 else INVALID_REQUEST)
    data = {"code": code, "request_id": request.state.request_id}
    error = {"code": rpc_code, "message": sentence, "data": data}
    answer = {"jsonrpc": "2.0", "id": getattr(request.state, "message_id", None), "error": error}
    return JSONResponse(answer, status_code=status, headers=headers)
