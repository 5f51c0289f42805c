"""Events over HTTP: recent ones, streams with replay, and who sees what."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from signal import SIGTERM
from typing import Any

import httpx
import pytest

from app import create_app
from souvenir.core.settings import LogLevel, Settings
from souvenir.server.connections import SHUTDOWN_S, ServerConfig, serve_until_stopped
from tests.api.busy import PATIENCE_S, until
from tests.api.test_connections import Serve, serve
from tests.fake_embedder import FakeEmbedder, fake_of
from tests.forking import CONTEXT
from tests.postgres_databases import follow_environment

__all__ = ["serve"]
READERS, CHANGES = 10, 1_000


class Follower:
    """A reader that connects again with the last event that it knows, as a browser does."""

    def __init__(self, url: str, *, headers: dict[str, str] | None = None, **params: str) -> None:
        self._url, self._params, self._headers = url, params, headers or {}
        self.events: list[tuple[int, str, dict[str, Any]]] = []
        self.last_id: str | None = None
        self.status = 0
        self._stopped = False
        self._stream: Any = None
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self, count: int) -> None:
        until(lambda: len(self.events) >= count)

    def stop(self) -> None:
        self._stopped = True
        if self._stream is not None:
            with suppress(OSError):
                self._stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE_S)

    @property
    def ids(self) -> list[int]:
        return [event_id for event_id, _, _ in self.events]

    def _run(self) -> None:
        with httpx.Client(timeout=PATIENCE_S, trust_env=False, verify=False) as client:
            while not self._stopped:
                self._connect(client)
                self.ended.set()
                time.sleep(0.1)

    def _connect(self, client: httpx.Client) -> None:
        known = {} if self.last_id is None else {"Last-Event-ID": self.last_id}
        try:
            with client.stream("GET", self._url, params=self._params, headers={**self._headers, **known}) as response:
                self.status = response.status_code
                self._stream = response.extensions["network_stream"]
                self._read(response)
        except (httpx.HTTPError, OSError):
            self._stream = None

    def _read(self, response: httpx.Response) -> None:
        fields: dict[str, str] = {}
        for line in response.iter_lines():
            name, _, value = line.partition(": ")
            if line:
                fields[name] = value
                continue
            self.last_id = fields.get("id", self.last_id)
            if "data" in fields:
                self.events.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
            fields = {}
            if self._stopped:
                return


def admin_key(client: httpx.Client) -> dict[str, str]:
    """Create the first key and return the header for it."""
    return {"X-API-Key": client.post("/api/keys", json={"name": "admin", "role": "admin"}).json()["key"]}


@contextmanager
def following(count: int, url: str, **params: Any) -> Iterator[list[Follower]]:
    readers = [Follower(url, **params) for _ in range(count)]
    try:
        until(lambda: all(reader.last_id is not None for reader in readers))
        yield readers
    finally:
        for reader in readers:
            reader.stop()


def test_recent_events_are_the_last_ones_in_the_order_of_the_changes(serve: Serve):
    served = serve()
    with served.client() as client:
        for number in range(4):
            client.post("/memory/add", json={"text": f"text {number}", "source": "notes"}).raise_for_status()
        answer = client.get("/events/recent", params={"limit": 2}).json()
        first, second = answer["events"]
        assert answer["count"] == 2
        assert first["id"] < second["id"]
        assert second["type"] == "memory.added"
        assert second["data"] == {"id": 4, "source": "notes", "action": "add", "actor": "anonymous"}
        assert client.get("/events/recent", params={"event_type": "memory.deleted"}).json()["events"] == []
        assert client.get("/events/recent", params={"event_type": "memory.eaten"}).status_code == 422


def run_server(data_dir: str, port: int) -> None:
    """Serve a folder with the fake embedder; the target of a process."""
    follow_environment()
    settings = Settings(data_dir=Path(data_dir), port=port, log_level=LogLevel.ERROR, event_stream_max_s=3600)
    app = create_app(settings, FakeEmbedder(), fake_of)

    def stop() -> None:
        app.state.service.stop_admitting()

    serve_until_stopped(ServerConfig(app, settings, shed=lambda *request: None, on_stop=stop))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


Start = Callable[[], tuple[str, BaseProcess]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a server process, always with the same port and folder."""
    port, started = free_port(), list[BaseProcess]()

    def start() -> tuple[str, BaseProcess]:
        process = CONTEXT.Process(target=run_server, args=(str(tmp_path / "data"), port))
        process.start()
        started.append(process)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, verify=False) as client:
            until(lambda: is_up(client))
        return f"http://127.0.0.1:{port}", process

    yield start
    for process in started:
        process.kill()
        process.join()


