"""Transcripts as JSON: a list of messages, an object that holds one, or one message per line; redaction of any form.

Strings are unescaped, with exact character offsets. Parts that are not text (tool calls, images, a model's thinking)
are removed here, because only the JSON form distinguishes them. Redaction screens the decoded JSON values, because
rules match characters that JSON may escape, and rewrites a value only if it changes: the result is still JSON, and
nothing in it is unscreened. Linear in the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from souvenir.learning.transcripts.turns import (
    ROLES,
    Piece,
    RemovedKind,
    RemovedPart,
    TranscriptTurn,
    TurnRole,
    parse_time_value,
)
from souvenir.privacy.screening import AppliedPolicy

_LISTS = ("messages", "conversation", "turns", "transcript", "chat_history", "history", "dialogue", "dialog")
_ROLE_FIELDS = ("role", "sender", "from", "author", "type")
_SPEAKER_FIELDS = ("name", "speaker", "username", "author", "sender", "from")
_TEXT_FIELDS = ("content", "text", "value", "parts", "message")
_TIME_FIELDS = ("timestamp", "created_at", "createdAt", "create_time", "time", "date", "ts")
_CALL_FIELDS = ("tool_calls", "function_call")
_CALL_PARTS = frozenset({"tool_use", "tool_call", "tool_calls", "function_call", "server_tool_use", "mcp_tool_use"})
_THOUGHT_PARTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
_MAX_DEPTH = 6
"""Maximum nesting of parts; results of tools contain lists of texts."""

TOKEN = re.compile(r'[ \t\r\n]*(?:("(?:[^"\\]++|\\.)*+")|([{}\[\]:,])|([^\s{}\[\]:,"]++))', re.DOTALL)
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class _Node:
    """A value with its offsets; `value` holds nodes if it is an object or a list."""

    start: int
    end: int
    value: Any

    def get(self, names: Sequence[str]) -> _Node | None:
        """Return the first of these fields that has a value."""
        if not isinstance(self.value, dict):
            return None
        found = (self.value[name] for name in names if name in self.value)
        return next((node for node in found if node.value not in (None, "")), None)


@dataclass(frozen=True, slots=True)
class _Said:
    role: TurnRole
    speaker: str | None
    at: datetime | None


def is_json(text: str) -> bool:
    """Return True if the text is a JSON object or list."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def storable(text: str) -> str:
    """Replace characters that JSON can escape and no text may hold: NUL, and unpaired surrogates."""
    return _UNSTORABLE.sub("\ufffd", text)


def read_json(text: str) -> tuple[list[TranscriptTurn], list[RemovedPart]] | None:
    """Return the turns with their full text, and the removed parts; None if this is no transcript in JSON."""
    root = _parsed(text, 0)
    if root is None:
        return _read_lines(text)
    messages = _messages(root)
    return None if messages is None else _read(text, messages)


def _read_lines(text: str) -> tuple[list[TranscriptTurn], list[RemovedPart]] | None:
    """Parse one message per line.

    If most lines are valid, invalid ones are removed: a transcript may be cut at its ends.
    """
    nodes: list[_Node] = []
    broken: list[RemovedPart] = []
    at = 0
    lines = _lines(text)
    most_broken = sum(not line.isspace() for line in lines) // 2
    for line in lines:
        if len(broken) > most_broken:
            return None
        if line.strip():
            node = _parsed(line, at) if line.lstrip().startswith("{") else None
            if node is None:
                broken.append(RemovedPart(RemovedKind.NOISE, at, at + len(line), line))
            else:
                nodes.append(node)
        at += len(line)
    if len(nodes) <= len(broken) or not any(_is_message(node) for node in nodes):
        return None
    turns, removed = _read(text, nodes)
    return turns, sorted([*removed, *broken], key=lambda part: part.start)


def _lines(text: str) -> list[str]:
    """The lines with their ends. JSON lines end with a line feed, and texts may contain Unicode's other line breaks."""
    return [line for line in re.split("(?<=\n)", text) if line]


def _messages(root: _Node) -> list[_Node] | None:
    if isinstance(root.value, dict):
        held = next((node for name in _LISTS if isinstance((node := root.value.get(name)), _Node)), None)
        if held is not None and isinstance(held.value, list):
            root = held
        else:
            return [root] if _is_message(root) else None
    if isinstance(root.value, list) and any(_is_message(node) for node in root.value):
        return root.value
    return None


def _is_message(node: _Node) -> bool:
    inner = node.value.get("message") if isinstance(node.value, dict) else None
    if inner is not None and isinstance(inner.value, dict):
        return _is_message(inner)
    says = isinstance(node.value, dict) and any(name in node.value for name in (*_TEXT_FIELDS, *_CALL_FIELDS))
    return says and (_role(node) is not None or _speaker(node) is not None)


# --- what the messages say -------------------------------------------------------------------------------------------


def _read(text: str, messages: Sequence[_Node]) -> tuple[list[TranscriptTurn], list[RemovedPart]]:
    turns: list[TranscriptTurn] = []
    removed: list[RemovedPart] = []
    for node in messages:
        for part in _message(text, node):
            if isinstance(part, TranscriptTurn):
                turns.append(part)
            else:
                removed.append(part)
    return turns, removed


def _message(text: str, node: _Node) -> Iterator[TranscriptTurn | RemovedPart]:
    if not _is_message(node):
        yield _out(text, node, RemovedKind.NOISE)
        return
    at = _at(node)
    inner = node.value.get("message")
    if inner is not None and isinstance(inner.value, dict):
        node, at = inner, _at(inner) or at
    said = _Said(_role(node) or TurnRole.USER, _speaker(node), at)
    says = node.get(_TEXT_FIELDS)
    calls = [call for name in _CALL_FIELDS if (call := node.value.get(name)) is not None and call.value]
    if says is not None:
        yield from _content(text, says, said, _MAX_DEPTH)
    for call in calls:
        yield _out(text, call, RemovedKind.TOOL)


