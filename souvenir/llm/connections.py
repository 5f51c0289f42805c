"""The HTTP client of a provider, whose calls end when their time is up, however slowly the server sends.

A timeout of HTTP clients bounds each wait for a byte, not their sum, and closing a client ends no call. Here every call
has a connection of its own, which is cut: by a timer when its time is up, or when the service stops.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Condition, Lock, Timer, local
from typing import Any

import httpx2

from souvenir.errors import ServiceClosing
from souvenir.llm.wire import MAX_BODY_BYTES
from souvenir.vendors.addresses import is_loopback

CONNECT_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 5.0

# At its finest level it logs the headers that come, and a server may send anything back.
logging.getLogger("httpcore2").setLevel(logging.WARNING)


class Call:
    """One request. `late` and `too_large` say why it failed, whatever the exception looks like."""

    def __init__(self) -> None:
        self.late = False
        self.too_large = False
        self._cut = False
        self._socket: socket.socket | None = None
        self._lock = Lock()

    def hold(self, connected: socket.socket) -> None:
        with self._lock:
            self._socket = connected
            cut = self._cut
        if cut:
            _shut(connected)

    def cut(self) -> None:
        with self._lock:
            self._cut = True
            connected = self._socket
        if connected is not None:
            _shut(connected)

    def time_out(self) -> None:
        self.late = True
        self.cut()


class Connections:
    """Safe to use from many threads. `client` is for the SDKs, or to be used as it is."""

    def __init__(self, base_url: str) -> None:
        self._current = local()
        self._calls: set[Call] = set()
        self._changed = Condition()
        self._closed = False
        self.client = httpx2.Client(
            # A text must not follow to where nobody sent it, nor reach this machine by way of a proxy.
            follow_redirects=False,
            trust_env=not is_loopback(base_url),
            limits=httpx2.Limits(max_keepalive_connections=0),
            event_hooks={"request": [self._watch], "response": [self._bound]},
        )

    @contextmanager
    def call(self, timeout_s: float) -> Iterator[Call]:
        """Around one request of this thread.

        :raises ServiceClosing: After `close`.
        """
        call = Call()
        with self._changed:
            if self._closed:
                raise ServiceClosing
            self._calls.add(call)
        timer = Timer(timeout_s, call.time_out)
        timer.daemon = True
        timer.start()
        self._current.call = call
        try:
            yield call
        finally:
            timer.cancel()
            with self._changed:
                self._calls.discard(call)
                self._changed.notify_all()

    def close(self) -> None:
        """Cut the calls under way, and close."""
        with self._changed:
            self._closed = True
            for call in self._calls:
                call.cut()
            self._changed.wait_for(lambda: not self._calls, CLOSE_TIMEOUT_S)
        self.client.close()

    def _watch(self, request: httpx2.Request) -> None:
        call: Call = self._current.call

        def see(event: str, info: Mapping[str, Any]) -> None:
            if event.endswith(("connect_tcp.complete", "start_tls.complete")):
                call.hold(info["return_value"].get_extra_info("socket"))

        request.extensions = {**request.extensions, "trace": see}

    def _bound(self, response: httpx2.Response) -> None:
        if isinstance(response.stream, httpx2.SyncByteStream):
            response.stream = _Bounded(response.stream, self._current.call)


class _Bounded(httpx2.SyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream, call: Call) -> None:
        self._stream = stream
        self._call = call

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._stream:
            size += len(chunk)
            if size > MAX_BODY_BYTES:
                self._call.too_large = True
                raise httpx2.ReadError("The answer is too large")
            yield chunk

    def close(self) -> None:
        self._stream.close()


def _shut(connected: socket.socket) -> None:
    """Wakes who waits for it; past TLS, whose own way down may be used by one thread only."""
    with suppress(OSError):
        socket.socket.shutdown(connected, socket.SHUT_RDWR)
