"""Adding, upserting and patching memories, one or several at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.fields import FactList, Ids, Key, MemoryId, Source, StoredText, TagList
from souvenir.api.memories import MemoryRecord
from souvenir.api.metadata import Metadata, read_change, read_fields
from souvenir.api.parameters import ExpectedTags
from souvenir.core.labels import clean_tags
from souvenir.core.types import (
    AddAction,
    AddOutcome,
    FactsBy,
    FactsOutcome,
    Memory,
    MemoryDraft,
    MemoryPatch,
    OnDuplicate,
    SkipReason,
    UpsertOutcome,
)
from souvenir.memories.bulk_updates import BulkOutcome, update_many
from souvenir.memories.fact_splitting import given
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import OF_MEMORY, Engine, MakeOnce, RunningService, Writer
from souvenir.server.routing import Routes

routes = Routes("write")

_ADD_EXAMPLE: dict[str, Any] = {
    "text": "The billing service moves to Postgres 17 in May.",
    "source": "claude-code/billing",
    "metadata": {"category": "decision"},
    "on_duplicate": "supersede",
}
_UPSERT_EXAMPLE: dict[str, Any] = {
    "text": "Ana is on call this week.",
    "source": "team/rota",
    "key": "on-call",
    "metadata": {"category": "fact"},
}

HINTS = {
    SkipReason.IDENTICAL: "The same is stored already, so there is nothing to do.",
    SkipReason.DUPLICATE: "Nearly the same is stored; send on_duplicate=supersede to replace it, or add to keep both.",
    SkipReason.PINNED_BLOCKER: "What this would replace is pinned; unpin it, or send on_duplicate=add to keep both.",
}


class _TextToStore(BaseModel):
    text: StoredText = Field(description="The text of the memory.")
    source: Source = Field(description="A path-like label, such as `claude-code/billing`.")
    metadata: Metadata | None = None
    tags: TagList = Field(default=[], description="Labels, stored with their case and matched case-insensitively.")
    facts: FactList | None = Field(
        default=None, description="The statements of the text; a search finds the memory by each of them."
    )

    def draft(self) -> MemoryDraft:
        draft = read_fields(self.metadata).draft(self.text, self.source)
        return replace(draft, tags=tuple(self.tags), facts=() if self.facts is None else given(self.facts).facts)


class AddMemoryRequest(_TextToStore):
    model_config = ConfigDict(json_schema_extra={"examples": [_ADD_EXAMPLE]})

    deduplicate: bool = Field(
        default=False, description="Store nothing if a nearly identical text exists (cosine >= 0.90)."
    )
    on_duplicate: OnDuplicate | None = Field(
        default=None, description="The action if a nearly identical text exists; takes precedence over `deduplicate`."
    )
    split: bool = Field(
        default=False,
        description="Split the text into facts if `facts` is empty: by the language model, or into sentences if no "
        "model is configured. In a batch the model is called afterwards.",
    )

    def draft(self) -> MemoryDraft:
        return replace(super().draft(), split=self.split and self.facts is None)


class AddMemoryResponse(BaseModel):
    """Without `on_duplicate`: `id` and `message`. With it: `action` and its result."""

    success: bool
    id: int | None = Field(default=None, description="The id of the stored memory; null if nothing was stored.")
    message: str | None = None
    action: AddAction | None = None
    superseded: int | None = Field(default=None, description="The memory that was archived in its favour.")
    previous_text: Annotated[str | None, OF_MEMORY] = Field(default=None, description="The text of that memory.")
    similarity: Annotated[float | None, OF_MEMORY] = Field(
        default=None, description="Cosine similarity to the duplicate."
    )
    reason: SkipReason | None = Field(default=None, description="The reason that nothing was stored.")
    blocked_by: int | None = Field(default=None, description="The id of the duplicate.")
    blocked_similarity: Annotated[float | None, OF_MEMORY] = Field(
        default=None, description="Cosine similarity to that memory."
    )
    hint: str | None = Field(default=None, description="How to resolve it.")
    facts_created: int | None = Field(default=None, description="With `facts` or `split`: the number of facts.")
    facts_by: FactsBy | None = Field(default=None, description="Who split the text into facts, if it has any.")
    split_pending: bool | None = Field(default=None, description="True if the model is called again later.")
    split_failure: str | None = Field(
        default=None, description="Why the model did not split it, although it was requested."
    )

    @classmethod
    def of(cls, request: AddMemoryRequest, outcome: AddOutcome, facts: FactsOutcome | None) -> Self:
        of_outcome = _legacy_fields if request.on_duplicate is None else _action_fields
        return cls(**of_outcome(outcome), **({} if facts is None else facts_fields(facts)))


def facts_fields(outcome: FactsOutcome) -> dict[str, Any]:
    """The fields of a response about a memory's facts."""
    fields = {
        "facts_created": len(outcome.memory.facts),
        "facts_by": outcome.made_by,
        "split_pending": outcome.pending,
        "split_failure": outcome.failure,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _legacy_fields(outcome: AddOutcome) -> dict[str, Any]:
    if outcome.action is AddAction.ADDED:
        return {"success": True, "id": outcome.id, "message": "Memory added successfully"}
    return {"success": True, "id": None, "message": "Duplicate skipped", **_blocked(outcome, "blocked_similarity")}


def _action_fields(outcome: AddOutcome) -> dict[str, Any]:
    fields: dict[str, Any] = {"success": True, "action": outcome.action}
    if outcome.id is not None:
        fields["id"] = outcome.id
    if outcome.blocker is None or outcome.similarity is None:
        return fields
    if outcome.action is AddAction.SUPERSEDED:
        fields |= {"superseded": outcome.blocker.id, "previous_text": outcome.blocker.text}
        return fields | {"similarity": round(outcome.similarity, 6)}
    return fields | {"reason": outcome.reason, **_blocked(outcome, "similarity")}


def _blocked(outcome: AddOutcome, similarity_name: str) -> dict[str, Any]:
    if outcome.blocker is None or outcome.similarity is None or outcome.reason is None:
        return {}
    return {
        "blocked_by": outcome.blocker.id,
        similarity_name: round(outcome.similarity, 6),
        "hint": HINTS[outcome.reason],
    }


class AddBatchRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"memories": [_ADD_EXAMPLE], "deduplicate": True}]})

    memories: list[AddMemoryRequest] = Field(min_length=1, max_length=500, description="The memories to add.")
    deduplicate: bool = Field(
        default=False,
        description="Skip texts that are nearly identical to stored ones; overrides the setting of each item.",
    )


