"""What the service answers in its section `replace`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveBatchResponse:
    archived_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResponse:
    id: int
    archived: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SupersedeResponse:
    success: bool
    old_id: int
    new_id: int
    previous_text: str
    archived_old: bool
