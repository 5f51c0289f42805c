"""What the service answers in its section `messages`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from souvenir_client.records.common import Explanation, MessageRecord, SessionRecord, TimeReading
from souvenir_client.records.enums import EvidenceLevel, MessageRole


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainMessagesResponse:
    query: str
    results: list[ExplainedMessage]
    count: int
    relevance: float
    evidence: EvidenceLevel
    degraded: list[str]
    fusion: str
    candidates_considered: int
    relevance_signals: Mapping[str, float]
    repairs: Mapping[str, str]
    time: TimeReading | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedMessage:
    id: str
    agent_id: str
    role: MessageRole
    content: str
    created_at: str
    metadata: Mapping[str, Any] | None
    similarity: float | None
    session_id: str
    user: str | None
    name: str | None
    edited_at: str | None
    score: float
    explanation: Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageBatch:
    messages: list[MessageRecord]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    sessions: list[SessionRecord]
    total: int
    offset: int
    limit: int
