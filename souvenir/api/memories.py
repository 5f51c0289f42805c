"""Memories: the schema of a memory, reading memories, and their history."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.fields import (
    AS_OF,
    MAX_ID,
    AsOf,
    Ids,
    MemoryId,
    OptionalSource,
    Tag,
    TagMatch,
    wire_time,
    without_trailing_slash,
)
from souvenir.api.parameters import described_headers
from souvenir.api.transfer_lines import written_state
from souvenir.core.labels import AUTHOR, CONTRIBUTORS, MAX_TAGS, ORIGIN_CLIENT
from souvenir.core.timestamps import to_us, utc_now
from souvenir.core.types import Fact, FactsBy, HistoryEntry, Listing, Memory, OriginClass, SourceFilter, SourceMatch
from souvenir.memories.history import MemoryHistory
from souvenir.retrieval.ranking import CONFIDENCE_HALF_LIFE_DAYS, DAY_US
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import OF_MEMORY, REMEMBERED, Engine, Reader, RunningService
from souvenir.server.routing import Routes
from souvenir.store.memories.reads import SUPERSEDES

routes = Routes("read")

TAG_CHARS = 32
"""Hexadecimal digits of an ETag: 128 bits."""

RECORD_EXAMPLE: dict[str, Any] = {
    "category": "decision",
    "id": 12,
    "text": "The billing service moves to Postgres 17 in May.",
    "source": "claude-code/billing",
    "created_at": "2025-04-02T09:30:00.000000+00:00",
    "updated_at": "2025-04-02T09:30:00.000000+00:00",
    "timestamp": "2025-04-02T09:30:00.000000+00:00",
    "confidence": 0.9847,
    "pinned": False,
    "archived": False,
    "origin_class": "user",
}


class LinkRecord(BaseModel):
    """A directed relation to another memory."""

    to_id: int
    type: str = Field(examples=["related_to"])
    created_at: str


class FactRecord(BaseModel):
    """A fact: one statement of a memory."""

    id: int = Field(description="Never reused.")
    text: Annotated[str, OF_MEMORY]
    made_by: FactsBy = Field(description="How the text was split: by the `caller`, the `model`, or into `sentences`.")
    created_at: str

    @classmethod
    def of(cls, fact: Fact) -> FactRecord:
        return cls(id=fact.id, text=fact.text, made_by=fact.made_by, created_at=wire_time(fact.created_at))


class MemoryRecord(BaseModel):
    """A memory. Its metadata is on the same level as these fields, which take precedence."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [RECORD_EXAMPLE]})

    id: int = Field(description="Never reused.")
    text: str
    source: str = Field(description="A path-like label, such as `claude-code/billing`.")
    created_at: str = Field(description="ISO-8601 in UTC with microseconds.")
    updated_at: str = Field(description="The time of the last change of a field.")
    timestamp: str = Field(description="The same as `created_at`.")
    confidence: float = Field(description="0.5 ** (days since `updated_at` / 90), to 4 decimals.")
    pinned: bool = Field(description="True if the memory is protected from being deleted or superseded.")
    archived: bool = Field(description="True if searches exclude it.")
    origin_class: OriginClass = Field(
        description="The origin of the text, most trusted first: `user`, `document`, `tool`, `assistant`, "
        "`inferred`, `recalled`. A text made from several origins has the least trusted one."
    )
    valid_to: str | None = Field(default=None, description="The time when its content ceased to be valid.")
    document_at: str | None = Field(
        default=None, description="The date of its content, if different from `created_at`."
    )
    entity_key: str | None = Field(default=None, description="The key for upserts, unique within `source`.")
    links: list[LinkRecord] | None = Field(default=None, description="Its links, if any.")
    supersedes: int | None = Field(default=None, description="The memory that it superseded.")
    previous_text: str | None = Field(default=None, description="The text of that memory.")
    superseded_by: int | None = Field(default=None, description="The memory that superseded it.")
    conflicts_with: int | None = Field(default=None, description="The id of a contradicting memory.")
    is_latest: bool | None = Field(
        default=None, description="True if it is the latest version, if it is part of a chain of superseded memories."
    )

    # Admins can import any value under these names.
    author: Any = Field(
        default=None, description="The principal of the key that wrote it, if that key had one.", examples=["ana"]
    )
    contributors: Any = Field(
        default=None,
        description="Other principals that changed its text, or wrote a memory that it replaced.",
        examples=[["bo"]],
    )
    origin_client: Any = Field(
        default=None,
        description="The kind of program that wrote it: `codex`, `claude-code`, `hook`, `manual` or `other`.",
        examples=["claude-code"],
    )

    # Metadata may have names like these; they are kept unless the memory sets such a field itself.
    tags: Any = Field(default=None, description="Its tags; without tags, the metadata field of this name.")
    facts: Any = Field(
        default=None,
        description="For a single memory, its facts, each with `id`, `text`, `made_by` and `created_at`; in a "
        "search, the matching facts, each with `id`, `text` and `score`; without facts, the metadata "
        "field of this name.",
    )

    @classmethod
    def of(cls, memory: Memory, now: datetime | None = None, *, facts: bool = False) -> MemoryRecord:
        """:param facts: Include the facts."""
        fields = record_fields(memory, now or utc_now())
        if facts and memory.facts:
            fields["facts"] = [FactRecord.of(fact) for fact in memory.facts]
        return cls.model_validate(fields)

    @property
    def tag(self) -> str:
        """The ETag without its quotes: a digest of everything but the confidence, which decays without a change.

        Not the time of the last change, which tags of duplicates, links and new facts keep.
        """
        shown = json.dumps(self.model_dump(mode="json", exclude={"confidence"}), sort_keys=True)
        return hashlib.sha256(shown.encode()).hexdigest()[:TAG_CHARS]


