"""What the MCP server `server-memory` keeps: entities with observations, and relations between them.

Its file has one JSON object a line, with `type` entity or relation; its tool `read_graph` answers one object with
`entities` and `relations`. An observation becomes a memory that begins with the entity's name, since it seldom says by
itself whom it is about; a relation becomes a sentence; an entity without observations says what it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from souvenir_client.errors import NotImportable
from souvenir_client.importing import jsonl, storable
from souvenir_client.importing.reading import Document, count_lines
from souvenir_client.importing.records import Reading, Record, Skipped

DEFAULT_SOURCE = "mcp-memory"
NO_PART_OF_A_GRAPH = "it is neither an entity nor a relation"


def read(path: Path, source: str | None) -> Reading:
    prefix = source or DEFAULT_SOURCE
    _, first = next(jsonl.objects(path), (0, None))
    if isinstance(first, dict) and "type" in first:
        found = (tuple(_line(said, f"line {number}", prefix)) for number, said in jsonl.objects(path))
        return Reading(count_lines(path), found, prefix)
    content = Document(path).load()
    if not isinstance(content, dict):
        raise NotImportable(str(path), "it has neither entities nor relations")
    parts = [(part, named) for named in ("entities", "relations") for part in _listed(content.get(named))]
    found = (tuple(_part(part, named, f"{named} {number}", prefix)) for number, (part, named) in enumerate(parts, 1))
    return Reading(len(parts), found, prefix)


def _line(said: Mapping[str, Any] | Skipped, place: str, prefix: str) -> Iterator[Record]:
    if isinstance(said, Skipped):
        yield said
    else:
        named = {"entity": "entities", "relation": "relations"}.get(str(said.get("type")), "")
        yield from _part(said, named, place, prefix)


def _part(said: object, named: str, place: str, prefix: str) -> Iterator[Record]:
    match named, said:
        case "entities", {"name": str(name), **rest} if name.strip():
            yield from _entity(rest, name, place, prefix)
        case "relations", {"from": str(one), "relationType": str(relation), "to": str(other)}:
            yield from _memory(
                f"{_shown(one)} {_shown(relation)} {_shown(other)}",
                f"{prefix}/{storable.name_of(one) or 'relations'}",
                storable.digest("relation", one, relation, other),
                place,
                {"from": one, "relation": relation, "to": other},
            )
        case _:
            yield Skipped(place, NO_PART_OF_A_GRAPH)


def _entity(said: Mapping[Any, Any], name: str, place: str, prefix: str) -> Iterator[Record]:
    kind = storable.line_of(said.get("entityType"), storable.MAX_NAME_CHARS)
    held = said.get("observations")
    observations = held if isinstance(held, list) else []
    about = {"entity": name, **({"entity_type": kind} if kind else {})}
    source = f"{prefix}/{storable.name_of(name)}"
    if not observations:
        text = f"{_shown(name)} ({kind})" if kind else _shown(name)
        yield from _memory(text, source, storable.digest("entity", name), place, about)
    for number, observation in enumerate(observations, 1):
        # Forks of the server keep objects with the text and a time.
        of_fork = observation if isinstance(observation, dict) else {"content": observation}
        text, at = storable.text_of(of_fork.get("content")).strip(), of_fork.get("timestamp")
        where = f"{place}, observation {number}"
        if not text:
            yield Skipped(where, storable.NO_TEXT)
            continue
        key = storable.digest("observation", name, text)
        yield from _memory(f"{_shown(name)}: {text}", source, key, where, about, at)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _memory(
    text: str, source: str, key: str, place: str, metadata: Mapping[str, Any], created_at: object = None
) -> Iterator[Record]:
    # The model that uses the server wrote it down.
    said = {**storable.foreign_metadata(metadata, "mcp"), "origin_class": "assistant"}
    yield from storable.memory(text, source=source, key=key, place=place, created_at=created_at, metadata=said)


def _shown(name: str) -> str:
    """Names are often written as identifiers, in which no word is found."""
    return " ".join(storable.text_of(name).replace("_", " ").split())
