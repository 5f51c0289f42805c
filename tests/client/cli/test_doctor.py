"""doctor: every check reports a problem with its remedy, and a failed one exits with 1."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from souvenir_client import Souvenir
from souvenir_client.cli import connection_checks
from souvenir_client.cli.connection_checks import Status
from souvenir_client.errors import ConnectionFailed
from tests.client.running import RunningService, free_port

SELF_SIGNED = Path(__file__).with_name("self_signed.pem")
"""A key and a certificate for 127.0.0.1, made for these tests and known to nobody."""


def checks_of(done) -> dict[str, tuple[str, str]]:
    return {one["check"]: (one["status"], one["message"]) for one in json.loads(done.stdout)["checks"]}


@contextmanager
def answering(status: int, body: bytes, **headers: str) -> Iterator[str]:
    """Something else that speaks HTTP."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response_only(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_healthy_service_passes_every_check_and_the_probe_is_deleted(run, answer):
    done = run("doctor", "--write", "--json", "--namespace", "well")
    found = checks_of(done)
    assert (done.exit_code, json.loads(done.stdout)["healthy"]) == (0, True)
    assert {name: status for name, (status, _) in found.items()} == dict.fromkeys(
        ["transport", "reachable", "clock", "service", "ready", "key", "search", "extraction", "storage", "backups",
         "write"], "ok"
    )  # fmt: skip
    assert answer("list", "--namespace", "well")["total"] == 0


def test_doctor_prints_a_line_per_check(run):
    done = run("doctor")
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()].count("ok") >= 8


def test_changes_without_a_backup_are_a_warning(run, own_service):
    url = own_service.url
    run("add", "Something.", SOUVENIR_URL=url)
    done = run("doctor", "--json", SOUVENIR_URL=url)
    assert done.exit_code == 0
    assert checks_of(done)["backups"][0] == "warning"
    assert run("backup", SOUVENIR_URL=url).exit_code == 0
    assert checks_of(run("doctor", "--json", SOUVENIR_URL=url))["backups"][0] == "ok"


def test_without_extraction_doctor_names_the_setting_that_enables_it(run, own_service):
    status, message = checks_of(run("doctor", "--json", SOUVENIR_URL=own_service.url))["extraction"]
    assert status == "ok"
    assert message == (
        "Nothing is extracted from conversations: set EXTRACT_PROVIDER of the service to anthropic, openai or ollama."
    )


def test_a_closed_port_fails_and_exits_with_1(run):
    done = run("doctor", "--json", SOUVENIR_URL=f"http://127.0.0.1:{free_port()}")
    status, message = checks_of(done)["reachable"]
    assert (done.exit_code, status) == (1, "failed")
    assert "Nothing listens" in message


def test_an_unresolvable_host_name_is_reported(run):
    done = run("doctor", "--json", "--server", "http://no-such-host.invalid:8900")
    assert checks_of(done)["reachable"] == (
        "failed",
        "The host name no-such-host.invalid is unknown (DNS): check it, or set another address with --server.",
    )
    assert checks_of(done)["transport"][0] == "warning"


def test_https_to_a_port_without_tls_is_reported(run, service):
    status, message = checks_of(run("doctor", "--json", "--server", service.url.replace("http", "https")))["reachable"]
    assert status == "failed"
    assert "does not use TLS: use http://" in message


@contextmanager
def at_a_port(converse: Callable[[socket.socket], None]) -> Iterator[str]:
    """Something that takes one connection; yields its host and port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def take() -> None:
            connection, _ = listener.accept()
            with connection:
                converse(connection)

        thread = Thread(target=take)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            thread.join()


def shake_hands(connection: socket.socket) -> None:
    """Show a certificate that nobody knows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(SELF_SIGNED)
    with suppress(ssl.SSLError, ConnectionResetError):
        context.wrap_socket(connection, server_side=True).close()


def test_an_untrusted_certificate_is_reported(run):
    with at_a_port(shake_hands) as place:
        status, message = checks_of(run("doctor", "--json", "--server", f"https://{place}"))["reachable"]
    assert status == "failed"
    assert "is not trusted (self-signed certificate): set SSL_CERT_FILE to the file of its authority" in message


def test_the_client_refuses_untrusted_certificates():
    with (
        at_a_port(shake_hands) as place,
        Souvenir(f"https://{place}", max_retries=0) as client,
        pytest.raises(ConnectionFailed, match="certificate verify failed"),
    ):
        client.health.check()


