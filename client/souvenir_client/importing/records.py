"""The records of a file: memories, conversations, and items that could not be used. Values only.

Every text in them can be stored: no NUL, no lone surrogate, finite JSON, and within the limits of the service. Changes
are recorded by an `Altered` or a `Skipped` next to the record, and missing items by a `Missing` at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A memory, identified by `source` and `key`, so that a repeated import recognises it.

    `created_at` is ISO-8601. `metadata` may contain the fields of a memory that metadata can set, such as
    `origin_class`.
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
class ImportedEntity:
    """One entity of a knowledge graph, or a part of its observations."""

    name: str
    entity_type: str
    observations: Sequence[str]
    place: str = ""


@dataclass(frozen=True, slots=True)
class ImportedRelation:
    """A relation between two entities, by their names."""

    from_entity: str
    to_entity: str
    relation_type: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message, identified by `key` within its conversation. `role` is user, assistant or system."""

    role: str
    content: str
    key: str
    created_at: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    user: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session with its turns in order; without `ended_at` it stays open."""

    session_id: str
    turns: Sequence[Turn]
    title: str | None = None
    user: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    started_at: str | None = None
    ended_at: str | None = None


@dataclass(frozen=True, slots=True)
class ConceptStatement:
    """A statement about a concept, which the imported messages must mention.

    :param key: Identifies the concept.
    :param name: Replaces the most used name.
    """

    key: str
    name: str | None = None
    description: str | None = None
    aliases: Sequence[str] = ()
    kind: str | None = None
    place: str = ""


@dataclass(frozen=True, slots=True)
class ConceptRelationStatement:
    """A statement about the relation of two concepts, by their keys; `strength` is in [0, 1]."""

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
    """Names of access levels that an agent denies."""

    levels: Sequence[str]
    place: str = ""


@dataclass(frozen=True, slots=True)
class ExportedLine:
    """A memory, or the header, of our own exports; the service parses it."""

    said: Mapping[str, Any]
    number: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """An item that is not imported; `place` is a line, a file, or the id of a conversation or memory."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Altered:
    """An item that is imported with changes."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Lines that are missing from one of our own exports, which was truncated or edited, or from a page of a list.

    :param noun: Memories, messages, sessions, users or blocks.
    :param counted: Number in the header, or the total.
    :param held: Number in the file.
    """

    noun: str
    counted: int
    held: int


Record = (
    MemoryRecord
    | ImportedEntity
    | ImportedRelation
    | Conversation
    | ConceptStatement
    | ConceptRelationStatement
    | BlockRecord
    | TakenLevels
    | ExportedLine
    | Skipped
    | Altered
    | Missing
)


@dataclass(frozen=True, slots=True)
class Reading:
    """A file being read: each item is a line, a file or a conversation, with its records.

    :param total: Number of items, if it is known in advance.
    :param below: A path that contains the sources of all its memories; None if it is not known.
    :param agent: The agent in the file's header, if any.
    """

    total: int | None
    items: Iterator[Sequence[Record]]
    below: str | None = None
    agent: str | None = None
