"""What the service answers in its section `tiers`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from souvenir_client.records.common import FoundMessage
from souvenir_client.records.enums import MessageRole


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearedResponse:
    cleared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetResponse:
    forgotten: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LongTermHit:
    id: int
    key: str | None
    value: str
    category: str
    created_at: str
    updated_at: str
    metadata: Mapping[str, Any]
    score: float
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferencePage:
    preferences: Mapping[str, str]
    total: int
    offset: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceRecord:
    id: int
    key: str | None
    value: str
    category: str
    created_at: str
    updated_at: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResponse:
    memories: list[str]
    degraded: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSearchResponse:
    memories: list[LongTermHit]
    degraded: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberResponse:
    id: int
    key: str | None
    value: str
    category: str
    created_at: str
    updated_at: str
    metadata: Mapping[str, Any]
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContextResponse:
    session_messages: list[WindowRecord]
    relevant_history: list[FoundMessage]
    relevant_memories: list[str]
    user_preferences: Mapping[str, str]
    degraded: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRecord:
    """A message of the context."""

    role: MessageRole
    content: str
    timestamp: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowResponse:
    messages: list[WindowRecord]