@pytest.mark.parametrize(
    ("said", "message"), [(b"SSH-2.0-OpenSSH_9.6\r\n", "does not use HTTP"), (b"", "does not use HTTP")]
)
def test_another_protocol_is_reported(run, said, message):
    def talk(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(said)

    with at_a_port(talk) as place:
        found = checks_of(run("doctor", "--json", "--server", f"http://{place}"))["reachable"]
    assert found[0] == "failed"
    assert message in found[1]


def test_a_hanging_service_is_reported(run):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        status, message = checks_of(run("doctor", "--json", "--server", url, "--timeout", "0.05"))["reachable"]
    assert status == "failed"
    assert "did not answer within 0.05 s" in message


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b"hello"), (200, b'{"status": "ok", "service": "photos", "version": "3"}'), (404, b"no"), (302, b"")],
)
def test_another_service_fails(run, status, body):
    with answering(status, body) as url:
        done = run("doctor", "--json", "--server", url)
    assert done.exit_code == 1
    assert checks_of(done)["service"][0] == "failed"
    assert "ready" not in checks_of(done)


def test_a_service_of_another_major_version_is_a_warning(run):
    with answering(200, b'{"status": "ok", "service": "memories", "version": "99.0.0"}') as url:
        status, message = checks_of(run("doctor", "--json", "--server", url))["service"]
    assert status == "warning"
    assert "99.0.0" in message


def test_a_service_loading_its_model_is_not_ready(run):
    with (
        answering(503, b'{"detail": {"ready": false}, "code": "not_ready"}') as url,
        Souvenir(url, max_retries=0) as client,
    ):
        from souvenir_client.cli.service_checks import readiness

        assert readiness(client).status is Status.FAILED


@pytest.mark.parametrize(
    ("ahead_s", "status"), [(0.0, Status.OK), (3.0, Status.OK), (90.0, Status.WARNING), (-90.0, Status.WARNING)]
)
def test_clocks_that_differ_by_more_than_seconds_are_a_warning(ahead_s, status):
    here = datetime(2026, 5, 1, 12, tzinfo=UTC)
    there = (here + timedelta(seconds=ahead_s)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    assert connection_checks.clock(httpx.Response(200, headers={"Date": there}), here).status is status


def test_an_answer_without_a_readable_date_is_a_warning():
    for headers in ({}, {"Date": "yesterday"}):
        assert connection_checks.clock(httpx.Response(200, headers=headers), datetime.now(UTC)).status is Status.WARNING


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("http://127.0.0.1:8900", Status.OK),
        ("http://[::1]:8900", Status.OK),
        ("http://localhost", Status.OK),
        ("https://souvenir.lan", Status.OK),
        ("http://souvenir.lan", Status.WARNING),
        ("http://192.168.1.5:8900", Status.WARNING),
    ],
)
def test_a_key_sent_without_tls_is_a_warning(url, status):
    assert connection_checks.secrecy(url, sends_key=True).status is status


@pytest.fixture(scope="module")
def guarded(tmp_path_factory) -> Iterator[tuple[RunningService, dict[str, str]]]:
    service = RunningService(tmp_path_factory.mktemp("guarded") / "data")
    service.start()
    with Souvenir(service.url) as client:
        admin = client.keys.create(name="ana", role="admin").key
    with Souvenir(service.url, api_key=admin) as client:
        reader = client.keys.create(name="reader", role="read-only", prefixes=["team"]).key
        writer = client.keys.create(name="writer", role="read-write", prefixes=["team"]).key
    yield service, {"admin": admin, "reader": reader, "writer": writer}
    service.stop()


def look(run, guarded, *, key: str | None = None):
    service, keys = guarded
    more = {} if key is None else {"SOUVENIR_API_KEY": keys.get(key, key)}
    return run("doctor", "--write", "--json", SOUVENIR_URL=service.url, **more)


def test_without_a_key_doctor_says_that_one_is_required(run, guarded):
    done = look(run, guarded)
    assert done.exit_code == 1
    assert checks_of(done)["key"] == ("failed", "A key is required: set SOUVENIR_API_KEY or --api-key.")


def test_a_wrong_key_is_reported_and_not_printed(run, guarded):
    done = look(run, guarded, key="mem_this_is_no_key")
    assert done.exit_code == 1
    assert "was refused" in checks_of(done)["key"][1]
    assert "mem_this_is_no_key" not in done.output


def test_an_admin_sees_storage_and_backups(run, guarded):
    done = look(run, guarded, key="admin")
    assert done.exit_code == 0
    assert {"storage", "backups"} < checks_of(done).keys()


def test_a_writer_probes_within_the_scope_of_its_key(run, guarded):
    found = checks_of(look(run, guarded, key="writer"))
    assert found["write"][0] == "ok"
    assert "limited to team and below" in found["key"][1]
    assert "backups" not in found


def test_a_reader_writes_nothing(run, guarded):
    assert checks_of(look(run, guarded, key="reader"))["write"] == (
        "warning",
        "Nothing was written: the key is read-only.",
    )
