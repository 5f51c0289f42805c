"""Reads the data of the reference service of the Memories family: memories, and their vectors if it kept them.

Known: `metadata.json` with `index.faiss` and `config.json` in one folder, where the id of a memory is its position in
both. Assumed, since no description of them is published: a SQLite table with the columns `text` and `source`, and
Qdrant points (`id`, `vector`, `payload`), one a line or in a list. Nothing is guessed: where ids, positions and counts
disagree, the data is refused or its vectors are not used. Nothing is written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import faiss
import numpy as np

from souvenir.core.errors import InvalidRequest
from souvenir.core.types import FloatVector

METADATA, INDEX, CONFIG = "metadata.json", "index.faiss", "config.json"
_SQLITE = (".db", ".sqlite", ".sqlite3")
_POINTS = (".jsonl", ".ndjson", ".json")

_MODEL_NAMES = ("model", "model_name", "embedding_model")
_LISTS = ("memories", "metadata", "records", "points", "result")
_TEXTS = ("text", "content", "memory", "document")
_CREATED, _UPDATED = ("created_at", "timestamp"), ("updated_at",)
_VECTORS = ("vector", "embedding")
_COMPUTED = frozenset({"id", "confidence", "similarity", "rrf_score", "relative_score", "is_latest", "previous_text"})
_OF_LINKS = {"supersedes": True, "superseded_by": False, "conflicts_with": True}
"""Fields that stand for a link, and whether it leads from the memory that has the field."""

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ForeignMemory:
    """:param line: As a line of an import, with its id in that store. :param vector: As stored there, if it was."""

    line: Record
    vector: FloatVector | None


@dataclass(frozen=True, slots=True)
class ForeignStore:
    """:param model: The name of the model that made the vectors, if the store says so.

    :param no_vectors: Why there are no vectors, if there are none.
    """

    path: Path
    memories: Sequence[ForeignMemory]
    model: str | None = None
    no_vectors: str | None = None


def read(path: Path, *, with_vectors: bool = True) -> ForeignStore:
    """Read a data folder, or one file of it.

    :raises InvalidRequest: If it is damaged, half written, or of no known layout; the message names the cause.
    """
    found = _found(path)
    try:
        if found.name == METADATA:
            return _of_folder(found.parent, with_vectors=with_vectors)
        records = _rows(found) if found.suffix in _SQLITE else _points(found)
    except (OSError, apsw.Error) as error:
        raise _damaged(found, str(error)) from error
    except ValueError as error:
        raise _damaged(found, f"it is not complete JSON in UTF-8 ({error})") from error
    vectors = [_vector(record) for record in records]
    lengths = {len(vector) for vector in vectors if vector is not None}
    reason = None
    if not with_vectors:
        reason = "they were not asked for"
    elif not lengths:
        reason = "it has none"
    elif len(lengths) > 1:
        reason = "they have different lengths"
    return ForeignStore(found, _memories(found, records, [None] * len(records) if reason else vectors), None, reason)


def _found(path: Path) -> Path:
    """Return the one file of a folder that holds the memories."""
    if path.is_file():
        return path
    if not path.is_dir():
        raise InvalidRequest(f"{path} does not exist; name the data folder of the service, or one of its files")
    metadata = [path / METADATA] if (path / METADATA).is_file() else []
    others = [one for one in sorted(path.iterdir()) if one.is_file() and one.name not in (METADATA, CONFIG)]
    tables = [one for one in others if one.suffix in _SQLITE and _has_memories(one)]
    points = [one for one in others if one.suffix in _POINTS]
    found = [*metadata, *tables, *points]
    if not found:
        raise InvalidRequest(f"{path} has neither {METADATA} nor a SQLite file or Qdrant points with memories")
    if len(found) > 1:
        raise InvalidRequest(f"{path} has {', '.join(one.name for one in found)}; name the file that is current")
    return found[0]


def _damaged(path: Path, reason: str) -> InvalidRequest:
    return InvalidRequest(f"{path} cannot be imported: {reason}; nothing was changed, take a backup of that service")


# --- metadata.json and index.faiss -----------------------------------------------------------------------------------


def _of_folder(folder: Path, *, with_vectors: bool) -> ForeignStore:
    path = folder / METADATA
    records = _listed(path, json.loads(path.read_text(encoding="utf-8")))
    config = _config(folder / CONFIG)
    if not with_vectors or not (folder / INDEX).is_file():
        missing = f"there is no {INDEX}" if with_vectors else "they were not asked for"
        return ForeignStore(path, _memories(path, records, [None] * len(records)), config, missing)
    index = _index(folder / INDEX)
    if index.ntotal != len(records):
        raise _damaged(
            folder,
            f"{INDEX} has {index.ntotal} vectors and {METADATA} {len(records)} memories, as after an interrupted "
            "write (with --embed the texts are embedded again)",
        )
    vectors, reason = _vectors(index, [record.get("id", place) for place, record in enumerate(records)])
    return ForeignStore(path, _memories(path, records, vectors or [None] * len(records)), config, reason)


def _config(path: Path) -> str | None:
    if not path.is_file():
        return None
    config = json.loads(path.read_text(encoding="utf-8"))
    named = [config.get(name) for name in _MODEL_NAMES] if isinstance(config, dict) else []
    return next((name for name in named if isinstance(name, str) and name), None)


def _listed(path: Path, content: Any) -> list[Record]:
    """Return the records of a document: a list, a list under a known name, or an object by id."""
    if isinstance(content, dict):
        held = next((content[name] for name in _LISTS if isinstance(content.get(name), list | dict)), content)
        if isinstance(held, dict) and isinstance(held.get("points"), list):
            held = held["points"]
        if isinstance(held, dict):
            held = [{"id": int(id_) if id_.isdecimal() else id_, **one} for id_, one in _objects(path, held)]
        content = held
    if not isinstance(content, list) or not all(isinstance(one, dict) for one in content):
        raise _damaged(path, "it is not a list of memories")
    return content


def _objects(path: Path, held: Mapping[str, Any]) -> Iterator[tuple[str, Record]]:
    for id_, one in held.items():
        if not isinstance(one, dict):
            raise _damaged(path, f"its entry {id_!r} is not a memory")
        yield id_, one


def _index(path: Path) -> Any:
    try:
        return faiss.read_index(str(path))
    except (RuntimeError, MemoryError) as error:
        raise _damaged(path, "it is not a complete FAISS index (with --embed the texts are embedded again)") from error


def _vectors(index: Any, ids: Sequence[Any]) -> tuple[list[FloatVector | None], str | None]:
    """Return the vector of each memory, or the reason why they cannot be assigned or read."""
    places = list(range(len(ids)))
    if isinstance(index, faiss.IndexIDMap):
        own = faiss.vector_to_array(index.id_map).tolist()
        if sorted(own) != sorted(one for one in ids if isinstance(one, int)) or len(set(own)) != len(ids):
            return [], "the ids in the index are not those of the memories"
        of_id = {id_: place for place, id_ in enumerate(own)}
        places = [of_id[id_] for id_ in ids]
        index = faiss.downcast_index(index.index)
    elif list(ids) != places:
        return [], "the ids of the memories are not their positions"
    if not isinstance(index, faiss.IndexFlat | faiss.IndexHNSWFlat):
        return [], f"the index is of the type {type(index).__name__}, which is not read"
    rows = index.reconstruct_n(0, index.ntotal) if index.ntotal else np.zeros((0, index.d), np.float32)
    if not np.isfinite(rows).all() or not np.linalg.norm(rows, axis=1).all():
        return [], "the index has vectors without a direction"
    return [rows[place] for place in places], None


# --- SQLite and Qdrant -----------------------------------------------------------------------------------------------


def _has_memories(path: Path) -> bool:
    """Return whether a SQLite file has memories, or cannot be read, which `_rows` reports."""
    connection = None
    try:
        connection = _opened(path)
        return _table(connection) is not None
    except apsw.Error:
        return True
    finally:
        if connection is not None:
            connection.close()


def _opened(path: Path) -> apsw.Connection:
    return apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)


def _table(connection: apsw.Connection) -> str | None:
    for name in sorted(row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")):
        columns = {row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))}
        if "source" in columns and columns & set(_TEXTS):
            return str(name)
    return None


def _rows(path: Path) -> list[Record]:
    connection = _opened(path)
    try:
        said = connection.execute("PRAGMA quick_check(1)").get
        if said != "ok":
            raise _damaged(path, str(said))
        table = _table(connection)
        if table is None:
            raise _damaged(path, "no table has the columns text and source")
        cursor = connection.execute(f'SELECT * FROM "{table.replace(chr(34), chr(34) * 2)}" ORDER BY rowid')
        names = [one[0] for one in cursor.get_description()] if (first := cursor.fetchone()) else []
        rows = [first, *cursor] if first else []
    finally:
        connection.close()
    return [_flat({name: _json(value) for name, value in zip(names, row, strict=True)}) for row in rows]


def _json(value: Any) -> Any:
    """Return the content of a column that holds JSON."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _points(path: Path) -> list[Record]:
    text = path.read_text(encoding="utf-8")
    try:
        points = _listed(path, json.loads(text))
    except json.JSONDecodeError:
        points = [json.loads(line) for line in text.split("\n") if line.strip()]
    if not points or not all(isinstance(one, dict) and isinstance(one.get("payload"), dict) for one in points):
        raise _damaged(path, "it has no points with a payload")
    return [{"id": one.get("id"), **one["payload"], "vector": one.get("vector")} for one in points]


