"""Exports of ChatGPT: `conversations.json`, `conversations-000.json` and so on, or the zip or folder with them.

A conversation is a tree (`mapping`), since questions are edited and answers regenerated. The branch that was viewed
last is imported: from `current_node` up through the parents. System messages, hidden messages, reasoning and the output
of browsing tools are skipped and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

SYSTEM = "it is a system message"
HIDDEN = "it is hidden in the conversation"
REASONING = "it is a model's reasoning"
READ_PAGE = "it is the output of a browsing tool"
INSTRUCTIONS = "it is a custom instruction"
UNKNOWN_ROLE = "it has no known author"

_LEFT_OUT: Mapping[str, str] = {
    "thoughts": REASONING,
    "reasoning_recap": REASONING,
    "tether_browsing_display": READ_PAGE,
    "tether_quote": READ_PAGE,
    "sonic_webpage": READ_PAGE,
    "user_editable_context": INSTRUCTIONS,
    "model_editable_context": INSTRUCTIONS,
}


def read(path: Path, source: str | None) -> Reading:
    """:param source: Ignored: a conversation has no source."""
    return read_conversations(path, _records)


def _records(said: object, place: str) -> Sequence[Record]:
    if not isinstance(said, dict) or not isinstance(said.get("mapping"), dict):
        return (Skipped(place, NO_CONVERSATION),)
    named = storable.line_of(said.get("conversation_id") or said.get("id"), storable.MAX_SOURCE_CHARS)
    identity = named or storable.digest(storable.json_of(said.get("title")), storable.json_of(said.get("create_time")))
    where = f"conversation {identity}"
    found = branch(said)
    return tuple(
        conversation(
            [*(_said(node_id, message, where) for node_id, message in found), *_left(said, found, where)],
            session_id=storable.name_of(f"chatgpt-{identity}"),
            place=where,
            title=said.get("title"),
            created_at=said.get("create_time"),
            metadata={"imported_from": "chatgpt"},
        )
    )


def branch(said: Mapping[str, Any]) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Return the messages of the branch that was viewed last, oldest first, each with its node's id."""
    mapping: Mapping[str, Any] = said["mapping"]
    node_id = said.get("current_node")
    if not isinstance(node_id, str) or node_id not in mapping:
        node_id = _newest_leaf(mapping)
    found: list[tuple[str, Mapping[str, Any]]] = []
    seen: set[str] = set()
    while isinstance(node_id, str) and node_id not in seen:
        seen.add(node_id)
        node = mapping.get(node_id)
        if not isinstance(node, dict):
            break
        if isinstance(node.get("message"), dict):
            found.append((node_id, node["message"]))
        node_id = node.get("parent")
    return found[::-1]


def _left(
    said: Mapping[str, Any], found: Sequence[tuple[str, Mapping[str, Any]]], place: str
) -> Sequence[SourceMessage | Skipped]:
    """Return the messages of the other branches."""
    taken = {node_id for node_id, _ in found}
    others = [node_id for node_id, node in said["mapping"].items() if _object(node).get("message")]
    return [Skipped(f"{place}, message {node_id}", OTHER_BRANCH) for node_id in others if node_id not in taken]


def _newest_leaf(mapping: Mapping[str, Any]) -> str | None:
    """The end of a conversation without `current_node`: the newest node without children."""
    leaves = [
        (storable.timestamp_of((node.get("message") or {}).get("create_time")) or "", place, node_id)
        for place, (node_id, node) in enumerate(mapping.items())
        if isinstance(node, dict) and not node.get("children") and isinstance(node.get("message"), dict | None)
    ]
    return max(leaves)[2] if leaves else None


def _said(node_id: str, message: Mapping[str, Any], place: str) -> SourceMessage | Skipped:
    author, content, metadata = (_object(message.get(name)) for name in ("author", "content", "metadata"))
    key = storable.line_of(message.get("id"), storable.MAX_NAME_CHARS) or node_id
    content_type = str(content.get("content_type"))
    role = author.get("role")
    if reason := _why_not(role, content_type, metadata):
        return Skipped(f"{place}, message {key}", reason)
    text, attached = _text(content)
    attached += [str(one.get("name", "file")) for one in storable.objects_in(metadata.get("attachments"))]
    model = metadata.get("model_slug")
    said = SourceMessage(
        str(role),
        text,
        key,
        message.get("create_time"),
        {"model": model} if isinstance(model, str) else {},
        attached,
    )
    recipient = message.get("recipient")
    if not text.strip():
        return said
    if role == "assistant" and isinstance(recipient, str) and recipient not in ("", "all"):
        return called(recipient, said)
    return returned(str(author.get("name") or "tool"), said) if role == "tool" else said


def _why_not(role: object, content_type: str, metadata: Mapping[str, Any]) -> str | None:
    """Return the reason why a message is skipped; None for one that is imported."""
    if role == "system":
        return SYSTEM
    if metadata.get("is_visually_hidden_from_conversation") is True:
        return HIDDEN
    if role not in ("user", "assistant", "tool"):
        return UNKNOWN_ROLE
    return _LEFT_OUT.get(content_type)


def _text(content: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the text of all parts, and the types of parts without text."""
    texts: list[str] = []
    others: list[str] = []
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            # Spoken parts contain a transcript.
            if isinstance(part.get("text"), str):
                texts.append(part["text"])
            else:
                others.append(str(part.get("content_type", "part")).removesuffix("_asset_pointer"))
    for name in ("text", "result"):
        if not texts and isinstance(content.get(name), str):
            texts.append(content[name])
    return "\n".join(text for text in texts if text.strip()), others


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
