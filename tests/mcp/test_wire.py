"""The wire format of `/mcp`: methods, headers, bodies, keys, and JSON-RPC errors."""

from __future__ import annotations

import http.client
import json

import pytest
from pydantic import ValidationError

from souvenir.core.settings import Settings
from tests.mcp.conftest import BOTH, TIMEOUT_S, Asking, Start, asking, calling

LIST = asking("tools/list")
KEY = "k-4f9c2a7d6b1e"


def error_of(answer):
    body = answer.json()
    assert (body["jsonrpc"], body["id"]) == ("2.0", None)
    return body["error"]


def test_a_tool_is_called_without_a_handshake(ask: Asking):
    answer = ask.post(calling("search_memory", {"query": "test", "limit": 5}))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json()["result"]["structuredContent"]["memories"] == []
    assert "mcp-session-id" not in answer.headers
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize("accept", ["application/json", "*/*", "application/*", BOTH])
def test_an_answer_is_json_where_the_client_takes_it(ask: Asking, accept):
    answer = ask.post(LIST, headers={"Accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")


@pytest.mark.parametrize(("accept", "meta"), [("text/event-stream", {}), (BOTH, {"progressToken": 7})])
def test_an_answer_is_a_stream_where_nothing_else_is_taken_or_progress_is_wanted(ask: Asking, accept, meta):
    answer = ask.post(calling("search_memory", {"query": "test"}, **meta), headers={"Accept": accept})
    assert answer.headers["content-type"].startswith("text/event-stream")
    [data] = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    assert json.loads(data)["result"]["isError"] is False


def test_an_unacceptable_content_type_is_406(ask: Asking):
    answer = ask.post(LIST, headers={"Accept": "text/html"})
    assert answer.status_code == 406


def test_a_body_of_another_kind_is_415(ask: Asking):
    assert ask.post(LIST, headers={"Content-Type": "text/plain"}).status_code == 415


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/ann"])
def test_only_post_is_taken(ask: Asking, method, path):
    answer = ask.http.request(method, path, headers={"Accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert error_of(answer)["data"]["code"] == "method_not_allowed"


@pytest.mark.parametrize("body", ["", "{", "\xff", '{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}'])
def test_a_body_that_is_no_json_is_a_parse_error(ask: Asking, body):
    answer = ask.post(body)
    assert (answer.status_code, error_of(answer)["code"]) == (400, -32700)


def test_a_body_that_is_not_json_is_answered_with_the_place_of_the_error(ask: Asking):
    half_of_a_character = '{"jsonrpc": "2.0", "id": 1, "method": "\\ud83d"}'
    sentence = error_of(ask.post(half_of_a_character))["message"]
    assert sentence == "The body is not JSON (unexpected end of hex escape at line 1 column 46)"


@pytest.mark.parametrize("body", [[], [LIST], {}, {"id": 1, "method": "ping"}, 1, {**LIST, "id": {}}])
def test_anything_but_a_single_message_is_an_invalid_request(ask: Asking, body):
    answer = ask.post(body)
    error = error_of(answer)
    assert (answer.status_code, error["code"]) == (400, -32600)
    assert "\n" not in error["message"]


def test_a_notification_is_accepted_and_not_answered(ask: Asking):
    answer = ask.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (answer.status_code, answer.content) == (202, b"")


def test_a_method_that_there_is_not_is_an_error_of_the_protocol(ask: Asking):
    answer = ask.post(asking("tasks/list"))
    assert answer.json()["error"]["code"] == -32601


def test_an_unknown_version_is_answered_with_the_known_ones(ask: Asking):
    version, name = "2999-01-01", "io.modelcontextprotocol"
    meta = {f"{name}/protocolVersion": version, f"{name}/clientCapabilities": {}}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": "tools/list"}
    answer = ask.post(asking("tools/list", _meta=meta), headers=headers)
    assert answer.status_code == 400
    assert "2026-07-28" in answer.json()["error"]["data"]["supported"]


@pytest.mark.parametrize("sent", ["search_memory", "search_memory  ", " \tsearch_memory\t"])
def test_blanks_around_the_name_in_a_header_are_not_part_of_it(ask: Asking, sent: str):
    version, name = "2026-07-28", "io.modelcontextprotocol"
    message = calling("search_memory", {"query": "red"})
    meta = {"protocolVersion": version, "clientCapabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    message["params"]["_meta"] = {f"{name}/{key}": value for key, value in meta.items()}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": sent}
    given = {"Content-Type": "application/json", "Accept": BOTH, **headers}
    # httpx would refuse the blanks.
    connection = http.client.HTTPConnection(ask.http.base_url.host, ask.http.base_url.port, timeout=TIMEOUT_S)
    connection.request("POST", "/mcp", json.dumps(message), given)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    assert "result" in answer, answer


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_handshake_settles_the_version_that_the_client_asks_for(ask: Asking, version):
    hello = asking("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "test", "version": "1"})
    result = ask.post(hello).json()["result"]
    assert result["protocolVersion"] == version
    assert result["serverInfo"]["name"] == "souvenir"
    assert "search_memory" in result["instructions"]


def test_a_tool_that_there_is_not_is_an_error_of_the_protocol(ask: Asking):
    error = ask.post(calling("forget_it", {})).json()["error"]
    assert error["code"] == -32602
    assert "forget_it" in error["message"]


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:1", "http://127.0.0.1.evil.example"]
)
def test_a_page_of_another_origin_is_refused_before_anything_is_read(ask: Asking, origin):
    answer = ask.post("{", headers={"Origin": origin})
    assert (answer.status_code, answer.json()["code"]) == (403, "origin_not_allowed")


def test_a_page_of_the_service_itself_may_call(ask: Asking):
    origin = str(ask.http.base_url).rstrip("/")
    assert ask.post(LIST, headers={"Origin": origin}).status_code == 200


def test_a_page_that_the_settings_name_may_call(start: Start):
    ask = start(cors_origins="https://app.example")
    assert ask.post(LIST, headers={"Origin": "https://app.example"}).status_code == 200
    assert ask.post(LIST, headers={"Origin": "https://app.example.org"}).status_code == 403


def test_on_an_open_network_a_page_cannot_give_the_service_its_own_name(start: Start):
    """A page that rebinds its name to the service sends the same name in both headers."""
    ask = start(host="0.0.0.0", allow_open=True, allowed_hosts="192.0.2.7")
    rebound = {"Host": "evil.example", "Origin": "http://evil.example"}
    assert ask.post(LIST, headers=rebound).status_code == 421
    by_address = {"Host": "192.0.2.7:8900", "Origin": "http://192.0.2.7:8900"}
    assert ask.post(LIST, headers=by_address).status_code == 200


def test_a_host_that_is_not_ours_is_refused(ask: Asking):
    assert ask.post(LIST, headers={"Host": "evil.example"}).status_code == 421


def test_without_the_right_key_nothing_is_answered(start: Start):
    ask = start(api_key=KEY)
    for headers in ({}, {"X-API-Key": "wrong"}, {"Authorization": "Bearer wrong"}):
        answer = ask.post("{", headers=headers)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert error_of(answer)["data"]["code"] == "unauthorized"
        assert all(way in error_of(answer)["message"] for way in ("X-API-Key", "Bearer", "SOUVENIR_API_KEY"))
    for headers in ({"X-API-Key": KEY}, {"Authorization": f"Bearer {KEY}"}):
        assert ask.post(LIST, headers=headers).status_code == 200


def test_a_body_above_the_limit_is_413(start: Start):
    ask = start(max_body_bytes=2048)
    answer = ask.post(calling("search_memory", {"query": "x" * 5000}))
    assert answer.status_code == 413


@pytest.mark.parametrize("path", ["/mcp", "/mcp/ann"])
def test_a_message_above_2_mib_is_413_with_the_bound(ask: Asking, path):
    answer = ask.post(calling("search_memory", {"query": "x" * 2_100_000}), path)
    assert answer.status_code == 413
    assert "2097152 bytes" in answer.text


def test_the_largest_memory_with_escaped_characters_and_facts_is_below_the_limit(ask: Asking):
    facts = ["\u00e9" * 1000 for _ in range(100)]
    answer = ask.post(calling("add_memory", {"text": "\u00e9" * 50_000, "facts": facts}))
    assert answer.status_code == 200
    assert len(answer.request.content) > 800_000


def test_a_namespace_that_cannot_be_one_is_refused(ask: Asking):
    assert ask.post(LIST, headers={"X-Namespace": "a/b"}).status_code == 422
    assert ask.post(LIST, path="/mcp/%20").status_code == 422


def test_calls_are_counted_under_their_route_and_never_under_the_agent(ask: Asking):
    ask.post(LIST, path="/mcp/somebody-of-note")
    assert "somebody-of-note" not in ask.http.get("/metrics", headers={"Accept": "text/plain"}).text
    assert 'route="/mcp/{agent}"' in ask.http.get("/metrics", headers={"Accept": "text/plain"}).text


def test_calls_of_tools_are_counted_by_how_they_ended(ask: Asking):
    ask.call("list_blocks")
    ask.call("get_block", label="none")
    shown = ask.http.get("/metrics", headers={"Accept": "text/plain"}).text
    assert 'souvenir_mcp_tool_calls_total{outcome="ok",tool="list_blocks"} 1.0' in shown
    assert 'souvenir_mcp_tool_calls_total{outcome="refused",tool="get_block"} 1.0' in shown


def test_the_settings_choose_the_tools_that_there_are(start: Start):
    ask = start(mcp_tools="memory")
    names = [tool["name"] for tool in ask.post(LIST).json()["result"]["tools"]]
    assert names[:3] == ["add_memory", "update_memory", "search_memory"]
    assert len(names) == 8
    error = ask.post(calling("read_graph", {})).json()["error"]
    assert error["code"] == -32602
    assert "`graph`, which the setting MCP_TOOLS turns on" in error["message"]


def test_a_group_of_tools_that_there_is_not_is_refused_at_the_start():
    with pytest.raises(ValidationError, match="memory"):
        Settings(mcp_tools="memory,everything")  # type: ignore[arg-type]
