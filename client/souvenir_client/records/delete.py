"""What the service answers in its section `delete`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteBatchResponse:
    success: bool
    deleted_count: int
    deleted_ids: list[int]
    missing_ids: list[int]
    skipped_pinned: list[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteManyResponse:
    """`deleted_count`, for a key with prefixes also which; or after a dry run `count` and `would_delete`."""

    success: bool
    deleted_count: int | None = None
    deleted_ids: list[int] | None = None
    missing_ids: list[int] | None = None
    count: int | None = None
    would_delete: list[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteResponse:
    success: bool
    deleted_id: int
    deleted_text: str
