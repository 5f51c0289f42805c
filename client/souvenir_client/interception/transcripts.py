"""The conversations of a block, kept to be learned from when it ends. Bounded: the newest turns stay."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from souvenir_client.interception.messages import cut, line_of
from souvenir_client.interception.wires.turns import Turn

MAX_CHARS = 120_000
"""Of the JSON, as the service takes it."""
MAX_LINE_CHARS = 50_000


@dataclass(slots=True)
class _Lines:
    user: str | None
    lines: deque[str] = field(default_factory=deque)
    chars: int = 0


class Transcripts:
    """By session. Safe in threads."""

    def __init__(self) -> None:
        self._of: dict[str, _Lines] = {}
        self._lock = Lock()

    def add(self, session_id: str, user: str | None, turn: Turn) -> None:
        found = line_of(turn)
        if found is None:
            return
        line = _json_within(found, MAX_LINE_CHARS)
        with self._lock:
            lines = self._of.setdefault(session_id, _Lines(user))
            lines.lines.append(line)
            lines.chars += len(line) + 1
            while lines.chars + 1 > MAX_CHARS and len(lines.lines) > 1:
                lines.chars -= len(lines.lines.popleft()) + 1

    def finished(self) -> Iterator[tuple[str, str | None, str]]:
        """Session, user and a JSON list of messages, for each session in which something was said."""
        with self._lock:
            of, self._of = self._of, {}
        for session_id, lines in of.items():
            yield session_id, lines.user, f"[{','.join(lines.lines)}]"


def _json_within(line: dict[str, Any], max_chars: int) -> str:
    """What is too long loses its calls, then its end."""
    text = json.dumps(line, ensure_ascii=False)
    if len(text) > max_chars:
        line = {name: value for name, value in line.items() if name != "tool_calls"}
    while len(text := json.dumps(line, ensure_ascii=False)) > max_chars:
        line["content"] = cut(line["content"], len(line["content"]) * 4 // 5)
    return text
