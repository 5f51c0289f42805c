"""Files of Locrits: folders of JSON files, folders of text files, or messages in the form of their routes.

- `simple_file`: `messages/ID.json` and `sessions/ID.json`; a session lists its messages in order.
- `plaintext`: `memories/ID.txt`, each with a JSON header and the text.
- a file: a list of messages, an object with `messages`, or one message per line.

Times without an offset are read as UTC. The database of its graph engine is not supported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from souvenir_client.errors import NotImportable
from souvenir_client.importing import jsonl, storable
from souvenir_client.importing.conversations import SourceMessage, conversation
from souvenir_client.importing.reading import MAX_LINE_BYTES, Document, parsed
from souvenir_client.importing.records import Reading, Record, Skipped

DEFAULT_SOURCE = "locrit"
Placed = tuple[str, Mapping[str, Any] | Skipped]
"""A message with its place: a file, a line or a number."""

_SIMPLE, _PLAIN = "simple_file", "plaintext"
_METADATA_LINE, _CONTENT_LINE = "=== MEMORY METADATA ===\n", "=== CONTENT ===\n"

NO_MESSAGE = "it is not a message"
NO_MEMORY = "it is not a memory: the lines around its metadata are missing"
NOTHING = "the folder has neither simple_file/messages nor plaintext/memories"
NO_LIST = "it has no list of messages"
UNREADABLE = "it cannot be read"
NAMED_IN_VAIN = "its session lists it, but its file is missing"


def parts(folder: Path) -> list[Path]:
    """Return the subfolders with messages or memories, or the folder itself."""
    found = [folder / _SIMPLE, folder / _PLAIN, folder]
    return [one for one in found if (one / "messages").is_dir() or (one / "memories").is_dir()]


def read(path: Path, source: str | None) -> Reading:
    """:param source: Source of memories; messages have none."""
    prefix = source or DEFAULT_SOURCE
    if not path.is_dir():
        items = list(_items(_messages(path), {}))
        return Reading(len(items), iter(items))
    found = parts(path)
    if not found:
        raise NotImportable(str(path), NOTHING)
    messages = [one for part in found for one in _files(part / "messages", ".json")]
    memories = [one for part in found for one in _files(part / "memories", ".txt")]
    return Reading(None, _folder(found, messages, memories, prefix), prefix)


def _folder(
    found: Sequence[Path], messages: Sequence[Path], memories: Sequence[Path], prefix: str
) -> Iterator[Sequence[Record]]:
    kept = {name: said for part in found for name, said in _sessions(part)}
    yield from _items(((one.name, _object(one)) for one in messages), kept)
    for one in memories:
        yield tuple(_memory(one, prefix))


def _messages(path: Path) -> Iterator[Placed]:
    """The messages of one file, each with its place."""
    document = Document(path)
    begin = document.begin().lstrip()
    first = next(jsonl.objects(path), (0, None))[1] if begin.startswith(b"{") else None
    if isinstance(first, dict) and "messages" not in first:
        yield from ((f"line {number}", said) for number, said in jsonl.objects(path))
        return
    said = document.load()
    listed = said.get("messages") if isinstance(said, dict) else said
    if not isinstance(listed, list):
        raise NotImportable(str(path), NO_LIST)
    of_all = {"session_id": said.get("session_id")} if isinstance(said, dict) else {}
    for number, one in enumerate(listed, 1):
        place = f"message {number}"
        yield place, {**of_all, **one} if isinstance(one, dict) else Skipped(place, NO_MESSAGE)


def _items(said: Iterable[Placed], kept: Mapping[str, Mapping[str, Any]]) -> Iterator[Sequence[Record]]:
    """The sessions, then the items that are not messages.

    :param kept: The files of the sessions that have one, by name.
    """
    sessions: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
    unusable = []
    for place, one in said:
        if isinstance(one, Skipped):
            unusable.append(one)
        else:
            sessions[storable.text_of(one.get("session_id")) or DEFAULT_SOURCE].append((place, one))
    for name, messages in sessions.items():
        yield _session(name, messages, kept.get(name, {}))
    if unusable:
        yield unusable


def _session(name: str, messages: Sequence[tuple[str, Mapping[str, Any]]], kept: Mapping[str, Any]) -> Sequence[Record]:
    """:param kept: The file of the session, if it has one."""
    listed = kept.get("message_ids")
    order = {str(one): number for number, one in enumerate(listed if isinstance(listed, list) else [])}
    said = [_said(one, place) for place, one in messages]
    lost = [Skipped(f"message {one}", NAMED_IN_VAIN) for one in order if one not in {_key(it) for _, it in messages}]
    in_order = sorted(said, key=lambda one: _when(one, order))
    return tuple(
        conversation(
            [*in_order, *lost],
            session_id=storable.name_of(name) or storable.digest(name),
            place=f"session {name}",
            title=kept.get("name"),
            user=next((one.user for one in in_order if isinstance(one, SourceMessage) and one.user), None),
            metadata={"imported_from": "locrit"},
            created_at=kept.get("created_at"),
            started_at=kept.get("created_at"),
        )
    )


def _when(one: SourceMessage | Skipped, order: Mapping[str, int]) -> tuple[int, str]:
    """Return the sort key: the position in its session; unlisted messages follow by time."""
    if isinstance(one, Skipped):
        return len(order) + 1, ""
    return order.get(one.key, len(order)), storable.timestamp_of(one.created_at) or ""


def _key(said: Mapping[str, Any]) -> str:
    return storable.line_of(said.get("id") or said.get("message_id"), storable.MAX_NAME_CHARS)


def _said(said: Mapping[str, Any], place: str) -> SourceMessage | Skipped:
    if not isinstance(said.get("content"), str):
        return Skipped(place, NO_MESSAGE)
    held = said.get("metadata")
    if isinstance(held, str):
        held = _parsed(held.encode())
    at = said.get("timestamp", said.get("created_at"))
    return SourceMessage(
        said["role"] if said.get("role") in ("user", "assistant", "system") else "user",
        said["content"],
        _key(said) or storable.digest(said.get("role"), said["content"], storable.timestamp_of(at)),
        at,
        storable.foreign_metadata(held, "locrit") if isinstance(held, dict) else {},
        user=storable.name_of(said.get("user_id")) or None,
    )


def _memory(path: Path, prefix: str) -> Iterator[Record]:
    text = _text(path)
    head, mark, content = (text or "").partition(_CONTENT_LINE)
    said = _parsed(head.removeprefix(_METADATA_LINE).encode()) if mark else None
    if text is None or not isinstance(said, dict):
        yield Skipped(path.name, UNREADABLE if text is None else NO_MEMORY)
        return
    held = said.get("metadata")
    others = {name: said.get(name) for name in ("importance", "memory_type", "last_accessed")}
    metadata = {**(held if isinstance(held, dict) else {}), **others}
    yield from storable.memory(
        content,
        source=prefix,
        key=storable.line_of(said.get("id"), storable.MAX_NAME_CHARS) or path.stem,
        place=path.name,
        created_at=said.get("created_at"),
        metadata=storable.foreign_metadata(metadata, "locrit"),
        tags=said.get("tags"),
    )


def _sessions(part: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path in _files(part / "sessions", ".json"):
        said = _object(path)
        if isinstance(said, Mapping):
            yield storable.text_of(said.get("id")) or path.stem, said


def _files(folder: Path, ending: str) -> list[Path]:
    """Return the files sorted by name."""
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(one for one in found if one.suffix == ending and one.is_file())


def _object(path: Path) -> Mapping[str, Any] | Skipped:
    text = _text(path)
    said = None if text is None else _parsed(text.encode())
    return said if isinstance(said, dict) else Skipped(path.name, UNREADABLE if text is None else NO_MESSAGE)


def _text(path: Path) -> str | None:
    """Return the content; None if it is too large for its purpose, or no text."""
    try:
        if path.stat().st_size > MAX_LINE_BYTES:
            return None
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _parsed(content: bytes) -> Any:
    try:
        return parsed(content)
    except ValueError:
        return None
