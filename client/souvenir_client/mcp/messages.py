"""JSON-RPC messages as they pass: what has to be known of one to send it on, and errors that the bridge answers itself.

A message is sent on as the bytes that came, so nothing in it is lost or written differently. The headers follow from
the message, as the specification of 2026-07-28 says for those that name their version, and else from the version that
`initialize` agreed on. Souvenir's tools name no headers for their parameters, so none are made.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
NOT_DONE = -32010
"""Of the range that is left to implementations: the service could not be asked, or said no before MCP began."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"
NAME_OF: Mapping[str, str] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Which parameter of a method stands in `Mcp-Name`."""

INITIALIZE = "initialize"
CANCELLED = "notifications/cancelled"
LISTEN = "subscriptions/listen"
"""Its answer has no end but that of the client."""

_SAFE = re.compile(r"[\x20-\x7e]*")
_ENCODED = re.compile(r"=\?base64\?.*\?=")

RequestId = str | int


class Unusable(Exception):
    """A line is no message that can be sent on.

    :param answer: What its sender is told.
    """

    def __init__(self, answer: bytes) -> None:
        super().__init__(answer)
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Message:
    """Of the client.

    :param id: Of a request; None of anything else.
    :param method: None of an answer to the service.
    """

    line: bytes
    id: RequestId | None
    method: str | None
    params: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The id by which an answer is known: `1` is not `"1"`."""
        return json.dumps(self.id)

    @property
    def own_version(self) -> str | None:
        """The version of the protocol that the message names itself."""
        meta = self.params.get("_meta")
        version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
        return version if isinstance(version, str) and _SAFE.fullmatch(version) else None

    @property
    def changes_nothing(self) -> bool:
        """Whether it may be sent again when its answer was lost: only a tool can change what is stored."""
        return self.method != "tools/call"

    @property
    def cancels(self) -> str | None:
        """The key of the request that this one takes back."""
        return json.dumps(self.params.get("requestId")) if self.method == CANCELLED else None

    def headers(self, agreed: str | None) -> dict[str, str]:
        """:param agreed: The version that `initialize` agreed on."""
        own = self.own_version
        if own is None:
            return {VERSION_HEADER: agreed} if agreed is not None and self.method != INITIALIZE else {}
        headers = {VERSION_HEADER: own}
        if self.method is not None and _SAFE.fullmatch(self.method):
            headers[METHOD_HEADER] = self.method
        name = self.params.get(NAME_OF.get(self.method or "", ""))
        if isinstance(name, str):
            headers[NAME_HEADER] = in_header(name)
        return headers


def read_message(line: bytes) -> Message:
    """:raises Unusable: If it is none."""
    try:
        said = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise Unusable(error_line(None, PARSE_ERROR, f"The line is not JSON: {error}.")) from error
    if not isinstance(said, dict):
        raise Unusable(error_line(None, INVALID_REQUEST, "A line is one message: send each of a batch by itself."))
    sent_id, method, params = said.get("id"), said.get("method"), said.get("params")
    known_id = sent_id if isinstance(sent_id, str | int) and not isinstance(sent_id, bool) else None
    if method is None and ("result" in said or "error" in said):
        return Message(line, None, None, {})
    if not isinstance(method, str) or ("id" in said and known_id is None):
        raise Unusable(
            error_line(known_id, INVALID_REQUEST, "A request has a method, and an id that is text or a number.")
        )
    return Message(line, known_id, method, params if isinstance(params, dict) else {})


@dataclass(frozen=True, slots=True)
class Answer:
    """A message to the client.

    :param line: Without a line end.
    :param is_last: Whether it ends the request.
    :param agreed: The version that `initialize` agreed on.
    """

    line: bytes
    is_last: bool
    agreed: str | None = None


def read_answer(content: bytes, request: Message) -> Answer:
    """What the service says to a request.

    :raises ValueError: If it is no message, or answers another request.
    """
    said = json.loads(content.decode())
    if not isinstance(said, dict):
        raise ValueError("it is no message")
    if "method" in said:
        return Answer(one_line(content), is_last=False)
    if "error" in said and said.get("id") is None:
        # What was refused before its id was read is this request.
        return Answer(_dumped({**said, "id": request.id}), is_last=True)
    if json.dumps(said.get("id")) != request.key or not ("result" in said or "error" in said):
        raise ValueError("it answers another request")
    result = said.get("result")
    version = result.get("protocolVersion") if request.method == INITIALIZE and isinstance(result, dict) else None
    return Answer(one_line(content), is_last=True, agreed=version if isinstance(version, str) else None)


def error_line(request_id: RequestId | None, code: int, sentence: str, data: Mapping[str, Any] | None = None) -> bytes:
    """An error that the bridge answers itself."""
    error: dict[str, Any] = {"code": code, "message": sentence}
    if data is not None:
        error["data"] = data
    return _dumped({"jsonrpc": "2.0", "id": request_id, "error": error})


def in_header(value: str) -> str:
    """A value as the specification writes it in a header: base64 where it would not come through as it is."""
    if _SAFE.fullmatch(value) and value == value.strip() and not _ENCODED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode(errors='surrogatepass')).decode()}?="


def one_line(content: bytes) -> bytes:
    """The same JSON on one line: in its strings no line end can stand."""
    return re.sub(rb"[\r\n]+", b" ", content.strip())


def _dumped(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode()
