"""Exports of Claude: `conversations.json`, or the zip or folder with it.

A message has its text twice: in blocks (`content`), and as one text (`text`), which also contains reasoning and
placeholders for unsupported blocks. The blocks are read, and the text only if no block has text. Messages that name
their parents form a tree; the branch that was written last is imported. Attachments are omitted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from souvenir_client.importing import storable
from souvenir_client.importing.conversations import (
    NO_CONVERSATION,
    OTHER_BRANCH,
    SourceMessage,
    called,
    conversation,
    read_conversations,
    returned,
)
from souvenir_client.importing.records import Reading, Record, Skipped

NOT_SHOWN = "```\nThis block is not supported on your current device yet.\n```"
PARENT = "parent_message_uuid"
ROOT = "00000000-0000-4000-8000-000000000000"
"""The parent of the first message."""

UNKNOWN_ROLE = "it has no known author"
_ROLES: Mapping[str, str] = {"human": "user", "assistant": "assistant"}


def read(path: Path, source: str | None) -> Reading:
    """:param source: Ignored: a conversation has no source."""
    return read_conversations(path, _records)


def _records(said: object, place: str) -> Sequence[Record]:
    if not isinstance(said, dict) or not isinstance(said.get("chat_messages"), list):
        return (Skipped(place, NO_CONVERSATION),)
    named = storable.line_of(said.get("uuid"), storable.MAX_SOURCE_CHARS)
    identity = named or storable.digest(storable.json_of(said.get("name")), storable.json_of(said.get("created_at")))
    where = f"conversation {identity}"
    every = storable.objects_in(said["chat_messages"])
    messages = branch(every, said)
    taken = {id(one) for one in messages}
    left = [Skipped(f"{where}, message {one.get('uuid')}", OTHER_BRANCH) for one in every if id(one) not in taken]
    return tuple(
        conversation(
            [*(one for number, message in enumerate(messages, 1) for one in _said(message, number, where)), *left],
            session_id=storable.name_of(f"claude-{identity}"),
            place=where,
            title=said.get("name"),
            created_at=said.get("created_at"),
            metadata={"imported_from": "claude"},
        )
    )


def branch(messages: Sequence[Mapping[str, Any]], said: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the messages of one branch; all of them up to the first one without a parent id."""
    known = {uuid: one for one in messages if (uuid := _named(one, "uuid"))}
    if not any(_named(one, PARENT) in known for one in messages):
        return messages
    named = known.get(_named(said, "current_leaf_message_uuid"))
    newest = max(messages, key=lambda one: storable.timestamp_of(one.get("created_at")) or "")
    found: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    step: Mapping[str, Any] | None = named or newest
    while step is not None and _named(step, "uuid") not in seen:
        seen.add(_named(step, "uuid"))
        found.append(step)
        step = known.get(_named(step, PARENT))
    begins_with = _named(found[-1], PARENT) or ROOT
    return found[::-1] if begins_with == ROOT or begins_with in seen else messages


def _said(message: Mapping[str, Any], number: int, place: str) -> Iterator[SourceMessage | Skipped]:
    key = storable.line_of(message.get("uuid"), storable.MAX_NAME_CHARS) or f"{number}"
    role = _ROLES.get(_named(message, "sender"))
    if role is None:
        yield Skipped(f"{place}, message {key}", UNKNOWN_ROLE)
        return
    attached = [
        str(one.get("file_name") or one.get("file_uuid") or "file")
        for name in ("attachments", "files")
        for one in storable.objects_in(message.get(name))
    ]
    for position, (kind, name, text) in enumerate(list(_blocks(message)) or [("text", "", "")], 1):
        said = SourceMessage(role, text, key if position == 1 else f"{key}/{position}", message.get("created_at"))
        said = replace(said, attachments=attached) if position == 1 else said
        yield called(name, said) if kind == "call" else returned(name, said) if kind == "result" else said


def _blocks(message: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The parts of a message in order: text, tool calls and results; adjacent texts are joined."""
    blocks = storable.objects_in(message.get("content"))
    texts: list[str] = []
    spoken = any(_text(one).strip() for one in blocks)
    for block in blocks:
        kind = block.get("type")
        name = storable.line_of(block.get("name"), storable.MAX_NAME_CHARS) or "tool"
        if kind in ("tool_use", "tool_result") and texts:
            yield "text", "", "\n\n".join(texts)
            texts = []
        if kind == "tool_use":
            yield "call", name, json.dumps(storable.json_of(block.get("input")), ensure_ascii=False)
        elif kind == "tool_result":
            if result := _result(block.get("content")):
                yield "result", name, result
        elif said := _text(block).strip():
            texts.append(said)
    whole = storable.text_of(message.get("text")).replace(NOT_SHOWN, "").strip()
    if not spoken and whole:
        texts.append(whole)
    if texts:
        yield "text", "", "\n\n".join(texts)


def _text(block: Mapping[str, Any]) -> str:
    """The text of a block; reasoning has another type."""
    return storable.text_of(block.get("text")) if block.get("type") in ("text", "voice_note") else ""


def _named(said: Mapping[str, Any], name: str) -> str:
    """A field that is a string; "" if it is something else."""
    value = said.get(name)
    return value if isinstance(value, str) else ""


def _result(content: object) -> str:
    """The text of a tool's result; pages that a search found have none."""
    if isinstance(content, str):
        return storable.text_of(content).strip()
    texts = [storable.text_of(one.get("text")) for one in storable.objects_in(content) if one.get("type") == "text"]
    return "\n".join(texts).strip()
