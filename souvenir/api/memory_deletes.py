"""Deleting memories by id and by source. Pinned ones are kept unless the request names one and forces it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.fields import Ids, MemoryId, Source
from souvenir.api.memories import CountResponse
from souvenir.core.types import Scope, SourceFilter, SourceMatch
from souvenir.memories.engine import MemoryEngine
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import OF_MEMORY, Engine, Writer
from souvenir.server.routing import Routes

routes = Routes("delete")

DELETED_TEXT_CHARS = 100


class DeleteResponse(BaseModel):
    success: bool
    deleted_id: int
    deleted_text: Annotated[str, OF_MEMORY] = Field(
        description=f"The first {DELETED_TEXT_CHARS} characters of the deleted text.",
        examples=["The billing service moves to Postgres 17 in May."],
    )


class DeleteBatchRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [12, 99]}]})

    ids: Ids


class DeleteBatchResponse(BaseModel):
    success: bool
    deleted_count: int
    deleted_ids: list[int]
    missing_ids: list[int]
    skipped_pinned: list[int] | None = Field(default=None, description="Set only if there are any.")


class _DeleteManyRequest(BaseModel):
    dry_run: bool = Field(default=False, description="Dry run: delete nothing, and return what would be deleted.")
    skip_snapshot: bool = Field(default=False, description="Skip the backup before the import.")


class DeleteBySourceRequest(_DeleteManyRequest):
    model_config = ConfigDict(json_schema_extra={"examples": [{"source_pattern": "billing", "dry_run": True}]})

    source_pattern: Source = Field(description="Only sources that contain this text.")


class DeleteByPrefixRequest(_DeleteManyRequest):
    model_config = ConfigDict(json_schema_extra={"examples": [{"source_prefix": "claude-code/", "dry_run": True}]})

    source_prefix: Source = Field(description="Only sources that start with this prefix.")


class DeleteManyResponse(BaseModel):
    """`deleted_count`, with the ids for a key with prefixes; for a dry run `count` and `would_delete`."""

    success: bool
    deleted_count: int | None = None
    deleted_ids: list[int] | None = Field(default=None, description="Set for a key with prefixes.")
    missing_ids: list[int] | None = Field(default=None, description="Set for a key with prefixes; always empty.")
    count: Annotated[int | None, OF_MEMORY] = None
    would_delete: Annotated[list[int] | None, OF_MEMORY] = None


@routes.delete(
    "/memory/{memory_id}",
    summary="Delete a memory",
    cost=CostClass.WRITE,
    sdk="memories.delete",
    errors=[404, 409],
)
def delete_memory(
    memory_id: MemoryId,
    scope: Writer,
    engine: Engine,
    force: Annotated[bool, Query(description="Delete the memory even if it is pinned.")] = False,
) -> DeleteResponse:
    """Delete a memory permanently; its id is never reused."""
    gone = engine.delete(scope, memory_id, force=force)
    return DeleteResponse(success=True, deleted_id=memory_id, deleted_text=gone[:DELETED_TEXT_CHARS])


@routes.post(
    "/memory/delete-batch",
    summary="Delete memories",
    cost=CostClass.WRITE,
    sdk="memories.delete_batch",
)
def delete_batch(body: DeleteBatchRequest, scope: Writer, engine: Engine) -> DeleteBatchResponse:
    """Delete up to 1000 memories in one transaction, except pinned ones."""
    outcome = engine.delete_many(scope, body.ids)
    answer = DeleteBatchResponse(
        success=True,
        deleted_count=len(outcome.deleted_ids),
        deleted_ids=list(outcome.deleted_ids),
        missing_ids=list(outcome.missing_ids),
    )
    if outcome.skipped_pinned:
        answer.skipped_pinned = list(outcome.skipped_pinned)
    return answer


@routes.post(
    "/memory/delete-by-source",
    summary="Delete memories by source pattern",
    cost=CostClass.LONG,
    sdk="memories.delete_by_source",
)
def delete_by_source(body: DeleteBySourceRequest, scope: Writer, engine: Engine) -> DeleteManyResponse:
    """Delete the unpinned memories whose source contains a text; a backup is made first."""
    return _delete_many(engine, scope, SourceFilter(body.source_pattern, SourceMatch.SUBSTRING), body)


@routes.post(
    "/memory/delete-by-prefix",
    summary="Delete memories by source prefix",
    cost=CostClass.LONG,
    sdk="memories.delete_by_prefix",
)
def delete_by_prefix(body: DeleteByPrefixRequest, scope: Writer, engine: Engine) -> DeleteManyResponse:
    """Delete the unpinned memories whose source starts with a prefix; a backup is made first."""
    return _delete_many(engine, scope, SourceFilter(body.source_prefix, SourceMatch.PREFIX), body)


@routes.delete(
    "/memories",
    summary="Delete memories by source",
    cost=CostClass.LONG,
    sdk="memories.delete_all",
)
def delete_memories(
    scope: Writer,
    engine: Engine,
    source: Annotated[
        Source, Query(description="Only sources that start with this prefix.", examples=["claude-code/old"])
    ],
) -> CountResponse:
    """Delete the unpinned memories whose source starts with a prefix; a backup is made first."""
    outcome = engine.delete_by_source(scope, SourceFilter(source, SourceMatch.PREFIX), back_up=True)
    return CountResponse(count=len(outcome.deleted_ids))


def _delete_many(
    engine: MemoryEngine, scope: Scope, source: SourceFilter, request: _DeleteManyRequest
) -> DeleteManyResponse:
    if request.dry_run:
        ids = list(engine.matching(scope, source))
        return DeleteManyResponse(success=True, count=len(ids), would_delete=ids)
    outcome = engine.delete_by_source(scope, source, back_up=not request.skip_snapshot)
    answer = DeleteManyResponse(success=True, deleted_count=len(outcome.deleted_ids))
    if scope.sources is not None:
        answer.deleted_ids, answer.missing_ids = list(outcome.deleted_ids), list(outcome.missing_ids)
    return answer
