"""What is looked at before a request: wrong keys of its address, the name that it is for, the page that it is from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.conftest import KEY, Start
from tests.api.test_app import served

ENV, WRONG = {"X-API-Key": KEY}, {"X-API-Key": "mem_" + "0" * 32}


def test_after_too_many_wrong_keys_the_right_one_is_refused_too(start: Start):
    client = start(api_key=KEY, auth_rate_limit=3)
    assert [client.get("/memories", headers=WRONG).status_code for _ in range(4)] == [401, 401, 401, 429]
    refused = client.get("/memories", headers=ENV)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_attempts")
    assert refused.json()["detail"] == "Too many failed authentication attempts"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60


def test_a_missing_key_is_no_attempt_and_health_is_no_way_around_the_limit(start: Start):
    client = start(api_key=KEY, auth_rate_limit=3)
    assert {client.get("/memories").status_code for _ in range(9)} == {401}
    assert client.get("/memories", headers=ENV).status_code == 200
    for _ in range(3):
        assert client.get("/health", headers=WRONG).status_code == 200
    assert client.get("/memories", headers=ENV).status_code == 429
    assert "total_memories" not in client.get("/health", headers=ENV).json()


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8900", "127.0.0.1:1", "[::1]", "[::1]:8900"])
def test_a_loopback_service_answers_to_loopback_names(start: Start, host: str):
    assert start().get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8900",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "",
        "evil:80:80",
        "[::2]",
    ],
)
@pytest.mark.parametrize("path", ["/health", "/memories", "/docs", "/nothing"])
def test_a_loopback_service_answers_to_no_other_name(start: Start, host: str, path: str):
    refused = start().get(path, headers={"Host": host})
    assert (refused.status_code, refused.json()["code"]) == (421, "host_not_allowed")
    assert "ALLOWED_HOSTS" in refused.json()["detail"]
    assert refused.json()["request_id"] == refused.headers["X-Request-ID"]


def test_other_names_are_answered_if_they_are_set(start: Start):
    client = start(host="::1", allowed_hosts="Memory.lan, other")
    for host, status in (("memory.lan:80", 200), ("other", 200), ("localhost", 200), ("evil.example", 421)):
        assert client.get("/health", headers={"Host": host}).status_code == status


def test_on_a_network_any_name_is_answered_unless_some_are_set(start: Start, tmp_path: Path):
    client = start(host="0.0.0.0")
    assert client.get("/health", headers={"Host": "anything.lan"}).status_code == 200
    client = start(host="0.0.0.0", allowed_hosts="memory.lan", data_dir=tmp_path / "other")
    assert client.get("/health", headers={"Host": "anything.lan"}).status_code == 421
    assert client.get("/health", headers={"Host": "127.0.0.1:8900"}).status_code == 200


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


@pytest.mark.parametrize(("trusted", "from_elsewhere"), [("", 429), ("127.0.0.1", 200), ("10.0.0.0/8", 429)])
def test_what_a_proxy_says_of_an_address_is_believed_if_it_is_trusted(
    tmp_path: Path, trusted: str, from_elsewhere: int
):
    settings = {"API_KEY": KEY, "AUTH_RATE_LIMIT": "2", "TRUSTED_PROXIES": trusted}
    with served(tmp_path / "data", **settings) as (client, _, _):

        def status(headers: dict[str, str], forwarded: str) -> int:
            return client.get("/api/keys", headers={**headers, "X-Forwarded-For": forwarded}).status_code

        assert [status(WRONG, "203.0.113.7") for _ in range(3)] == [401, 401, 429]
        assert status(ENV, "203.0.113.8") == from_elsewhere
