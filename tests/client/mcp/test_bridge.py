"""The bridge between stdio and a service: messages are passed or refused, and never lost."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from souvenir_client.cli.failures import ExitCode
from souvenir_client.cli.root import souvenir
from souvenir_client.mcp.bridge import MAX_AT_ONCE
from tests.client.cli.entry import COMMAND, environment
from tests.client.mcp.bridges import BridgeProcess, CommandProcess
from tests.client.mcp.scripted import AGREED, ScriptedMcp, answer, mcp_refusal, progress, refusal, stream
from tests.vendors.server import Reply

MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


@pytest.fixture(scope="module")
def running() -> Iterator[ScriptedMcp]:
    service = ScriptedMcp()
    service.start()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def started(running: ScriptedMcp) -> Iterator[BridgeProcess]:
    with CommandProcess("--server", running.url, "--api-key", "k1", "--agent", "ana b") as bridge:
        yield bridge
        assert bridge.close() == 0


@pytest.fixture
def service(running: ScriptedMcp) -> ScriptedMcp:
    running.begin()
    return running


@pytest.fixture
def bridge(started: BridgeProcess, service: ScriptedMcp) -> Iterator[BridgeProcess]:
    """One bridge for all tests; each has to leave nothing behind."""
    yield started
    service.go_on.set()
    service.replies.clear()
    assert started.ask("ping", "behind")["id"] == "behind"
    assert started.rest() == []


def test_a_message_before_2026_has_the_negotiated_version(bridge, service):
    assert bridge.ask("initialize", 1, protocolVersion="2025-11-25")["result"]["protocolVersion"] == AGREED
    bridge.send("notifications/initialized")
    bridge.ask("tools/call", 2, name="list_memories", arguments={})
    bridge.ask("initialize", 3, protocolVersion="2025-11-25")
    versions = {request.body.get("id"): request.headers.get("mcp-protocol-version") for request in service.requests}
    assert versions == {1: None, None: AGREED, 2: AGREED, 3: None}
    for request in service.requests:
        assert request.path == "/mcp/ana%20b"
        assert request.headers["x-api-key"] == "k1"
        assert request.headers["accept"] == "application/json, text/event-stream"
        assert "mcp-method" not in request.headers


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "add_memory", "arguments": {}}, "add_memory"),
        ("resources/read", {"uri": "souvenir://memories/ö"}, "=?base64?c291dmVuaXI6Ly9tZW1vcmllcy/Dtg==?="),
        ("tools/list", {"name": "not this"}, None),
    ],
)
def test_a_message_with_a_version_is_described_in_headers(bridge, service, method, params, name):
    assert bridge.ask(method, "a", _meta=MODERN, **params)["id"] == "a"
    [request] = service.requests
    assert request.headers["mcp-protocol-version"] == "2026-07-28"
    assert (request.headers["mcp-method"], request.headers.get("mcp-name")) == (method, name)


def test_an_answer_is_passed_completely_on_one_line(bridge, service):
    text = (
        '{"jsonrpc": "2.0",\n "id": 7,\r\n "result": {"n": 1e300, "m": 98765432109876543210, "t": "\u2028é\\u00e9"}}\n'
    )
    service.replies.append(Reply(200, text.encode()))
    bridge.send("tools/list", 7)
    assert json.loads(bridge.line()) == json.loads(text)


def test_concurrent_requests_get_their_own_answers_within_a_limit(bridge, service):
    service.holds = True
    for number in range(60):
        bridge.send("tools/call", number if number % 2 else str(number), name="echo", arguments={"n": number})
    for _ in range(MAX_AT_ONCE):
        service.arrived.acquire(timeout=30)
    service.go_on.set()
    answers = [bridge.receive() for _ in range(60)]
    assert {int(one["id"]): one["result"]["params"]["arguments"]["n"] for one in answers} == {n: n for n in range(60)}
    assert {type(one["id"]) for one in answers} == {int, str}
    assert service.most_at_once == MAX_AT_ONCE


def test_progress_is_passed_before_the_answer(bridge, service):
    steps = [progress("p", done) for done in range(4)]
    service.replies.append(stream(*steps, answer(1, done=True), pauses=True))
    bridge.send("tools/call", 1, name="slow", arguments={}, _meta={"progressToken": "p"})
    assert bridge.receive() == steps[0]
    service.go_on.set()
    assert [bridge.receive() for _ in range(4)] == [*steps[1:], answer(1, done=True)]


@pytest.mark.parametrize("meta", [MODERN, {}], ids=["2026", "before"])
def test_a_cancelled_request_is_closed_and_gets_no_answer(bridge, service, meta):
    for number in range(MAX_AT_ONCE + 1):
        service.replies.append(Reply(200, answer(number), waits=True))
        bridge.send("tools/call", number, name="slow", arguments={}, _meta=meta)
    for _ in range(MAX_AT_ONCE):
        service.arrived.acquire(timeout=30)
    service.replies.clear()
    # The last one first: it waits, and the place of a closed one would be given to it.
    for number in reversed(range(MAX_AT_ONCE + 1)):
        bridge.send("notifications/cancelled", requestId=number)
    # Their places are free again.
    assert bridge.ask("tools/list", "after", _meta=meta)["id"] == "after"
    for _ in range(1 if meta else MAX_AT_ONCE + 2):
        assert service.arrived.acquire(timeout=30)
    told = [one.body["params"]["requestId"] for one in service.requests if "id" not in one.body]
    assert sorted(told) == ([] if meta else list(range(MAX_AT_ONCE + 1)))


def test_cancelling_closes_the_connection():
    listener = socket.create_server(("127.0.0.1", 0))
    with listener, BridgeProcess("--server", f"http://127.0.0.1:{listener.getsockname()[1]}") as bridge:
        bridge.send("tools/call", 1, name="slow", arguments={}, _meta=MODERN)
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(30)
            while b'"slow"' not in connection.recv(65536):
                pass
            bridge.send("notifications/cancelled", requestId=1)
            assert connection.recv(65536) == b""
        assert bridge.close() == 0
        assert bridge.rest() == []


def test_cancelling_a_finished_request_is_ignored(bridge, service):
    bridge.ask("tools/list", 1)
    bridge.send("notifications/cancelled", requestId=1)
    bridge.send("notifications/cancelled", requestId="1")
    bridge.ask("tools/list", 2)
    assert [request.body["method"] for request in service.requests] == ["tools/list", "tools/list"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 421, 503])
def test_a_refusal_of_the_service_is_an_error_with_its_sentence(bridge, service, status):
    service.replies.append(refusal(status, "the_code", "Do this instead"))
    error = bridge.ask("tools/call", 1, name="x", arguments={})["error"]
    assert error["message"] == f"Do this instead ({status}, the_code)"
    assert error["data"] == {"status": status, "code": "the_code", "request_id": "r1"}


@pytest.mark.parametrize("sent_id", [5, None])
def test_an_mcp_error_is_passed_on_with_any_http_status(bridge, service, sent_id):
    error = {"code": -32601, "message": "Method not found"}
    service.replies.append(Reply(404, {"jsonrpc": "2.0", "id": sent_id, "error": error}))
    assert bridge.ask("nothing", 5) == {"jsonrpc": "2.0", "id": 5, "error": error}


@pytest.mark.parametrize("refuse", [refusal, mcp_refusal])
def test_an_overloaded_service_is_retried(bridge, service, refuse):
    service.replies.append(refuse(429, "overloaded", "Later", Retry_After="0"))
    assert "result" in bridge.ask("tools/call", 1, name="x", arguments={})
    service.replies.append(refuse(429, "overloaded", "Much later", Retry_After="3600"))
    error = bridge.ask("tools/call", 2, name="x", arguments={})["error"]
    assert error["message"] == "Much later (429, overloaded)"
    assert error["data"] == {"status": 429, "code": "overloaded", "request_id": "r1"}


def test_a_stopping_service_is_retried_by_reads_only(bridge, service):
    service.replies.append(mcp_refusal(503, "service_closing", "Later"))
    assert "result" in bridge.ask("tools/list", 1)
    service.replies.append(mcp_refusal(503, "service_closing", "Later"))
    assert bridge.ask("tools/call", 2, name="x", arguments={})["error"]["data"]["code"] == "service_closing"


def test_a_refusal_before_mcp_is_passed_on_with_its_request_id(bridge, service):
    service.replies.append(mcp_refusal(401, "unauthorized", "Send a key"))
    error = {"code": -32600, "message": "Send a key", "data": {"code": "unauthorized", "request_id": "r1"}}
    assert bridge.ask("tools/call", 2, name="x", arguments={}) == {"jsonrpc": "2.0", "id": 2, "error": error}


@pytest.mark.parametrize("where", ["before", "midst"])
def test_a_lost_answer_is_retried_for_reads_only(bridge, service, where):
    service.replies += [Reply(200, answer(1), hangs_up=where)]
    assert "result" in bridge.ask("tools/list", 1)
    service.replies += [Reply(200, answer(2), hangs_up=where)]
    error = bridge.ask("tools/call", 2, name="add_memory", arguments={})["error"]
    assert "check its effect before you call it again" in error["message"]
    assert [request.body["id"] for request in service.requests] == [1, 1, 2]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, answer(2)),
        Reply(200, answer("1")),
        Reply(200, {"jsonrpc": "2.0", "id": 1}),
        Reply(200, b"[]"),
        Reply(200, b"<html>", {"Content-Type": "text/html"}),
        Reply(202, b""),
        Reply(307, b"", {"Location": "http://elsewhere/"}),
        stream(progress("p", 1)),
    ],
    ids=["another", "text", "neither", "list", "page", "nothing", "elsewhere", "stream without"],
)
def test_an_invalid_answer_becomes_an_error_and_is_not_passed_on(bridge, service, reply):
    service.replies += [reply] * 3
    bridge.send("tools/call", 1, name="x", arguments={})
    if isinstance(reply.body, bytes) and b"progress" in reply.body:
        assert bridge.receive()["method"] == "notifications/progress"
    received = bridge.receive()
    assert (received["id"], received["error"]["code"]) == (1, -32010)
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
        (b'{"jsonrpc": "2.0", "id": 4}', -32600),
        (b'{"a": "' + b"x" * 1024 * 1024 + b'"}', -32600),
    ],
    ids=["cut", "bytes", "deep", "batch", "nothing", "long"],
)
def test_an_invalid_line_is_answered_and_not_sent(bridge, service, line, code):
    bridge.send_line(line)
    received = bridge.receive()
    assert (received["error"]["code"], received["id"]) == (code, None)
    assert service.requests == []


def test_empty_lines_and_answers_are_not_requests(bridge, service):
    bridge.send_line(b"")
    bridge.send_line(b"\r")
    bridge.send_line(b'{"jsonrpc": "2.0", "id": 9, "result": {}}\r')
    service.arrived.acquire(timeout=30)
    assert service.requests[0].body == {"jsonrpc": "2.0", "id": 9, "result": {}}


def test_the_bridge_continues_after_an_outage(service):
    lost = ScriptedMcp()
    lost.start()
    with BridgeProcess("--server", lost.url) as bridge:
        lost.replies.append(Reply(200, answer(1), {"Connection": "close"}))
        assert "result" in bridge.ask("tools/call", 1, name="x", arguments={})
        lost.stop()
        error = bridge.ask("tools/call", 2, name="x", arguments={})["error"]
        assert f"No Souvenir answers at {lost.url}" in error["message"]
        assert "souvenir serve" in error["message"]
        lost.start()
        lost.replies.append(Reply(200, answer(3), {"Connection": "close"}))
        assert bridge.ask("tools/call", 3, name="x", arguments={})["id"] == 3
        lost.stop()
        bridge.send("notifications/initialized")
        assert bridge.close() == 0
        assert "notifications/initialized did not reach the service" in bridge.errors


@pytest.mark.parametrize("how", ["input", "signal"])
def test_running_requests_finish_at_the_end_of_input(service, how):
    with BridgeProcess("--server", service.url, "--namespace", "ö") as bridge:
        service.replies.append(Reply(200, answer(1, done=True), waits=True))
        bridge.send("tools/call", 1, name="slow", arguments={})
        service.arrived.acquire(timeout=30)
        service.replies.append(Reply(200, answer(2), waits=True))
        bridge.send("subscriptions/listen", 2, _meta=MODERN)
        service.arrived.acquire(timeout=30)
        if how == "signal":
            bridge.process.send_signal(signal.SIGTERM)
        else:
            assert bridge.process.stdin is not None
            bridge.process.stdin.close()
        service.go_on.set()
        assert bridge.process.wait(30) == 0
        bridge.close()
        assert answer(1, done=True) in bridge.rest()
    assert service.requests[0].path == "/mcp"
    assert service.requests[0].headers["x-namespace"].encode("latin-1").decode() == "ö"


def test_the_bridge_ends_when_its_output_is_closed(service):
    with subprocess.Popen(
        [*COMMAND, "mcp", "--server", service.url], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert process.wait(30) == ExitCode.NOBODY_READS


def test_agent_and_namespace_are_synonyms():
    done = CliRunner().invoke(souvenir, ["mcp", "--agent", "a", "--namespace", "b"])
    assert (done.exit_code, "give one of them" in done.stderr) == (ExitCode.WRONG_USE, True)


def test_the_agent_of_the_environment_is_the_default_namespace(service):
    for arguments, path in (([], "/mcp/bo"), (["--namespace", "n"], "/mcp")):
        with BridgeProcess(*arguments, SOUVENIR_URL=service.url, SOUVENIR_AGENT="bo") as bridge:
            bridge.ask("ping", 1)
        assert service.requests[-1].path == path
