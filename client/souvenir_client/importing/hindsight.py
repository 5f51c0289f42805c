"""Memories of Hindsight: the answers of its route that lists memories, or one memory a line.

An answer has `items`, and the number of memories in the bank (`total`), so that missing pages are reported. The fields
are those of MemoryUnitListItem in its client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from souvenir_client.errors import NotImportable
from souvenir_client.importing import jsonl, storable
from souvenir_client.importing.records import Missing, Reading, Record, Skipped

DEFAULT_SOURCE = "hindsight"
_TIMES = ("occurred_start", "mentioned_at", "date")
"""The first that is set is the time of a memory."""

_READ = frozenset({"id", "text", "tags", "metadata", "entities"})
NO_LIST = "it has no list of memories of Hindsight (items)"
NO_MEMORY = "it is not a memory of Hindsight"


def tells(said: Mapping[str, Any]) -> bool:
    """Return True for a memory, or an answer with memories."""
    first = next(iter(storable.objects_in(said.get("items"))), said)
    return "text" in first and "fact_type" in first


def read(path: Path, source: str | None) -> Reading:
    prefix = source or DEFAULT_SOURCE
    found: list[tuple[str, Any]] = []
    totals = []
    for place, said in jsonl.document_or_lines(path):
        page = said.get("items") if isinstance(said, dict) else said
        if isinstance(page, list):
            where = f"{place}, memory" if place else "memory"
            found += [(f"{where} {number}", one) for number, one in enumerate(page, 1)]
            total = said.get("total") if isinstance(said, dict) else None
            totals += [total] if type(total) is int else []
        elif place:
            found.append((place, said))
        else:
            raise NotImportable(str(path), NO_LIST)
    items: list[Sequence[Record]] = [tuple(_records(said, place, prefix)) for place, said in found]
    if totals and max(totals) > len(found):
        items.append((Missing("memories", max(totals), len(found)),))
    return Reading(len(items), iter(items), prefix)


def _records(said: object, place: str, prefix: str) -> Iterator[Record]:
    if isinstance(said, Skipped):
        yield said
        return
    if not isinstance(said, dict) or "text" not in said:
        yield Skipped(place, NO_MEMORY)
        return
    key = storable.line_of(said.get("id"), storable.MAX_SOURCE_CHARS)
    held = said.get("metadata")
    others = {name: value for name, value in said.items() if name not in _READ}
    metadata: dict[str, Any] = {**(held if isinstance(held, dict) else {}), **others}
    metadata["entities"] = _entities(said.get("entities"))
    kept = {**storable.foreign_metadata(metadata, "hindsight"), "origin_class": "inferred"}
    yield from storable.memory(
        said["text"],
        source=prefix,
        key=key or storable.digest(storable.text_of(said["text"])),
        place=key or place,
        created_at=next((said[name] for name in _TIMES if said.get(name)), None),
        metadata={**kept, "archived": True} if said.get("state") == "invalidated" else kept,
        tags=said.get("tags"),
    )


def _entities(value: object) -> object:
    """The names, which Hindsight lists with commas."""
    return [name for one in value.split(",") if (name := one.strip())] if isinstance(value, str) else value