def _flat(record: Record) -> Record:
    for name in ("metadata", "custom_fields", "payload"):
        if isinstance(record.get(name), dict):
            record = {**record.pop(name), **record}
    return record


def _vector(record: Mapping[str, Any]) -> FloatVector | None:
    held = next((record[name] for name in _VECTORS if record.get(name) is not None), None)
    if isinstance(held, dict):
        # Named vectors; several are of different models.
        held = next(iter(held.values())) if len(held) == 1 else None
    if isinstance(held, bytes) and len(held) % 4 == 0:
        vector = np.frombuffer(held, "<f4").astype(np.float32)
    elif isinstance(held, list) and all(isinstance(one, int | float) for one in held):
        vector = np.array(held, np.float32)
    else:
        return None
    return vector if vector.size and np.isfinite(vector).all() and vector.any() else None


# --- memories --------------------------------------------------------------------------------------------------------


def _memories(
    path: Path, records: Sequence[Record], vectors: Sequence[FloatVector | None]
) -> tuple[ForeignMemory, ...]:
    records = [_flat(record) for record in records]
    for place, record in enumerate(records):
        if not isinstance(_text(record), str):
            raise _damaged(path, f"memory {place} (counted from 0) has no text")
    ids = [place if record.get("id") is None else record["id"] for place, record in enumerate(records)]
    if twice := [id_ for id_, count in Counter(map(str, ids)).items() if count > 1]:
        raise _damaged(path, f"two memories have the id {twice[0]}")
    plain = all(isinstance(id_, int) and not isinstance(id_, bool) and id_ >= 0 for id_ in ids)
    numbers = {str(id_): id_ if plain else place for place, id_ in enumerate(ids)}
    links: dict[int, list[Record]] = {number: [] for number in numbers.values()}
    for id_, record in zip(ids, records, strict=True):
        for from_id, link in _links(numbers[str(id_)], record, numbers):
            if from_id in links and (link["to_id"], link["type"]) not in {
                (one["to_id"], one["type"]) for one in links[from_id]
            }:
                links[from_id].append(link)
    return tuple(
        ForeignMemory(_line(numbers[str(id_)], record, links[numbers[str(id_)]]), vector)
        for id_, record, vector in zip(ids, records, vectors, strict=True)
    )


