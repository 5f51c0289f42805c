"""Documents that are lists of conversations, as in exports of ChatGPT and Claude; one document is held at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from souvenir_client.errors import NotImportable
from souvenir_client.importing.reading import Document, documents
from souvenir_client.importing.records import Reading, Record

NO_CONVERSATION = "it is no conversation of this kind of export"


def read_conversations(path: Path, records: Callable[[object, str], Sequence[Record]]) -> Reading:
    """:param records: What a conversation becomes, which has this place where it says no better one."""
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
