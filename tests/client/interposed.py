"""A proxy for a running service that forwards every request, except those that a test answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx

from tests.client.running import RunningService


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class Interposed:
    """:param before: Told the path of each request; what it returns is the answer, None passes the request on."""

    def __init__(self, service: RunningService) -> None:
        self.before: Callable[[str], Answer | None] = lambda _: None
        self.seen: list[tuple[float, str]] = []
        self._http = httpx.Client(base_url=service.url, timeout=30.0)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def times(self, path: str) -> list[float]:
        """When requests to a path came."""
        return [at for at, seen in self.seen if seen == path]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._http.close()

    def _answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self.seen.append((time.monotonic(), path))
        own = self.before(path)
        if own is not None:
            return own
        passed = {name: value for name, value in headers.items() if name.lower() not in ("host", "content-length")}
        found = self._http.request(method, path, headers=passed, content=body)
        return Answer(found.status_code, found.content, {"Content-Type": found.headers.get("content-type", "")})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        interposed = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                answer = interposed._answer(self.command, self.path, dict(self.headers.items()), body)
                self.send_response(answer.status)
                for name, value in {**answer.headers, "Content-Length": str(len(answer.body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)

            do_POST = do_GET  # noqa: N815 - the name that the server looks for

            def log_message(self, format: str, *args: object) -> None:
                """Nothing is told."""

        return Handler


@contextmanager
def interposed(service: RunningService) -> Iterator[Interposed]:
    found = Interposed(service)
    yield found
    found.close()
