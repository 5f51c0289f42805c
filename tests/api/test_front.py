"""Checks before a request reaches its route: wrong keys per address, the Host header, and the Origin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from app import create_app
from benchmarks.service import Service
from souvenir.core.settings import Settings
from tests.api.conftest import BASE_URL, KEY, Start
from tests.cases import for_all
from tests.fake_embedder import FakeEmbedder, fake_of

ENV, WRONG = {"X-API-Key": KEY}, {"X-API-Key": "mem_" + "0" * 32}


def test_after_too_many_wrong_keys_further_wrong_ones_are_429_and_the_right_one_passes(start: Start):
    client = start(api_key=KEY, auth_rate_limit=3)
    assert [client.get("/memories", headers=WRONG).status_code for _ in range(4)] == [401, 401, 401, 429]
    refused = client.get("/memories", headers=WRONG)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_attempts")
    assert refused.json()["detail"] == "Too many failed authentication attempts"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert client.get("/memories", headers=ENV).status_code == 200
    assert client.get("/memories", headers=WRONG).status_code == 429


def test_a_missing_key_is_no_attempt_and_a_wrong_one_at_health_is(start: Start):
    client = start(api_key=KEY, auth_rate_limit=3)
    assert {client.get("/memories").status_code for _ in range(9)} == {401}
    for _ in range(3):
        assert client.get("/health", headers=WRONG).status_code == 200
    assert client.get("/memories", headers=WRONG).status_code == 429
    assert "total_memories" in client.get("/health", headers=ENV).json()
    assert "total_memories" not in client.get("/health", headers=WRONG).json()


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8900", "127.0.0.1:1", "[::1]", "[::1]:8900"])
def test_a_loopback_service_answers_to_loopback_names(shared_client: TestClient, host: str):
    assert shared_client.get("/health", headers={"Host": host}).status_code == 200


@for_all(
    "host",
    [
        "evil.example",
        "evil.example:8900",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "",
        "evil:80:80",
        "[::2]",
        "localhost.",
        "localhost:",
        "localhost:80@evil.example",
        "evil.example#localhost",
        "localhost, evil.example",
        "127.1",
        "2130706433",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
    ],
)
@for_all("path", ["/health", "/memories", "/docs", "/nothing"])
def test_a_loopback_service_answers_to_no_other_name(shared_client: TestClient, host: str, path: str):
    refused = shared_client.get(path, headers={"Host": host})
    assert (refused.status_code, refused.json()["code"]) == (421, "host_not_allowed")
    assert "ALLOWED_HOSTS" in refused.json()["detail"]
    assert refused.json()["request_id"] == refused.headers["X-Request-ID"]


def test_other_names_are_answered_if_they_are_set(start: Start):
    client = start(host="::1", allowed_hosts="Memory.lan, other:8900, FD00::0:7, 192.0.2.7")
    allowed = ("memory.lan:80", "other", "localhost", "[fd00::7]:8900", "192.0.2.7:8900")
    for host, status in (*((name, 200) for name in allowed), ("evil.example", 421), ("fd00::7", 421)):
        assert client.get("/health", headers={"Host": host}).status_code == status


@pytest.mark.parametrize("url", ["https://Memory.example.org", "http://memory.example.org:8900/souvenir/"])
def test_the_name_of_its_public_address_is_answered(start: Start, url: str):
    client = start(public_url=url)
    for host, status in (("memory.example.org", 200), ("memory.example.org:443", 200), ("example.org", 421)):
        assert client.get("/health", headers={"Host": host}).status_code == status


def test_a_network_service_answers_any_name_if_it_needs_a_key_and_no_names_are_set(start: Start, tmp_path: Path):
    client = start(host="0.0.0.0", api_key=KEY)
    assert client.get("/health", headers={"Host": "anything.lan"}).status_code == 200
    client = start(host="0.0.0.0", api_key=KEY, allowed_hosts="memory.lan", data_dir=tmp_path / "other")
    assert client.get("/health", headers={"Host": "anything.lan"}).status_code == 421
    assert client.get("/health", headers={"Host": "127.0.0.1:8900"}).status_code == 200


@pytest.mark.parametrize("settings", [{"allow_open": True}, {"published_on": "127.0.0.1"}])
def test_a_service_without_keys_answers_known_host_names_only(start: Start, settings):
    client = start(host="0.0.0.0", allowed_hosts="", **settings)
    rebound = {"Host": "evil.example:8900", "Origin": "http://evil.example:8900", "Sec-Fetch-Site": "same-origin"}
    for host in (rebound, {"Host": "192.0.2.7:8900"}):
        refused = client.post("/api/keys", json={"name": "mine", "role": "admin"}, headers=host)
        assert (refused.status_code, refused.json()["code"]) == (421, "host_not_allowed")
    assert client.get("/memories", headers={"Host": "localhost:8900"}).status_code == 200
    made = client.post("/api/keys", json={"name": "ann", "role": "admin"}).json()["key"]
    by_name = {"Host": "memory.lan", "X-API-Key": made}
    assert client.get("/memories", headers=by_name).status_code == 200
    assert client.get("/memories", headers={**by_name, "X-API-Key": "none"}).status_code == 401


def test_the_name_that_a_proxy_states_is_not_read(start: Start):
    client = start(trusted_proxies="testclient")
    for name in ("X-Forwarded-Host", "X-Original-Host", "Forwarded"):
        assert client.get("/health", headers={"Host": "evil.example", name: "localhost"}).status_code == 421
        assert client.get("/health", headers={name: "evil.example"}).status_code == 200


def test_a_second_host_header_is_refused(start: Start):
    headers = [("Host", "localhost"), ("Host", "evil.example")]
    assert start().get("/health", headers=headers).status_code == 421


def test_there_is_no_web_socket(start: Start):
    client = start()
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("/mcp", headers={"Origin": "http://evil.example"}),
    ):
        pass


ORIGIN = {"Origin": "https://notes.example"}


def test_no_page_may_call_unless_its_origin_is_set(start: Start, tmp_path: Path):
    asked = {**ORIGIN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-api-key"}
    closed = start()
    assert closed.options("/search", headers=asked).status_code == 405
    assert "access-control-allow-origin" not in closed.get("/health", headers=ORIGIN).headers
    open_to_one = start(cors_origins="https://notes.example", data_dir=tmp_path / "other")
    allowed = open_to_one.options("/search", headers=asked)
    assert allowed.headers["access-control-allow-origin"] == "https://notes.example"
    assert "x-api-key" in allowed.headers["access-control-allow-headers"]
    assert open_to_one.get("/health", headers=ORIGIN).headers["access-control-allow-origin"] == "https://notes.example"
    other = open_to_one.get("/health", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers


UNSAFE = [
    ("POST", "/memory/add"),
    ("POST", "/import"),
    ("POST", "/backup"),
    ("POST", "/mcp"),
    ("POST", "/nothing"),
    ("PUT", "/memory-blocks/ann/notes"),
    ("PATCH", "/memory/1"),
    ("DELETE", "/memory/1"),
    ("BREW", "/memories"),
]
CROSS_SITE = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:1"},
    {"Origin": "http://localhost.evil.example"},
    {"Origin": "chrome-extension://abc"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
]


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("keyed"), api_key=SecretStr(KEY))
    with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL) as client:
        yield client


@for_all("method_and_path", UNSAFE)
@for_all("headers", CROSS_SITE)
def test_a_page_of_another_site_can_send_nothing_that_changes(keyed: TestClient, method_and_path, headers):
    for key in ({}, ENV):
        refused = keyed.request(*method_and_path, headers={**headers, **key})
        assert (refused.status_code, refused.json()["code"]) == (403, "origin_not_allowed")


def test_a_form_of_another_site_reaches_no_route_of_a_service_without_keys(start: Start):
    client = start()
    forms = {"Origin": "http://evil.example", "Content-Type": "text/plain"}
    line = b'{"text": "planted", "source": "s"}'
    assert client.post("/import", content=line, headers=forms).status_code == 403
    assert client.post("/backup", headers=forms).status_code == 403
    assert client.get("/memories/count").json() == {"count": 0}
    assert client.get("/backups").json()["count"] == 0


def test_two_origins_are_refused_even_if_one_is_allowed(start: Start):
    headers = [("Origin", "http://localhost"), ("Origin", "http://evil.example")]
    assert start().post("/backup", headers=headers).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://localhost"},
        {"Origin": "https://localhost"},
        {"Origin": "http://LOCALHOST:8900", "Host": "localhost:8900"},
        {"Origin": "https://memory.lan", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "https://notes.example", "Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
def test_programs_the_own_pages_and_allowed_origins_may_write(start: Start, headers):
    client = start(cors_origins="https://Notes.example/")
    assert client.post("/memory/add", json={"text": "x", "source": "s"}, headers=headers).status_code == 200


def test_every_origin_may_write_if_the_settings_say_so(start: Start):
    client = start(cors_origins="*", api_key=KEY)
    headers = {**ENV, "Origin": "http://any.example", "Sec-Fetch-Site": "cross-site"}
    assert client.post("/memory/add", json={"text": "x", "source": "s"}, headers=headers).status_code == 200


def test_a_header_that_names_another_method_is_not_read(start: Start):
    client = start()
    for name in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
        assert client.get("/memories", headers={name: "POST", "Origin": "http://evil.example"}).status_code == 200
        assert client.post("/memory/1", headers={name: "DELETE"}).status_code == 405


@pytest.mark.parametrize(("trusted", "from_elsewhere"), [("", 429), ("127.0.0.1", 401), ("10.0.0.0/8", 429)])
def test_forwarded_addresses_of_trusted_proxies_are_used(tmp_path: Path, trusted: str, from_elsewhere: int):
    settings = {"API_KEY": KEY, "AUTH_RATE_LIMIT": "2", "TRUSTED_PROXIES": trusted}
    service = Service(tmp_path / "data", **settings)
    service.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{service.port}", trust_env=False) as client:

            def status(headers: dict[str, str], forwarded: str) -> int:
                return client.get("/api/keys", headers={**headers, "X-Forwarded-For": forwarded}).status_code

            assert [status(WRONG, "203.0.113.7") for _ in range(3)] == [401, 401, 429]
            assert status(WRONG, "203.0.113.8") == from_elsewhere
    finally:
        service.kill()