class AddBatchResponse(BaseModel):
    success: bool
    ids: list[int] = Field(description="The ids of the stored memories, in order.")
    count: int
    message: str = Field(examples=["Added 2 memories"])


class UpsertMemoryRequest(_TextToStore):
    model_config = ConfigDict(json_schema_extra={"examples": [_UPSERT_EXAMPLE]})

    key: Key = Field(description="The key of the memory, unique within its source.")

    def draft(self) -> MemoryDraft:
        return replace(super().draft(), key=self.key)


class UpsertResponse(BaseModel):
    success: bool
    id: int
    action: str = Field(description="`created` or `updated`.", examples=["created"])

    @classmethod
    def of(cls, outcome: UpsertOutcome) -> UpsertResponse:
        return cls(success=True, id=outcome.id, action="created" if outcome.created else "updated")


class UpsertBatchRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"memories": [_UPSERT_EXAMPLE]}]})

    memories: list[UpsertMemoryRequest] = Field(min_length=1, max_length=1000, description="The memories to upsert.")


class UpsertBatchResponse(BaseModel):
    success: bool
    created: int
    updated: int
    errors: int = Field(description="Always 0: either all are stored, or none and the response is an error.")
    results: list[UpsertResponse] = Field(description="In the order of the request.")


class PatchMemoryRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"pinned": True, "metadata_patch": {"category": None}}]})

    text: StoredText | None = Field(default=None, description="The new text.")
    source: Source | None = Field(default=None, description="The new source.")
    metadata_patch: Metadata | None = Field(
        default=None,
        description="Keys to set; null removes one. `entity_key` and names that begin with `_policy_` are dropped.",
    )
    pinned: bool | None = Field(default=None, description="Protect the memory from being deleted or superseded.")
    archived: bool | None = Field(default=None, description="Exclude it from searches.")
    tags: TagList | None = Field(default=None, description="The tags, replacing all present ones.")
    add_tags: TagList = Field(default=[], description="Tags to add.")
    remove_tags: TagList = Field(default=[], description="Tags to remove (case-insensitive).")
    facts: FactList | None = Field(
        default=None,
        description="The facts, replacing all present ones. A new text without new facts removes the old ones and "
        "is split again if there were some.",
    )

    def patch(self) -> MemoryPatch:
        fields = read_change(self.metadata_patch or {})
        return MemoryPatch(
            text=self.text,
            source=self.source,
            metadata=fields.metadata or None,
            document_at=fields.document_at,
            remove_document_at="document_at" in (self.metadata_patch or {}) and fields.document_at is None,
            pinned=fields.pinned if self.pinned is None else self.pinned,
            archived=fields.archived if self.archived is None else self.archived,
            origin_class=fields.origin_class,
            tags=None if self.tags is None else tuple(self.tags),
            add_tags=tuple(self.add_tags),
            remove_tags=tuple(self.remove_tags),
            facts=None if self.facts is None else given(self.facts).facts,
        )


