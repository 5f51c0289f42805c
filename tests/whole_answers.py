"""Faster requests of Starlette's test client: one thread switch per request instead of eight.

The client can read a response while the application still sends it, and switches between its thread and that of the
event loop for each part. Most tests read the whole response at once, which needs no more than one switch.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import anyio
import httpx2
from starlette import testclient
from starlette.testclient import TestClient
from starlette.types import Message, Scope

WHOLE = "whole_answer"
"""The request extension that marks a response as read at once."""


def send_whole(client: TestClient, request: httpx2.Request, *, stream: bool = False, **values: Any) -> httpx2.Response:
    """Replace `TestClient.send`: mark requests whose response is not streamed."""
    if not stream:
        request.extensions[WHOLE] = True
    return super(TestClient, client).send(request, stream=stream, **values)


class WholeAnswers(testclient._TestClientTransport):
    """Starlette's transport, except for requests marked by `send_whole`."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if not request.extensions.pop(WHOLE, False) or request.url.scheme not in ("http", "https"):
            return super().handle_request(request)
        exchange = Exchange(request)
        scope = self.scope_of(request)
        with self.portal_factory() as portal:
            try:
                portal.call(self.app, scope, exchange.receive, exchange.send)
            except Exception:
                if self.raise_server_exceptions:
                    raise
        if exchange.status is None:
            assert not self.raise_server_exceptions, "The application gave no answer."
            return httpx2.Response(500, request=request, stream=httpx2.ByteStream(b""))
        body = b"" if request.method == "HEAD" else b"".join(exchange.body)
        return httpx2.Response(
            exchange.status, headers=exchange.headers, request=request, stream=httpx2.ByteStream(body)
        )

    def scope_of(self, request: httpx2.Request) -> Scope:
        url = request.url
        headers = [(name.lower().encode(), value.encode()) for name, value in request.headers.multi_items()]
        if "host" not in request.headers:
            headers.insert(0, (b"host", url.netloc))
        return {
            "type": "http",
            "http_version": "1.1",
            "method": request.method,
            "path": unquote(url.path),
            "raw_path": url.raw_path.split(b"?", 1)[0],
            "root_path": self.root_path,
            "scheme": url.scheme,
            "query_string": url.query,
            "headers": headers,
            "client": self.client,
            "server": [url.raw_host.decode("ascii"), url.port or {"http": 80, "https": 443}[url.scheme]],
            "extensions": {},
            "state": self.app_state.copy(),
        }


class Exchange:
    """The receive and send callables of one request."""

    def __init__(self, request: httpx2.Request) -> None:
        self._request = request
        self._is_read = False
        self._complete = anyio.Event()
        self.status: int | None = None
        self.headers: list[tuple[str, str]] = []
        self.body: list[bytes] = []

    async def receive(self) -> Message:
        if self._is_read:
            await self._complete.wait()
            return {"type": "http.disconnect"}
        self._is_read = True
        return {"type": "http.request", "body": self._request.read()}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            assert self.status is None, "The application began two answers."
            self.status = message["status"]
            self.headers = [(name.decode(), value.decode()) for name, value in message.get("headers", [])]
        elif message["type"] == "http.response.body":
            assert self.status is not None, "The application sent a body before it began its answer."
            assert not self._complete.is_set(), "The application sent more after the end of its answer."
            self.body.append(bytes(message.get("body", b"")))
            if not message.get("more_body", False):
                self._complete.set()
