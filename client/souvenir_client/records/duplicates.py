"""What the service answers in its section `duplicates`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from souvenir_client.records.common import LinkRecord
from souvenir_client.records.enums import OriginClass


@dataclass(frozen=True, slots=True, kw_only=True)
class DeduplicateResponse:
    """After a dry run `would_remove` and `pairs`, else `removed` and `remaining`."""

    duplicate_pairs: int
    dry_run: bool
    would_remove: int | None = None
    pairs: list[DuplicatePairRecord] | None = None
    removed: int | None = None
    remaining: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicatePairRecord:
    id_a: int
    id_b: int
    source: str
    similarity: float
    text_a: str
    text_b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNovelResponse:
    is_novel: bool
    threshold: float
    most_similar: SimilarMemory | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarMemory:
    id: int
    text: str
    source: str
    created_at: str
    updated_at: str
    timestamp: str
    confidence: float
    pinned: bool
    archived: bool
    origin_class: OriginClass
    valid_to: str | None = None
    document_at: str | None = None
    entity_key: str | None = None
    links: list[LinkRecord] | None = None
    supersedes: int | None = None
    previous_text: str | None = None
    superseded_by: int | None = None
    conflicts_with: int | None = None
    is_latest: bool | None = None
    tags: Any | None = None
    facts: Any | None = None
    similarity: float
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What stands beside these fields, such as the metadata of a memory."""
