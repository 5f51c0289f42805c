"""The server under the application: limits for slow, idle and too many clients, and an orderly stop.

uvicorn limits neither how slowly a head or a body arrives nor how slowly an answer is read. Here a head has a maximum
size and a few seconds, and a peer that neither sends its announced body nor reads its answer is disconnected, so it
costs one connection for a limited time. Beyond MAX_CONNECTIONS a connection is answered once: health as
always, everything else 503; far beyond, it is closed at once.

This subclasses uvicorn's protocol, which is not part of its public interface: pyproject.toml allows only the versions
that it was tested with.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from socket import socket
from typing import Any, cast

import structlog
import uvicorn
from starlette.types import ASGIApp
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from souvenir.core.settings import Settings
from souvenir.server.load_shedding import BodyProgress
from souvenir.server.middleware import OVER_LIMIT, SECURITY_HEADERS, RawHeaders

HEAD_TIMEOUT_S = 10.0
"""Time limit from the start of a connection or request to the end of its head."""

OVER_LIMIT_TIMEOUT_S = 2.0
"""The same for a connection over the limit, so that it is soon available to another health check."""

MAX_HEAD_BYTES = 64 * 1024

DRAIN_TIMEOUT_S = 5.0
"""The rest of a body is read for this long after its request was answered: a client that is disconnected while it sends
may never see the answer."""

MIN_BYTES_PER_S = 1024
"""An answer must be read at this rate, measured over the stall timeout."""

SPARE_CONNECTIONS = 64
"""Connections over the limit, for health checks and refusals."""

KEEP_ALIVE_S = 15
"""An idle connection is closed after this; longer than typical pauses of clients, shorter than timeouts of proxies."""

SHUTDOWN_S = 20
"""Requests may take this long to finish once the service stops; below the 30 s that containers get."""

CHECK_EVERY_TICKS = 10
"""uvicorn ticks ten times a second."""

_ABSOLUTE_TARGET = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")

log = structlog.get_logger(__name__)


Shed = Callable[[bytes, bytes, RawHeaders, str], ASGIApp | None]


class ServerConfig(uvicorn.Config):
    """How the application is served.

    :param shed: Returns the refusal of a request by method, path, headers and address before it begins, if the service
    is overloaded.
    :param on_stop: Called on the event loop when a stop signal arrives, before waiting for anything.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        shed: Shed,
        on_stop: Callable[[], None],
    ) -> None:
        super().__init__(
            app,
            host=settings.host,
            port=settings.port,
            http=Connection,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=SHUTDOWN_S,
        )
        self.max_connections = settings.max_connections
        self.stall_timeout_s = settings.stall_timeout_s
        self.shed = shed
        self.on_stop = on_stop


class Server(uvicorn.Server):
    """uvicorn's server, which also checks its connections for stalls and announces a stop to the application."""

    config: ServerConfig

    async def on_tick(self, counter: int) -> bool:
        if counter % CHECK_EVERY_TICKS == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    self._check(connection, now)
        return await super().on_tick(counter)

    @staticmethod
    def _check(connection: Connection, now: float) -> None:
        try:
            connection.check(now)
        except Exception:  # the server's own loop: one connection must not end it
            log.exception("connection_check_failed")
            connection.transport.abort()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        self.config.on_stop()
        await super().shutdown(sockets)


def serve_until_stopped(config: ServerConfig) -> None:
    """Run until a stop signal; exits with uvicorn's status if the port is not available."""
    server = Server(config)
    try:
        server.run()
    except KeyboardInterrupt:
        return
    if not server.started:
        sys.exit(uvicorn.config.STARTUP_FAILURE)


@dataclass(slots=True)
class _Mark:
    """The unread bytes of answers at one time."""

    at: float
    unread_bytes: int


