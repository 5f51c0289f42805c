"""What the tools of the tier `memory` take and answer. Memories have ids of 8 characters (`souvenir.facts.ids`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field

from souvenir.api.fields import Clean, wire_time
from souvenir.facts.ids import Kind, id_of, short_id
from souvenir.mcp.tools import Arguments, Result
from souvenir.types import EvidenceLevel, Hit, Memory, Page, SearchResult

DEFAULT_SEARCH_LIMIT, MAX_SEARCH_LIMIT = 10, 50
DEFAULT_LIST_LIMIT, MAX_LIST_LIMIT = 50, 200
MAX_OFFSET = 10**9
MAX_QUERY_CHARS = 10_000
MAX_ID_CHARS = 200
"""Read of what is given as an id: more than one has, so that a wrong one gets a sentence."""

MAX_SHOWN_CHARS, MIN_SHOWN_CHARS = 2_000, 200
"""Of a memory's text among others; `get_memory` gives all of it."""

ALL_SHOWN_CHARS = 40_000
"""Of all texts of one answer, some 10,000 tokens, as long as `MIN_SHOWN_CHARS` of each fit."""

_MemoryId = Annotated[
    str,
    Field(max_length=MAX_ID_CHARS, description="The memory_id of a memory, as search_memory or list_memories gave it."),
]


class OfMemory(Arguments):
    memory_id: _MemoryId

    @property
    def number(self) -> int:
        """:raises MemoryNotFound: If it is no id."""
        return id_of(Kind.MEMORY, self.memory_id)


class SearchMemoryArguments(Arguments):
    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS), Clean] = Field(
        description="What you want to know, in plain words; a question works best."
    )
    limit: int = Field(default=DEFAULT_SEARCH_LIMIT, ge=1, le=MAX_SEARCH_LIMIT, description="Memories wanted, at most.")


class ListMemoriesArguments(Arguments):
    limit: int = Field(default=DEFAULT_LIST_LIMIT, ge=1, le=MAX_LIST_LIMIT, description="Memories on one page.")
    offset: int = Field(default=0, ge=0, le=MAX_OFFSET, description="Memories to leave out first.")


class DeleteAllArguments(Arguments):
    confirm: bool = Field(description="True only if the user asked to forget everything.")


class MemoryShown(Result):
    """A memory among others."""

    memory_id: str
    memory: str = Field(description="Its text.")
    truncated: bool | None = Field(default=None, description="True if the text is cut; get_memory gives all of it.")
    source: str
    created_at: str = Field(description="ISO-8601 in UTC.")
    archived: bool | None = Field(default=None, description="True if something newer took its place.")

    @classmethod
    def of(cls, memory: Memory, max_chars: int) -> Self:
        return cls(
            memory_id=short_id(Kind.MEMORY, memory.id),
            memory=memory.text[:max_chars],
            truncated=len(memory.text) > max_chars or None,
            source=memory.source,
            created_at=wire_time(memory.created_at),
            archived=memory.archived or None,
        )


class MemoryFound(MemoryShown):
    score: float = Field(default=0.0, description="Higher is better; comparable within one answer only.")

    @classmethod
    def of_hit(cls, hit: Hit, max_chars: int) -> Self:
        shown = cls.of(hit.memory, max_chars)
        shown.score = round(hit.score, 4)
        return shown


class SearchMemoryResult(Result):
    memories: list[MemoryFound] = Field(description="Best first.")
    count: int
    evidence: EvidenceLevel = Field(
        description="Whether they answer the query: with `none`, nothing that is stored seems to."
    )

    @classmethod
    def of(cls, found: SearchResult) -> Self:
        max_chars = shown_chars(len(found.hits))
        memories = [MemoryFound.of_hit(hit, max_chars) for hit in found.hits]
        return cls(memories=memories, count=len(memories), evidence=found.evidence)


class ListMemoriesResult(Result):
    memories: list[MemoryShown]
    total: int = Field(description="On all pages.")
    limit: int
    offset: int
    has_more: bool

    @classmethod
    def of(cls, page: Page, asked: ListMemoriesArguments) -> Self:
        return cls(
            memories=_shown(page.memories),
            total=page.total,
            limit=asked.limit,
            offset=asked.offset,
            has_more=asked.offset + len(page.memories) < page.total,
        )


class WholeMemory(Result):
    memory_id: str
    memory: str = Field(description="Its text.")
    source: str
    created_at: str = Field(description="ISO-8601 in UTC.")
    updated_at: str
    pinned: bool
    archived: bool = Field(description="True if something newer took its place, or it was put away.")

    @classmethod
    def of(cls, memory: Memory) -> Self:
        return cls(
            memory_id=short_id(Kind.MEMORY, memory.id),
            memory=memory.text,
            source=memory.source,
            created_at=wire_time(memory.created_at),
            updated_at=wire_time(memory.updated_at),
            pinned=memory.pinned,
            archived=memory.archived,
        )


class DeletedMemory(Result):
    memory_id: str
    deleted: bool
    memory: str = Field(description="The beginning of the text that is gone.")


class DeletedAll(Result):
    deleted: int
    kept_pinned: int = Field(description="Pinned memories, which stay.")
    backed_up: bool = Field(description="Whether a backup was made before, which an admin can restore.")


def _shown(memories: Sequence[Memory]) -> list[MemoryShown]:
    max_chars = shown_chars(len(memories))
    return [MemoryShown.of(memory, max_chars) for memory in memories]


def shown_chars(count: int) -> int:
    """Characters that each of so many texts may have in one answer."""
    return min(MAX_SHOWN_CHARS, max(MIN_SHOWN_CHARS, ALL_SHOWN_CHARS // max(1, count)))
