"""Messages of imported conversations in the form that the service stores.

The service knows the roles user, assistant and system. Tool calls and their results have the role assistant, in the
same words as `learning()` stores them. Messages above the limit are split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from souvenir_client import wording
from souvenir_client.errors import NotImportable
from souvenir_client.importing import storable
from souvenir_client.importing.reading import Document, documents
from souvenir_client.importing.records import Altered, Conversation, Reading, Record, Skipped, Turn

SPLIT = f"it was split: a message has at most {storable.MAX_TEXT_CHARS} characters"
LEFT_OUT_ATTACHMENTS = "its attachments were omitted; their names are kept"
UNREADABLE_TIME = "its time cannot be read; it has the time of the message before it"
OTHER_BRANCH = "it is on an abandoned branch: an edited question or a regenerated answer"
NO_MESSAGES = "it has no messages that can be imported"
MAX_ARGUMENT_CHARS = 2_000
"""Limit of the arguments in the metadata; the content has the full arguments."""


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """A message before it is made storable.

    :param exact: True if surrounding whitespace is part of it.
    """

    role: str
    content: str
    key: str
    created_at: object = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    attachments: Sequence[str] = ()
    user: str | None = None
    name: str | None = None
    exact: bool = False


def called(name: str, arguments: SourceMessage) -> SourceMessage:
    """The message of a tool call."""
    call = {"name": name, "arguments": arguments.content[:MAX_ARGUMENT_CHARS]}
    return replace(
        arguments,
        role="assistant",
        content=wording.calls(name, arguments.content),
        metadata={**arguments.metadata, "tool_calls": [call]},
    )


def returned(name: str, result: SourceMessage) -> SourceMessage:
    """The message of a tool's result."""
    return replace(
        result,
        role="assistant",
        content=wording.returned(name, result.content),
        metadata={**result.metadata, "tool_result": {"name": name}},
    )


def conversation(
    said: Sequence[SourceMessage | Skipped],
    *,
    session_id: str,
    place: str,
    title: object = None,
    user: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    created_at: object = None,
    started_at: object = None,
    ended_at: object = None,
) -> Iterator[Record]:
    """The conversation with its skipped and altered messages; only the reason if there is nothing to import.

    A message without a time has the time of the previous one, and the first the time of the conversation.

    :param started_at: Start of the session. Default: the time of the first message. Without `ended_at` it stays open.
    """
    turns: list[Turn] = []
    at = storable.timestamp_of(created_at)
    for one in said:
        if isinstance(one, Skipped):
            yield one
            continue
        where = f"{place}, message {one.key}"
        own = storable.timestamp_of(one.created_at)
        at = own or at
        found = list(_turns(one, at))
        if not found:
            yield Skipped(where, storable.NO_TEXT)
        elif own is None and one.created_at not in (None, ""):
            yield Altered(where, UNREADABLE_TIME)
        if len(found) > 1:
            yield Altered(where, SPLIT)
        if found and one.attachments:
            yield Altered(where, LEFT_OUT_ATTACHMENTS)
        turns += found
    if not turns:
        yield Skipped(place, NO_MESSAGES)
        return
    named = storable.line_of(title, storable.MAX_TITLE_CHARS) or None
    began, ended = storable.timestamp_of(started_at), storable.timestamp_of(ended_at)
    yield Conversation(session_id, tuple(turns), named, user, metadata or {}, place, began, ended)


def _turns(one: SourceMessage, created_at: str | None) -> Iterator[Turn]:
    metadata = dict(storable.json_of(one.metadata))
    if one.attachments:
        metadata["attachments"] = [storable.line_of(name, storable.MAX_NAME_CHARS) for name in one.attachments[:50]]
    if storable.json_bytes(metadata) > storable.MAX_METADATA_BYTES:
        metadata = {}
    text = one.content if one.exact else storable.text_of(one.content).strip()
    parts = list(storable.pieces(text, storable.MAX_TEXT_CHARS))
    for number, part in enumerate(parts, 1):
        key = one.key if number == 1 else f"{one.key}#{number}"
        of_parts = {"part": number, "parts": len(parts)} if len(parts) > 1 else {}
        yield Turn(one.role, part, key, created_at, {**metadata, **of_parts}, one.user, one.name)


NO_CONVERSATION = "it is not a conversation in this format"


def read_conversations(path: Path, records: Callable[[object, str], Sequence[Record]]) -> Reading:
    """:param records: Converts a conversation to records, with this place as the default."""
    found = documents(path)
    if not found:
        raise NotImportable(str(path), "there is no conversations.json in it")
    if len(found) == 1:
        conversations = _conversations(found[0])
        return Reading(len(conversations), _items(found[0].name, conversations, records))
    return Reading(None, (item for one in found for item in _items(one.name, _conversations(one), records)))


def _conversations(document: Document) -> list[Any]:
    """A list, `{"conversations": [...]}`, or one conversation alone."""
    content = document.load()
    if isinstance(content, dict):
        listed = content.get("conversations")
        content = listed if isinstance(listed, list) else [content]
    if not isinstance(content, list):
        raise NotImportable(document.name, "it has no list of conversations")
    return content


def _items(
    name: str, conversations: list[Any], records: Callable[[object, str], Sequence[Record]]
) -> Iterator[Sequence[Record]]:
    for number, one in enumerate(conversations, 1):
        yield records(one, f"{name}, conversation {number}")
