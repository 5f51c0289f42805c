"""Inputs and outputs of the `memory` tools. Memory ids have 8 characters (`souvenir.memories.short_ids`)."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, StrictBool, StringConstraints

from souvenir.api.fields import DECIMALS, Clean, Source, StoredText, wire_time
from souvenir.api.verification import verdict_fields
from souvenir.conversations.verification import Answered, Verdict
from souvenir.core.labels import MAX_TAG_CHARS, MAX_TAGS
from souvenir.core.types import EvidenceLevel, FactsBy, FactsOutcome, Hit, Memory, Page, SearchResult
from souvenir.mcp.tools import Arguments, Result, spelled
from souvenir.memories.fact_splitting import MAX_GIVEN_FACT_CHARS, MAX_GIVEN_FACTS
from souvenir.memories.short_ids import Kind, id_of, short_id
from souvenir.memories.tags import TagPage
from souvenir.server.request_guards import OF_MEMORY
from souvenir.store.memories.tags import TagCount

DEFAULT_SEARCH_LIMIT, MAX_SEARCH_LIMIT = 10, 50
DEFAULT_LIST_LIMIT, MAX_LIST_LIMIT = 50, 200
MAX_OFFSET = 10**9
MAX_QUERY_CHARS = 10_000
MAX_ID_CHARS = 200
"""Maximum length of an id argument: more than valid ids have, so that a wrong id gets a clear error."""

MAX_SHOWN_CHARS, MIN_SHOWN_CHARS = 2_000, 200
"""Range of the length of a memory's text in a list; `get_memory` returns all of it."""

ALL_SHOWN_CHARS = 40_000
"""Target length of all texts of one answer, about 10,000 tokens."""

MAX_TAGS_SHOWN = 500
"""Maximum number in one answer; further ones are counted, and a regular expression can select among them."""

MAX_REGEX_CHARS = 500


def _one_or_many(value: Any) -> Any:
    """Accept a list, or one text as a list of one, since models send both."""
    return [value] if isinstance(value, str) else value


_MemoryId = Annotated[
    str,
    Field(max_length=MAX_ID_CHARS, description="The memory_id of a memory, as search_memory or list_memories gave it."),
]
_Tag = Annotated[str, StringConstraints(max_length=MAX_TAG_CHARS), Clean]
# The bound comes before the validator: after it, pydantic would check the length only once every item was checked.
_Tags = Annotated[list[_Tag], Field(max_length=MAX_TAGS), BeforeValidator(_one_or_many)]
_Fact = Annotated[str, StringConstraints(max_length=MAX_GIVEN_FACT_CHARS), Clean]
_Facts = Annotated[list[_Fact], Field(max_length=MAX_GIVEN_FACTS), BeforeValidator(_one_or_many)]


Verify = Annotated[
    bool,
    Field(
        description="True to have a reader check whether the result answers the query, which may take seconds; "
        "`answered` is `unknown` if the service has no reader."
    ),
]
OptionalAnswered = Annotated[
    Answered | None,
    Field(
        description="With verify. `yes`: by the words in answer_quote; `no`: the result holds no answer; `unknown`: "
        "judge yourself, answer_reason says why."
    ),
]


class OfMemory(Arguments):
    memory_id: _MemoryId

    @property
    def number(self) -> int:
        """:raises MemoryNotFound: If it is not a valid id."""
        return id_of(Kind.MEMORY, self.memory_id)


class AddMemoryArguments(Arguments):
    text: StoredText = Field(
        validation_alias=spelled("text", "data"),
        description="The text to remember, understandable without the conversation: names instead of "
        "pronouns, dates instead of `tomorrow`.",
    )
    context_tags: _Tags = Field(
        default=[],
        validation_alias=spelled("context_tags", "tags"),
        description="Labels to find it by later, such as a project or a topic; get_context_tags shows those in use.",
    )
    facts: _Facts | None = Field(
        default=None,
        description="The text as short statements that each stand alone, if you want to split it yourself; otherwise "
        "it is split for you.",
    )
    source: Source | None = Field(
        default=None, description="Its source, as a path such as `project/billing`; usually left out."
    )


