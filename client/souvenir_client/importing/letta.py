"""Agent files of Letta (`.af`): blocks, one session an agent, and archival passages if the file has them.

- The older form is one agent with `core_memory`, `messages` without ids and `in_context_message_indices`.
- The newer form lists `agents`, each with its `messages`, next to `blocks`, `files`, `sources` and `tools`.

The ids in a file count from 0 in each file (`message-0`), so a message is identified by its content and time. The
system prompt, tools, models, environment and what was in context are not imported.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from souvenir_client.errors import NotImportable
from souvenir_client.importing import storable
from souvenir_client.importing.conversations import SourceMessage, called, conversation, returned
from souvenir_client.importing.reading import Document, parsed
from souvenir_client.importing.records import Altered, BlockRecord, Reading, Record, Skipped

DEFAULT_SOURCE = "letta"
MAX_LABEL_CHARS, MAX_DESCRIPTION_CHARS, MAX_LIMIT, DEFAULT_LIMIT = 100, 2_000, 50_000, 5_000
"""The service's limits for blocks."""

SPEAKS = "send_message"
"""The tool with which agents before `letta_v1_agent` speak to the user; their text is reasoning."""

SPEAKS_IN_TEXT = "letta_v1_agent"
_REASONING = frozenset({"reasoning", "redacted_reasoning", "omitted_reasoning", "summarized_reasoning"})
_OF_AN_AGENT = ("core_memory", "messages", "in_context_message_indices")
_EVENTS = frozenset({"heartbeat", "login"})
_IDENTIFYING = ("role", "content", "tool_calls", "tool_call_id", "tool_returns", "approvals")

NO_AGENT = "it has no agent"
NO_OBJECT = "it is not a JSON object"
NO_BLOCK = "the block has no label or no value"
OTHER_LABEL = "its label was changed to one that the service accepts"
OTHER_LIMIT = f"its limit is not one of 1 to {MAX_LIMIT} and was replaced, or its description was truncated"
OF_SYSTEM = "it is a system message"
REASONING = "it is reasoning"
EVENT = "it is an event of Letta (a heartbeat or login), not a message"
SENT = f"it is the result of {SPEAKS}, whose message is imported"
APPROVAL = "it is the approval or denial of a tool call"
UNKNOWN_ROLE = "it has no known role"
UNKNOWN_PART = "a part of it has an unknown type"
NO_FILES = "files are not imported; import them on their own"


def read(path: Path, source: str | None) -> Reading:
    """:param source: Source of archival passages; messages and blocks have none."""
    content = Document(path).load()
    if not isinstance(content, dict):
        raise NotImportable(str(path), NO_AGENT)
    listed = content.get("agents")
    agents = listed if isinstance(listed, list) else [content]
    if not isinstance(listed, list) and not any(isinstance(content.get(name), list) for name in _OF_AN_AGENT):
        raise NotImportable(str(path), NO_AGENT)
    items = list(_items(content, agents, source or DEFAULT_SOURCE))
    one = agents[0] if len(agents) == 1 and isinstance(agents[0], dict) else {}
    return Reading(len(items), iter(items), source or DEFAULT_SOURCE, storable.name_of(one.get("name")) or None)


def _items(content: Mapping[str, Any], agents: Sequence[object], prefix: str) -> Iterator[Sequence[Record]]:
    own = agents is content.get("agents")
    for number, block in enumerate(_listed(content.get("blocks")) if own else [], 1):
        yield tuple(_block(block, f"block {number}"))
    names: Counter[str] = Counter()
    for number, agent in enumerate(agents, 1):
        if not isinstance(agent, dict):
            yield (Skipped(f"agent {number}", NO_OBJECT),)
            continue
        name = storable.name_of(agent.get("name"), 150) or "agent"
        names[name] += 1
        name = name if names[name] == 1 else f"{name}-{names[name]}"
        for field in ("core_memory", "memory_blocks"):
            for position, block in enumerate(_listed(agent.get(field)), 1):
                yield tuple(_block(block, f"agent {name}, block {position}"))
        yield tuple(_session(agent, name))
        yield from _passages(agent, f"agent {name}, ", f"{prefix}/{name}")
    if own:
        yield from _passages(content, "", prefix)
    if files := _listed(content.get("files")):
        yield [Skipped(f"file {number}", NO_FILES) for number, _ in enumerate(files, 1)]


