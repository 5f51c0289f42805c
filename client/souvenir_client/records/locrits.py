"""What the service answers in its section `locrits`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from souvenir_client.records.enums import MessageRole, RecordKind, SearchStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritAiResult:
    memory_id: str
    content: str
    relevance_score: float
    similarity_score: float | None
    storage_type: RecordKind
    importance: float | None
    created_at: str
    tags: list[str]
    reasoning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritAiSearchResponse:
    query: str
    strategy: SearchStrategy
    results: list[LocritAiResult]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritResult:
    """A message or a memory that was found; a memory has no role, session and user."""

    id: str
    kind: RecordKind
    role: MessageRole | None
    content: str
    timestamp: str
    session_id: str | None
    user: str | None
    score: float
    similarity_score: float | None
    concepts: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocritSearchResponse:
    query: str
    strategy: SearchStrategy
    searched_by: list[SearchStrategy]
    concepts: list[str]
    results: list[LocritResult]
    total: int
    access_level: Literal["full", "quick"]
