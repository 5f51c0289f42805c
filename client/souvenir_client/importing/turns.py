"""Turns as they are stored: what a person and a model said, tools that were called, and what they gave back.

The service knows who speaks as user, assistant or system. A call of a tool and its result are what the assistant did,
so both are the assistant's, worded as `learning()` words them. What is longer than a message may be is split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from souvenir_client import wording
from souvenir_client.importing import storable
from souvenir_client.importing.records import Altered, Conversation, Record, Skipped, Turn

SPLIT = f"it was split, as a message has up to {storable.MAX_TEXT_CHARS} characters"
LEFT_OUT_ATTACHMENTS = "what was attached to it was left out; its name is kept"
UNREADABLE_TIME = "its time cannot be read, so it has that of the message before it"
OTHER_BRANCH = "it is on a branch that was left: a question that was edited, or an answer asked for again"
NO_MESSAGES = "it has no messages that can be imported"
MAX_ARGUMENT_CHARS = 2_000
"""Of the arguments in the metadata; the content has them whole."""


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that was said, before it is made storable.

    :param exact: Whether spaces around it are part of it.
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


def called(name: str, arguments: Said) -> Said:
    """A call of a tool, of what was said to it."""
    call = {"name": name, "arguments": arguments.content[:MAX_ARGUMENT_CHARS]}
    return replace(
        arguments,
        role="assistant",
        content=wording.calls(name, arguments.content),
        metadata={**arguments.metadata, "tool_calls": [call]},
    )


def returned(name: str, result: Said) -> Said:
    """What a tool gave back."""
    return replace(
        result,
        role="assistant",
        content=wording.returned(name, result.content),
        metadata={**result.metadata, "tool_result": {"name": name}},
    )


def conversation(
    said: Sequence[Said | Skipped],
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
    """The conversation with what was skipped and altered; nothing but the reason if there is nothing to import.

    A turn without a time has that of the turn before it, and the first that of the conversation.

    :param started_at: Of its session; without it, when the first turn was said. Likewise `ended_at`: it stays open.
    """
    turns: list[Turn] = []
    at = storable.moment_of(created_at)
    for one in said:
        if isinstance(one, Skipped):
            yield one
            continue
        where = f"{place}, message {one.key}"
        own = storable.moment_of(one.created_at)
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
    began, ended = storable.moment_of(started_at), storable.moment_of(ended_at)
    yield Conversation(session_id, tuple(turns), named, user, metadata or {}, place, began, ended)


def _turns(one: Said, created_at: str | None) -> Iterator[Turn]:
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
