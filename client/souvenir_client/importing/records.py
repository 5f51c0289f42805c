"""What a file says, once it is read: memories, conversations, and what could not be used.

Values only. Every text in them can be stored: no NUL, no half of a surrogate pair, finite JSON, and no longer than the
service takes. What that changed or left out is said by an `Altered` or a `Skipped` beside the record, and what a file
should hold and does not by a `Missing` at its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """One memory; `source` and `key` together name it, so that it is known again when the file is imported again.

    `created_at` is ISO-8601. `metadata` may have the fields of a memory that metadata can set, such as `origin_class`.
    """

    text: str
    source: str
    key: str
    created_at: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    tags: Sequence[str] = ()
    facts: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """One entity of a knowledge graph, or a part of its observations."""

    name: str
    entity_type: str
    observations: Sequence[str]
    place: str = ""


@dataclass(frozen=True, slots=True)
class RelationRecord:
    """What one entity is to another, each by its name."""

    from_entity: str
    to_entity: str
    relation_type: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message; `key` names it within its conversation. `role` is user, assistant or system."""

    role: str
    content: str
    key: str
    created_at: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    user: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """One session with its turns in the order in which they were said; one without `ended_at` stays open."""

    session_id: str
    turns: Sequence[Turn]
    title: str | None = None
    user: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    started_at: str | None = None
    ended_at: str | None = None


@dataclass(frozen=True, slots=True)
class ConceptRecord:
    """What somebody said of a concept, which has to be mentioned by what is imported with it.

    :param key: What it is known by.
    :param name: In the place of the one that is used most.
    """

    key: str
    name: str | None = None
    description: str | None = None
    aliases: Sequence[str] = ()
    kind: str | None = None
    place: str = ""


@dataclass(frozen=True, slots=True)
class ConceptRelationRecord:
    """What somebody said that one concept is to another, each by its key; `strength` is in [0, 1]."""

    from_key: str
    to_key: str
    relationship_type: str
    strength: float
    place: str = ""


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """A memory block of an agent."""

    label: str
    value: str
    description: str | None
    limit_chars: int | None
    read_only: bool
    place: str = ""


@dataclass(frozen=True, slots=True)
class TakenLevels:
    """Access levels, by their names, that an agent does not give."""

    levels: Sequence[str]
    place: str = ""


@dataclass(frozen=True, slots=True)
class ExportedLine:
    """A memory, or the header, as our own exports write it; the service reads it itself."""

    said: Mapping[str, Any]
    number: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that is not imported; `place` is a line, a file, or the id of a conversation or memory."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Altered:
    """Something that is imported, but not just as it was."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Lines that one of our own exports should have and has not: it was cut off, or somebody took some out.

    :param noun: Memories, messages, sessions, users or blocks.
    :param counted: How many its header says there are.
    :param held: How many there are.
    """

    noun: str
    counted: int
    held: int


Record = (
    MemoryRecord
    | EntityRecord
    | RelationRecord
    | Conversation
    | ConceptRecord
    | ConceptRelationRecord
    | BlockRecord
    | TakenLevels
    | ExportedLine
    | Skipped
    | Altered
    | Missing
)


@dataclass(frozen=True, slots=True)
class Reading:
    """A file under way: each item is a line, a file or a conversation, with all that came of it.

    :param total: How many items there are, where that is known before they are read.
    :param below: What the sources of all its memories begin with, as a path; None if that is not known.
    :param agent: Whose it was, where the file says so.
    """

    total: int | None
    items: Iterator[Sequence[Record]]
    below: str | None = None
    agent: str | None = None
