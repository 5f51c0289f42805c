"""HTTP client of a model provider: one JSON request in, the bytes of its answer out, within time and size limits.

Timeouts of HTTP clients bound each wait for a byte, not their sum, and closing a client ends no request. Here each
request has a connection of its own, which is shut down at its deadline or when the client is closed. Neither text nor
key is logged, and errors carry the server's message only for comparison: it may repeat prompt and key.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Condition, Lock, Timer
from typing import Any

import httpx2

from souvenir.core.errors import ServiceClosing
from souvenir.models.providers.endpoints import is_loopback
from souvenir.models.providers.retry import AnswerTooLarge, AnswerTooLate, ProviderFailure

CONNECT_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 5.0

MAX_ERROR_BYTES = 64 * 1024
"""Maximum number of bytes read from the answer to a failed request."""

# httpcore2 logs received headers at DEBUG, and a server may echo what was sent.
logging.getLogger("httpcore2").setLevel(logging.WARNING)
logging.getLogger("httpx2").setLevel(logging.WARNING)


class _Connection:
    """A TCP connection for one request at a time, which any thread can shut down."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client
        self.late = False
        self.is_cut = False
        self._in_use = False
        self._socket: socket.socket | None = None
        self._lock = Lock()

    @contextmanager
    def limit(self, timeout_s: float) -> Iterator[None]:
        """Shut down the connection if the block takes longer."""
        timer = Timer(timeout_s, self._time_out)
        timer.daemon = True
        self._in_use = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            with self._lock:
                self._in_use = False

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Called by httpcore2 for each event of the connection."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            with self._lock:
                self._socket = info["return_value"].get_extra_info("socket")
                if self.is_cut:
                    self._shut_down()

    def cut(self) -> None:
        """Shut down the connection, which wakes the thread that waits for it."""
        with self._lock:
            self.is_cut = True
            self._shut_down()

    def _time_out(self) -> None:
        with self._lock:
            if not self._in_use:
                return
            self.late = self.is_cut = True
            self._shut_down()

    def _shut_down(self) -> None:
        """Shut down below TLS, whose own shutdown is not thread-safe."""
        if self._socket is not None:
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class ProviderClient:
    """Thread-safe. Connections are kept alive between requests.

    :param headers: Sent with each request.
    """

    def __init__(self, base_url: str, headers: Mapping[str, str]) -> None:
        self._base_url = base_url
        self._headers = {"User-Agent": "souvenir", **headers}
        # Texts must not follow a redirect to an unknown host, nor reach this machine through a proxy.
        self._trust_env = not is_loopback(base_url)
        self._verify = httpx2.create_ssl_context(trust_env=self._trust_env) if base_url.startswith("https") else False
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._changed = Condition()
        self._closed = False

    def post(self, path: str, body: Mapping[str, Any], *, timeout_s: float, max_bytes: int) -> bytes:
        """Return the body of the answer to a JSON request.

        :param timeout_s: Limit of the whole request: connection, sending and the last byte of the answer.
        :raises ProviderFailure: Without an answer, or with one that reports an error.
        :raises AnswerTooLate: After `timeout_s`. :raises AnswerTooLarge: Above `max_bytes`.
        :raises ServiceClosing: After `close`.
        """
        with self._connection(timeout_s) as connection:
            try:
                return self._exchange(connection, path, body, timeout_s, max_bytes)
            except httpx2.HTTPError as error:
                late = connection.late or isinstance(error, httpx2.ReadTimeout | httpx2.WriteTimeout)
        # Outside of the except block, so that the exception, which holds what was sent, is not chained.
        if self._closed:
            raise ServiceClosing
        raise AnswerTooLate if late else ProviderFailure()

    def close(self) -> None:
        """Shut down requests in progress and close. Later requests raise `ServiceClosing`."""
        with self._changed:
            self._closed = True
            for connection in self._busy:
                connection.cut()
            self._changed.wait_for(lambda: not self._busy, CLOSE_TIMEOUT_S)
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.client.close()

    def _exchange(
        self, connection: _Connection, path: str, body: Mapping[str, Any], timeout_s: float, max_bytes: int
    ) -> bytes:
        asking = connection.client.stream(
            "POST",
            f"{self._base_url}{path}",
            json=body,
            headers=self._headers,
            timeout=httpx2.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s)),
            extensions={"trace": connection.trace},
        )
        with asking as response:
            limit = max_bytes if response.is_success else MAX_ERROR_BYTES
            content = bytearray()
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > limit:
                    if response.is_success:
                        raise AnswerTooLarge
                    break
            if not response.is_success:
                raise ProviderFailure(response.status_code, response.headers, content.decode(errors="replace").lower())
            return bytes(content)

    @contextmanager
    def _connection(self, timeout_s: float) -> Iterator[_Connection]:
        with self._changed:
            if self._closed:
                raise ServiceClosing
            connection = self._idle.pop() if self._idle else self._connect()
            self._busy.add(connection)
        try:
            with connection.limit(timeout_s):
                yield connection
        finally:
            with self._changed:
                self._busy.discard(connection)
                keep = not (connection.is_cut or self._closed)
                if keep:
                    self._idle.append(connection)
                self._changed.notify_all()
            if not keep:
                connection.client.close()

    def _connect(self) -> _Connection:
        """Create a connection that its first request opens, and reopens if the server closed it."""
        return _Connection(
            httpx2.Client(
                verify=self._verify,
                trust_env=self._trust_env,
                follow_redirects=False,
                limits=httpx2.Limits(max_connections=1),
            )
        )