OWN_FIELDS = frozenset(MemoryRecord.model_fields) - {"tags", "facts", "extra", AUTHOR, CONTRIBUTORS, ORIGIN_CLIENT}
"""Fields of a record that are not in its metadata."""


def record_fields(memory: Memory, now: datetime) -> dict[str, Any]:
    """The record as a dict, with those fields only that apply."""
    created_at = wire_time(memory.created_at)
    age_us = max(0, to_us(now) - to_us(memory.updated_at))
    fields = {
        # Metadata of earlier versions may have names of the record's own fields.
        **{name: value for name, value in memory.metadata.items() if name not in OWN_FIELDS},
        "id": memory.id,
        "text": memory.text,
        "source": memory.source,
        "created_at": created_at,
        "updated_at": created_at if memory.updated_at == memory.created_at else wire_time(memory.updated_at),
        "timestamp": created_at,
        "confidence": round(0.5 ** (age_us / (CONFIDENCE_HALF_LIFE_DAYS * DAY_US)), 4),
        "pinned": memory.pinned,
        "archived": memory.archived,
        "origin_class": memory.origin_class,
    }
    if memory.document_at is not None:
        fields["document_at"] = wire_time(memory.document_at)
    if memory.valid_to is not None:
        fields["valid_to"] = wire_time(memory.valid_to)
    if memory.key is not None:
        fields["entity_key"] = memory.key
    if memory.previous_text is not None:
        fields["previous_text"] = memory.previous_text
    if memory.conflicts_with is not None:
        fields["conflicts_with"] = memory.conflicts_with
    if memory.tags:
        fields["tags"] = list(memory.tags)
    if memory.links or memory.superseded_by is not None:
        fields |= _links_and_place(memory)
    return fields


def _links_and_place(memory: Memory) -> dict[str, Any]:
    """Its links, and its place in a chain of supersedes if it is part of one."""
    fields: dict[str, Any] = {}
    if memory.links:
        fields["links"] = [
            {"to_id": link.to_id, "type": link.type, "created_at": wire_time(link.created_at)} for link in memory.links
        ]
    superseded = [link.to_id for link in memory.links if link.type == SUPERSEDES]
    if len(superseded) == 1:
        fields["supersedes"] = superseded[0]
    if memory.superseded_by is not None:
        fields["superseded_by"] = memory.superseded_by
    if superseded or memory.superseded_by is not None:
        fields["is_latest"] = memory.superseded_by is None
    return fields