class Connection(HttpToolsProtocol):
    """uvicorn's HTTP/1.1, with a timeout for everything that depends on the peer."""

    config: ServerConfig

    def __init__(
        self,
        config: ServerConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._application = self.app
        self._over_limit = False
        self._head_since: float | None = None
        self._head_bytes = 0
        self._body_open = False
        self._received_at = self._answered_at = self._window_since = 0.0
        self._progress = BodyProgress()
        self._mark: _Mark | None = None

    # --- callbacks of uvicorn ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_since = self._received_at = self.loop.time()
        self._over_limit = len(self.connections) > self.config.max_connections
        if len(self.connections) > self.config.max_connections + SPARE_CONNECTIONS:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received_at = self.loop.time()
        if not self._body_open:
            self._head_since = self._head_since or self._received_at
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_since is None:
            self._head_bytes = 0
        elif self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "head_too_large", "The request's head is too large"
            )

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._head_since is None:
            self._head_since = self._received_at
        if self._over_limit:
            self.scope["state"][OVER_LIMIT] = True

    def on_headers_complete(self) -> None:
        self._head_since, self._body_open = None, True
        if absolute := _ABSOLUTE_TARGET.match(self.url):
            # The target's name has precedence over Host (RFC 9112, 3.2.2), so it is the one that is checked.
            others = [(name, value) for name, value in self.headers if name != b"host"]
            self.headers[:] = [*others, (b"host", absolute[1])]
        self._window_since, self._progress = self._received_at, BodyProgress()
        refusal = None if self._over_limit else self._shed()
        self.app = self._application if refusal is None else cast(ASGI3Application, refusal)
        super().on_headers_complete()
        if self._over_limit:
            self.cycle.keep_alive = False

    def _shed(self) -> ASGIApp | None:
        address = self.client[0] if self.client else "unknown"
        return self.config.shed(self.parser.get_method(), self.url, self.headers, address)

    def on_body(self, body: bytes) -> None:
        if self._progress.came(len(body)):
            self._window_since = self._received_at
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._body_open = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._answered_at = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(HTTPStatus.BAD_REQUEST, "bad_request", msg)

    # --- periodic checks ------------------------------------------------------------------------------------

    def check(self, now: float) -> None:
        """Disconnect a peer that is too slow."""
        if self._head_is_late(now):
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "head_too_slow", "The request's head came too slowly")
        elif self._body_stalls(now) or self._answer_stalls(now):
            self.transport.abort()

    def _head_is_late(self, now: float) -> bool:
        if self._head_since is None or self.transport.is_closing():
            return False
        # The head of the next request may arrive and wait while the last one is processed.
        working = self.cycle is not None and not self.cycle.response_complete
        return not working and now - self._head_since > (OVER_LIMIT_TIMEOUT_S if self._over_limit else HEAD_TIMEOUT_S)

    def _body_stalls(self, now: float) -> bool:
        if not self._body_open or self.cycle is None or self.transport.is_closing():
            return False
        if self.cycle.response_complete:
            return now - self._answered_at > DRAIN_TIMEOUT_S
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:
            self._window_since = now  # waiting for our own work
        return now - self._window_since > self.config.stall_timeout_s

    def _answer_stalls(self, now: float) -> bool:
        unread_bytes = self.transport.get_write_buffer_size()
        answering = self.cycle is not None and not self.cycle.response_complete
        if not unread_bytes or (answering and not self.flow.write_paused):
            self._mark = None
        elif self._mark is None:
            self._mark = _Mark(now, unread_bytes)
        elif now - self._mark.at > self.config.stall_timeout_s:
            read_bytes = self._mark.unread_bytes - unread_bytes
            self._mark = _Mark(now, unread_bytes)
            return read_bytes < MIN_BYTES_PER_S * self.config.stall_timeout_s
        return False

    def _refuse(self, status: HTTPStatus, code: str, detail: str) -> None:
        """Answer an incomplete or malformed request with the one error body, and close."""
        if self.transport.is_closing():
            return
        body = json.dumps({"detail": detail, "code": code, "request_id": ""}).encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n"
        )
        security = b"".join(b"%b: %b\r\n" % header for header in SECURITY_HEADERS)
        self.transport.write(head.encode("ascii") + security + b"\r\n" + body)
        self.transport.close()