def _block(said: object, place: str) -> Iterator[Record]:
    label = storable.line_of(said.get("label"), 10 * MAX_LABEL_CHARS) if isinstance(said, dict) else ""
    if not isinstance(said, dict) or not label or not isinstance(said.get("value"), str):
        yield Skipped(place, NO_BLOCK)
        return
    name = storable.name_of(label, MAX_LABEL_CHARS) or storable.digest(label)
    if name != said["label"]:
        yield Altered(place, OTHER_LABEL)
    limit, description = said.get("limit"), storable.text_of(said.get("description"))
    fits = type(limit) is int and 1 <= limit <= MAX_LIMIT
    if (limit is not None and not fits) or len(description) > MAX_DESCRIPTION_CHARS:
        yield Altered(place, OTHER_LIMIT)
    value = storable.text_of(said["value"])
    kept = limit if fits else MAX_LIMIT if limit is not None or len(value) > DEFAULT_LIMIT else None
    description = description[:MAX_DESCRIPTION_CHARS]
    yield BlockRecord(name, value, description or None, kept, said.get("read_only") is True, f"{place} ({name})")


def _passages(holder: Mapping[str, Any], where: str, source: str) -> Iterator[Sequence[Record]]:
    for number, said in enumerate(_listed(holder.get("passages")), 1):
        place = f"{where}passage {number}"
        if not isinstance(said, dict):
            yield (Skipped(place, NO_OBJECT),)
            continue
        held = said.get("metadata", said.get("metadata_"))
        metadata = {**(held if isinstance(held, dict) else {}), "file_name": said.get("file_name")}
        text = storable.text_of(said.get("text")).strip()
        yield tuple(
            storable.memory(
                text,
                source=source,
                key=storable.digest(text, storable.timestamp_of(said.get("created_at"))),
                place=place,
                created_at=said.get("created_at"),
                metadata={**storable.foreign_metadata(metadata, "letta"), "origin_class": "assistant"},
                tags=said.get("tags"),
            )
        )


def _session(agent: Mapping[str, Any], name: str) -> Iterator[Record]:
    place = f"agent {name}"
    messages = _listed(agent.get("messages"))
    said = list(_Messages(messages, place, in_text=agent.get("agent_type") == SPEAKS_IN_TEXT).read())
    if not said:
        return
    yield from conversation(
        said,
        session_id=storable.name_of(f"letta-{name}"),
        place=place,
        title=agent.get("name"),
        metadata={"imported_from": "letta"},
        created_at=agent.get("created_at"),
    )