def is_up(client: httpx.Client) -> bool:
    try:
        return client.get("/health/ready").status_code == 200
    except httpx.TransportError:
        time.sleep(0.02)
        return False


def test_ten_readers_see_a_thousand_changes_once_and_in_order_over_a_kill(
    start: Start,
):
    url, process = start()
    with (
        httpx.Client(base_url=url, timeout=PATIENCE_S, trust_env=False) as client,
        following(READERS, f"{url}/events/stream", event_type="memory.added") as readers,
    ):
        acknowledged = added(client, CHANGES // 2)
        writing = threading.Thread(target=added, args=(client, CHANGES))
        writing.start()
        readers[0].wait(CHANGES * 3 // 5)
        process.kill()
        process.join()
        writing.join()
        url, _ = start()
        stored = client.get("/memories/count").json()["count"]
        assert stored >= acknowledged
        added(client, CHANGES - stored)
        for reader in readers:
            reader.wait(CHANGES)
        for reader in readers:
            assert [event[2]["id"] for event in reader.events] == list(range(1, CHANGES + 1))
            assert reader.ids == sorted(set(reader.ids))
        assert {tuple(reader.ids) for reader in readers} == {tuple(readers[0].ids)}


def added(client: httpx.Client, count: int) -> int:
    """Add memories, ten with a request, until the server ends; return how many were acknowledged."""
    done = 0
    try:
        while done < count:
            batch = [{"text": f"text {done + n}", "source": "notes"} for n in range(min(10, count - done))]
            client.post("/memory/add-batch", json={"memories": batch}).raise_for_status()
            done += len(batch)
    except httpx.TransportError:
        return done
    return done


def test_a_reader_that_never_reads_takes_no_memory_and_delays_nobody(serve: Serve):
    served = serve(event_stream_max_s=3600, stall_timeout_s=3600)
    url = f"http://127.0.0.1:{served.port}"
    idle = served.connect(receive_bytes=1024)
    idle.sendall(b"GET /events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
    streams = served.service.streams
    until(lambda: streams.count == 1)
    served.shrink_send_buffers()
    with served.client() as client, following(2, f"{url}/events/stream") as readers:
        for part in range(12):
            batch = [{"text": f"text {part} {n}", "source": "s" * 400} for n in range(200)]
            client.post("/memory/add-batch", json={"memories": batch}).raise_for_status()
        for reader in readers:
            reader.wait(2400)
            assert [event[2]["id"] for event in reader.events] == list(range(1, 2401))
        [stuck] = [one for one in streams._all() if one.position < 2400]
        assert len(stuck.waiting) <= 256
    idle.close()
    until(lambda: streams.count == 0)


def test_streams_hold_no_place_and_are_no_active_requests(serve: Serve):
    served = serve(event_stream_max_s=3600)
    with following(5, f"http://127.0.0.1:{served.port}/events/stream"):
        until(lambda: served.service.metrics.active == 0)
        assert all(figures.at_work == 0 for figures in served.service.admission.figures().values())
        assert served.service.streams.count == 5


def test_streams_end_at_once_when_the_service_stops(start: Start):
    url, process = start()
    with following(3, f"{url}/events/stream") as readers:
        for reader in readers:
            reader.ended.clear()
        process.terminate()
        assert all(reader.ended.wait(SHUTDOWN_S / 2) for reader in readers)
        process.join(SHUTDOWN_S / 2)
        assert process.exitcode == -SIGTERM


def test_streams_are_limited_in_all_and_for_one_caller(serve: Serve):
    served = serve(event_stream_max_s=3600, max_event_streams=8)
    url = f"http://127.0.0.1:{served.port}/events/stream"
    with following(2, url):
        refused = httpx.get(url, trust_env=False)
        assert refused.status_code == 429
        assert "Retry-After" in refused.headers
    until(lambda: served.service.streams.count == 0)
    with served.client() as client:
        names = [f"reader {number}" for number in range(5)]
        admin = admin_key(client)
        keys = [
            client.post(
                "/api/keys",
                json={"name": name, "role": "read-only", "prefixes": ["notes"]},
                headers=admin,
            ).json()["key"]
            for name in names
        ]
    readers = [Follower(url, headers={"X-API-Key": key}) for key in keys[:4] for _ in range(2)]
    until(lambda: served.service.streams.count == 8)
    refused = httpx.get(url, headers={"X-API-Key": keys[4]}, trust_env=False)
    assert (refused.status_code, refused.json()["code"]) == (503, "too_many_streams")
    for reader in readers:
        reader.stop()


def test_revoking_a_key_ends_its_streams(serve: Serve):
    served = serve(event_stream_max_s=3600)
    url = f"http://127.0.0.1:{served.port}/events/stream"
    with served.client() as client:
        admin = admin_key(client)
        made = client.post(
            "/api/keys", json={"name": "reader", "role": "read-only", "prefixes": ["notes"]}, headers=admin
        ).json()
        reader = Follower(url, headers={"X-API-Key": made["key"]})
        until(lambda: reader.last_id is not None)
        assert reader.status == 200
        client.delete(f"/api/keys/{made['id']}", headers=admin).raise_for_status()
        client.post("/memory/add", json={"text": "secret", "source": "notes"}, headers=admin).raise_for_status()
        until(lambda: reader.status == 401)
        assert reader.events == []
        reader.stop()


def test_readers_see_the_events_of_their_namespace_sources_and_jobs(serve: Serve):
    served = serve(event_stream_max_s=3600)
    url = f"http://127.0.0.1:{served.port}/events/stream"
    with served.client() as client:
        admin = admin_key(client)
        body = {"name": "team", "role": "read-write", "prefixes": ["team/a"]}
        team = {"X-API-Key": client.post("/api/keys", json=body, headers=admin).json()["key"]}
        whole, limited = Follower(url, headers=admin, last_event_id="0"), Follower(url, headers=team)
        other = Follower(url, headers={**admin, "X-Namespace": "other"})
        until(lambda: all(reader.last_id is not None for reader in (whole, limited, other)))
        for source in ("team/a/b", "team/ab", "team/a"):
            client.post(
                "/memory/add", json={"text": f"in {source}", "source": source}, headers=admin
            ).raise_for_status()
        client.post("/messages", headers=admin, json={"agent_name": "default", "role": "user", "content": "hello"})
        client.post("/privacy/rescan", headers=admin).raise_for_status()
        client.delete("/memory/1", headers=admin).raise_for_status()
        client.post("/memory/add", json={"text": "x", "source": "n"}, headers={**admin, "X-Namespace": "other"})
        limited.wait(3)
        other.wait(1)
        until(lambda: bool(whole.events) and whole.events[-1][1] == "memory.deleted")
        assert [(kind, data["id"]) for _, kind, data in limited.events] == [
            ("memory.added", 1),
            ("memory.added", 3),
            ("memory.deleted", 1),
        ]
        assert [data["source"] for _, _, data in other.events] == ["n"]
        kinds = [kind for _, kind, _ in whole.events]
        assert kinds[:3] == ["memory.added"] * 3
        assert {"job.queued", "job.started", "job.completed", "memory.deleted"} <= set(kinds)
        for reader in (whole, limited, other):
            reader.stop()


@pytest.mark.sqlite_only(reason="restores a backup")
def test_a_restore_tells_every_reader_to_load_everything_again(serve: Serve):
    served = serve(event_stream_max_s=3600)
    url = f"http://127.0.0.1:{served.port}/events/stream"
    with served.client() as client, following(1, url) as [reader]:
        add = {"text": "one", "source": "notes"}
        client.post("/memory/add", json=add).raise_for_status()
        backup = client.post("/backup").json()["backup_path"].rsplit("/", 1)[-1]
        client.post("/memory/add", json={**add, "text": "two"}).raise_for_status()
        reader.wait(2)
        known = reader.last_id
        client.post("/restore", json={"backup_name": backup}).raise_for_status()
        until(lambda: [kind for _, kind, _ in reader.events][-1] == "events.lost")
        client.post("/memory/add", json={**add, "text": "three"}).raise_for_status()
        reader.wait(4)
        assert reader.events[-1][1] == "memory.added"
        late = Follower(url, last_event_id=str(known))
        late.wait(1)
        assert late.events[0][1] == "events.lost"
        late.stop()


@pytest.mark.sqlite_only(reason="restores a backup")
def test_a_reader_that_connects_after_a_restore_is_informed_once(serve: Serve):
    served = serve(event_stream_max_s=3600)
    url = f"http://127.0.0.1:{served.port}/events/stream"
    with served.client() as client:
        add = {"text": "one", "source": "notes"}
        client.post("/memory/add", json=add).raise_for_status()
        with following(1, url, last_event_id="0") as [early]:
            early.wait(1)
            known = early.last_id
        until(lambda: served.service.streams.count == 0)
        backup = client.post("/backup").json()["backup_path"].rsplit("/", 1)[-1]
        client.post("/restore", json={"backup_name": backup}).raise_for_status()
        with following(1, url, last_event_id=str(known)) as [late], following(1, url) as [new]:
            for number in (2, 3):
                client.post("/memory/add", json={**add, "text": f"text {number}"}).raise_for_status()
                new.wait(number - 1)
            until(lambda: late.ids[-1:] == new.ids[-1:])
            assert [kind for _, kind, _ in new.events] == ["memory.added"] * 2
            assert [kind for _, kind, _ in late.events] == ["events.lost", *["memory.added"] * 2]
