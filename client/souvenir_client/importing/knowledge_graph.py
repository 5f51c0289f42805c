"""Graphs of the MCP server `server-memory`: entities with observations, and relations between them.

Its file has one JSON object a line, with the `type` entity or relation; its tool `read_graph` answers one object with
`entities` and `relations`. They become entities and relations of the service's knowledge graph, unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from souvenir_client.errors import NotImportable
from souvenir_client.importing import jsonl, storable
from souvenir_client.importing.reading import Document, count_lines
from souvenir_client.importing.records import Altered, ImportedEntity, ImportedRelation, Reading, Record, Skipped

MAX_OBSERVATIONS = 100
"""Limit for one record; an entity with more is split."""

MAX_RELATION_TYPE_CHARS = 180
NO_PART_OF_A_GRAPH = "it is neither an entity nor a relation"
NO_NAME = f"a name must have 1 to {storable.MAX_SOURCE_CHARS} characters"
NO_TYPE = f"its type must have 1 to {MAX_RELATION_TYPE_CHARS} characters"
LONG_TYPE = f"its type is longer than {storable.MAX_NAME_CHARS} characters and was truncated"
NO_TIMES = "observations have no times of their own; those in the file were omitted"


def read(path: Path, source: str | None = None) -> Reading:
    """:param source: Ignored: the service determines the source of the graph."""
    _, first = next(jsonl.objects(path), (0, None))
    if isinstance(first, dict) and "type" in first:
        found = (tuple(_line(said, f"line {number}")) for number, said in jsonl.objects(path))
        return Reading(count_lines(path), found)
    content = Document(path).load()
    if not isinstance(content, dict):
        raise NotImportable(str(path), "it has neither entities nor relations")
    parts = [(part, named) for named in ("entities", "relations") for part in _listed(content.get(named))]
    found = (tuple(_part(part, named, f"{named} {number}")) for number, (part, named) in enumerate(parts, 1))
    return Reading(len(parts), found)


def _line(said: Mapping[str, Any] | Skipped, place: str) -> Iterator[Record]:
    if isinstance(said, Skipped):
        yield said
    else:
        named = {"entity": "entities", "relation": "relations"}.get(str(said.get("type")), "")
        yield from _part(said, named, place)


def _part(said: object, named: str, place: str) -> Iterator[Record]:
    match named, said:
        case "entities", {"name": str(name), **rest} if name.strip():
            yield from _entity(rest, storable.text_of(name), place)
        case "relations", {"from": str(one), "relationType": str(relation), "to": str(other)}:
            ends = storable.text_of(one), storable.text_of(other)
            if not all(map(_is_name, ends)):
                yield Skipped(place, NO_NAME)
            elif not 1 <= len(storable.text_of(relation)) <= MAX_RELATION_TYPE_CHARS:
                yield Skipped(place, NO_TYPE)
            else:
                yield ImportedRelation(*ends, storable.text_of(relation), place)
        case _:
            yield Skipped(place, NO_PART_OF_A_GRAPH)


def _entity(said: Mapping[Any, Any], name: str, place: str) -> Iterator[Record]:
    if not _is_name(name):
        yield Skipped(place, NO_NAME)
        return
    kind = storable.text_of(said.get("entityType"))
    if len(kind) > storable.MAX_NAME_CHARS:
        kind = kind[: storable.MAX_NAME_CHARS]
        yield Altered(place, LONG_TYPE)
    kept, timed = [], False
    for number, observation in enumerate(_listed(said.get("observations")), 1):
        # Forks of the server store objects with the text and a time.
        of_fork = observation if isinstance(observation, dict) else {"content": observation}
        text, where = storable.text_of(of_fork.get("content")), f"{place}, observation {number}"
        timed = timed or bool(of_fork.get("timestamp"))
        if not text.strip():
            yield Skipped(where, storable.NO_TEXT)
        elif len(text) > storable.MAX_TEXT_CHARS:
            yield Skipped(where, storable.TOO_LONG)
        else:
            kept.append(text)
    if timed:
        yield Altered(place, NO_TIMES)
    for first in range(0, max(1, len(kept)), MAX_OBSERVATIONS):
        yield ImportedEntity(name, kind, kept[first : first + MAX_OBSERVATIONS], place)


def _is_name(name: str) -> bool:
    return bool(name.strip()) and len(name) <= storable.MAX_SOURCE_CHARS


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
