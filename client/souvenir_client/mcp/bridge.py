"""The bridge: each message on standard input is sent to the service, and its answers go to standard output.

Invariants: requests do not wait for each other, up to `MAX_AT_ONCE`; a cancelled request is closed and gets no answer;
at the end of the input and after a signal, running requests may finish within `FINISH_S`.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Self, cast

import anyio
import httpx
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp_types.jsonrpc import ErrorData
from pydantic import ValidationError

from souvenir_client.errors import AnswerLost, SouvenirError
from souvenir_client.mcp.service import ServiceTransport, Target, error_message, log

MAX_AT_ONCE = 8
"""Requests of one bridge that the service works on at the same time; the others wait."""

FINISH_S = 10.0
"""How long running requests may take after the end of the input."""

MAX_EVENT_BYTES = 64 * 1024 * 1024

LISTEN = "subscriptions/listen"
"""A request that ends only when the client cancels it."""

Write = Callable[[SessionMessage], Awaitable[None]]


class Bridge:
    """:param url: Of the service's MCP endpoint.

    :param http: Closed by its owner.
    :param write: Writes a message to standard output.
    """

    def __init__(self, url: str, http: httpx2.AsyncClient, write: Write) -> None:
        self._url, self._http, self._write = url, http, write
        self._agreed: str | None = None
        self._running: dict[asyncio.Task[None], JSONRPCMessage | None] = {}
        """The message of each task, until it is answered."""
        self._places = asyncio.Semaphore(MAX_AT_ONCE)

    async def take(self, line: SessionMessage | Exception) -> None:
        """:param line: A message, or the reason why a line is none."""
        if isinstance(line, Exception):
            await self._deliver(_refusal_of(line))
        elif isinstance(line.message, JSONRPCNotification) and line.message.method == "notifications/cancelled":
            self._cancel(line.message)
        else:
            self._start(line.message)

    async def finish(self) -> None:
        """Wait for the running requests, then cancel them."""
        for task, message in self._running.items():
            if isinstance(message, JSONRPCRequest) and message.method == LISTEN:
                task.cancel()
        if self._running:
            await asyncio.wait(list(self._running), timeout=FINISH_S)
        await self.close()

    async def close(self) -> None:
        """Cancel the running requests."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _start(self, message: JSONRPCMessage) -> None:
        task = asyncio.create_task(self._ask(message))
        self._running[task] = message
        task.add_done_callback(self._running.pop)

    def _cancel(self, notification: JSONRPCNotification) -> None:
        """Close the request; before the protocol of 2026 the service is notified too, which expects no less."""
        cancelled = cancelled_request_id_from_params(notification.params)
        for task, message in list(self._running.items()):
            if isinstance(message, JSONRPCRequest) and message.id == cancelled:
                task.cancel()
                if _own_version(message) is None:
                    self._start(notification)

    async def _ask(self, message: JSONRPCMessage) -> None:
        waits = isinstance(message, JSONRPCRequest) and message.method != LISTEN
        place: AbstractAsyncContextManager[object] = self._places if waits else nullcontext()
        try:
            async with place:
                await self._exchange(message)
        except anyio.BrokenResourceError:
            return  # nothing reads the output
        except Exception as error:  # noqa: BLE001 - the boundary: a fault of ours must not leave a request unanswered
            fault = f"This is a fault of the bridge itself: {type(error).__name__}: {error}."
            log(fault)
            if isinstance(message, JSONRPCRequest):
                await self._deliver(error_message(message.id, SouvenirError(fault)))

    async def _exchange(self, message: JSONRPCMessage) -> None:
        """Send a message, and deliver its answers as they come."""
        client = streamable_http_client(self._url, http_client=self._http, max_sse_event_size=MAX_EVENT_BYTES)
        async with client as (answers, requests):
            await requests.send(SessionMessage(message, ClientMessageMetadata(headers=self._headers(message))))
            if not isinstance(message, JSONRPCRequest):
                # The answers end when the message is sent.
                await requests.aclose()
            async for answer in answers:
                if isinstance(answer, Exception):
                    raise answer
                is_last = isinstance(answer.message, JSONRPCResponse | JSONRPCError)
                task = asyncio.current_task()
                if is_last and task is not None:
                    self._running[task] = None
                await self._deliver_to(message, answer.message)
                if is_last:
                    return

    async def _deliver_to(self, request: JSONRPCMessage, answer: JSONRPCMessage) -> None:
        if isinstance(answer, JSONRPCError) and answer.error.code == CONNECTION_CLOSED:
            answer = error_message(answer.id, AnswerLost(self._url, answer.error.message))
        if isinstance(answer, JSONRPCResponse) and getattr(request, "method", None) == "initialize":
            version = answer.result.get("protocolVersion")
            self._agreed = version if isinstance(version, str) else None
        await self._deliver(answer)

    async def _deliver(self, message: JSONRPCMessage) -> None:
        await self._write(SessionMessage(message))

    def _headers(self, message: JSONRPCMessage) -> dict[str, str]:
        """The headers for the version in the message (2026), otherwise for the version that `initialize` agreed on."""
        version = _own_version(message)
        if version is None or isinstance(message, JSONRPCResponse | JSONRPCError):
            is_first = isinstance(message, JSONRPCRequest) and message.method == "initialize"
            return {} if self._agreed is None or is_first else {MCP_PROTOCOL_VERSION_HEADER: self._agreed}
        headers = {MCP_PROTOCOL_VERSION_HEADER: version, MCP_METHOD_HEADER: message.method}
        name = (message.params or {}).get(NAME_BEARING_METHODS.get(message.method, ""))
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
        return headers


