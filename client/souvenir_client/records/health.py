"""What the service answers in its section `health`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthResponse:
    status: str
    service: str
    version: str
    total_memories: int | None = None
    dimension: int | None = None
    model: str | None = None
    embedding_backend: str | None = None
    embedding_dimension: int | None = None
    database_path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyResponse:
    ready: bool
    status: str
    index_count: int | None
    record_count: int | None
    qdrant_count: int | None
    metadata_count: int | None
