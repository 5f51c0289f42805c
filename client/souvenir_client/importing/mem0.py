"""Dumps of mem0: the answer of its `get_all` (a list or `{"results": [...]}`), or one memory a line.

The text of a memory is `memory`; its owner (`user_id`, otherwise `agent_id` or `run_id`) becomes the last part of the
source. The graph that some versions store (`relations`) is not imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from souvenir_client.errors import NotImportable
from souvenir_client.importing import jsonl, storable
from souvenir_client.importing.reading import Document, count_lines
from souvenir_client.importing.records import Reading, Record, Skipped

DEFAULT_SOURCE = "mem0"
_OWNERS = ("user_id", "agent_id", "run_id")
_READ = frozenset({"id", "memory", "metadata", "created_at", "hash", "score"})


def read(path: Path, source: str | None) -> Reading:
    prefix = source or DEFAULT_SOURCE
    document = Document(path)
    if document.begin().lstrip().startswith(b"{") and _is_lines(path):
        found = (_records(said, f"line {number}", prefix) for number, said in jsonl.objects(path))
        return Reading(count_lines(path), found, prefix)
    content = document.load()
    memories, relations = _parts(content)
    if memories is None:
        raise NotImportable(str(path), "it has no list of memories")
    return Reading(len(memories) + len(relations), _items(memories, relations, prefix), prefix)


def _is_lines(path: Path) -> bool:
    """Return True if the first line is a complete memory."""
    _, first = next(jsonl.objects(path), (0, None))
    return isinstance(first, dict) and "memory" in first


def _parts(content: Any) -> tuple[list[Any] | None, list[Any]]:
    if isinstance(content, list):
        return content, []
    if not isinstance(content, dict):
        return None, []
    memories = content.get("results", content.get("memories"))
    relations = content.get("relations")
    return memories if isinstance(memories, list) else None, relations if isinstance(relations, list) else []


def _items(memories: list[Any], relations: list[Any], prefix: str) -> Iterator[Sequence[Record]]:
    for number, said in enumerate(memories, 1):
        yield _records(said, f"memory {number}", prefix)
    for number, _ in enumerate(relations, 1):
        yield (Skipped(f"relation {number}", "relations of mem0's graph are not imported"),)


def _records(said: object, place: str, prefix: str) -> Sequence[Record]:
    if isinstance(said, Skipped):
        return (said,)
    if not isinstance(said, dict):
        return (Skipped(place, "it is not a JSON object"),)
    text = storable.text_of(said.get("memory"))
    owner = next((name for field in _OWNERS if (name := storable.name_of(said.get(field)))), "")
    named = storable.line_of(said.get("id"), storable.MAX_SOURCE_CHARS)
    held = said.get("metadata")
    others = {name: value for name, value in said.items() if name not in _READ}
    metadata: Mapping[str, Any] = {**(held if isinstance(held, dict) else {}), **others}
    return tuple(
        storable.memory(
            text,
            source=f"{prefix}/{owner}" if owner else prefix,
            key=named or storable.digest(text),
            place=named or place,
            created_at=said.get("created_at"),
            # A language model derived it from messages.
            metadata={**storable.foreign_metadata(metadata, "mem0"), "origin_class": "inferred"},
        )
    )
