"""Parsing answer bodies into JSON, for every encoding and chunking of a vendor's server."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest

from souvenir_client.interception.answers import events_in, json_object
from souvenir_client.interception.response_tap import Tapped, text_of, turns_of
from souvenir_client.interception.wires import Turn
from tests.client.conversations import CHAT, wire_for

WIRE = wire_for(CHAT, {"messages": []})

ANSWER = {"choices": [{"message": {"role": "assistant", "content": "Olá"}, "finish_reason": "stop"}]}
CHUNK = {"choices": [{"index": 0, "delta": {"content": "Olá"}, "finish_reason": "stop"}]}


def heard(*chunks: bytes, encoding: str = "", content_type: str = "") -> Tapped:
    return Tapped(chunks, encoding, content_type, complete=True)


def events_of(tapped: Tapped) -> list[dict[str, Any]]:
    return events_in(text_of(tapped))


def payload_of(tapped: Tapped) -> dict[str, Any] | None:
    return json_object(text_of(tapped))


@pytest.mark.parametrize(
    ("body", "events"),
    [
        ('data: {"a": 1}\n\ndata: {"a": 2}\n\n', [{"a": 1}, {"a": 2}]),
        ('data: {"a": 1}\r\n\r\ndata: {"a": 2}\r\n\r\n', [{"a": 1}, {"a": 2}]),
        ('data: {"a": 1}\r\rdata: {"a": 2}\r\r', [{"a": 1}, {"a": 2}]),
        ('data:{"a":\ndata: 1}\n\n', [{"a": 1}]),
        (': a comment\nevent: ping\nid: 7\nretry: 3\ndata: {"a": 1}\n\n', [{"a": 1}]),
        ('\ufeffdata: {"a": 1}\n\n', [{"a": 1}]),
        ('data: {"a": "\u2028\u0085"}\n\n', [{"a": "\u2028\u0085"}]),
        ('data: {"a": 1}\n\ndata: [DONE]\n\n', [{"a": 1}]),
        ('data: {"a": 1}\n\ndata: {"a": 2}', [{"a": 1}, {"a": 2}]),
        ('data: {"a": 1}\n\ndata: {"a": 2', [{"a": 1}]),
        ("data: 7\n\ndata: [1]\n\ndata: nothing\n\ndata\n\ndatum: {}\n\n", []),
        ("data: " + "[" * 100_000 + '\n\ndata: {"a": 1}\n\n', [{"a": 1}]),
        ("", []),
    ],
)
def test_events_are_read_as_far_as_received(body, events):
    assert events_of(heard(body.encode())) == events


def test_a_character_may_be_split_between_chunks_and_at_the_end():
    body = 'data: {"a": "é"}\n\ndata: {"a": "é'.encode()
    assert events_of(heard(*(body[index : index + 1] for index in range(len(body) - 1)))) == [{"a": "é"}]


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("", bytes), ("identity", bytes)]
)
def test_compressed_bodies_are_decompressed(encoding, pack):
    packed = pack(json.dumps(ANSWER).encode())
    assert payload_of(heard(packed[:9], packed[9:], encoding=encoding)) == ANSWER


def test_an_invalid_compressed_body_is_empty():
    assert payload_of(heard(b"no gzip at all", encoding="gzip")) is None
    assert events_of(heard(b"no gzip at all", encoding="gzip")) == []
    assert events_of(heard(b"anything", encoding="nobody-knows-this")) == []


def test_an_incomplete_answer_is_ignored():
    body = json.dumps(ANSWER).encode()
    assert payload_of(heard(body[: len(body) // 2])) is None
    assert payload_of(heard(b"[]")) is None


@pytest.mark.parametrize("content_type", ["text/event-stream; charset=utf-8", "text/plain", ""])
def test_a_stream_is_detected_despite_a_wrong_content_type(content_type):
    body = f"data: {json.dumps(CHUNK)}\n\ndata: [DONE]\n\n".encode()
    assert turns_of(WIRE, heard(body, content_type=content_type)) == [Turn("assistant", "Olá")]


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", ""])
def test_an_answer_is_detected_despite_a_wrong_content_type(content_type):
    assert turns_of(WIRE, heard(json.dumps(ANSWER).encode(), content_type=content_type)) == [Turn("assistant", "Olá")]