_Source = Annotated[OptionalSource | None, Query(description="Only sources that start with this prefix.")]
_Archived = Annotated[bool, Query(description="Also archived memories, which are left out otherwise.")]
_Boundary = Annotated[bool, Query(description="Treat `source` as a path: match it and everything below it.")]

_Tags = Annotated[
    list[Tag] | None, Query(max_length=MAX_TAGS, description="A tag (case-insensitive); can be repeated.")
]
_TagMatch = Annotated[TagMatch, Query(description="Match memories with `any` or `all` of the tags.")]


class GetBatchRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [12, 99]}]})

    ids: Ids


class GetBatchResponse(BaseModel):
    memories: list[MemoryRecord] = Field(description="The memories that exist, in the requested order.")
    missing_ids: list[int]
    count: int = Field(description="The number of `memories`.")


class MemoryPage(BaseModel):
    memories: list[MemoryRecord] = Field(description="In the requested order.")
    total: int = Field(description="The total number of items on all pages.")
    offset: int
    limit: int


class Order(StrEnum):
    """The order of a list of memories, which is that of their ids."""

    OLDEST = "oldest"
    NEWEST = "newest"


_Order = Annotated[Order, Query(description="The `oldest` first, or the `newest`.")]
_MaxId = Annotated[
    int | None,
    Query(
        ge=0,
        le=MAX_ID,
        description="Only memories up to this id: pages stay the same while others are added, and the last id of a "
        "page of the newest, less one, begins the next page.",
    ),
]


class CountResponse(BaseModel):
    count: int


def source_filter(prefix: str, *, boundary: bool) -> SourceFilter:
    """A plain beginning, or with `boundary` a path."""
    if boundary:
        return SourceFilter(without_trailing_slash(prefix), SourceMatch.PATH)
    return SourceFilter(prefix, SourceMatch.PREFIX)


@routes.get(
    "/memory/{memory_id}",
    summary="Get a memory",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="memories.get",
    errors=[404],
    responses=described_headers(("ETag", "A digest of the record without `confidence`, in quotes.", "string")),
)
def get_memory(
    memory_id: MemoryId,
    scope: Reader,
    service: RunningService,
    response: Response,
    as_of: Annotated[AsOf | None, Query(description=AS_OF)] = None,
) -> MemoryRecord:
    """Get a memory by its id, as it is now or as it was at a point in time."""
    record = MemoryRecord.of(service.engine.memory(scope, memory_id, as_of), as_of, facts=True)
    response.headers["ETag"] = f'"{record.tag}"'
    return record


@routes.post(
    "/memory/get-batch",
    summary="Get memories",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="memories.get_batch",
    idempotent=True,
)
def get_batch(body: GetBatchRequest, scope: Reader, engine: Engine) -> GetBatchResponse:
    """Get up to 1000 memories by their ids, and the ids that do not exist."""
    found, now = engine.get(scope, body.ids), utc_now()
    wanted = list(dict.fromkeys(body.ids))
    memories = [MemoryRecord.of(found[id_], now) for id_ in wanted if id_ in found]
    missing = [id_ for id_ in wanted if id_ not in found]
    return GetBatchResponse(memories=memories, missing_ids=missing, count=len(memories))


@routes.get(
    "/memories",
    summary="List memories",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="memories.list",
)
def list_memories(
    scope: Reader,
    service: RunningService,
    offset: Annotated[int, Query(ge=0, le=MAX_ID, description="Number of memories to skip.")] = 0,
    limit: Annotated[int, Query(ge=1, le=5000, description="Maximum number of memories.")] = 20,
    source: _Source = None,
    source_boundary: _Boundary = False,
    pinned: Annotated[bool | None, Query(description="Only pinned memories, or only unpinned ones.")] = None,
    include_archived: _Archived = False,
    tag: _Tags = None,
    tag_match: _TagMatch = TagMatch.ANY,
    order: _Order = Order.OLDEST,
    max_id: _MaxId = None,
    as_of: Annotated[AsOf | None, Query(description=AS_OF)] = None,
) -> MemoryPage:
    """List memories page by page, as they are now or as they were at a point in time."""
    wanted = Listing(
        _filter(source, source_boundary),
        pinned,
        archived=None if include_archived else False,
        tags=tuple(tag or ()),
        all_tags=tag_match is TagMatch.ALL,
        newest_first=order is Order.NEWEST,
        max_id=max_id,
    )
    page = service.engine.page(scope, wanted, as_of, offset=offset, limit=limit)
    now = as_of or utc_now()
    memories = [MemoryRecord.of(memory, now) for memory in page.memories]
    return MemoryPage(memories=memories, total=page.total, offset=offset, limit=limit)


