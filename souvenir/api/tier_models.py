"""What long-term memory and preferences take and answer."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.agents import AgentName
from souvenir.api.fields import MAX_TEXT_CHARS, Clean, Key, wire_time
from souvenir.conversation.keyed_memories import GENERAL, PREFERENCE, KeyedMemory, Recollection, Remembered

_CATEGORY = "One of the categories of the privacy rules: general, preference, fact, contact, location, routine."

Value = Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS), Clean, Field(description="Any text.")]
Query = Annotated[
    str, StringConstraints(min_length=1, max_length=10_000), Clean, Field(description="What to look for, in any words.")
]
_Key = Annotated[Key, Field(description="What it is known by; a second value for a key takes the place of the first.")]
_Category = Annotated[str, Field(max_length=200, description=_CATEGORY)]
_Limit = Annotated[int, Field(ge=1, le=100, description="Memories wanted.")]

MEMORY_EXAMPLE: dict[str, Any] = {
    "id": 12,
    "key": "favorite color",
    "value": "blue",
    "category": "general",
    "created_at": "2025-04-02T09:30:00.000000+00:00",
    "updated_at": "2025-04-02T09:30:00.000000+00:00",
    "metadata": {},
}
PREFERENCE_EXAMPLE = {**MEMORY_EXAMPLE, "id": 13, "key": "tone", "value": "short answers", "category": PREFERENCE}


class RememberRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"agent_name": "my_agent", "key": "favorite color", "value": "blue"}]}
    )

    agent_name: AgentName
    key: _Key
    value: Value
    category: _Category = GENERAL


class ForgetRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"agent_name": "my_agent", "key": "favorite color"}]})

    agent_name: AgentName
    key: _Key
    category: _Category = GENERAL


class RecallRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"agent_name": "my_agent", "query": "what color do I like", "limit": 3}]}
    )

    agent_name: AgentName
    query: Query
    category: Annotated[str | None, Field(max_length=200, description=_CATEGORY + " Without it, all.")] = None
    limit: _Limit = 5

    @property
    def categories(self) -> tuple[str, ...]:
        return () if self.category is None else (self.category,)


class SetPreferenceRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"value": "short answers"}]})

    value: Value


class LongTermRecord(BaseModel):
    """What is remembered under a key."""

    model_config = ConfigDict(json_schema_extra={"examples": [MEMORY_EXAMPLE]})

    id: int = Field(description="Of the memory, which the routes for memories know too.")
    key: str | None = Field(description="Null for a memory that was stored in the category without one.")
    value: str = Field(description="As it is stored: without what the privacy rules take out.")
    category: str
    created_at: str = Field(description="ISO-8601 in UTC with microseconds.")
    updated_at: str = Field(description="When the value was last set.")
    metadata: dict[str, Any]

    @classmethod
    def of(cls, memory: KeyedMemory, **further: Any) -> Self:
        return cls(
            id=memory.id,
            key=memory.key,
            value=memory.value,
            category=memory.category,
            created_at=wire_time(memory.created_at),
            updated_at=wire_time(memory.updated_at),
            metadata=dict(memory.metadata),
            **further,
        )


class RememberResponse(LongTermRecord):
    model_config = ConfigDict(json_schema_extra={"examples": [{**MEMORY_EXAMPLE, "created": True}]})

    created: bool = Field(description="Whether the key is new in its category.")


class PreferenceRecord(LongTermRecord):
    model_config = ConfigDict(json_schema_extra={"examples": [PREFERENCE_EXAMPLE]})


class ForgetResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"forgotten": True}]})

    forgotten: bool = Field(description="Whether there was anything to forget.")


class RecallResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"memories": ["favorite color: blue"], "degraded": []}]})

    memories: list[str] = Field(description="Each as `key: value`, best first.")
    degraded: list[str] = Field(description="What of the search could not run, as in `/search`; empty if all did.")

    @classmethod
    def of(cls, found: Recollection) -> RecallResponse:
        return cls(memories=[hit.text for hit in found.hits], degraded=list(found.degraded))


class LongTermHit(LongTermRecord):
    score: float = Field(description="What the results are ordered by.")
    similarity: float = Field(description="Cosine between the query and the memory.")

    @classmethod
    def of_hit(cls, hit: Remembered) -> LongTermHit:
        return cls.of(hit.memory, score=round(hit.score, 6), similarity=round(hit.similarity, 6))


class RecallSearchResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"memories": [{**MEMORY_EXAMPLE, "score": 1.482913, "similarity": 0.71}], "degraded": []}]
        }
    )

    memories: list[LongTermHit] = Field(description="Best first.")
    degraded: list[str] = Field(description="What of the search could not run, as in `/search`; empty if all did.")

    @classmethod
    def of(cls, found: Recollection) -> RecallSearchResponse:
        return cls(memories=[LongTermHit.of_hit(hit) for hit in found.hits], degraded=list(found.degraded))


class PreferencePage(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"preferences": {"tone": "short answers"}, "total": 1, "offset": 0, "limit": 100}]
        }
    )

    preferences: dict[str, str] = Field(description="Values by key, in the order of the keys.")
    total: int = Field(description="How many there are on all pages.")
    offset: int
    limit: int
