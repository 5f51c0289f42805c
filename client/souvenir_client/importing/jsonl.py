"""JSON lines with memories: `{"text": ..., "source"?, "metadata"?, "tags"?, "facts"?, ...}`.

A file that begins with the header of one of our own exports is read by `exports`. Lines of an export without that
header are read here, so a part of an export can be imported too, without data that only a complete export preserves
(ids, links, times of changes).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from souvenir_client.importing import exports, storable
from souvenir_client.importing.reading import Document, count_lines, lines, parsed
from souvenir_client.importing.records import Reading, Record, Skipped

DEFAULT_SOURCE = "import"
TOO_LONG_LINE = "the line is longer than 32 MiB"
NO_OBJECT = "the line is not a JSON object"
_OWN_FIELDS = ("document_at", "pinned", "archived", "origin_class")


def read(path: Path, source: str | None) -> Reading:
    """:param source: Source of lines without one, and the prefix of the others."""
    _, first = next(objects(path), (0, None))
    if isinstance(first, dict) and exports.is_header(first):
        return exports.read(first, count_lines(path), objects(path), source)
    return Reading(count_lines(path), (_records(said, number, source) for number, said in objects(path)), source)


def objects(path: Path) -> Iterator[tuple[int, Mapping[str, Any] | Skipped]]:
    """The record of each line, with its number."""
    for number, line in lines(path):
        place = f"line {number}"
        if line is None:
            yield number, Skipped(place, TOO_LONG_LINE)
            continue
        try:
            said = parsed(line)
        except ValueError:
            said = None
        yield number, said if isinstance(said, dict) else Skipped(place, NO_OBJECT)


def document_or_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """One JSON document with an empty place, or the objects of its lines with theirs; all invalid lines are `Skipped`.

    A document of one line is such a line.
    """
    if isinstance(next(objects(path), (0, None))[1], dict):
        yield from ((f"line {number}", said) for number, said in objects(path))
    else:
        yield "", Document(path).load()


def _records(said: Mapping[str, Any] | Skipped, number: int, source: str | None) -> Sequence[Record]:
    if isinstance(said, Skipped):
        return (said,)
    text = storable.text_of(said.get("text"))
    own = storable.line_of(said.get("source"), 2 * storable.MAX_SOURCE_CHARS)
    placed = "/".join(part for part in (source, own) if part) or DEFAULT_SOURCE
    given = said.get("metadata", said.get("custom_fields"))
    metadata: dict[str, Any] = dict(storable.json_of(given) or {}) if isinstance(given, dict) else {}
    metadata.update({name: said[name] for name in _OWN_FIELDS if said.get(name) is not None})
    key = storable.text_of(said.get("key") or metadata.pop("entity_key", None)) or storable.digest(text, own)
    return tuple(
        storable.memory(
            text,
            source=placed,
            key=key,
            place=f"line {number}",
            created_at=said.get("created_at"),
            metadata=metadata,
            tags=said.get("tags"),
            facts=said.get("facts"),
        )
    )
