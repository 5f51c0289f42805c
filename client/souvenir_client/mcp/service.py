"""The HTTP side of the bridge: sends the requests of the SDK's streamable HTTP client to the service.

Invariants: every request is answered, by the service or with a JSON-RPC error that says what to do; a request is
repeated only if the service did not process it or if it changes nothing; no answer belongs to another request.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Protocol

import httpx
import httpx2
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter
from mcp_types.jsonrpc import ErrorData, RequestId

from souvenir_client.calls import Address, Call, Repeat, failure_of, pause_before_repeat, raise_for
from souvenir_client.errors import AnswerLost, ApiError, SouvenirError, UnreadableAnswer

MAX_RETRIES = 2

NOT_DONE = -32010
"""A code of the range for implementations: the service was not reached, or refused the request before MCP began."""

TRANSIENT = frozenset({429, 502, 503, 504})
"""Status codes after which a request may succeed a moment later."""

JSON, EVENT_STREAM = "application/json", "text/event-stream"


class Target(Protocol):
    """The address of the service, and its availability."""

    @property
    def address(self) -> Address: ...

    async def ready(self) -> None:
        """Return when the service accepts requests.

        :raises SouvenirError: If there is no service.
        """
        ...

    def lost(self) -> None:
        """The connection was refused: look for the service before the next request."""
        ...


@dataclass(frozen=True, slots=True)
class Named:
    """A service whose address is configured; it is not started here."""

    address: Address

    async def ready(self) -> None:
        """Nothing to wait for."""

    def lost(self) -> None:
        """The next request tries again."""


class ServiceTransport(httpx2.AsyncBaseTransport):
    """Never raises an error of the network: the SDK's client would stop, and the other requests with it.

    :param http: Closed by its owner.
    """

    def __init__(self, http: httpx.AsyncClient, target: Target) -> None:
        self._http, self._target = http, target

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        message = jsonrpc_message_adapter.validate_json(await request.aread(), by_name=False)
        try:
            return await self._answer(request, message)
        except SouvenirError as error:
            if isinstance(message, JSONRPCRequest):
                return _json(error_message(message.id, error))
            log(f"{getattr(message, 'method', 'a response')} did not reach the service: {error}")
            return httpx2.Response(202)

    async def _answer(self, request: httpx2.Request, message: JSONRPCMessage) -> httpx2.Response:
        """:raises SouvenirError: If the service does not answer, or refuses the request before MCP begins."""
        changes_nothing = not (isinstance(message, JSONRPCRequest) and message.method == "tools/call")
        call: Call[Any] = Call("POST", request.url.path, {}, repeat=Repeat.SAFE if changes_nothing else Repeat.NEVER)
        for attempt in range(MAX_RETRIES + 1):
            await self._target.ready()
            try:
                return await self._send(request, message)
            except (httpx.HTTPError, ApiError) as error:
                unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if unsent:
                    self._target.lost()
                pause_s = pause_before_repeat(call, error, attempt)
                if pause_s is None or attempt == MAX_RETRIES:
                    if isinstance(error, ApiError):
                        raise
                    address = self._target.address
                    if unsent or changes_nothing:
                        raise failure_of(error, address, address.timeout_s) from error
                    raise AnswerLost(address.url, str(error) or type(error).__name__) from error
            await asyncio.sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")

    async def _send(self, request: httpx2.Request, message: JSONRPCMessage) -> httpx2.Response:
        address = self._target.address
        async with AsyncExitStack() as stack:
            response = await stack.enter_async_context(
                self._http.stream("POST", str(request.url), content=request.content, headers=_headers(request, address))
            )
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.is_success and kind == EVENT_STREAM and isinstance(message, JSONRPCRequest):
                return httpx2.Response(
                    200, headers={"Content-Type": EVENT_STREAM}, stream=_Events(response, stack.pop_all())
                )
            content = await response.aread()
        refused = None if response.is_success else _refusal_in(response)
        if refused is None or refused.status_code in TRANSIENT or not isinstance(message, JSONRPCRequest):
            raise_for(refused or response, address)
        if not isinstance(message, JSONRPCRequest):
            return httpx2.Response(202)
        try:
            return _json(_answer_to(message, content))
        except ValueError as error:
            raise UnreadableAnswer(address.url, str(error)) from error


class _Events(httpx2.AsyncByteStream):
    """The events of a response that is still open."""

    def __init__(self, response: httpx.Response, opened: AsyncExitStack) -> None:
        self._response, self._opened = response, opened

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._response.aiter_bytes():
            yield chunk

    async def aclose(self) -> None:
        await self._opened.aclose()


def error_message(request_id: RequestId | None, error: SouvenirError) -> JSONRPCError:
    data = None
    if isinstance(error, ApiError):
        data = {"status": error.status, "code": error.code, "request_id": error.request_id}
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=NOT_DONE, message=str(error), data=data))


def log(sentence: str) -> None:
    """Write to standard error, which editors show in their logs; standard output carries messages only."""
    sys.stderr.write(f"souvenir mcp: {sentence}\n")
    sys.stderr.flush()


def _answer_to(request: JSONRPCRequest, content: bytes) -> JSONRPCResponse | JSONRPCError:
    """:raises ValueError: If the content is not the answer to the request."""
    answer = jsonrpc_message_adapter.validate_json(content, by_name=False)
    if isinstance(answer, JSONRPCError) and answer.id is None:
        # The service refused the request before it read the id.
        return answer.model_copy(update={"id": request.id})
    if not isinstance(answer, JSONRPCResponse | JSONRPCError) or answer.id != request.id:
        raise ValueError("it is not the answer to the request")
    return answer


def _refusal_in(response: httpx.Response) -> httpx.Response | None:
    """A JSON-RPC error with an error status, in the form that the other routes of the service use; else None."""
    try:
        error = json.loads(response.content)["error"]
        sentence, data = error["message"], error.get("data")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None
    headers = {name: response.headers[name] for name in ("retry-after",) if name in response.headers}
    detail = {**(data if isinstance(data, dict) else {}), "detail": sentence}
    return httpx.Response(response.status_code, headers=headers, json=detail)


def _headers(request: httpx2.Request, address: Address) -> dict[bytes, bytes]:
    own = {name: value for name, value in request.headers.items() if name == "accept" or name.startswith("mcp-")}
    headers = {**own, "Content-Type": JSON}
    if address.api_key is not None:
        headers["X-API-Key"] = address.api_key
    if address.namespace is not None:
        headers["X-Namespace"] = address.namespace
    return {name.encode(): value.encode() for name, value in headers.items()}


def _json(message: JSONRPCResponse | JSONRPCError) -> httpx2.Response:
    content = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    return httpx2.Response(200, headers={"Content-Type": JSON}, content=content)
