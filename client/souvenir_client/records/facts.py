"""What the service answers in its section `facts`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass

from souvenir_client.records.enums import FactsBy


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRecord:
    """One statement of a memory."""

    id: int
    text: str
    made_by: FactsBy
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsResponse:
    facts: list[ListedFact]
    total: int
    offset: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFact:
    id: int
    text: str
    made_by: FactsBy
    created_at: str
    memory_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFactsResponse:
    memory_id: int
    facts: list[FactRecord]
    facts_created: int
    facts_by: FactsBy | None = None
    split_pending: bool
    split_failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitResponse:
    split: int
    by_model: int
    by_sentences: int
    changed: int
    has_more: bool
