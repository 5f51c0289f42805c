"""Our own complete exports: of memories (`GET /export`) and of an agent (`GET /agents/{name}/export`).

Memories are imported as the original lines, with their times, keys and links. The sessions and messages of an agent
become conversations, whose messages keep their times and authors, but not their ids and times of edits; sessions stay
open; of blocks the newest version is imported, and denied access levels are applied. An agent's messages are held in
memory while its file is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from souvenir_client.importing import storable
from souvenir_client.importing.conversations import SourceMessage, conversation
from souvenir_client.importing.records import BlockRecord, ExportedLine, Missing, Reading, Record, Skipped, TakenLevels

IMPORT_ID = "import_id"
"""Metadata key of a message: the digest of its key within the imported conversation."""

NOUNS = {"user": "users", "session": "sessions", "message": "messages", "block": "blocks", "memory": "memories"}
"""The types of an agent's lines that its header counts, and their names there."""

LEVELS = ("quick_memory", "full_memory", "logs")

UNKNOWN_LINE = "the line has an unknown type"
Line = tuple[int, Mapping[str, Any] | Skipped]


def is_header(said: Mapping[str, Any]) -> bool:
    return said.get("_header") is True or (said.get("type") == "header" and "agent_name" in said)


def read(header: Mapping[str, Any], total: int, lines: Iterable[Line], source: str | None) -> Reading:
    if header.get("_header") is True:
        return Reading(total, _memories(lines, source))
    sessions = header.get("sessions")
    agent = storable.name_of(header.get("agent_name")) or None
    # Each session is a separate item, after the lines that it comes from.
    return Reading(total + (sessions if isinstance(sessions, int) else 0), _agent(lines, source), agent=agent)


class _Counted:
    """The counts in the headers of a file, and the number of lines found.

    :param noun_of: The type that a line below a header is counted as, if any.
    """

    def __init__(self, noun_of: Callable[[Mapping[str, Any]], str | None]) -> None:
        self._noun_of = noun_of
        self._counted: Counter[str] = Counter()
        self._held: Counter[str] = Counter()

    def seen(self, lines: Iterable[Line]) -> Iterator[Line]:
        """The same lines, counted as they pass."""
        for number, said in lines:
            if isinstance(said, Mapping):
                self._count(said)
            yield number, said

    def missing(self) -> Iterator[Sequence[Record]]:
        for noun, counted in self._counted.items():
            if self._held[noun] < counted:
                yield (Missing(noun, counted, self._held[noun]),)

    def _count(self, said: Mapping[str, Any]) -> None:
        if said.get("_header") is True:
            counts = {"memories": said.get("count")}
        elif is_header(said):
            counts = {noun: said.get(noun) for noun in NOUNS.values()}
        else:
            self._held[self._noun_of(said) or ""] += 1
            return
        self._counted.update({noun: count for noun, count in counts.items() if type(count) is int})


def _memories(lines: Iterable[Line], source: str | None) -> Iterator[Sequence[Record]]:
    counted = _Counted(lambda _: "memories")
    for number, said in counted.seen(lines):
        yield (_placed(said, number, source),)
    yield from counted.missing()


def _placed(said: Mapping[str, Any] | Skipped, number: int, source: str | None) -> Record:
    """Return the line with its source, and the sources in its history, below another path."""
    if isinstance(said, Skipped):
        return said
    plain = storable.json_of(said)
    if source is None or said.get("_header") is True:
        return ExportedLine(plain, number)
    entries = storable.objects_in(plain.get("history"))
    states = [entry.get(name) for entry in entries for name in ("before", "after")]
    for holder in (plain, *states):
        if isinstance(holder, dict) and isinstance(holder.get("source"), str):
            holder["source"] = f"{source}/{holder['source']}"
    return ExportedLine(plain, number)


def _agent(lines: Iterable[Line], source: str | None) -> Iterator[Sequence[Record]]:
    """Yield the records line by line; conversations follow after the last message, one item each."""
    sessions: dict[str, Mapping[str, Any]] = {}
    messages: dict[str, list[SourceMessage]] = {}
    counted = _Counted(lambda said: NOUNS.get(str(said.get("type"))))
    for number, said in counted.seen(lines):
        kind = said.get("type") if isinstance(said, dict) else None
        if kind not in ("header", "agent", "user", "session", "message"):
            yield from _conversations(sessions, messages)
            sessions, messages = {}, {}
        if isinstance(said, dict) and kind == "session":
            sessions[str(said.get("session_id"))] = said
        if isinstance(said, dict) and kind == "message":
            messages.setdefault(str(said.get("session_id")), []).append(_message(said, number))
        yield _line(said, number, source)
    yield from _conversations(sessions, messages)
    yield from counted.missing()


def _line(said: Mapping[str, Any] | Skipped, number: int, source: str | None) -> Sequence[Record]:
    if isinstance(said, Skipped):
        return (said,)
    match said.get("type"):
        case "header" | "user" | "session" | "message":
            return ()
        case "agent":
            return _taken(said, f"line {number}")
        case "memory":
            return (_placed({name: value for name, value in said.items() if name != "type"}, number, source),)
        case "block":
            return (_block(said, f"line {number}"),)
        case _:
            return (Skipped(f"line {number}", UNKNOWN_LINE),)


def _conversations(
    sessions: Mapping[str, Mapping[str, Any]], messages: Mapping[str, Sequence[SourceMessage]]
) -> Iterator[Sequence[Record]]:
    for session_id in dict.fromkeys([*messages, *sessions]):
        of_session = sessions.get(session_id, {})
        held = of_session.get("metadata")
        yield tuple(
            conversation(
                messages.get(session_id, ()),
                session_id=storable.name_of(session_id) or storable.digest(session_id),
                place=f"session {session_id}",
                title=of_session.get("title"),
                user=storable.name_of(of_session.get("user")) or None,
                metadata=storable.json_of(held) if isinstance(held, dict) else {},
                created_at=of_session.get("started_at"),
            )
        )


def _message(said: Mapping[str, Any], number: int) -> SourceMessage:
    held = said.get("metadata")
    metadata = dict(held) if isinstance(held, dict) else {}
    # A message that was imported before keeps its original identity.
    key = metadata.pop(IMPORT_ID, None) or said.get("id")
    return SourceMessage(
        said["role"] if said.get("role") in ("user", "assistant", "system") else "user",
        storable.text_of(said.get("content")),
        storable.line_of(key, storable.MAX_NAME_CHARS) or f"line {number}",
        said.get("created_at"),
        metadata,
        user=storable.name_of(said.get("user")) or None,
        name=storable.line_of(said.get("name"), storable.MAX_SPEAKER_CHARS) or None,
    )


def _taken(said: Mapping[str, Any], place: str) -> Sequence[Record]:
    access = said.get("access")
    taken = [level for level in LEVELS if isinstance(access, dict) and access.get(level) is False]
    return (TakenLevels(taken, place),) if taken else ()


def _block(said: Mapping[str, Any], place: str) -> BlockRecord | Skipped:
    label, value, limit = said.get("label"), said.get("value"), said.get("limit")
    if not isinstance(label, str) or not isinstance(value, str):
        return Skipped(place, "the block has no label or no value")
    description = storable.text_of(said.get("description")) or None
    return BlockRecord(
        storable.text_of(label),
        storable.text_of(value),
        description,
        limit if isinstance(limit, int) else None,
        said.get("read_only") is True,
        place,
    )
