"""The input that Claude Code gives to a hook, and the output of a hook.

Input is one JSON object; missing fields are empty, and unknown fields are ignored. Output is JSON with
`additionalContext` for the two hooks that return context, and nothing for the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

MAX_INPUT_BYTES = 32 * 1024 * 1024

MAX_CONTEXT_CHARS = 9_500
"""Claude Code shows 10,000 characters of a hook as they are; of more it shows a preview only."""

Report = Callable[[str], None]
"""Receives an error message for standard error."""


class Hook(Enum):
    """The hooks by the name of their command."""

    SESSION_START = "session-start"
    PROMPT = "prompt"
    STOP = "stop"
    PRE_COMPACT = "pre-compact"

    @property
    def event_name(self) -> str:
        """The name in Claude Code."""
        return _EVENT_NAMES[self]


_EVENT_NAMES = {
    Hook.SESSION_START: "SessionStart",
    Hook.PROMPT: "UserPromptSubmit",
    Hook.STOP: "Stop",
    Hook.PRE_COMPACT: "PreCompact",
}


class UnreadableEvent(ValueError):
    """The standard input is not an event of Claude Code."""


@dataclass(frozen=True, slots=True)
class Event:
    """The input of a hook.

    :param source: Of a session start: `startup`, `resume`, `clear` or `compact`.
    :param stop_hook_active: Another hook made Claude continue, and this is the stop after that.
    :param last_answer: Claude's last answer; the transcript may not contain it yet.
    """

    session_id: str
    transcript_path: str = ""
    cwd: str = ""
    prompt: str = ""
    source: str = ""
    stop_hook_active: bool = False
    last_answer: str = ""


def read_event(raw: bytes) -> Event:
    """:raises UnreadableEvent: If it is no object, or contains no session."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UnreadableEvent(f"The input is not JSON ({error}); this command is run by Claude Code.") from error
    if not isinstance(value, dict) or not _text(value, "session_id"):
        raise UnreadableEvent("The input has no session_id; this command is run by Claude Code.")
    return Event(
        session_id=_text(value, "session_id"),
        transcript_path=_text(value, "transcript_path"),
        cwd=_text(value, "cwd"),
        prompt=_text(value, "prompt"),
        source=_text(value, "source"),
        stop_hook_active=value.get("stop_hook_active") is True,
        last_answer=_text(value, "last_assistant_message"),
    )


def context_output(hook: Hook, context: str) -> str:
    """The line that gives Claude the context."""
    specific = {"hookEventName": hook.event_name, "additionalContext": context}
    return json.dumps({"hookSpecificOutput": specific}) + "\n"


def fitted(parts: list[str], max_chars: int = MAX_CONTEXT_CHARS) -> str:
    """The fenced parts in their order, up to the limit; a truncated part keeps its closing line."""
    text = ""
    for part in parts:
        room = max_chars - len(text)
        if len(part) <= room:
            text += part
            continue
        closing = part.rstrip("\n").rpartition("\n")[2] + "\n"
        lines = part[: max(0, room - len(closing) - 2)].rpartition("\n")[0]
        return f"{text}{lines}\n…\n{closing}" if lines else text
    return text


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""
