"""Messages of a Claude Code transcript, which has one JSON object per line.

Messages are the prompts of the user, the answers of Claude, and its tool calls. Not included: sub-agents
(`isSidechain`), texts that the program inserts (`isMeta`, summaries, reminders, output of local commands, notices of
background tasks), tool results, reasoning, and recalled context. Lines copied from another session, at the start of a
resumed or forked one, belong to that session.

Invariants: the service accepts every message, for any line; the run time is linear in the length of the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from souvenir_client import wording

MAX_CONTENT_CHARS = 50_000
"""Limit of the service for a message."""

MAX_ARGUMENT_CHARS = 100
"""Limit for each text in the arguments of a tool: the call is stored, not the content of a written file."""
MAX_ARGUMENTS = 20
MAX_ARGUMENT_DEPTH = 4
MAX_CALL_CHARS = 400
MAX_NUMBER = 2**53
"""Larger numbers are stored as text, because not every JSON parser accepts them."""

_NOT_SAID = ("isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")

_INSERTED = ("system-reminder", "recalled_memory", "ide_selection", "ide_opened_file", "ide_diagnostics")
_PUT_IN = re.compile(rf"<({'|'.join(_INSERTED)})\b[^<>]{{0,200}}>")
_CLOSING = {name: re.compile(rf"</{name}\b[^<>]{{0,200}}>") for name in _INSERTED}
_NOT_TYPED = re.compile(
    r"\s*(?:<(?:local-command-|bash-|user-memory-input|task-notification|cross-session-message|teammate-message)"
    r"|\[Request interrupted by user|Caveat: The messages below were generated)"
)
_COMMAND = "<command-"


@dataclass(frozen=True, slots=True)
class TranscriptTurn:
    """A message or a tool call.

    :param uuid: The uuid of its line, which copies of the line share.
    :param said_at: ISO-8601; None if unknown.
    :param tool_calls: With `id`, `name` and `arguments`; the text then says the same.
    """

    role: str
    text: str
    uuid: str
    said_at: str | None = None
    tool_calls: tuple[Mapping[str, Any], ...] = field(default=())


def turns_of(line: bytes, sessions: Set[str]) -> list[TranscriptTurn]:
    """Return the turns of a line, in order; none if it cannot be parsed.

    :param sessions: Names of the session; lines of other sessions are skipped.
    """
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return []
    if not isinstance(entry, dict) or any(entry.get(name) is True for name in _NOT_SAID):
        return []
    fork = entry.get("forkedFrom")
    for session in (entry.get("sessionId"), fork.get("sessionId") if isinstance(fork, dict) else None):
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
    """The text that the user typed; empty if there is none. A command with arguments is `/name arguments`."""
    text = _said(text)
    if text.startswith(_COMMAND):
        name, arguments = (_between(text, f"<command-{part}>", f"</command-{part}>") for part in ("name", "args"))
        return f"/{name.lstrip('/')} {arguments}" if name and arguments else ""
    return "" if _NOT_TYPED.match(text) else text


def _said(text: str) -> str:
    """Remove inserted texts and invalid characters: lone surrogates, which JSON can contain, and NUL."""
    parts, done, unclosed = [], 0, set()
    for opening in _PUT_IN.finditer(text):
        name = opening[1]
        if opening.start() < done or name in unclosed:
            continue
        closing = _CLOSING[name].search(text, opening.end())
        if closing is None:
            unclosed.add(name)
            continue
        parts.append(text[done : opening.start()])
        done = closing.end()
    return _sendable("".join([*parts, text[done:]])).strip()


def _sendable(text: str) -> str:
    return text.encode(errors="replace").decode().replace("\0", "")


def _between(text: str, opening: str, closing: str) -> str:
    return text.partition(opening)[2].partition(closing)[0].strip()


def _typed(entry: Mapping[str, Any], content: Any) -> list[TranscriptTurn]:
    origin = entry.get("origin")
    if isinstance(origin, dict) and origin.get("kind", "human") != "human":
        return []
    blocks = _blocks(content)
    if any(block.get("type") == "tool_result" for block in blocks):
        return []
    text = typed_text("\n".join(_texts(blocks)))
    return [_turn(entry, "user", text)] if text else []


def _answered(entry: Mapping[str, Any], content: Any) -> Iterator[TranscriptTurn]:
    blocks = _blocks(content)
    text = _said("\n".join(_texts(blocks)))
    if text and text != "(no content)":
        yield _turn(entry, "assistant", text)
    calls = tuple(_call(block) for block in blocks if block.get("type") == "tool_use")
    if calls:
        shown = "\n".join(wording.calls(call["name"], _json(call["arguments"])[:MAX_CALL_CHARS]) for call in calls)
        yield _turn(entry, "assistant", shown, calls)


def _turn(
    entry: Mapping[str, Any], role: str, text: str, tool_calls: tuple[Mapping[str, Any], ...] = ()
) -> TranscriptTurn:
    uuid = entry.get("uuid")
    named = _sendable(uuid) if isinstance(uuid, str) else ""
    return TranscriptTurn(role, text[:MAX_CONTENT_CHARS].strip(), named, _utc_time(entry.get("timestamp")), tool_calls)


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    arguments = block.get("input")
    return {
        "id": _short(str(block.get("id") or "")),
        "name": _short(str(block.get("name") or "")).strip() or "tool",
        "arguments": _short(arguments) if isinstance(arguments, dict) else {},
    }


def _short(value: Any, depth: int = 0) -> Any:
    """Truncate long texts, long lists and deep nesting of a value."""
    match value:
        case str():
            text = _sendable(value)
            return text if len(text) <= MAX_ARGUMENT_CHARS else text[:MAX_ARGUMENT_CHARS] + "…"
        case dict() | list() if depth == MAX_ARGUMENT_DEPTH:
            return "…"
        case dict():
            return {_short(name): _short(one, depth + 1) for name, one in list(value.items())[:MAX_ARGUMENTS]}
        case list():
            return [_short(one, depth + 1) for one in value[:MAX_ARGUMENTS]]
        case int() | float() if not -MAX_NUMBER <= value <= MAX_NUMBER:
            return _short(str(value))
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


def _utc_time(timestamp: Any) -> str | None:
    """The time in UTC; None for an invalid time or one without a zone."""
    if not isinstance(timestamp, str):
        return None
    try:
        at = datetime.fromisoformat(timestamp)
        return None if at.tzinfo is None else at.astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return None