def _links(own: int, record: Record, numbers: Mapping[str, int]) -> Iterable[tuple[int, Record]]:
    """Yield the links that a memory states, each with the memory that it leads from; unknown ends have no id."""
    given = record.get("links")
    for one in given if isinstance(given, list) else ():
        if isinstance(one, dict) and isinstance(one.get("type"), str):
            target = numbers.get(str(one.get("to_id")), 2**62)
            yield own, {"to_id": target, "type": one["type"], "created_at": _time(one.get("created_at"))}
    for name, outgoing in _OF_LINKS.items():
        if record.get(name) is not None:
            other = numbers.get(str(record[name]), 2**62)
            kind = name if outgoing else "supersedes"
            from_id, to_id = (own, other) if outgoing else (other, own)
            yield from_id, {"to_id": to_id, "type": kind, "created_at": ""}


def _line(number: int, record: Record, links: Sequence[Record]) -> Record:
    taken = {*_TEXTS[:1], "source", *_CREATED, *_UPDATED, *_VECTORS, *_COMPUTED, *_OF_LINKS, "links"}
    text = _text(record)
    taken |= {name for name in _TEXTS if record.get(name) is text}
    fields = {name: value for name, value in record.items() if name not in taken and not isinstance(value, bytes)}
    for name in ("pinned", "archived"):
        if fields.get(name) in (0, 1):
            fields[name] = bool(fields[name])
    created = next((record[name] for name in _CREATED if record.get(name)), "")
    return {
        "id": number,
        "text": text,
        "source": record.get("source") or "import",
        "created_at": _time(created),
        "updated_at": _time(record.get("updated_at") or created),
        "custom_fields": {name: value for name, value in fields.items() if value is not None},
        "links": list(links),
    }


def _text(record: Mapping[str, Any]) -> Any:
    return next((record[name] for name in _TEXTS if record.get(name)), None)


def _time(value: Any) -> Any:
    """Return seconds since 1970 as ISO-8601; other values are read, or refused, by the import."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC).isoformat()
    return value or ""