class PatchMemoryResponse(BaseModel):
    id: int
    updated_fields: list[str] = Field(
        description="The changed fields: `text`, `source`, `metadata`, `pinned`, `archived`, `tags` or `facts`.",
        examples=[["metadata", "pinned"]],
    )

    @classmethod
    def of(cls, memory_id: int, request: PatchMemoryRequest) -> PatchMemoryResponse:
        patch = request.patch()
        changed = {
            "text": patch.text is not None,
            "source": patch.source is not None,
            "metadata": bool(patch.metadata or patch.document_at or patch.remove_document_at or patch.origin_class),
            "pinned": patch.pinned is not None,
            "archived": patch.archived is not None,
            "tags": bool(patch.tags is not None or patch.add_tags or patch.remove_tags),
            "facts": request.facts is not None,
        }
        return cls(id=memory_id, updated_fields=[name for name, given in changed.items() if given])


class UpdateBatchRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [12, 13], "add_tags": ["billing"]}]})

    ids: Ids
    source: Source | None = Field(default=None, description="The new source.")
    pinned: bool | None = Field(default=None, description="Protect the memories from being deleted or superseded.")
    archived: bool | None = Field(default=None, description="Exclude them from searches.")
    add_tags: TagList = Field(default=[], description="Tags to add.")
    remove_tags: TagList = Field(default=[], description="Tags to remove (case-insensitive).")

    def patch(self) -> MemoryPatch:
        return MemoryPatch(
            source=self.source,
            pinned=self.pinned,
            archived=self.archived,
            add_tags=clean_tags(self.add_tags),
            remove_tags=tuple(self.remove_tags),
        )


class RefusedUpdate(BaseModel):
    id: int
    detail: str = Field(
        description="Why the memory stayed as it was.", examples=["Memory ID 12 is damaged and cannot be read"]
    )


class UpdateBatchResponse(BaseModel):
    updated_ids: list[int] = Field(
        description="The memories that changed; those that were as requested already are not among them."
    )
    missing_ids: list[int] = Field(description="Ids that do not exist.")
    refused: list[RefusedUpdate] = Field(
        description="Memories that stayed as they were: their key is taken in the new source, they would have too "
        "many tags, they are another principal's, or they are damaged."
    )

    @classmethod
    def of(cls, outcome: BulkOutcome) -> UpdateBatchResponse:
        refused = [RefusedUpdate(id=id_, detail=detail) for id_, detail in outcome.refused.items()]
        return cls(updated_ids=list(outcome.updated_ids), missing_ids=list(outcome.missing_ids), refused=refused)


