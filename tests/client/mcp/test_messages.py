"""The parts of the bridge against what the official SDK takes, and streams however they are cut."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import InboundModernRoute, classify_inbound_request, encode_header_value

from souvenir_client.mcp import events as stream
from souvenir_client.mcp.events import EventTooLong, events
from souvenir_client.mcp.messages import in_header, read_message

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
NAMES = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(["=?base64?eA==?=", " a", "a\t", "ö"])


@given(NAMES)
def test_a_name_stands_in_a_header_as_the_sdk_writes_it(name):
    assert in_header(name) == encode_header_value(name)


@given(NAMES, st.sampled_from(["tools/call", "prompts/get", "resources/read", "tools/list", "completion/complete"]))
def test_the_headers_of_a_message_are_those_that_the_sdk_wants(name, method):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": name, "uri": name, "_meta": META}}
    headers = read_message(json.dumps(body).encode()).headers("2025-11-25")
    verdict = classify_inbound_request(body, headers={key.lower(): value for key, value in headers.items()})
    assert isinstance(verdict, InboundModernRoute)


@pytest.mark.parametrize(
    "params", [None, [], {"_meta": None}, {"_meta": {"io.modelcontextprotocol/protocolVersion": 1}}]
)
def test_a_message_without_a_version_of_its_own_has_the_one_that_was_agreed_on(params: Any):
    message = read_message(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}).encode())
    assert message.headers("2025-11-25") == {"MCP-Protocol-Version": "2025-11-25"}
    assert message.headers(None) == {}


def read(content: bytes, cuts: list[int]) -> list[bytes]:
    async def chunks() -> AsyncIterator[bytes]:
        begin = 0
        for cut in sorted(cuts):
            yield content[begin:cut]
            begin = max(begin, cut)
        yield content[begin:]

    async def collect() -> list[bytes]:
        return [event async for event in events(chunks())]

    return asyncio.run(collect())


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), max_size=5),
    st.sampled_from(["\n", "\r\n"]),
    st.lists(st.integers(0, 300)),
)
def test_events_come_whole_however_the_stream_is_cut(texts, end, cuts):
    said = [json.dumps(text, ensure_ascii=False) for text in texts]
    content = f": ping{end}{end}" + "".join(f"event: message{end}id: 7{end}data: {one}{end}{end}" for one in said)
    assert [one.decode() for one in read(content.encode(), cuts)] == said


def test_what_is_no_message_and_what_is_not_ended_are_passed_over():
    content = b'event: endpoint\ndata: "/x"\n\ndata:{"a":\ndata: 1}\n\nretry: 5\n\ndata: {"cut": 1}\n'
    assert read(content, []) == [b'{"a":\n1}']


@pytest.mark.parametrize("content", [b"data: " + b"x" * 200, b"data: xxxxxxxxx\n" * 20])
def test_an_event_without_an_end_is_not_taken_for_ever(monkeypatch, content):
    monkeypatch.setattr(stream, "MAX_EVENT_BYTES", 100)
    with pytest.raises(EventTooLong):
        read(content, [50, 150])