class _Messages:
    """The messages of one agent.

    :param in_text: True if the text next to a tool call is for the user; otherwise it is reasoning.
    """

    def __init__(self, messages: Sequence[object], place: str, *, in_text: bool) -> None:
        self._messages = messages
        self._place = place
        self._in_text = in_text
        self._seen: Counter[str] = Counter()
        self._tools: dict[str, str] = {}

    def read(self) -> Iterator[SourceMessage | Skipped]:
        for number, said in enumerate(self._messages, 1):
            where = f"{self._place}, message {number}"
            if not isinstance(said, dict):
                yield Skipped(where, NO_OBJECT)
                continue
            key = self._key(said)
            spoken = list(self._said(said))
            yield from (Skipped(where, one) for one in spoken if isinstance(one, str))
            kept = [one for one in spoken if isinstance(one, SourceMessage)]
            for position, one in enumerate(kept, 1):
                yield replace(one, key=key if position == 1 else f"{key}/{position}", created_at=said.get("created_at"))
            if not spoken:
                yield Skipped(where, storable.NO_TEXT)

    def _key(self, said: Mapping[str, Any]) -> str:
        """A digest of what identifies it; equal ones are numbered."""
        at = storable.timestamp_of(said.get("created_at"))
        key = storable.digest(at, *(storable.json_of(said.get(name)) for name in _IDENTIFYING))
        self._seen[key] += 1
        return key if self._seen[key] == 1 else f"{key}.{self._seen[key]}"

    def _said(self, said: Mapping[str, Any]) -> Iterator[SourceMessage | str]:
        """The parts of a message in order, or reasons why one is skipped."""
        match said.get("role"):
            case "system":
                yield OF_SYSTEM
            case "user":
                yield from self._of_user(said)
            case "assistant":
                yield from self._of_assistant(said)
            case "approval" if _calls(said):
                yield from self._of_assistant(said)
            case "approval":
                yield APPROVAL
                yield from self._of_tool({**said, "content": [], "tool_returns": said.get("approvals")})
            case "tool" | "function":
                yield from self._of_tool(said)
            case _:
                yield UNKNOWN_ROLE

    def _of_user(self, said: Mapping[str, Any]) -> Iterator[SourceMessage | str]:
        texts, images, reasons = _content(said.get("content"))
        yield from reasons
        name = storable.line_of(said.get("name"), storable.MAX_SPEAKER_CHARS)
        whole = "\n\n".join(texts)
        wrapped = _object(whole)
        kind = wrapped.get("type")
        if isinstance(kind, str) and kind in _EVENTS:
            yield EVENT
        elif kind == "system_alert" and isinstance(wrapped.get("message"), str):
            yield SourceMessage("system", wrapped["message"], "")
        elif kind == "user_message" and isinstance(wrapped.get("message"), str):
            own = storable.line_of(wrapped.get("name"), storable.MAX_SPEAKER_CHARS) or name
            yield SourceMessage("user", wrapped["message"], "", attachments=images, name=own or None)
        elif whole.strip() or images:
            yield SourceMessage("user", whole, "", attachments=images, name=name or None)

    def _of_assistant(self, said: Mapping[str, Any]) -> Iterator[SourceMessage | str]:
        texts, images, reasons = _content(said.get("content"))
        yield from reasons
        calls = [*_calls(said), *_parts_of(said.get("content"), "tool_call")]
        whole = "\n\n".join(texts)
        if whole.strip() and calls and not self._in_text:
            yield REASONING
        elif whole.strip() or images:
            yield SourceMessage("assistant", whole, "", attachments=images)
        for call in calls:
            name, arguments = _call(call)
            if isinstance(call.get("id"), str):
                self._tools[call["id"]] = name
            message = _object(arguments).get("message") if name == SPEAKS else None
            if isinstance(message, str):
                yield SourceMessage("assistant", message, "")
            else:
                yield called(name, SourceMessage("assistant", arguments, ""))

    def _of_tool(self, said: Mapping[str, Any]) -> Iterator[SourceMessage | str]:
        """The results: the text, or those of several calls, which stand next to it."""
        texts, images, reasons = _content(said.get("content"))
        yield from reasons
        whole = (said.get("tool_call_id"), "\n\n".join(texts))
        results: list[tuple[Any, Any]] = [whole] if "".join(texts).strip() else []
        if not results:
            results = [
                (one.get("tool_call_id"), one.get("func_response", one.get("tool_return")))
                for one in storable.objects_in(said.get("tool_returns"))
            ]
        results += [
            (one.get("tool_call_id"), one.get("content")) for one in _parts_of(said.get("content"), "tool_return")
        ]
        for call, result in results:
            known = self._tools.get(call) if isinstance(call, str) else None
            name = storable.line_of(said.get("name"), storable.MAX_NAME_CHARS) or known or "tool"
            text = _unwrapped(storable.text_of(result))
            if name == SPEAKS:
                yield SENT
            elif text.strip():
                yield returned(name, SourceMessage("assistant", text, "", attachments=images))


def _content(value: object) -> tuple[list[str], list[str], list[str]]:
    """The texts, the names of pictures, and the reasons for omitted parts."""
    texts, images, reasons = [], [], []
    for part in [{"type": "text", "text": value}] if isinstance(value, str) else _listed(value):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind == "image":
            source = part.get("source")
            named = source if isinstance(source, dict) else {}
            images.append(
                next((one for key in ("url", "file_id") if (one := storable.text_of(named.get(key)))), "image")
            )
        elif isinstance(kind, str) and kind in _REASONING:
            reasons.append(REASONING)
        elif kind not in ("tool_call", "tool_return"):
            reasons.append(UNKNOWN_PART)
    return texts, images, reasons


def _parts_of(content: object, kind: str) -> list[dict[str, Any]]:
    return [one for one in storable.objects_in(content) if one.get("type") == kind]


def _calls(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    return storable.objects_in(said.get("tool_calls"))


def _call(call: Mapping[str, Any]) -> tuple[str, str]:
    """The name and arguments of a call in OpenAI's form, or of a part of the content."""
    function = call.get("function")
    of_call = function if isinstance(function, dict) else call
    name = storable.line_of(of_call.get("name"), storable.MAX_NAME_CHARS) or "tool"
    given = of_call.get("arguments", of_call.get("input"))
    return name, given if isinstance(given, str) else json.dumps(storable.json_of(given), ensure_ascii=False)


def _unwrapped(text: str) -> str:
    """The message of a result, which Letta wraps with its status and time."""
    wrapped = _object(text)
    if "status" not in wrapped or "message" not in wrapped:
        return text
    message = wrapped["message"]
    said = message if isinstance(message, str) else json.dumps(storable.json_of(message), ensure_ascii=False)
    return f"{wrapped['status']}: {said}" if wrapped["status"] not in ("OK", "success") else said


def _object(text: str) -> Mapping[str, Any]:
    """The JSON object that a text is; empty for any other text."""
    if not text.lstrip().startswith("{"):
        return {}
    try:
        said = parsed(storable.exact_text_of(text).encode())
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
