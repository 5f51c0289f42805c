"""What was said, out of a line of a transcript of Claude Code.

A transcript has one JSON object a line. Turns are what a person typed, what Claude answered, and which tools it called.
Not turns: what sub-agents said (`isSidechain`), what the program put in (`isMeta`, summaries, reminders, output of
local commands, notices of background tasks), results of tools, thinking, and context that a memory gave. Copies of
another session's lines at the beginning of a resumed or forked one are that session's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

MAX_CONTENT_CHARS = 50_000
"""Of a message, by the service."""

MAX_ARGUMENT_CHARS = 100
"""Of each text in the arguments of a tool: a call is what was done, not the file that was written."""
MAX_CALL_CHARS = 400

_NOT_SAID = ("isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")

_PUT_IN = re.compile(
    r"<(system-reminder|recalled_memory|ide_selection|ide_opened_file|ide_diagnostics)\b[^>]*>.*?</\1>", re.DOTALL
)
_NOT_TYPED = re.compile(
    r"\s*(?:<(?:local-command-|bash-|user-memory-input|task-notification|cross-session-message|teammate-message)"
    r"|\[Request interrupted by user|Caveat: The messages below were generated)"
)
_COMMAND = re.compile(r"<command-name>\s*(/?[^<\s]+)\s*</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Turn:
    """Something that was said or called.

    :param uuid: Of its line, which is the same wherever that line is copied to.
    :param said_at: ISO-8601; None if the line does not say.
    :param tool_calls: With `id`, `name` and `arguments`; the text then says the same.
    """

    role: str
    text: str
    uuid: str
    said_at: str | None = None
    tool_calls: tuple[Mapping[str, Any], ...] = field(default=())


def turns_of(line: bytes, sessions: Set[str]) -> list[Turn]:
    """The turns of a line, in their order; none if it cannot be read.

    :param sessions: Names of the session; lines of others are passed over.
    """
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return []
    if not isinstance(entry, dict) or any(entry.get(name) is True for name in _NOT_SAID):
        return []
    session = entry.get("sessionId")
    if isinstance(session, str) and session not in sessions:
        return []
    match entry:
        case {"type": "user", "message": {"content": content}}:
            return _typed(entry, content)
        case {"type": "attachment", "attachment": {"type": "queued_command", "prompt": prompt, **rest}}:
            from_a_person = rest.get("commandMode", "prompt") == "prompt" and rest.get("isMeta") is not True
            return _typed({**entry, "origin": rest.get("origin")}, prompt) if from_a_person else []
        case {"type": "assistant", "message": {"content": content, **message}}:
            return list(_answered(entry, content)) if message.get("model") != "<synthetic>" else []
    return []


def typed_text(text: str) -> str:
    """What a person typed of it; empty if that is nothing. A command with arguments is `/name arguments`."""
    text = _PUT_IN.sub("", text)
    command = _COMMAND.search(text)
    if command is not None:
        arguments = _ARGUMENTS.search(text)
        said = arguments[1].strip() if arguments is not None else ""
        return f"/{command[1].lstrip('/')} {said}" if said else ""
    return "" if _NOT_TYPED.match(text) else text.strip()


def _typed(entry: Mapping[str, Any], content: Any) -> list[Turn]:
    origin = entry.get("origin")
    if isinstance(origin, dict) and origin.get("kind", "human") != "human":
        return []
    blocks = _blocks(content)
    if any(block.get("type") == "tool_result" for block in blocks):
        return []
    text = typed_text("\n".join(_texts(blocks)))
    return [_turn(entry, "user", text)] if text else []


def _answered(entry: Mapping[str, Any], content: Any) -> Iterator[Turn]:
    blocks = _blocks(content)
    text = _PUT_IN.sub("", "\n".join(_texts(blocks))).strip()
    if text and text != "(no content)":
        yield _turn(entry, "assistant", text)
    calls = tuple(_call(block) for block in blocks if block.get("type") == "tool_use")
    if calls:
        shown = "\n".join(f"Calls {call['name']}({_json(call['arguments'])[:MAX_CALL_CHARS]})" for call in calls)
        yield _turn(entry, "assistant", shown, calls)


def _turn(entry: Mapping[str, Any], role: str, text: str, tool_calls: tuple[Mapping[str, Any], ...] = ()) -> Turn:
    # A lone surrogate, which JSON can carry, cannot be sent; neither can a NUL.
    sent = text.encode(errors="replace").decode().replace("\0", "")
    uuid = entry.get("uuid")
    return Turn(
        role,
        sent[:MAX_CONTENT_CHARS],
        uuid if isinstance(uuid, str) else "",
        _moment(entry.get("timestamp")),
        tool_calls,
    )


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    arguments = block.get("input")
    return {
        "id": str(block.get("id") or ""),
        "name": str(block.get("name") or "tool"),
        "arguments": _short(arguments) if isinstance(arguments, dict) else {},
    }


def _short(value: Any) -> Any:
    """The value with its long texts and lists cut."""
    match value:
        case str():
            text = value.encode(errors="replace").decode().replace("\0", "")
            return text if len(text) <= MAX_ARGUMENT_CHARS else text[:MAX_ARGUMENT_CHARS] + "…"
        case dict():
            return {str(name): _short(one) for name, one in list(value.items())[:20]}
        case list():
            return [_short(one) for one in value[:20]]
    return value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _texts(blocks: list[Mapping[str, Any]]) -> Iterator[str]:
    for block in blocks:
        if block.get("type") == "text" and isinstance(text := block.get("text"), str):
            yield text


def _moment(timestamp: Any) -> str | None:
    if not isinstance(timestamp, str):
        return None
    try:
        datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return timestamp
