"""Slow, idle and too many clients on real sockets: each holds one connection, and other clients are unaffected."""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request, Response
from starlette.types import ASGIApp

from app import create_app
from souvenir.core.settings import LogLevel, Settings
from souvenir.server import admission, connections, load_shedding
from souvenir.server.admission import PlaceFigures
from souvenir.server.connections import Server, ServerConfig
from souvenir.server.load_shedding import CostClass, Refusal
from souvenir.server.middleware import EarlyRefusal, RawHeaders
from souvenir.server.request_guards import Writer
from souvenir.server.routing import Routes
from souvenir.server.service import Service
from tests.api.busy import PATIENCE_S, StoppableEmbedder, until
from tests.api.conftest import JSON

Serve = Callable[..., "Served"]
HEAD = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
IMPORT_HEAD = (
    b"POST /import HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
    b"Content-Length: 10000000\r\n\r\n"
)

SECURITY = {
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("content-security-policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
}


class Served:
    """The application on a port of its own, in a thread."""

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        self.app = app
        self._server = Server(ServerConfig(app, settings, shed=self._shed, on_stop=self._stop))
        self._thread = threading.Thread(target=self._server.run)

    @contextmanager
    def running(self) -> Iterator[Served]:
        self._thread.start()
        try:
            until(lambda: self._server.started)
            yield self
        finally:
            self._server.should_exit = True
            self._thread.join(PATIENCE_S)

    def _stop(self) -> None:
        self.service.stop_admitting()

    def _shed(self, method: bytes, target: bytes, headers: RawHeaders, address: str) -> ASGIApp | None:
        return EarlyRefusal(self.app.routes, self.service)(method, target, headers, address)

    @property
    def service(self) -> Service:
        service: Service = self.app.state.service
        return service

    @property
    def port(self) -> int:
        return int(self._server.servers[0].sockets[0].getsockname()[1])

    @property
    def open_connections(self) -> int:
        return len(self._server.server_state.connections)

    def shrink_send_buffers(self) -> None:
        """Let the present connections have little data on the way."""
        for connection in self._server.server_state.connections:
            connection.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

    def connect(self, receive_bytes: int | None = None) -> socket.socket:
        peer = socket.socket()
        if receive_bytes is not None:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        peer.settimeout(PATIENCE_S)
        peer.connect(("127.0.0.1", self.port))
        return peer

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=PATIENCE_S, trust_env=False)


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Serves with these settings; connections are looked after ten times a second."""
    monkeypatch.setattr(connections, "CHECK_EVERY_TICKS", 1)
    with ExitStack() as running:

        def start(routes: Any = None, **values: Any) -> Served:
            settings = Settings(data_dir=tmp_path / "data", port=0, log_level=LogLevel.ERROR, **values)
            app = create_app(settings, StoppableEmbedder())
            app.router.routes.extend(routes.routes if routes else [])
            return running.enter_context(Served(app, settings).running())

        yield start


def received_from(peer: socket.socket) -> bytes:
    """All that comes until the other side ends the connection, in whatever way."""
    received = b""
    with suppress(ConnectionResetError):
        while piece := peer.recv(65536):
            received += piece
    return received


def drip(*peers: socket.socket) -> None:
    """Send a byte at a time on each until the other side answered or ended them all."""
    dripping = set(peers)

    def all_ended() -> bool:
        for peer in list(dripping):
            ended = bool(select.select([peer], [], [], 0.02)[0])
            if not ended:
                try:
                    peer.sendall(b" ")
                except OSError:
                    ended = True
            if ended:
                dripping.discard(peer)
        return not dripping

    until(all_ended)


def answer_of(peer: socket.socket) -> tuple[int, dict[str, str], Any]:
    """Status, headers and parsed body of the one answer that comes before the connection ends."""
    head, _, content = received_from(peer).partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    return int(lines[0].split(" ")[1]), headers, json.loads(content)


def test_a_head_that_does_not_end_is_answered_408_and_closed(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connections, "HEAD_TIMEOUT_S", 0.2)
    service = serve()
    for beginning in (b"", b"\r\n", b"GET /health HT", HEAD):
        with closing(service.connect()) as peer:
            peer.sendall(beginning)
            status, headers, body = answer_of(peer)
            assert (status, body["code"], headers["connection"]) == (408, "head_too_slow", "close")


def test_the_head_of_a_second_request_has_to_come_in_time_too(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connections, "HEAD_TIMEOUT_S", 0.2)
    with closing(serve().connect()) as peer:
        peer.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea")
        received = received_from(peer)
    assert received.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 408" in received


def test_a_head_without_end_is_431(serve: Serve):
    with closing(serve().connect()) as peer:
        peer.sendall(HEAD + b"X-More: " + b"x" * 100_000)
        status, headers, body = answer_of(peer)
    assert (status, body["code"]) == (431, "head_too_large")
    assert headers.items() >= SECURITY


def test_invalid_http_is_400_with_the_standard_error_body(serve: Serve):
    with closing(serve().connect()) as peer:
        peer.sendall(b"\x16\x03\x01 this is TLS\r\n\r\n")
        status, headers, body = answer_of(peer)
    assert (status, body["code"]) == (400, "bad_request")
    assert headers.items() >= SECURITY


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        (b"/health", b"localhost", 200),
        (b"http://localhost/health", b"localhost", 200),
        (b"http://localhost:8900/health?x=1", b"evil.example", 200),
        (b"HTTPS://[::1]/health", b"localhost", 200),
        (b"http://evil.example/health", b"localhost", 421),
        (b"http://localhost@evil.example/health", b"localhost", 421),
        (b"http://evil.example:80/health", b"", 421),
    ],
)
def test_the_name_in_an_absolute_target_counts_and_not_that_in_host(serve: Serve, target, host, status):
    with closing(serve().connect()) as peer:
        peer.sendall(b"GET %b HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % (target, host))
        assert answer_of(peer)[0] == status


@pytest.mark.parametrize("target", [b"*", b"evil.example:443", b"//evil.example/health"])
def test_other_forms_of_a_target_reach_no_route(serve: Serve, target: bytes):
    method = b"CONNECT" if target.endswith(b"443") else b"OPTIONS"
    with closing(serve().connect()) as peer:
        peer.sendall(b"%b %b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % (method, target))
        assert answer_of(peer)[0] in {400, 404, 405}


def test_an_upgrade_is_answered_as_a_request_without_one(serve: Serve):
    with closing(serve().connect()) as peer:
        upgrade = b"Connection: Upgrade, close\r\nUpgrade: websocket\r\nOrigin: http://evil.example\r\n"
        peer.sendall(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n%b\r\n" % upgrade)
        assert answer_of(peer)[0] == 405


def test_an_invalid_target_is_400_and_the_service_continues(serve: Serve):
    service = serve()
    with closing(service.connect()) as peer:
        peer.sendall(b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status, _, body = answer_of(peer)
    assert (status, body["code"]) == (400, "bad_request")
    with service.client() as client:
        assert client.get("/health").status_code == 200


def test_a_body_that_comes_too_slowly_is_408_and_its_connection_ends(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(load_shedding, "WINDOW_S", 0.2)
    monkeypatch.setattr(connections, "DRAIN_TIMEOUT_S", 0.2)
    service = serve()
    with closing(service.connect()) as peer:
        peer.sendall(HEAD + b"Content-Length: 1000\r\n\r\n{")
        status, headers, body = answer_of(peer)
    assert (status, body["code"]) == (408, "body_too_slow")
    assert body["request_id"] == headers["x-request-id"]
    until(lambda: service.open_connections == 0)
    assert service.service.bodies.held_bytes == 0


def test_a_body_that_comes_fast_and_then_drips_gives_its_memory_back(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(load_shedding, "WINDOW_S", 0.4)
    monkeypatch.setattr(connections, "DRAIN_TIMEOUT_S", 0.2)
    service = serve()
    with closing(service.connect()) as peer:
        peer.sendall(HEAD + b"Content-Length: 2000000\r\n\r\n" + b" " * 1_000_000)
        until(lambda: service.service.bodies.held_bytes >= 1_000_000)
        drip(peer)
        status, _, body = answer_of(peer)
    assert (status, body["code"]) == (408, "body_too_slow")
    assert service.service.bodies.held_bytes == 0


def test_a_body_that_fills_each_window_may_take_longer_than_one(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(load_shedding, "WINDOW_S", 0.8)

    def pieces() -> Iterator[bytes]:
        for _ in range(6):
            threading.Event().wait(0.2)
            yield b" " * load_shedding.WINDOW_BYTES
        yield b'{"query": "apple"}'

    with serve(stall_timeout_s=0.8).client() as client:
        response = client.post("/search", content=pieces(), headers={"Content-Type": "application/json"})
    assert response.status_code == 200


def test_an_upload_that_stalls_is_cut_off(serve: Serve):
    routes = Routes("test")
    ended = threading.Event()

    @routes.post("/upload", cost=CostClass.LONG, include_in_schema=False)
    async def upload(request: Request, scope: Writer) -> Response:
        try:
            async for _ in request.stream():
                pass
        finally:
            ended.set()
        return Response()

    service = serve(routes, stall_timeout_s=0.2)
    with closing(service.connect()) as peer:
        peer.sendall(b"POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nbegin")
        assert received_from(peer) == b""
    assert ended.wait(PATIENCE_S)


def test_a_progressing_upload_may_exceed_the_deadline(serve: Serve):
    routes = Routes("test")

    @routes.post("/upload", cost=CostClass.LONG, include_in_schema=False)
    async def upload(request: Request, scope: Writer) -> Response:
        return Response(str(sum([len(piece) async for piece in request.stream()])))

    def pieces() -> Iterator[bytes]:
        for _ in range(6):
            threading.Event().wait(0.2)
            yield b"x" * load_shedding.WINDOW_BYTES

    with serve(routes, request_timeout_s=0.8, stall_timeout_s=0.8).client() as client:
        assert client.post("/upload", content=pieces()).text == str(6 * load_shedding.WINDOW_BYTES)


def test_imports_that_drip_are_cut_off_and_others_get_their_places(serve: Serve):
    service = serve(max_long=2, stall_timeout_s=0.4)
    with ExitStack() as slow, service.client() as client:
        peers = [slow.enter_context(closing(service.connect())) for _ in range(2)]
        for peer in peers:
            peer.sendall(IMPORT_HEAD + b" " * 2 * load_shedding.WINDOW_BYTES)
        until(lambda: long_ones(service).at_work == 2)
        drip(*peers)
        until(lambda: long_ones(service).at_work == 0)
        assert client.get("/export").status_code == 200
        assert list(service.service.settings.import_dir.iterdir()) == []


def test_an_import_that_drips_does_not_renew_its_deadline(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connections, "DRAIN_TIMEOUT_S", 0.2)
    service = serve(request_timeout_s=0.4)
    with closing(service.connect()) as peer:
        peer.sendall(IMPORT_HEAD)
        drip(peer)
        status, _, body = answer_of(peer)
    assert (status, body["code"]) == (503, "deadline_exceeded")
    until(lambda: long_ones(service).at_work == 0)


def test_an_unread_answer_is_aborted(serve: Serve):
    routes = Routes("test")

    @routes.get("/much", cost=CostClass.LONG, include_in_schema=False)
    def much(scope: Writer) -> Response:
        return Response(b"x" * 50_000_000)

    service = serve(routes, stall_timeout_s=0.2)
    with closing(service.connect(receive_bytes=4096)) as peer:
        peer.sendall(b"GET /much HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: service.open_connections == 1)
        until(lambda: service.open_connections == 0)
    with service.client() as client:
        assert client.get("/much").content == b"x" * 50_000_000


def test_beyond_the_limit_of_connections_health_is_answered_and_the_rest_refused(serve: Serve):
    service = serve(max_connections=1)
    with closing(service.connect()), service.client() as client:
        until(lambda: service.open_connections == 1)
        assert client.get("/health").status_code == 200
        assert client.get("/health/ready").status_code == 200
        response = client.get("/memories/count")
        assert (response.status_code, response.json()["code"]) == (503, "too_many_connections")
        assert response.json()["request_id"] == response.headers["X-Request-ID"]
        assert int(response.headers["Retry-After"]) >= 1
        assert response.headers["connection"] == "close"
    until(lambda: service.open_connections == 0)
    with service.client() as client:
        assert client.get("/memories/count").status_code == 200


def test_far_beyond_the_limit_a_connection_is_closed_at_once(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connections, "SPARE_CONNECTIONS", 1)
    service = serve(max_connections=1)
    with closing(service.connect()), closing(service.connect()):
        until(lambda: service.open_connections == 2)
        with closing(service.connect()) as third:
            assert received_from(third) == b""


def test_twenty_slow_clients_do_not_keep_an_honest_one_out(serve: Serve):
    service = serve(max_searches=1, max_writes=1, max_reads=1, max_long=1, body_memory_mb=1)
    with ExitStack() as slow, service.client() as client:
        for number in range(20):
            peer = slow.enter_context(closing(service.connect()))
            peer.sendall(HEAD + (b"X-Slow: " if number % 2 else b"Content-Length: 1000000\r\n\r\n{"))
        until(lambda: service.open_connections == 20)
        assert client.post("/memory/add", json={"text": "red apple", "source": "s"}).status_code == 200
        assert client.post("/search", json={"query": "apple"}).json()["results"][0]["text"] == "red apple"
        assert client.get("/memories/count").json() == {"count": 1}


def long_ones(served: Served) -> PlaceFigures:
    return served.service.admission.figures()[CostClass.LONG]


def searches(served: Served) -> PlaceFigures:
    return served.service.admission.figures()[CostClass.SEARCH]


def search_request(query: str) -> bytes:
    body = json.dumps({"query": query}).encode()
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


def test_a_full_queue_refuses_before_the_body_is_read_and_keeps_the_connection(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(admission, "WAITING_PER_PLACE", 0)
    service = serve(max_searches=1, api_key="k-1")
    embedder: Any = service.service.engine.models.serving.embedder
    key = {"X-API-Key": "k-1"}
    with service.client() as client, closing(service.connect()) as first:
        client.post("/memory/add", json={"text": "red apple", "source": "s"}, headers=key).raise_for_status()
        first.sendall(search_request("stop").replace(b"Host", b"X-API-Key: k-1\r\nHost"))
        until(lambda: "stop" in embedder.begun)
        refused = client.post("/search?a=b", json={"query": "x" * 5000}, headers={**key, "X-Request-ID": "mine"})
        assert (refused.status_code, refused.json()["code"]) == (429, "overloaded")
        assert int(refused.headers["Retry-After"]) >= 1
        assert refused.headers.items() >= SECURITY
        assert refused.json()["request_id"] == refused.headers["X-Request-ID"] == "mine"
        assert "connection" not in refused.headers
        assert client.get("/memories/count").status_code == 401
        assert client.get("/memories/count", headers=key).json() == {"count": 1}
        embedder.go.set()
        assert first.recv(65536).startswith(b"HTTP/1.1 200")
        assert client.post("/search", json={"query": "apple"}, headers=key).status_code == 200
        route = client.get("/metrics", headers={**key, **JSON}).json()["routes"]["POST /search"]
    assert (route["count"], route["error_count"]) == (3, 1)
    assert searches(service).refused == {Refusal.FULL: 1}


def test_a_search_whose_client_left_while_it_waited_is_not_run(serve: Serve):
    service = serve(max_searches=1)
    embedder: Any = service.service.engine.models.serving.embedder
    with service.client() as client:
        client.post("/memory/add", json={"text": "red apple", "source": "s"}).raise_for_status()
    with closing(service.connect()) as first:
        first.sendall(search_request("stop"))
        until(lambda: "stop" in embedder.begun)
        with closing(service.connect()) as second:
            second.sendall(search_request("nobody waits"))
            until(lambda: searches(service).waiting == 1)
        until(lambda: service.open_connections == 1)
        embedder.go.set()
        assert first.recv(65536).startswith(b"HTTP/1.1 200")
    until(lambda: searches(service).refused == {Refusal.LEFT: 1})
    assert "nobody waits" not in embedder.begun
