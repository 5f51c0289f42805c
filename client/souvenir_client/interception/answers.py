"""The text of a model's answer: one JSON object, or server-sent events. Nothing here raises on unreadable text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from souvenir_client.interception.wires import Turn, Wire

EVENT_STREAM = "text/event-stream"

_LINE_END = re.compile(r"\r\n|\r|\n")


def turns_in(wire: Wire, text: str, content_type: str) -> list[Turn]:
    """Return the messages of an answer, or of the received part of a stream.

    The format is detected from the content where the type does not name it.
    """
    payload = None if content_type.startswith(EVENT_STREAM) else json_object(text)
    return wire.answer(payload) if payload is not None else wire.streamed(events_in(text))


def events_in(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects of the events of a stream."""
    return [event for data in _data_in(text) if (event := json_object(data)) is not None]


def json_object(text: str) -> dict[str, Any] | None:
    """Return the object; None if the text is none, or only a part of one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _data_in(text: str) -> Iterator[str]:
    """The data of server-sent events; the last one may lack its end."""
    lines: list[str] = []
    for line in _LINE_END.split(text.removeprefix("\ufeff")):
        name, _, value = line.partition(":")
        if name == "data":
            lines.append(value.removeprefix(" "))
        elif not line and lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)