class Lines:
    """The lines of standard input, read by a daemon thread: a blocked read does not keep the process alive."""

    def __init__(self) -> None:
        self._loop, self._taken = asyncio.get_running_loop(), asyncio.Queue[str | None]()
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    def end(self) -> None:
        """End after the lines that were read; callable from a signal handler."""
        self._put(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        line = await self._taken.get()
        if line is None:
            raise StopAsyncIteration
        return line

    def _read(self) -> None:
        # A reader of its own: the interpreter takes the lock of `sys.stdin` when it ends.
        with open(0, "rb", closefd=False) as stdin:
            for line in stdin:
                if line.strip():
                    self._put(line.decode(errors="replace"))
        self.end()

    def _put(self, line: str | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._taken.put_nowait, line)


async def serve(http: httpx.AsyncClient, target: Target, path: str) -> None:
    """Bridge standard input and output to a service, until the input ends or a signal comes.

    :param http: Closed by its owner.
    :param path: Of the MCP endpoint.
    :raises BrokenPipeError: If nothing reads standard output.
    """
    client = httpx2.AsyncClient(transport=ServiceTransport(http, target))
    lines = Lines()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: lines.end())
    try:
        async with client, stdio_server(stdin=cast(anyio.AsyncFile[str], lines)) as (messages, output), output:
            bridge = Bridge(target.address.url + path, client, output.send)
            try:
                async for line in messages:
                    await bridge.take(line)
                await bridge.finish()
            finally:
                await bridge.close()
    except ExceptionGroup as failures:
        if failures.subgroup(BrokenPipeError) is None:
            raise
        raise BrokenPipeError from failures


def _own_version(message: JSONRPCMessage) -> str | None:
    """The protocol version that the message names itself."""
    if isinstance(message, JSONRPCResponse | JSONRPCError):
        return None
    meta = (message.params or {}).get("_meta")
    version = meta.get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else None


def _refusal_of(error: Exception) -> JSONRPCError:
    """The answer to a line that is no message; its id is not known."""
    is_json = not (isinstance(error, ValidationError) and error.errors()[0]["type"] == "json_invalid")
    code, problem = (INVALID_REQUEST, "not a JSON-RPC message") if is_json else (PARSE_ERROR, "not JSON")
    return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=f"The line is {problem}."))