def _content(text: str, node: _Node, said: _Said, depth: int) -> Iterator[TranscriptTurn | RemovedPart]:
    """Yield one turn per text, so that a block that one part opens ends with it."""
    if isinstance(node.value, str):
        yield TranscriptTurn(said.role, said.speaker, said.at, (_piece(text, node),))
    elif isinstance(node.value, list) and depth:
        for part in node.value:
            yield from _content(text, part, said, depth - 1)
    elif isinstance(node.value, dict) and depth:
        yield from _part(text, node, said, depth)
    elif node.value is not None:
        yield _out(text, node, RemovedKind.NOISE)


def _part(text: str, node: _Node, said: _Said, depth: int) -> Iterator[TranscriptTurn | RemovedPart]:
    kind = node.value["type"].value if "type" in node.value else None
    says = node.get(("text", "content", "parts"))
    if kind in _CALL_PARTS:
        yield _out(text, node, RemovedKind.TOOL)
    elif kind in _THOUGHT_PARTS:
        yield _out(text, node, RemovedKind.REASONING)
    elif says is None:
        yield _out(text, node, RemovedKind.NOISE)
    else:
        is_result = isinstance(kind, str) and kind.endswith("tool_result")
        yield from _content(text, says, _Said(TurnRole.TOOL, None, said.at) if is_result else said, depth - 1)


def _role(node: _Node) -> TurnRole | None:
    """Return None if no field has a known role; a `role` field with an unknown value is `unknown`."""
    for name in _ROLE_FIELDS:
        field = node.value.get(name) if isinstance(node.value, dict) else None
        value = field.value if field is not None else None
        if isinstance(value, dict):
            value = value["role"].value if "role" in value else None
        if isinstance(value, str) and (role := ROLES.get(value.strip().casefold())):
            return role
    return TurnRole.UNKNOWN if node.get(("role",)) else None


def _speaker(node: _Node) -> str | None:
    for name in _SPEAKER_FIELDS:
        field = node.value.get(name) if isinstance(node.value, dict) else None
        value = field.value if field is not None else None
        if isinstance(value, dict):
            value = value["name"].value if "name" in value else None
        if isinstance(value, str) and value.strip() and value.strip().casefold() not in ROLES:
            return storable(" ".join(value.split()))
    return None


def _at(node: _Node) -> datetime | None:
    field = node.get(_TIME_FIELDS)
    return parse_time_value(field.value) if field is not None else None


def _out(text: str, node: _Node, kind: RemovedKind) -> RemovedPart:
    return RemovedPart(kind, node.start, node.end, text[node.start : node.end])


def _piece(text: str, node: _Node) -> Piece:
    start, end = node.start + 1, node.end - 1
    steps, behind, done = [], 0, start
    for escape in _ESCAPE.finditer(text, start, end):
        behind += escape.start() - done + 1
        done = escape.end()
        steps.append((behind, done))
    return Piece(start, end, storable(node.value), tuple(steps))


# --- values with their places -----------------------------------------------------------------------------------------


def _parsed(text: str, offset: int) -> _Node | None:
    """Return the JSON value of a text, with offsets starting at `offset`; None if it is not JSON."""
    if not is_json(text):
        return None
    stack: list[tuple[int, Any, str | None]] = []
    key: str | None = None
    for token in TOKEN.finditer(text):
        string, sign, literal = token.groups()
        start = offset + token.end() - len(token[0].lstrip(" \t\r\n"))
        if sign in ("{", "["):
            stack.append((start, {} if sign == "{" else [], key))
            key = None
            continue
        if sign == ",":
            key = None
            continue
        if sign == ":":
            continue
        if sign:
            start, value, key = stack.pop()
        else:
            value = json.loads(string or literal, strict=False)
            if string and stack and isinstance(stack[-1][1], dict) and key is None:
                key = value
                continue
        node = _Node(start, offset + token.end(), value)
        if not stack:
            return node
        holder = stack[-1][1]
        if isinstance(holder, dict):
            holder[key] = node
        else:
            holder.append(node)
    return None


# --- redaction -------------------------------------------------------------------------------------------------------


def redacted(text: str, policy: AppliedPolicy) -> str:
    """:raises PersonalDataRejected: If the policy rejects its content."""
    if is_json(text):
        return "".join(_values(text, policy))
    if read_json(text) is None:
        return policy.text(text)
    lines = _lines(text)
    return "".join("".join(_values(line, policy)) if is_json(line) else policy.text(line) for line in lines)


def _values(text: str, policy: AppliedPolicy) -> Iterator[str]:
    """Yield the parts of a JSON text; a value is screened with the name of its field."""
    known: dict[tuple[str, str], str] = {}
    name, done = "", 0
    for token in TOKEN.finditer(text):
        written = token[token.lastindex or 0]
        yield text[done : token.end() - len(written)]
        done = token.end()
        if token[2]:
            name = "" if written in "{}" else name
            yield written
            continue
        is_name = text[done : done + 20].lstrip(" \t\r\n").startswith(":")
        case = ("" if is_name else name, written)
        if case not in known:
            known[case] = _screened(*case, policy)
        yield known[case]
        if is_name:
            name = json.loads(written, strict=False)
    yield text[done:]


def _screened(name: str, written: str, policy: AppliedPolicy) -> str:
    says: str = json.loads(written, strict=False) if written.startswith('"') else written
    safe = policy.value(name, says)
    return written if safe == says else json.dumps(storable(safe), ensure_ascii=False)