@routes.post("/memory/add", summary="Add a memory", cost=CostClass.WRITE, sdk="memories.add", errors=[409])
def add_memory(body: AddMemoryRequest, scope: Writer, service: RunningService, once: MakeOnce) -> AddMemoryResponse:
    """Add a memory; it is durable and searchable when the response arrives."""
    on_duplicate = OnDuplicate.SKIP if body.deduplicate and body.on_duplicate is None else body.on_duplicate
    outcome = service.engine.add(scope, body.draft(), on_duplicate=on_duplicate, once=once)
    facts = None
    if outcome.id is not None and (body.facts is not None or body.split):
        facts = service.engine.facts.outcome(scope, outcome.id, outcome.split_failure)
    return AddMemoryResponse.of(body, outcome, facts)


@routes.post(
    "/memory/add-batch",
    summary="Add memories",
    cost=CostClass.LONG,
    sdk="memories.add_batch",
    errors=[409],
)
def add_batch(body: AddBatchRequest, scope: Writer, service: RunningService, once: MakeOnce) -> AddBatchResponse:
    """Add up to 500 memories in one transaction, all or none; they are not compared with each other."""
    drafts = [item.draft() for item in body.memories]
    ids = service.engine.add_batch(scope, drafts, deduplicate=body.deduplicate, once=once)
    return AddBatchResponse(success=True, ids=list(ids), count=len(ids), message=f"Added {len(ids)} memories")


@routes.post(
    "/memory/upsert",
    summary="Upsert a memory",
    cost=CostClass.WRITE,
    sdk="memories.upsert",
    idempotent=True,
    errors=[409],
)
def upsert_memory(body: UpsertMemoryRequest, scope: Writer, service: RunningService) -> UpsertResponse:
    """Update the memory with this source and key, or add a new one."""
    [outcome] = service.engine.upsert(scope, [body.draft()])
    return UpsertResponse.of(outcome)


@routes.post(
    "/memory/upsert-batch",
    summary="Upsert memories",
    cost=CostClass.LONG,
    sdk="memories.upsert_batch",
    idempotent=True,
    errors=[409],
)
def upsert_batch(body: UpsertBatchRequest, scope: Writer, service: RunningService) -> UpsertBatchResponse:
    """Upsert up to 1000 memories in one transaction, all or none."""
    outcomes = service.engine.upsert(scope, [item.draft() for item in body.memories])
    created = sum(outcome.created for outcome in outcomes)
    results = [UpsertResponse.of(outcome) for outcome in outcomes]
    return UpsertBatchResponse(success=True, created=created, updated=len(results) - created, errors=0, results=results)


@routes.patch(
    "/memory/{memory_id}",
    summary="Update a memory",
    cost=CostClass.WRITE,
    sdk="memories.update",
    errors=[400, 404, 409, 412],
)
def patch_memory(
    memory_id: MemoryId, body: PatchMemoryRequest, scope: Writer, service: RunningService, tags: ExpectedTags
) -> PatchMemoryResponse:
    """Update the given fields of a memory and keep the others; If-Match prevents lost updates."""

    def is_expected(memory: Memory) -> bool:
        return tags is None or MemoryRecord.of(memory, facts=True).tag in tags

    service.engine.update(scope, memory_id, body.patch(), expected=is_expected if tags is not None else None)
    return PatchMemoryResponse.of(memory_id, body)


@routes.post(
    "/memory/update-batch",
    summary="Update memories",
    cost=CostClass.LONG,
    sdk="memories.update_batch",
    idempotent=True,
)
def update_batch(body: UpdateBatchRequest, scope: Writer, engine: Engine) -> UpdateBatchResponse:
    """Update the source, tags and states of up to 1000 memories in one transaction."""
    return UpdateBatchResponse.of(update_many(engine, scope, body.ids, body.patch()))
