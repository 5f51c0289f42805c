"""A message in the form that the service stores, and as a line of a transcript for extraction.

The service stores the roles `user` and `assistant`. Results of tools are stored as `assistant`, because `system` would
give an external text more authority. A transcript has its own form for tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from souvenir_client import wording
from souvenir_client.interception.wires.turns import Turn

MAX_CONTENT_CHARS = 50_000
MAX_METADATA_CHARS = 16_000
"""Limit of its JSON in ASCII: a character may take four bytes, and the service accepts 64 KiB."""

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_CUT = "…"


def message_of(turn: Turn, said_at: datetime, user: str | None) -> dict[str, Any] | None:
    """Return the message; None if the turn has no content to recall."""
    content = storable(cut(content_of(turn), MAX_CONTENT_CHARS))
    if not content.strip():
        return None
    message: dict[str, Any] = {
        "role": "user" if turn.role == "user" else "assistant",
        "content": content,
        "created_at": said_at.isoformat(),
    }
    if metadata := _metadata(turn.metadata):
        message["metadata"] = metadata
    if user is not None:
        message["user"] = user
    return message


def shortened(turn: Turn) -> Turn:
    """Without parts that are never stored, so that a waiting message needs bounded memory."""
    metadata = turn.metadata
    if calls := metadata.get("tool_calls"):
        metadata = {
            **metadata,
            "tool_calls": [{**call, "arguments": cut(call["arguments"], MAX_CONTENT_CHARS)} for call in calls],
        }
    return Turn(turn.role, cut(turn.content, MAX_CONTENT_CHARS), metadata)


def line_of(turn: Turn) -> dict[str, Any] | None:
    """The message in a transcript: tool calls next to the text."""
    calls = turn.metadata.get("tool_calls", ())
    if not turn.content.strip() and not calls:
        return None
    line: dict[str, Any] = {"role": turn.role, "content": storable(turn.content)}
    if calls:
        line["tool_calls"] = [
            {"id": storable(call["id"]), "function": {name: storable(call[name]) for name in ("name", "arguments")}}
            for call in calls
        ]
    return line


def content_of(turn: Turn) -> str:
    """Return the content, tool calls and results as text; attachments are named."""
    text = turn.content
    if result := turn.metadata.get("tool_result"):
        return wording.returned(result["name"], text or _named(turn))
    calls = [wording.calls(call["name"], call["arguments"]) for call in turn.metadata.get("tool_calls", ())]
    parts = [text] if text.strip() else []
    return "\n\n".join([*parts, *calls]) or _named(turn)


def _named(turn: Turn) -> str:
    kinds = turn.metadata.get("attachments", ())
    return f"({', '.join(kinds)})" if kinds else ""


def storable(text: str) -> str:
    """Remove NUL and unpaired surrogates, which the service rejects."""
    return _UNSTORABLE.sub("\ufffd", text)


def cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - len(_CUT)] + _CUT


def _metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a message; above the limit without the arguments of its calls."""
    kept: dict[str, Any] = {name: _storable_value(value) for name, value in metadata.items()}
    if len(json.dumps(kept)) > MAX_METADATA_CHARS and "tool_calls" in kept:
        kept["tool_calls"] = [{"id": call["id"], "name": call["name"]} for call in kept["tool_calls"]]
    return kept if len(json.dumps(kept)) <= MAX_METADATA_CHARS else {}


def _storable_value(value: Any) -> Any:
    match value:
        case str(text):
            return storable(text)
        case Mapping():
            return {storable(str(name)): _storable_value(held) for name, held in value.items()}
        case list() | tuple():
            return [_storable_value(held) for held in value]
    return value
