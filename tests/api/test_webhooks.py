"""Webhooks with a real receiver on loopback: signatures, retries, restarts, kills, and addresses."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path
from queue import Queue
from signal import SIGKILL
from typing import Any

import pytest
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import Settings
from souvenir.events import webhooks
from souvenir.events.webhook_addresses import AddressPolicy, is_public
from tests.api.conftest import BASE_URL, KEY, Start, loaded
from tests.cases import for_all
from tests.fake_embedder import FakeEmbedder, fake_of
from tests.killing import lines_until_killed

WAIT_S = 30.0


@dataclass
class Receiver:
    """Answers with the queued statuses, then 204. `hangs` holds answers until it is set."""

    statuses: list[int] = field(default_factory=list)
    arrived: Queue[tuple[dict[str, str], bytes]] = field(default_factory=Queue)
    hangs: threading.Event | None = None
    kills: bool = False
    port: int = 0

    def next(self) -> tuple[dict[str, str], bytes]:
        return self.arrived.get(timeout=WAIT_S)

    def event(self) -> tuple[str, str]:
        """Id of the message and type of the event that arrive next."""
        headers, body = self.next()
        return headers["webhook-id"], json.loads(body)["type"]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.arrived.put((headers, body))
        if self.kills:
            os.kill(int(handler.path.removeprefix("/")), SIGKILL)
            return
        if self.hangs is not None:
            self.hangs.wait(WAIT_S)
        status = self.statuses.pop(0) if self.statuses else 204
        handler.send_response(status)
        if status == 302:
            handler.send_header("Location", "/elsewhere")
        handler.send_header("Content-Length", "0")
        handler.end_headers()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            made.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield made
    if made.hangs is not None:
        made.hangs.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def client(start: Start, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setattr(webhooks, "PAUSES_S", (0.01, 0.01))
    monkeypatch.setattr(webhooks, "TIMEOUT_S", 0.5)
    return loaded(start(webhook_allowed_hosts="127.0.0.0/8"))


def register(client: TestClient, receiver: Receiver, **fields: object) -> dict[str, Any]:
    body = {"url": f"http://127.0.0.1:{receiver.port}/hook?token=t-91", "events": ["memory.added"], **fields}
    answer = client.post("/webhooks", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def store(client: TestClient, text: str) -> None:
    assert client.post("/memory/add", json={"text": text, "source": "a/b"}).status_code == 200


def log_of(client: TestClient, hook: dict[str, Any]) -> list[dict[str, object]]:
    found = client.get(f"/webhooks/{hook['id']}/deliveries").json()["deliveries"]
    return [one for one in found if one["status"] != "waiting"]


def until(condition) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_events_arrive_signed_and_the_secret_is_shown_once(client: TestClient, receiver: Receiver, caplog):
    hook = register(client, receiver)
    store(client, "the quick red fox")
    headers, body = receiver.next()
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(hook["secret"].removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    event = json.loads(body)
    assert (event["type"], event["data"]["source"]) == ("memory.added", "a/b")
    assert b"quick" not in body
    until(lambda: log_of(client, hook))
    shown = [client.get(path).text for path in ("/webhooks", f"/webhooks/{hook['id']}/deliveries", "/audit", "/export")]
    assert hook["secret"] not in "".join(shown) + caplog.text
    assert client.get("/webhooks").json()["count"] == 1
    assert client.delete(f"/webhooks/{hook['id']}").json() == {"deleted": True}
    assert client.delete(f"/webhooks/{hook['id']}").status_code == 404


def test_a_failed_delivery_is_repeated_with_its_id_before_later_events(client: TestClient, receiver: Receiver):
    receiver.statuses = [500, 302]
    hook = register(client, receiver)
    store(client, "one")
    store(client, "two")
    ids = [receiver.event()[0] for _ in range(4)]
    assert ids[0] == ids[1] == ids[2] != ids[3]
    until(lambda: len(log_of(client, hook)) == 2)
    last, first = log_of(client, hook)
    assert (first["status"], first["attempts"], last["attempts"]) == ("delivered", 3, 1)


def test_a_receiver_that_always_fails_is_given_up_and_disabled(client: TestClient, receiver: Receiver):
    receiver.statuses = [500] * 20
    hook = register(client, receiver)
    for number in range(4):
        store(client, f"text {number}")
    until(lambda: client.get("/webhooks").json()["webhooks"][0]["disabled_at"])
    assert [one["status"] for one in log_of(client, hook)] == ["failed"] * 3
    assert "could not be delivered" in client.get("/webhooks").json()["webhooks"][0]["reason"]


def test_410_ends_a_webhook(client: TestClient, receiver: Receiver):
    receiver.statuses = [410]
    register(client, receiver)
    store(client, "one")
    until(lambda: client.get("/webhooks").json()["webhooks"][0]["disabled_at"])
    store(client, "two")
    assert receiver.arrived.qsize() == 1


def test_a_receiver_that_hangs_blocks_no_other(client: TestClient, receiver: Receiver, monkeypatch):
    monkeypatch.setattr(client.app.state.service.webhooks, "timeout_s", 20.0)  # type: ignore[attr-defined]
    hanging = socket_that_never_answers()
    for _ in range(2):
        register(client, receiver, url=f"http://127.0.0.1:{hanging.server_address[1]}/")
    register(client, receiver)
    store(client, "one")
    assert json.loads(receiver.next()[1])["type"] == "memory.added"
    hanging.server_close()


def socket_that_never_answers() -> ThreadingHTTPServer:
    """It listens, and nothing accepts."""
    return ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://example.com/", "https://", "https://user:pass@93.184.216.34/", "http://127.0.0.1/", "http://[::1]/"),
        *("http://0.0.0.0/", "http://2130706433/", "http://0x7f.1/", "http://127.1/", "http://localhost/"),
        *("http://10.0.0.1/", "http://192.168.1.1/", "http://172.16.0.1/", "http://100.64.0.1/", "http://224.0.0.1/"),
        *("http://169.254.169.254/latest", "http://[fe80::1]/", "http://[fd00:ec2::254]/", "http://240.0.0.1/"),
        *("http://[::ffff:127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://[ff02::1]/"),
    ],
)
def test_only_public_addresses_are_accepted(shared_client: TestClient, url: str):
    answer = shared_client.post("/webhooks", json={"url": url})
    assert (answer.status_code, answer.json()["code"]) == (422, "address_not_allowed")


SPECIAL = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24"),
    *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32"),
    *("::/128", "::1/128", "::ffff:10.0.0.0/104", "::ffff:192.88.99.0/120", "64:ff9b::a00:0/104", "64:ff9b:1::/48"),
    *("100::/64", "100:0:0:1::/64", "2001::/23", "2001::/32", "2001:2::/48", "2001:10::/28", "2001:20::/28"),
    *("2001:db8::/32", "2002:a00::/24", "2002:c058:6300::/40", "2620:4f:8000::/48", "3fff::/20", "5f00::/16"),
    *("fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
)
"""The blocks of the IANA registries of special-purpose addresses, and IPv6 addresses that contain one of them."""


@for_all("block", SPECIAL)
def test_no_address_of_a_special_purpose_block_is_public(block: str):
    network = ip_network(block)
    for number in (0, 9, 10, network.num_addresses // 2, network.num_addresses - 1):
        address = network[min(number, network.num_addresses - 1)]
        assert not is_public(address), address


def test_public_addresses_of_both_families_are_accepted():
    for url, address in (("https://93.184.216.34/x", "93.184.216.34"), ("http://[2606:4700::1]/", "2606:4700::1")):
        assert AddressPolicy().checked(url)[1] == address


def test_a_name_that_is_rebound_to_loopback_is_refused_at_delivery(client: TestClient, receiver: Receiver):
    addresses = [["93.184.216.34"], *([["127.0.0.1"]] * 20)]
    service = client.app.state.service.webhooks  # type: ignore[attr-defined]
    service.policy = AddressPolicy(resolve=lambda host, port: addresses.pop(0))
    hook = register(client, receiver, url=f"http://rebound.example:{receiver.port}/")
    store(client, "one")
    until(lambda: log_of(client, hook))
    assert "not public" in str(log_of(client, hook)[0]["error"])
    assert receiver.arrived.empty()


def test_types_and_secrets_are_checked(client: TestClient, receiver: Receiver):
    url = f"http://127.0.0.1:{receiver.port}/"
    assert client.post("/webhooks", json={"url": url, "events": ["memory.eaten"]}).status_code == 422
    assert client.post("/webhooks", json={"url": url, "secret": "whsec_short"}).status_code == 422
    own = webhooks.new_secret()
    made = register(client, receiver, secret=own, events=None)
    assert made["secret"] == own
    assert made["events"] is None


def test_a_revoked_key_ends_its_webhooks(start: Start, receiver: Receiver):
    client = loaded(start(api_key=KEY, webhook_allowed_hosts="127.0.0.1"))
    admin = {"X-API-Key": KEY}
    body = {"name": "scoped", "role": "read-write", "prefixes": ["a"]}
    key = client.post("/api/keys", json=body, headers=admin).json()
    own = {"X-API-Key": key["key"]}
    hook = {"url": f"http://127.0.0.1:{receiver.port}/", "events": ["memory.added"]}
    assert client.post("/webhooks", json=hook, headers=own).status_code == 200
    for source in ("b/c", "a/b"):
        client.post("/memory/add", json={"text": f"text of {source}", "source": source}, headers=admin)
    assert json.loads(receiver.next()[1])["data"]["source"] == "a/b"
    client.delete(f"/api/keys/{key['id']}", headers=admin)
    client.post("/memory/add", json={"text": "later", "source": "a/b"}, headers=admin)
    until(lambda: client.get("/webhooks", headers=admin).json()["webhooks"][0]["disabled_at"])
    assert receiver.arrived.empty()


def test_webhooks_without_a_key_are_disabled_once_keys_exist(client: TestClient, receiver: Receiver):
    register(client, receiver)
    key = client.post("/api/keys", json={"name": "admin", "role": "admin"}).json()["key"]
    admin = {"X-API-Key": key}
    client.post("/memory/add", json={"text": "one", "source": "notes"}, headers=admin).raise_for_status()

    def listed() -> dict[str, Any]:
        return dict(client.get("/webhooks", headers=admin).json()["webhooks"][0])

    until(lambda: listed()["disabled_at"])
    assert listed()["reason"] == "its key was revoked, or may no longer read this namespace"
    assert receiver.arrived.empty()


def test_retries_go_on_after_a_restart(tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch):
    receiver.statuses = [500]
    monkeypatch.setattr(webhooks, "PAUSES_S", (2.0,))
    with TestClient(running(tmp_path), base_url=BASE_URL) as client:
        hook = register(loaded(client), receiver)
        store(client, "one")
        first = receiver.event()
        until(lambda: client.get(f"/webhooks/{hook['id']}/deliveries").json()["deliveries"])
    with TestClient(running(tmp_path), base_url=BASE_URL):
        assert receiver.event() == first


def test_a_kill_between_delivery_and_commit_repeats_the_message(tmp_path: Path, receiver: Receiver):
    receiver.kills = True
    lines_until_killed("tests.api.webhook_process", tmp_path, str(receiver.port), lines=1_000)
    killed = receiver.event()
    receiver.kills = False
    with TestClient(running(tmp_path), base_url=BASE_URL):
        assert receiver.event() == killed


def running(folder: Path):
    settings = Settings(data_dir=folder / "data", webhook_allowed_hosts="127.0.0.1")  # type: ignore[arg-type]
    return create_app(settings, FakeEmbedder(), fake_of)
