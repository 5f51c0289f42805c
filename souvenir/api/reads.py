"""Reading memories by id and in pages."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.caller import Engine, Reader, RunningService
from souvenir.api.errors import error_responses
from souvenir.api.fields import AS_OF, MAX_ID, AsOf, Ids, MemoryId, OptionalSource, Tag, TagMatch
from souvenir.api.json_route import router
from souvenir.api.records import RECORD_EXAMPLE, MemoryRecord
from souvenir.api.search_models import source_filter
from souvenir.moments import utc_now
from souvenir.tags import MAX_TAGS
from souvenir.types import Listing, SourceFilter

routes = router("read")

_Source = Annotated[OptionalSource | None, Query(description="Sources that begin with this.")]
_Boundary = Annotated[bool, Query(description="Take `source` as a path: itself and what lies below it.")]

_Tags = Annotated[
    list[Tag] | None, Query(max_length=MAX_TAGS, description="A tag, in any case; may be given several times.")
]
_TagMatch = Annotated[TagMatch, Query(description="Whether a memory needs `any` or `all` of the tags.")]


class GetBatchRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [12, 99]}]})

    ids: Ids


class GetBatchResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"memories": [RECORD_EXAMPLE], "missing_ids": [99], "count": 1}]}
    )

    memories: list[MemoryRecord] = Field(description="Those that exist, in the order asked for.")
    missing_ids: list[int]
    count: int = Field(description="Of `memories`.")


class MemoryPage(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"memories": [RECORD_EXAMPLE], "total": 1, "offset": 0, "limit": 20}]}
    )

    memories: list[MemoryRecord] = Field(description="In the order in which they were stored, archived ones included.")
    total: int = Field(description="How many there are on all pages.")
    offset: int
    limit: int


class CountResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"count": 1}]})

    count: int


@routes.get("/memory/{memory_id}", summary="Get a memory", responses=error_responses(404))
def get_memory(
    memory_id: MemoryId,
    scope: Reader,
    service: RunningService,
    as_of: Annotated[AsOf | None, Query(description=AS_OF)] = None,
) -> MemoryRecord:
    """Get one memory by its id, as it is or as it was at a moment."""
    return MemoryRecord.of(service.past.get(scope, memory_id, as_of), as_of, facts=True)


@routes.post("/memory/get-batch", summary="Get many memories", responses=error_responses())
def get_batch(body: GetBatchRequest, scope: Reader, engine: Engine) -> GetBatchResponse:
    """Get up to 1000 memories by their ids, and learn which do not exist."""
    found, now = engine.get(scope, body.ids), utc_now()
    wanted = list(dict.fromkeys(body.ids))
    memories = [MemoryRecord.of(found[id_], now) for id_ in wanted if id_ in found]
    missing = [id_ for id_ in wanted if id_ not in found]
    return GetBatchResponse(memories=memories, missing_ids=missing, count=len(memories))


@routes.get("/memories", summary="List memories", responses=error_responses())
def list_memories(
    scope: Reader,
    service: RunningService,
    offset: Annotated[int, Query(ge=0, le=MAX_ID, description="Memories to leave out first.")] = 0,
    limit: Annotated[int, Query(ge=1, le=5000, description="Memories wanted.")] = 20,
    source: _Source = None,
    source_boundary: _Boundary = False,
    pinned: Annotated[bool | None, Query(description="Only pinned ones, or only others.")] = None,
    tag: _Tags = None,
    tag_match: _TagMatch = TagMatch.ANY,
    as_of: Annotated[AsOf | None, Query(description=AS_OF)] = None,
) -> MemoryPage:
    """List memories page by page, as they are or as they were at a moment."""
    pages = service.engine.page if as_of is None else partial(service.past.page, at=as_of)
    tags, all_tags = tuple(tag or ()), tag_match is TagMatch.ALL
    wanted = Listing(_filter(source, source_boundary), pinned, tags=tags, all_tags=all_tags)
    page = pages(scope, listing=wanted, offset=offset, limit=limit)
    now = as_of or utc_now()
    memories = [MemoryRecord.of(memory, now) for memory in page.memories]
    return MemoryPage(memories=memories, total=page.total, offset=offset, limit=limit)


@routes.get("/memories/count", summary="Count memories", responses=error_responses())
def count_memories(
    scope: Reader, engine: Engine, source: _Source = None, source_boundary: _Boundary = False
) -> CountResponse:
    """Count the memories of a namespace, or of some sources in it."""
    return CountResponse(count=engine.count(scope, _filter(source, source_boundary)))


def _filter(source: str | None, boundary: bool) -> SourceFilter | None:
    return source_filter(source, boundary=boundary) if source else None
