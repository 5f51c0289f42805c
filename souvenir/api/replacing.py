"""Putting one memory in the place of others: supersede, merge, archive. What is replaced stays readable, archived."""

from __future__ import annotations

from typing import Annotated

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from memory_engine import MemoryEngine
from souvenir.api.caller import Engine, Writer
from souvenir.api.errors import error_responses
from souvenir.api.fields import Ids, MemoryId, OptionalSource, Source, Text
from souvenir.api.json_route import router
from souvenir.api.metadata import Metadata, read_change
from souvenir.types import OriginClass, Scope, SupersedeOutcome

routes = router("replace")


class SupersedeByIdRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Billing moves to Postgres 18 in June."}]})

    text: Text = Field(
        validation_alias=AliasChoices("text", "new_text"), description="The new text; `new_text` is read too."
    )
    source: OptionalSource | None = Field(default=None, description="Without it the old one stays.")
    metadata: Metadata | None = Field(default=None, description="Keys to set beside those of the old memory.")


class SupersedeRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"old_id": 12, "new_text": "Billing moves to Postgres 18 in June."}]}
    )

    old_id: MemoryId
    new_text: Text = Field(
        validation_alias=AliasChoices("new_text", "text"), description="The new text; `text` is read too."
    )
    source: OptionalSource = Field(default="", description="Empty: the old one stays.")
    metadata: Metadata | None = Field(default=None, description="Keys to set beside those of the old memory.")


class SupersedeResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "success": True,
                    "old_id": 12,
                    "new_id": 14,
                    "previous_text": "The billing service moves to Postgres 17 in May.",
                    "archived_old": True,
                }
            ]
        }
    )

    success: bool
    old_id: int
    new_id: int
    previous_text: str
    archived_old: bool

    @classmethod
    def of(cls, outcome: SupersedeOutcome) -> SupersedeResponse:
        return cls(
            success=True,
            old_id=outcome.old.id,
            new_id=outcome.new_id,
            previous_text=outcome.old.text,
            archived_old=True,
        )


class MergeRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "ids": [12, 13],
                    "merged_text": "Billing runs on Postgres 17.",
                    "source": "claude-code/billing",
                }
            ]
        }
    )

    ids: Annotated[list[MemoryId], Field(min_length=2, max_length=1000)] = Field(description="What is merged.")
    merged_text: Text = Field(description="What takes their place.")
    source: Source = Field(description="Of the new memory.")


class MergeResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"id": 15, "archived": [12, 13]}]})

    id: int = Field(description="Of the new memory.")
    archived: list[int]


class ArchiveBatchRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [12, 13]}]})

    ids: Ids


class ArchiveBatchResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"archived_count": 2}]})

    archived_count: int = Field(description="Those that exist and were not archived.")


@routes.post("/memory/{memory_id}/supersede", summary="Replace a memory", responses=error_responses(404, 409))
def supersede_by_id(
    memory_id: MemoryId, body: SupersedeByIdRequest, scope: Writer, engine: Engine
) -> SupersedeResponse:
    """Store a new text in the place of a memory, which is archived and linked."""
    return _supersede(engine, scope, memory_id, body.text, body)


@routes.post("/memory/supersede", summary="Replace a memory, its id in the body", responses=error_responses(404, 409))
def supersede(body: SupersedeRequest, scope: Writer, engine: Engine) -> SupersedeResponse:
    """Store a new text in the place of a memory, which is archived and linked."""
    return _supersede(engine, scope, body.old_id, body.new_text, body)


@routes.post("/memory/merge", summary="Merge memories", responses=error_responses(400, 404, 409))
def merge(body: MergeRequest, scope: Writer, engine: Engine) -> MergeResponse:
    """Store one text in the place of several memories, which are archived and linked."""
    outcome = engine.merge(scope, body.ids, text=body.merged_text, source=body.source)
    return MergeResponse(id=outcome.id, archived=list(outcome.archived))


@routes.post("/memory/archive-batch", summary="Archive memories", responses=error_responses())
def archive_batch(body: ArchiveBatchRequest, scope: Writer, engine: Engine) -> ArchiveBatchResponse:
    """Take up to 1000 memories out of searches; ids that do not exist are skipped."""
    return ArchiveBatchResponse(archived_count=engine.archive(scope, body.ids))


def _supersede(
    engine: MemoryEngine, scope: Scope, memory_id: int, text: str, body: SupersedeByIdRequest | SupersedeRequest
) -> SupersedeResponse:
    fields = read_change(body.metadata or {})
    return SupersedeResponse.of(
        engine.supersede(
            scope,
            memory_id,
            text=text,
            source=body.source or None,
            metadata=fields.metadata,
            document_at=fields.document_at,
            origin_class=fields.origin_class or OriginClass.USER,
        )
    )