class UpdateMemoryArguments(OfMemory):
    text: StoredText | None = Field(
        default=None,
        validation_alias=spelled("text", "data"),
        description="The whole new text, which replaces the old one.",
    )
    facts: _Facts | None = Field(default=None, description="All its facts, replacing the present ones.")
    context_tags: _Tags | None = Field(
        default=None,
        validation_alias=spelled("context_tags", "tags"),
        description="All its tags, replacing the present ones.",
    )
    add_tags: _Tags = Field(default=[], description="Tags to add.")
    remove_tags: _Tags = Field(default=[], description="Tags to remove.")


class SearchMemoryArguments(Arguments):
    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS), Clean] = Field(
        description="The question in plain words."
    )
    limit: int = Field(
        default=DEFAULT_SEARCH_LIMIT, ge=1, le=MAX_SEARCH_LIMIT, description="Maximum number of memories."
    )
    context_tags: _Tags = Field(
        default=[],
        validation_alias=spelled("context_tags", "tags"),
        description="Only memories with any of these tags; leave it out unless you know that they are tagged so.",
    )
    verify: Verify = False


class ListMemoriesArguments(Arguments):
    limit: int = Field(default=DEFAULT_LIST_LIMIT, ge=1, le=MAX_LIST_LIMIT, description="Memories on one page.")
    offset: int = Field(default=0, ge=0, le=MAX_OFFSET, description="Number of memories to skip.")
    context_tags: _Tags = Field(
        default=[],
        validation_alias=spelled("context_tags", "tags"),
        description="Only memories with any of these tags.",
    )


class GetContextTagsArguments(Arguments):
    regex: Annotated[str, Field(max_length=MAX_REGEX_CHARS), Clean] | None = Field(
        default=None, description="Only tags that this matches anywhere, case-insensitively."
    )


class DeleteAllArguments(Arguments):
    confirm: StrictBool = Field(description="True only if the user asked to forget everything.")


class MemoryShown(Result):
    """A memory among others."""

    memory_id: str
    memory: str = Field(description="Its text.")
    truncated: bool | None = Field(default=None, description="True if the text is cut; get_memory returns all of it.")
    tags: list[str]
    source: str
    created_at: str = Field(description="ISO-8601 in UTC.")

    @classmethod
    def fields_of(cls, memory: Memory, max_chars: int) -> dict[str, Any]:
        return {
            "memory_id": short_id(Kind.MEMORY, memory.id),
            "memory": memory.text[:max_chars],
            "truncated": len(memory.text) > max_chars or None,
            "tags": list(memory.tags),
            "source": memory.source,
            "created_at": wire_time(memory.created_at),
        }


class MemoryFound(MemoryShown):
    score: float = Field(description="The probability that it answers the question, in [0, 1].")
    facts: list[str] = Field(description="Statements of it that match the query, best first.")

    @classmethod
    def of(cls, hit: Hit, max_chars: int) -> Self:
        facts = [found.fact.text for found in hit.facts]
        return cls(**cls.fields_of(hit.memory, max_chars), score=round(hit.score, 4), facts=facts)


class MemoryListed(MemoryShown):
    fact_count: int

    @classmethod
    def of(cls, memory: Memory, max_chars: int) -> Self:
        return cls(**cls.fields_of(memory, max_chars), fact_count=len(memory.facts))


class SearchMemoryResult(Result):
    memories: list[MemoryFound] = Field(description="Best first.")
    count: int
    evidence: EvidenceLevel = Field(
        description="`strong`: the subject is mentioned, which does not mean that the question is answered; `weak`: it "
        "may be mentioned; `none`: no memory seems to be about it."
    )
    relevance: float = Field(
        description="The same as a number: the share of similar questions that were answered in labelled data sets."
    )
    note: str | None = Field(default=None, description="The reason why results may be missing.")
    answered: OptionalAnswered = None
    answer_quote: str | None = None
    answer_reason: str | None = None

    @classmethod
    def of(cls, found: SearchResult, note: str | None, verdict: Verdict | None) -> Self:
        max_chars = shown_chars(len(found.hits))
        memories = [MemoryFound.of(hit, max_chars) for hit in found.hits]
        return cls(
            memories=memories,
            count=len(memories),
            evidence=found.evidence,
            relevance=round(found.relevance, DECIMALS),
            note=note,
            **(verdict_fields(verdict) if verdict else {}),
        )


