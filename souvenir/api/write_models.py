"""What add, upsert and patch take and answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.fields import FactList, Key, Source, TagList, Text
from souvenir.api.metadata import Metadata, read_change, read_fields
from souvenir.facts.facts import NONE_WANTED, Added, Stored, Wanted
from souvenir.types import (
    AddAction,
    AddOutcome,
    FactsBy,
    MemoryDraft,
    MemoryPatch,
    OnDuplicate,
    OriginClass,
    SkipReason,
    UpsertOutcome,
)

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
    text: Text = Field(description="What to remember.")
    source: Source = Field(description="A path-like label, such as `claude-code/billing`.")
    metadata: Metadata | None = None
    tags: TagList = Field(default=[], description="Labels: their case is kept, and they are matched without it.")
    facts: FactList | None = Field(
        default=None, description="What the text says, one statement each; a search finds the memory by each of them."
    )

    def draft(self) -> MemoryDraft:
        fields = read_fields(self.metadata)
        return MemoryDraft(
            text=self.text,
            source=self.source,
            metadata=fields.metadata,
            key=fields.key,
            document_at=fields.document_at,
            pinned=bool(fields.pinned),
            archived=bool(fields.archived),
            origin_class=fields.origin_class or OriginClass.USER,
            tags=tuple(self.tags),
        )

    def wanted(self) -> Wanted:
        return Wanted(self.facts)


class AddMemoryRequest(_TextToStore):
    model_config = ConfigDict(json_schema_extra={"examples": [_ADD_EXAMPLE]})

    deduplicate: bool = Field(
        default=False, description="Store nothing if nearly the same text is stored (cosine >= 0.90)."
    )
    on_duplicate: OnDuplicate | None = Field(
        default=None, description="What to do if nearly the same text is stored; goes before `deduplicate`."
    )
    split: bool = Field(
        default=False,
        description="Split the text into facts if `facts` gives none: by the language model, or while there is none by "
        "its sentences. In a batch the model is asked afterwards.",
    )

    def wanted(self) -> Wanted:
        return Wanted(self.facts, self.split)


class AddMemoryResponse(BaseModel):
    """Without `on_duplicate`: `id` and `message`. With it: `action` and what it did."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"success": True, "id": 12, "message": "Memory added successfully"}]}
    )

    success: bool
    id: int | None = Field(default=None, description="Of the stored memory; null if nothing was stored.")
    message: str | None = None
    action: AddAction | None = None
    superseded: int | None = Field(default=None, description="The memory that was archived for it.")
    previous_text: str | None = Field(default=None, description="The text of that memory.")
    similarity: float | None = Field(default=None, description="Cosine to the memory that it collided with.")
    reason: SkipReason | None = Field(default=None, description="Why nothing was stored.")
    blocked_by: int | None = Field(default=None, description="The memory that it collided with.")
    blocked_similarity: float | None = Field(default=None, description="Cosine to that memory.")
    hint: str | None = Field(default=None, description="What to do about it.")
    facts_created: int | None = Field(default=None, description="With `facts` or `split`: how many it has.")
    facts_by: FactsBy | None = Field(default=None, description="Who split it, if it has any.")
    split_pending: bool | None = Field(default=None, description="Whether the model is asked again afterwards.")
    split_failure: str | None = Field(default=None, description="Why no model split it, though one was to.")

    @classmethod
    def of(cls, request: AddMemoryRequest, added: Added) -> Self:
        of_outcome = _legacy_fields if request.on_duplicate is None else _action_fields
        stored = None if request.wanted() == NONE_WANTED else added.stored
        return cls(**of_outcome(added.outcome), **({} if stored is None else facts_fields(stored)))


def facts_fields(stored: Stored) -> dict[str, Any]:
    """What an answer says of a memory's facts."""
    fields = {
        "facts_created": len(stored.memory.facts),
        "facts_by": stored.made_by,
        "split_pending": stored.pending,
        "split_failure": stored.failure,
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

    memories: list[AddMemoryRequest] = Field(min_length=1, max_length=500, description="What to remember.")
    deduplicate: bool = Field(
        default=False, description="Leave out what is nearly stored already; items' own settings are not read."
    )


class AddBatchResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"success": True, "ids": [12, 13], "count": 2, "message": "Added 2 memories"}]}
    )

    success: bool
    ids: list[int] = Field(description="Of those that were stored, in order.")
    count: int
    message: str


class UpsertMemoryRequest(_TextToStore):
    model_config = ConfigDict(json_schema_extra={"examples": [_UPSERT_EXAMPLE]})

    key: Key = Field(description="Names the memory within its source.")

    def draft(self) -> MemoryDraft:
        return replace(super().draft(), key=self.key)


class UpsertResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"success": True, "id": 12, "action": "created"}]})

    success: bool
    id: int
    action: str = Field(description="`created` or `updated`.")

    @classmethod
    def of(cls, outcome: UpsertOutcome) -> UpsertResponse:
        return cls(success=True, id=outcome.id, action="created" if outcome.created else "updated")


class UpsertBatchRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"memories": [_UPSERT_EXAMPLE]}]})

    memories: list[UpsertMemoryRequest] = Field(min_length=1, max_length=1000, description="What to remember.")


class UpsertBatchResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "success": True,
                    "created": 1,
                    "updated": 0,
                    "errors": 0,
                    "results": [{"success": True, "id": 12, "action": "created"}],
                }
            ]
        }
    )

    success: bool
    created: int
    updated: int
    errors: int = Field(description="Always 0: all of them are stored, or none and the answer is an error.")
    results: list[UpsertResponse] = Field(description="In the order of the request.")


class PatchMemoryRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"pinned": True, "metadata_patch": {"category": None}}]})

    text: Text | None = Field(default=None, description="The new text.")
    source: Source | None = Field(default=None, description="The new source.")
    metadata_patch: Metadata | None = Field(
        default=None,
        description="Keys to set; null removes one. `entity_key` and names that begin with `_policy_` are dropped.",
    )
    pinned: bool | None = Field(default=None, description="Keep it from deletes and supersedes.")
    archived: bool | None = Field(default=None, description="Leave it out of searches.")
    tags: TagList | None = Field(default=None, description="All the tags that it shall have.")
    add_tags: TagList = Field(default=[], description="Tags that it gets beside those.")
    remove_tags: TagList = Field(default=[], description="Tags that it loses, in any case.")
    facts: FactList | None = Field(
        default=None,
        description="All the facts that it shall have. A new text without new ones takes the old ones away, and is "
        "split afterwards if there were some.",
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
        )


class PatchMemoryResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"id": 12, "updated_fields": ["metadata", "pinned"]}]})

    id: int
    updated_fields: list[str] = Field(
        description="Of `text`, `source`, `metadata`, `pinned`, `archived`, `tags`, `facts`."
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
