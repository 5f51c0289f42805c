"""Forgetting memories for good, by id and by source. Pinned ones stay, unless one is named and forced."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from memory_engine import MemoryEngine
from souvenir.api.caller import Engine, Writer
from souvenir.api.errors import error_responses
from souvenir.api.fields import Ids, MemoryId, Source
from souvenir.api.json_route import router
from souvenir.api.reads import CountResponse
from souvenir.types import Scope, SourceFilter, SourceMatch

routes = router("delete")

DELETED_TEXT_CHARS = 100


class DeleteResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"success": True, "deleted_id": 12, "deleted_text": "The billing service moves to Postgres 17 in May."}
            ]
        }
    )

    success: bool
    deleted_id: int
    deleted_text: str = Field(description=f"The first {DELETED_TEXT_CHARS} characters of what is gone.")


class DeleteBatchRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [12, 99]}]})

    ids: Ids


class DeleteBatchResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"success": True, "deleted_count": 1, "deleted_ids": [12], "missing_ids": [99]}]
        }
    )

    success: bool
    deleted_count: int
    deleted_ids: list[int]
    missing_ids: list[int]
    skipped_pinned: list[int] | None = Field(default=None, description="If there are any.")


class _DeleteManyRequest(BaseModel):
    dry_run: bool = Field(default=False, description="Delete nothing, and answer what would be.")
    skip_snapshot: bool = Field(default=False, description="Make no backup first.")


class DeleteBySourceRequest(_DeleteManyRequest):
    model_config = ConfigDict(json_schema_extra={"examples": [{"source_pattern": "billing", "dry_run": True}]})

    source_pattern: Source = Field(description="Sources that contain this.")


class DeleteByPrefixRequest(_DeleteManyRequest):
    model_config = ConfigDict(json_schema_extra={"examples": [{"source_prefix": "claude-code/", "dry_run": True}]})

    source_prefix: Source = Field(description="Sources that begin with this.")


class DeleteManyResponse(BaseModel):
    """`deleted_count`, for a key with prefixes also which; or after a dry run `count` and `would_delete`."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"success": True, "count": 1, "would_delete": [12]}]})

    success: bool
    deleted_count: int | None = None
    deleted_ids: list[int] | None = Field(default=None, description="For a key with prefixes.")
    missing_ids: list[int] | None = Field(default=None, description="Likewise; always empty.")
    count: int | None = None
    would_delete: list[int] | None = None


@routes.delete("/memory/{memory_id}", summary="Delete a memory", responses=error_responses(404, 409))
def delete_memory(
    memory_id: MemoryId,
    scope: Writer,
    engine: Engine,
    force: Annotated[bool, Query(description="Also if it is pinned.")] = False,
) -> DeleteResponse:
    """Forget one memory for good; its id is never used again."""
    gone = engine.delete(scope, memory_id, force=force)
    return DeleteResponse(success=True, deleted_id=gone.id, deleted_text=gone.text[:DELETED_TEXT_CHARS])


@routes.post("/memory/delete-batch", summary="Delete many memories", responses=error_responses())
def delete_batch(body: DeleteBatchRequest, scope: Writer, engine: Engine) -> DeleteBatchResponse:
    """Forget up to 1000 memories in one transaction, except the pinned ones."""
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


@routes.post("/memory/delete-by-source", summary="Delete by a part of the source", responses=error_responses())
def delete_by_source(body: DeleteBySourceRequest, scope: Writer, engine: Engine) -> DeleteManyResponse:
    """Forget the unpinned memories whose source contains a text; a backup is made first."""
    return _delete_many(engine, scope, SourceFilter(body.source_pattern, SourceMatch.SUBSTRING), body)


@routes.post("/memory/delete-by-prefix", summary="Delete by the beginning of the source", responses=error_responses())
def delete_by_prefix(body: DeleteByPrefixRequest, scope: Writer, engine: Engine) -> DeleteManyResponse:
    """Forget the unpinned memories whose source begins with a text; a backup is made first."""
    return _delete_many(engine, scope, SourceFilter(body.source_prefix, SourceMatch.PREFIX), body)


@routes.delete("/memories", summary="Delete a source", responses=error_responses())
def delete_memories(
    scope: Writer, engine: Engine, source: Annotated[Source, Query(description="Sources that begin with this.")]
) -> CountResponse:
    """Forget the unpinned memories whose source begins with a text; a backup is made first."""
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
