"""A vendor on loopback: what all of them have in common, whatever their wire. It does what a test tells it to.

Replies are given in the order in which a test queues them; what comes then is up to the vendor.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl

WAIT_S = 30
"""That a reply is held at most; no test waits for that."""


@dataclass(frozen=True)
class Reply:
    """:param body: Bytes are sent as they are, all else as JSON.

    :param waits: The answer is not begun before the server is told to go on.
    :param pauses: Half of the body is sent, the rest when the server is told to go on.
    :param drips: A byte at a time, without an end; with `drips_headers` before the body begins.
    :param hangs_up: Where the connection is cut: `before` the answer, or in its `midst`.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    waits: bool = False
    pauses: bool = False
    drips: bool = False
    drips_headers: bool = False
    hangs_up: str | None = None


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    content: bytes = b""


Asked = TypeVar("Asked", bound=Request)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients may leave when they like; what else goes wrong is a fault of the test."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Server(Generic[Asked]):
    """Listens from `start` to `stop`, and again on the same port after the next `start`."""

    def __init__(self, request: type[Asked]) -> None:
        self.requests: list[Asked] = []
        self.replies: deque[Any] = deque()
        self.arrived = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.port = 0
        self._request = request
        self._server: ThreadingHTTPServer | None = None
        self._changing = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reply(self, request: Asked, queued: Any) -> Reply:
        """:param queued: What the test queued for this request; None if nothing is left."""
        raise NotImplementedError

    def start(self) -> None:
        vendor = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # The body is sent after the headers, and would wait 40 ms for their acknowledgement.
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                vendor._answer(self)

            do_GET = do_PATCH = do_DELETE = do_POST  # noqa: N815 - names of the standard library

            def log_message(self, *_: object) -> None:
                pass

        self._server = _Listener(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections; those that are open are cut after their next request."""
        self.go_on.set()
        if self._server is not None:
            server, self._server = self._server, None
            server.shutdown()
            server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        if self._server is None:
            handler.close_connection = True
            return
        content = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        if headers.get("content-type") == "application/x-www-form-urlencoded":
            body = dict(parse_qsl(content.decode()))
        else:
            body = json.loads(content or b"{}")
        request = self._request(handler.path, headers, body, content)
        with self._changing:
            self.requests.append(request)
            queued = self.replies.popleft() if self.replies else None
        self.arrived.release()
        reply = self.reply(request, queued)
        if reply.waits:
            self.go_on.wait(WAIT_S)
        try:
            self._send(handler, reply)
        except OSError:
            # The other side did not wait.
            handler.close_connection = True

    def _send(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        if reply.hangs_up == "before":
            _hang_up(handler)
            return
        if reply.drips_headers:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            self._drip(handler)
            return
        content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        handler.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(10**9 if reply.drips else len(content)))
        handler.end_headers()
        if reply.drips:
            self._drip(handler)
        elif reply.hangs_up == "midst":
            handler.wfile.write(content[: len(content) // 2])
            _hang_up(handler)
        elif reply.pauses:
            handler.wfile.write(content[: len(content) // 2])
            self.go_on.wait(WAIT_S)
            handler.wfile.write(content[len(content) // 2 :])
        else:
            handler.wfile.write(content)

    def _drip(self, handler: BaseHTTPRequestHandler) -> None:
        while not self.go_on.wait(0.01):
            handler.wfile.write(b" ")
        handler.close_connection = True


def _hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)
