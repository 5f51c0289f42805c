"""What the service answers in its section `blocks`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockHistoryPage:
    versions: list[BlockVersionRecord]
    total: int
    offset: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockVersionRecord:
    """What a block was from one change to the next."""

    version: int
    value: str
    description: str | None
    limit: int
    read_only: bool
    actor: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedBlock:
    success: bool
    deleted_id: str
    label: str
