"""What the service answers in its section `context`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass

from souvenir_client.records.common import FoundMessage, MemoryBlock, SearchHit
from souvenir_client.records.enums import EvidenceLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextResponse:
    memory_blocks: list[MemoryBlock]
    relevant_messages: list[FoundMessage]
    relevant_memories: list[SearchHit]
    text: str
    stable_prefix: str
    stable_etag: str
    volatile_tail: str
    tokens: int
    relevance: float
    evidence: EvidenceLevel
    degraded: list[str]
    dropped: DroppedCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedCounts:
    """How many of those found are not in the text, since the budget has no room for them."""

    messages: int
    memories: int