class ListMemoriesResult(Result):
    memories: list[MemoryListed] = Field(description="Newest first, without those that something newer replaced.")
    total: int = Field(description="The number on all pages.")
    limit: int
    offset: int
    has_more: bool
    note: str | None = Field(default=None, description="The reason why the list is empty.")

    @classmethod
    def of(cls, page: Page, asked: ListMemoriesArguments, note: str | None) -> Self:
        max_chars = shown_chars(len(page.memories))
        return cls(
            memories=[MemoryListed.of(memory, max_chars) for memory in page.memories],
            total=page.total,
            limit=asked.limit,
            offset=asked.offset,
            has_more=asked.offset + len(page.memories) < page.total,
            note=note,
        )


class WholeMemory(Result):
    memory_id: str
    memory: Annotated[str, OF_MEMORY] = Field(description="Its text.")
    tags: Annotated[list[str], OF_MEMORY]
    facts: Annotated[list[str], OF_MEMORY] = Field(description="Its statements; each can be found by itself.")
    split_by: FactsBy | None = Field(default=None, description="The origin of the facts.")
    source: Annotated[str, OF_MEMORY]
    created_at: str = Field(description="ISO-8601 in UTC.")
    updated_at: str
    pinned: bool
    archived: bool = Field(description="True if a newer memory replaced it, or it was archived.")

    @classmethod
    def fields_of(cls, memory: Memory) -> dict[str, Any]:
        return {
            "memory_id": short_id(Kind.MEMORY, memory.id),
            "memory": memory.text,
            "tags": list(memory.tags),
            "facts": [fact.text for fact in memory.facts],
            "split_by": memory.facts[0].made_by if memory.facts else None,
            "source": memory.source,
            "created_at": wire_time(memory.created_at),
            "updated_at": wire_time(memory.updated_at),
            "pinned": memory.pinned,
            "archived": memory.archived,
        }

    @classmethod
    def of(cls, memory: Memory) -> Self:
        return cls(**cls.fields_of(memory))


class StoredMemory(WholeMemory):
    facts_created: int = Field(description="Number of new facts.")
    note: str | None = Field(default=None, description="The reason why its sentences are its facts for now.")

    @classmethod
    def of_stored(cls, stored: FactsOutcome, before: Memory | None = None) -> Self:
        """:param before: The previous version of a changed memory; an unchanged fact keeps its id."""
        known = {fact.id for fact in before.facts} if before else set()
        created, note = sum(fact.id not in known for fact in stored.memory.facts), None
        if stored.pending:
            reason = f" ({stored.failure})" if stored.failure else ""
            note = f"It can be found now, and is split more finely in the background{reason}"
        elif stored.failure:
            note = f"It was split by its sentences: {stored.failure}"
        return cls(**cls.fields_of(stored.memory), facts_created=created, note=note)


class TagShown(Result):
    tag: str
    count: int = Field(description="Memories that have it.")
    first_used_at: str = Field(description="ISO-8601 in UTC.")
    last_used_at: str

    @classmethod
    def of(cls, used: TagCount) -> Self:
        return cls(
            tag=used.tag,
            count=used.count,
            first_used_at=wire_time(used.first_used_at),
            last_used_at=wire_time(used.last_used_at),
        )


class ContextTags(Result):
    tags: list[TagShown] = Field(description="The most used first.")
    total: int = Field(description="Including those that are not shown.")

    @classmethod
    def of(cls, page: TagPage) -> Self:
        return cls(tags=[TagShown.of(used) for used in page.tags], total=page.total)


class DeletedMemory(Result):
    memory_id: str
    deleted: bool
    memory: Annotated[str, OF_MEMORY] = Field(description="The beginning of the deleted text.")


class DeletedAll(Result):
    deleted: int
    kept_pinned: int = Field(description="Pinned memories, which stay.")
    backed_up: bool = Field(description="True if a backup was made before, which an admin can restore.")


def shown_chars(count: int) -> int:
    """Return the number of characters per text for this number of texts in one answer."""
    return min(MAX_SHOWN_CHARS, max(MIN_SHOWN_CHARS, ALL_SHOWN_CHARS // max(1, count)))
