"""Superseding, merging and archiving memories. Replaced memories stay readable."""

from __future__ import annotations

from typing import Annotated

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from souvenir.api.fields import Ids, MemoryId, OptionalSource, Source, StoredText
from souvenir.api.metadata import Metadata, read_change
from souvenir.core.types import OriginClass, Scope, SupersedeOutcome
from souvenir.memories.engine import MemoryEngine
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import OF_MEMORY, Engine, Writer
from souvenir.server.routing import Routes

routes = Routes("replace")


class SupersedeByIdRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Billing moves to Postgres 18 in June."}]})

    text: StoredText = Field(
        validation_alias=AliasChoices("text", "new_text"), description="The new text; `new_text` is accepted too."
    )
    source: OptionalSource | None = Field(default=None, description="The new source; unchanged by default.")
    metadata: Metadata | None = Field(default=None, description="Metadata to add to that of the old memory.")


class SupersedeRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"old_id": 12, "new_text": "Billing moves to Postgres 18 in June."}]}
    )

    old_id: MemoryId
    new_text: StoredText = Field(
        validation_alias=AliasChoices("new_text", "text"), description="The new text; `text` is accepted too."
    )
    source: OptionalSource = Field(default="", description="The new source; unchanged if empty.")
    metadata: Metadata | None = Field(default=None, description="Metadata to add to that of the old memory.")


class SupersedeResponse(BaseModel):
    success: bool
    old_id: int
    new_id: int
    previous_text: Annotated[str, OF_MEMORY] = Field(examples=["The billing service moves to Postgres 17 in May."])
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

    ids: Annotated[list[MemoryId], Field(min_length=2, max_length=1000)] = Field(
        description="The ids of the memories to merge."
    )
    merged_text: StoredText = Field(description="The text that replaces them.")
    source: Source = Field(description="The source of the new memory.")


class MergeResponse(BaseModel):
    id: int = Field(description="The id of the new memory.")
    archived: list[int]


class ArchiveBatchRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [12, 13]}]})

    ids: Ids


class ArchiveBatchResponse(BaseModel):
    archived_count: int = Field(description="The number of memories that were archived by this request.")


@routes.post(
    "/memory/{memory_id}/supersede",
    summary="Supersede a memory",
    cost=CostClass.WRITE,
    sdk="memories.supersede",
    errors=[404, 409],
)
def supersede_by_id(
    memory_id: MemoryId, body: SupersedeByIdRequest, scope: Writer, engine: Engine
) -> SupersedeResponse:
    """Replace a memory with a new text; the old memory is archived and linked."""
    return _supersede(engine, scope, memory_id, body.text, body)


@routes.post(
    "/memory/supersede",
    summary="Supersede a memory by id in the body",
    cost=CostClass.WRITE,
    sdk="memories.replace",
    errors=[404, 409],
)
def supersede(body: SupersedeRequest, scope: Writer, engine: Engine) -> SupersedeResponse:
    """Replace a memory with a new text; the old memory is archived and linked."""
    return _supersede(engine, scope, body.old_id, body.new_text, body)


@routes.post(
    "/memory/merge",
    summary="Merge memories",
    cost=CostClass.WRITE,
    sdk="memories.merge",
    errors=[400, 404, 409],
)
def merge(body: MergeRequest, scope: Writer, engine: Engine) -> MergeResponse:
    """Replace several memories with one text; the old memories are archived and linked."""
    outcome = engine.merge(scope, body.ids, text=body.merged_text, source=body.source)
    return MergeResponse(id=outcome.id, archived=list(outcome.archived))


@routes.post(
    "/memory/archive-batch",
    summary="Archive memories",
    cost=CostClass.WRITE,
    sdk="memories.archive_batch",
)
def archive_batch(body: ArchiveBatchRequest, scope: Writer, engine: Engine) -> ArchiveBatchResponse:
    """Exclude up to 1000 memories from searches; ids that do not exist are skipped."""
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
