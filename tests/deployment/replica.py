"""A replica as the balancer sees it: it answers with its name, and is ready while the test says so."""

from __future__ import annotations

import socket
from contextlib import suppress
from http.server import BaseHTTPRequestHandler

from tests.vendors.server import Reply, Request, Server

READY_PATH = "/health/ready"


class Replica(Server[Request]):
    def __init__(self, name: str) -> None:
        super().__init__(Request)
        self.name = name
        self.ready = True
        self._connections: set[socket.socket] = set()

    def reply(self, request: Request, queued: Reply | None) -> Reply:
        if request.path == READY_PATH:
            return Reply(200 if self.ready else 503)
        return queued or Reply(body={"replica": self.name})

    def requests_to(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path == path]

    def stop(self) -> None:
        """Close every connection too, as a process that ends does."""
        super().stop()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._connections.clear()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        self._connections.add(handler.connection)
        # Head and body are sent separately, and the body would wait for the acknowledgement of the head.
        handler.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super()._answer(handler)
