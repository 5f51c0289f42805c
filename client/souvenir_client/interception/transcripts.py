"""The conversations of a block, collected for extraction at its end. Bounded: the newest turns are kept.

They belong to the process that created them: a copy in a forked process does nothing, because the parent submits them,
and because a thread of the parent may have held the lock.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from souvenir_client.interception.messages import cut, line_of
from souvenir_client.interception.wires.turns import Turn

MAX_CHARS = 120_000
"""Limit of the JSON that the service accepts."""
MAX_LINE_CHARS = 50_000


@dataclass(slots=True)
class _Lines:
    lines: deque[str] = field(default_factory=deque)
    chars: int = 0


class Transcripts:
    """Turns by session and user. Thread-safe."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str | None], _Lines] = {}
        self._lock = Lock()
        self._process = os.getpid()

    def add(self, session_id: str, user: str | None, turn: Turn) -> None:
        found = line_of(turn)
        if found is None or os.getpid() != self._process:
            return
        line = _json_within(found, MAX_LINE_CHARS)
        with self._lock:
            lines = self._of.setdefault((session_id, user), _Lines())
            lines.lines.append(line)
            lines.chars += len(line) + 1
            while lines.chars + 1 > MAX_CHARS and len(lines.lines) > 1:
                lines.chars -= len(lines.lines.popleft()) + 1

    def finished(self) -> Iterator[tuple[str, str | None, str]]:
        """Yield session, user and a JSON list of messages, for each session and user with messages."""
        if os.getpid() != self._process:
            return
        with self._lock:
            of, self._of = self._of, {}
        for (session_id, user), lines in of.items():
            yield session_id, user, f"[{','.join(lines.lines)}]"


def _json_within(line: dict[str, Any], max_chars: int) -> str:
    """A line above the limit loses its tool calls, then its end."""
    text = json.dumps(line, ensure_ascii=False)
    if len(text) > max_chars:
        line = {name: value for name, value in line.items() if name != "tool_calls"}
    while len(text := json.dumps(line, ensure_ascii=False)) > max_chars:
        line["content"] = cut(line["content"], len(line["content"]) * 4 // 5)
    return text
