"""Memories and their changes, visibility, sources and roles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any

DEFAULT_NAMESPACE = "default"

JsonObject = Mapping[str, Any]


class Profile(IntEnum):
    """The set of constants that scores a passage; determined when it is stored."""

    FACT = 0
    DOC = 1
    TALK = 2
    CHAT = 3


class PassageKind(StrEnum):
    """The kind of a passage's owner; `owner_id` is an id of that kind. Each kind has its own index."""

    MEMORY = "memory"
    MESSAGE = "message"


class RecordKind(StrEnum):
    """The kind of a record: a message or a memory."""

    MESSAGE = "message"
    MEMORY = "memory"


class FactsBy(StrEnum):
    """How a memory was split into facts: by its caller, by a language model, or into sentences."""

    CALLER = "caller"
    MODEL = "model"
    SENTENCES = "sentences"


class MessageRole(StrEnum):
    """The role of a speaker."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class OriginClass(StrEnum):
    """The origin of a memory's text, most trusted first."""

    USER = "user"
    DOCUMENT = "document"
    TOOL = "tool"
    ASSISTANT = "assistant"
    INFERRED = "inferred"
    RECALLED = "recalled"

    @property
    def trust(self) -> int:
        """Higher is more trusted."""
        return -list(OriginClass).index(self)


class LinkType(StrEnum):
    """Link types that callers can create. The service creates links of other types, which callers cannot."""

    SUPERSEDES = "supersedes"
    RELATED_TO = "related_to"
    BLOCKED_BY = "blocked_by"
    CAUSED_BY = "caused_by"
    REINFORCES = "reinforces"


def least_trusted(classes: Iterable[OriginClass]) -> OriginClass:
    """Return the class of a text made from several: merging never increases trust."""
    return min(classes, key=lambda one: one.trust)


class Role(StrEnum):
    """The permissions of a key; each role includes the permissions of the previous one."""

    READ_ONLY = "read-only"
    READ_WRITE = "read-write"
    ADMIN = "admin"


class OnDuplicate(StrEnum):
    """The action of an add when a nearly identical text exists."""

    ADD = "add"
    SKIP = "skip"
    SUPERSEDE = "supersede"


@dataclass(frozen=True, slots=True)
class Scope:
    """The caller, the namespace, and the visible part of it: everything outside does not exist for the caller.

    :param sources: Paths; only memories whose source equals or is below one can be seen or written. None: all.
    :param author: The principal of the caller's key, noted with what it writes.
    :param client: The kind of program that sent the request, noted likewise.
    :param person: If set, `person/` can only be written below the part of this principal (`souvenir.core.labels`).
    """

    namespace: str = DEFAULT_NAMESPACE
    actor: str = "anonymous"
    sources: tuple[str, ...] | None = None
    author: str | None = None
    client: str | None = None
    person: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    from_id: int
    to_id: int
    type: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Fact:
    """One atomic statement of a memory."""

    id: int
    text: str
    made_by: FactsBy
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Memory:
    """A stored text. `previous_text`, `superseded_by` and `conflicts_with` are read from its links.

    `valid_to` is when the statement of a superseded memory ceased to hold. Tags are sorted by name, facts are in the
    order of the text.
    """

    id: int
    text: str
    source: str
    created_at: datetime
    updated_at: datetime
    metadata: JsonObject
    key: str | None = None
    document_at: datetime | None = None
    pinned: bool = False
    archived: bool = False
    origin_class: OriginClass = OriginClass.USER
    valid_to: datetime | None = None
    links: tuple[Link, ...] = ()
    previous_text: str | None = None
    superseded_by: int | None = None
    conflicts_with: int | None = None
    tags: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()

    @property
    def occurred_at(self) -> datetime:
        """The time of what it describes: the caller's `document_at`, else the time of storing."""
        return self.document_at or self.created_at

    def without_links_to(self, ids: Collection[int]) -> Memory:
        """Return it without its links to these memories, their texts and ids."""
        if not ids:
            return self
        has_text = not any(link.type == LinkType.SUPERSEDES and link.to_id in ids for link in self.links)
        return replace(
            self,
            links=tuple(link for link in self.links if link.to_id not in ids),
            previous_text=self.previous_text if has_text else None,
            superseded_by=None if self.superseded_by in ids else self.superseded_by,
            conflicts_with=None if self.conflicts_with in ids else self.conflicts_with,
        )


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """A memory to store. `document_at` dates its content, if that is not now.

    :param facts: The statements of the text, by which it can be found. :param facts_by: Their origin.
    :param split_later: Whether the facts are provisional until it is split again.
    :param split: Whether the service splits the text, if no facts are given.
    """

    text: str
    source: str
    metadata: JsonObject = field(default_factory=dict)
    key: str | None = None
    document_at: datetime | None = None
    pinned: bool = False
    archived: bool = False
    origin_class: OriginClass = OriginClass.USER
    valid_to: datetime | None = None
    tags: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    facts_by: FactsBy = FactsBy.CALLER
    split_later: bool = False
    split: bool = False


@dataclass(frozen=True, slots=True)
class MemoryPatch:
    """A change of some fields; `None` leaves a field unchanged. A metadata value of `None` removes that key.

    A new text without new facts removes the old ones, since they no longer describe it.

    :param tags: Replaces all tags; `add_tags` and `remove_tags` apply afterwards. :param facts: Replaces all facts.

    :param origin_class: The origin of the new text; it can lower the trust of a memory, but not raise it.
    :param split: Whether the service splits the new text, if no facts are given.
    """

    text: str | None = None
    document_at: datetime | None = None
    remove_document_at: bool = False
    source: str | None = None
    metadata: JsonObject | None = None
    pinned: bool | None = None
    archived: bool | None = None
    created_at: datetime | None = None
    origin_class: OriginClass | None = None
    tags: tuple[str, ...] | None = None
    add_tags: tuple[str, ...] = ()
    remove_tags: tuple[str, ...] = ()
    facts: tuple[str, ...] | None = None
    facts_by: FactsBy = FactsBy.CALLER
    split_later: bool = False
    split: bool = False


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One change of a memory: its author, time, and the fields before and after; None where they were forgotten.

    :param job_id: The job that made the change.
    :param imported: Whether an import brought the entry: then actor and time are claims of its file, not verified here.
    """

    action: str
    actor: str
    at: datetime
    before: JsonObject | None
    after: JsonObject | None
    job_id: str | None = None
    imported: bool = False


@dataclass(frozen=True, slots=True)
class Origin:
    """The record of a memory in the store that it comes from.

    :param id: Kept if `souvenir.store.memories.memories.kept_id` allows it; otherwise the memory gets a new one.
    :param history: Its changes in that store; they precede the entry of the import and are marked as imported.
    :param split: Author and time of the facts with these texts.
    """

    created_at: datetime
    updated_at: datetime
    id: int | None = None
    history: tuple[HistoryEntry, ...] = ()
    split: Mapping[str, tuple[FactsBy, datetime]] = field(default_factory=dict)


class SourceMatch(StrEnum):
    """How a source pattern selects sources."""

    PREFIX = "prefix"
    PATH = "path"
    SUBSTRING = "substring"


@dataclass(frozen=True, slots=True)
class SourceFilter:
    """Sources that begin with `pattern`, equal it or lie below it as a path, or contain it."""

    pattern: str
    match: SourceMatch = SourceMatch.PREFIX
