"""What the service answers in its section `write`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass

from souvenir_client.records.enums import AddAction, FactsBy, SkipReason


@dataclass(frozen=True, slots=True, kw_only=True)
class AddBatchResponse:
    success: bool
    ids: list[int]
    count: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddMemoryResponse:
    """Without `on_duplicate`: `id` and `message`. With it: `action` and what it did."""

    success: bool
    id: int | None = None
    message: str | None = None
    action: AddAction | None = None
    superseded: int | None = None
    previous_text: str | None = None
    similarity: float | None = None
    reason: SkipReason | None = None
    blocked_by: int | None = None
    blocked_similarity: float | None = None
    hint: str | None = None
    facts_created: int | None = None
    facts_by: FactsBy | None = None
    split_pending: bool | None = None
    split_failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchMemoryResponse:
    id: int
    updated_fields: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertBatchResponse:
    success: bool
    created: int
    updated: int
    errors: int
    results: list[UpsertResponse]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertResponse:
    success: bool
    id: int
    action: str
