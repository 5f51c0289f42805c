"""What the service answers in its section `backup`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupRecord:
    name: str
    created: float
    created_at: str
    reason: str
    memories: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupResponse:
    success: bool
    backup_path: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupsResponse:
    backups: list[BackupRecord]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResponse:
    success: bool
    restored_from: str
    total_memories: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRecord:
    name: str
    reason: str
    timestamp: str
    point_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotResponse:
    snapshot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRestoreResponse:
    success: bool
    restored: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotsResponse:
    snapshots: list[SnapshotRecord]
    count: int
