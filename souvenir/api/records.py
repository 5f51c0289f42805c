"""A memory as clients see it: its own fields, what can be worked out from them, and its metadata on the same level."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.fields import wire_time
from souvenir.moments import to_us, utc_now
from souvenir.search.ranking import CONFIDENCE_HALF_LIFE_DAYS, half_life
from souvenir.store.reads import SUPERSEDES
from souvenir.types import Fact, FactsBy, Memory, OriginClass

RECORD_EXAMPLE: dict[str, Any] = {
    "category": "decision",
    "id": 12,
    "text": "The billing service moves to Postgres 17 in May.",
    "source": "claude-code/billing",
    "created_at": "2025-04-02T09:30:00.000000+00:00",
    "updated_at": "2025-04-02T09:30:00.000000+00:00",
    "timestamp": "2025-04-02T09:30:00.000000+00:00",
    "confidence": 0.9847,
    "pinned": False,
    "archived": False,
    "origin_class": "user",
}


class LinkRecord(BaseModel):
    """A directed relation to another memory."""

    to_id: int
    type: str
    created_at: str


class FactRecord(BaseModel):
    """One statement of a memory."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": 31,
                    "text": "Billing runs on Postgres 17",
                    "made_by": "model",
                    "created_at": "2025-04-02T09:30:00.000000+00:00",
                }
            ]
        }
    )

    id: int = Field(description="Never used twice.")
    text: str
    made_by: FactsBy = Field(description="`caller`, `model`, or `sentences`: who split the text.")
    created_at: str

    @classmethod
    def of(cls, fact: Fact) -> FactRecord:
        return cls(id=fact.id, text=fact.text, made_by=fact.made_by, created_at=wire_time(fact.created_at))


class MemoryRecord(BaseModel):
    """A memory. Its metadata stands beside these fields, which come first where names are the same."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [RECORD_EXAMPLE]})

    id: int = Field(description="Never used twice.")
    text: str
    source: str = Field(description="A path-like label, such as `claude-code/billing`.")
    created_at: str = Field(description="ISO-8601 in UTC with microseconds.")
    updated_at: str = Field(description="When a field last changed.")
    timestamp: str = Field(description="The same as `created_at`.")
    confidence: float = Field(description="0.5 ** (days since `updated_at` / 90), to 4 decimals.")
    pinned: bool = Field(description="Whether it is kept from deletes and supersedes.")
    archived: bool = Field(description="Whether searches leave it out.")
    origin_class: OriginClass = Field(
        description="Where the text comes from, most trusted first: `user`, `document`, `tool`, `assistant`, "
        "`inferred`, `recalled`. A text made from several has the least trusted."
    )
    valid_to: str | None = Field(default=None, description="When what it says ceased to be so.")
    document_at: str | None = Field(
        default=None, description="When what it says happened, if that is not `created_at`."
    )
    entity_key: str | None = Field(default=None, description="What upsert knows it by, together with `source`.")
    links: list[LinkRecord] | None = Field(default=None, description="If it has any.")
    supersedes: int | None = Field(default=None, description="The memory whose place it took.")
    previous_text: str | None = Field(default=None, description="The text of that memory.")
    superseded_by: int | None = Field(default=None, description="The memory that took its place.")
    conflicts_with: int | None = Field(default=None, description="A memory that says otherwise.")
    is_latest: bool | None = Field(
        default=None, description="Whether nothing took its place, if it is part of such a chain."
    )

    # Metadata could always have names like these, and keeps them where the memory has none of its own.
    tags: Any = Field(default=None, description="Its tags; without any, what its metadata says under this name.")
    facts: Any = Field(
        default=None,
        description="Of one memory, its facts, each with `id`, `text`, `made_by` and `created_at`; of a search, those "
        "that were found, each with `id`, `text` and `score`; without any, what its metadata says under this name.",
    )

    @classmethod
    def of(cls, memory: Memory, now: datetime | None = None, *, facts: bool = False) -> MemoryRecord:
        """:param facts: Whether its facts are shown."""
        fields = record_fields(memory, now or utc_now())
        if facts and memory.facts:
            fields["facts"] = [FactRecord.of(fact) for fact in memory.facts]
        return cls.model_validate(fields)


def record_fields(memory: Memory, now: datetime) -> dict[str, Any]:
    """The record as a dict, with those fields only that apply."""
    age_us = np.array(to_us(now) - to_us(memory.updated_at))
    created_at = wire_time(memory.created_at)
    return {
        **memory.metadata,
        "id": memory.id,
        "text": memory.text,
        "source": memory.source,
        "created_at": created_at,
        "updated_at": wire_time(memory.updated_at),
        "timestamp": created_at,
        "confidence": round(float(half_life(age_us, CONFIDENCE_HALF_LIFE_DAYS)), 4),
        "pinned": memory.pinned,
        "archived": memory.archived,
        "origin_class": memory.origin_class,
        **_fields_that_apply(memory),
    }


def _fields_that_apply(memory: Memory) -> dict[str, Any]:
    superseded = [link.to_id for link in memory.links if link.type == SUPERSEDES]
    fields = {
        "document_at": None if memory.document_at is None else wire_time(memory.document_at),
        "valid_to": None if memory.valid_to is None else wire_time(memory.valid_to),
        "entity_key": memory.key,
        "links": [
            {"to_id": link.to_id, "type": link.type, "created_at": wire_time(link.created_at)} for link in memory.links
        ]
        or None,
        "supersedes": superseded[0] if len(superseded) == 1 else None,
        "previous_text": memory.previous_text,
        "superseded_by": memory.superseded_by,
        "conflicts_with": memory.conflicts_with,
        "tags": list(memory.tags) or None,
        "is_latest": memory.superseded_by is None if superseded or memory.superseded_by is not None else None,
    }
    return {name: value for name, value in fields.items() if value is not None}