@routes.get(
    "/memories/count",
    summary="Count memories",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="memories.count",
)
def count_memories(
    scope: Reader,
    engine: Engine,
    source: _Source = None,
    source_boundary: _Boundary = False,
    include_archived: _Archived = False,
) -> CountResponse:
    """Count the memories of a namespace, or of some of its sources."""
    archived = None if include_archived else False
    return CountResponse(count=engine.count(scope, _filter(source, source_boundary), archived=archived))


def _filter(source: str | None, boundary: bool) -> SourceFilter | None:
    return source_filter(source, boundary=boundary) if source else None


class MemoryChange(BaseModel):
    """A change of a memory."""

    action: str = Field(
        description="The operation, such as `add`, `update`, `archive`, `superseded` or `delete`.", examples=["add"]
    )
    actor: str = Field(
        description="The actor that made the change.", examples=["key:0b6f3c52-5d0c-4c55-9a0e-3f6a3f0f6a51"]
    )
    at: str = Field(examples=["2025-04-02T09:30:00.000000+00:00"])
    job_id: str | None = Field(description="The job that made the change; null if a request made it.")
    imported: bool = Field(
        description="True if an import brought this entry from another store: `actor` and `at` are claims of its file, "
        "not verified here."
    )
    before: dict[str, Any] | None = Field(
        description="The fields before the change; null if the memory did not exist, was deleted, or was outside "
        "the scope of the key."
    )
    after: dict[str, Any] | None = Field(
        description="The fields after the change.",
        examples=[
            {
                "text": "The billing service moves to Postgres 17 in May.",
                "source": "claude-code/billing",
                "key": None,
                "metadata": {"category": "decision"},
                "document_at": None,
                "pinned": False,
                "archived": False,
                "origin_class": "user",
                "valid_to": None,
                "created_at": "2025-04-02T09:30:00.000000+00:00",
                "updated_at": "2025-04-02T09:30:00.000000+00:00",
            }
        ],
    )

    @classmethod
    def of(cls, entry: HistoryEntry) -> MemoryChange:
        before, after = (written_state(state) for state in (entry.before, entry.after))
        return cls(
            action=entry.action,
            actor=entry.actor,
            at=wire_time(entry.at),
            job_id=entry.job_id,
            imported=entry.imported,
            before=before,
            after=after,
        )


class HistoryResponse(BaseModel):
    memory_id: int
    deleted: bool = Field(description="True if the memory was deleted: actors and times are kept, but no text.")
    supersedes: list[int] = Field(description="The memories that it superseded.")
    superseded_by: int | None = Field(description="The memory that superseded it.")
    changes: list[MemoryChange] = Field(description="Oldest first.")
    count: int = Field(description="The number of `changes`.")

    @classmethod
    def of(cls, memory_id: int, history: MemoryHistory) -> HistoryResponse:
        return cls(
            memory_id=memory_id,
            deleted=history.deleted,
            supersedes=list(history.supersedes),
            superseded_by=history.superseded_by,
            changes=[MemoryChange.of(entry) for entry in history.entries],
            count=len(history.entries),
        )


@routes.get(
    "/memory/{memory_id}/history",
    summary="Get the history of a memory",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="memories.history",
    errors=[404],
)
def memory_history(memory_id: MemoryId, scope: Reader, service: RunningService) -> HistoryResponse:
    """List the changes of a memory with actor and time, oldest first, and the memory that superseded it."""
    return HistoryResponse.of(memory_id, service.engine.history(scope, memory_id))
