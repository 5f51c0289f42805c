"""Long-term memory: values remembered by key, preferences, and recall by meaning."""

from __future__ import annotations

from typing import Annotated, Any, Self

from fastapi import Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.fields import (
    MAX_ID,
    MAX_TEXT_CHARS,
    Clean,
    EvidenceOfAnswer,
    HitScore,
    Key,
    MinScore,
    RelevanceShare,
    wire_time,
)
from souvenir.api.parameters import AgentName, AgentReader, AgentWriter
from souvenir.conversations.long_term import (
    GENERAL,
    MAX_KEY_CHARS,
    PREFERENCE,
    KeyedMemory,
    LongTermMatch,
    LongTermMatches,
)
from souvenir.core.types import Scope
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import (
    OF_MEMORY,
    REMEMBERED,
    SEARCHING,
    MakeOnce,
    Reader,
    RunningService,
    Writer,
    agent_scope,
    result_limit,
)
from souvenir.server.routing import Routes
from souvenir.server.service import Service

routes = Routes("tiers")

_CATEGORY = "One of the categories of the privacy rules: general, preference, fact, contact, location, routine."

Value = Annotated[
    str, StringConstraints(max_length=MAX_TEXT_CHARS), Clean, Field(description="The category; any text.")
]
QueryText = Annotated[
    str, StringConstraints(min_length=1, max_length=10_000), Clean, Field(description="The search query, in any words.")
]
_Key = Annotated[Key, Field(description="The key; a new value replaces the old one.")]
_Category = Annotated[str, Field(max_length=200, description=_CATEGORY)]
_Limit = Annotated[int, Field(ge=1, le=100, description="Maximum number of memories.")]

MEMORY_EXAMPLE: dict[str, Any] = {
    "id": 12,
    "key": "favorite color",
    "value": "blue",
    "category": "general",
    "created_at": "2025-04-02T09:30:00.000000+00:00",
    "updated_at": "2025-04-02T09:30:00.000000+00:00",
    "metadata": {},
}


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
    query: QueryText
    category: Annotated[str | None, Field(max_length=200, description=_CATEGORY + " Without it, all.")] = None
    limit: _Limit = 5
    min_score: MinScore = None

    @property
    def categories(self) -> tuple[str, ...]:
        return () if self.category is None else (self.category,)


class SetPreferenceRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"value": "short answers"}]})

    value: Value


class LongTermRecord(BaseModel):
    """A value remembered under a key."""

    model_config = ConfigDict(json_schema_extra={"examples": [MEMORY_EXAMPLE]})

    id: int = Field(description="The id of the memory, which is also valid on the memory routes.")
    key: str | None = Field(description="Null for a memory that was stored without a key.")
    value: Annotated[str, OF_MEMORY] = Field(description="The stored value, redacted by the privacy rules.")
    category: str
    created_at: str = Field(description="ISO-8601 in UTC with microseconds.")
    updated_at: str = Field(description="The time when the value was last set.")
    metadata: Annotated[dict[str, Any], OF_MEMORY]

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
    created: bool = Field(description="True if the key is new in its category.")


class PreferenceRecord(LongTermRecord):
    """A preference."""


class ForgetResponse(BaseModel):
    forgotten: bool = Field(description="True if a value existed.")


class RecallResponse(BaseModel):
    memories: list[str] = Field(description="Values as `key: value`, best first.", examples=[["favorite color: blue"]])
    relevance: RelevanceShare
    evidence: EvidenceOfAnswer
    degraded: list[str] = Field(
        description="Components of the search that could not run, as in `/search`; empty if all ran.", examples=[[]]
    )

    @classmethod
    def of(cls, found: LongTermMatches) -> RecallResponse:
        return cls(
            memories=[hit.text for hit in found.hits],
            relevance=found.relevance,
            evidence=found.evidence,
            degraded=list(found.degraded),
        )


class LongTermHit(LongTermRecord):
    score: HitScore
    similarity: float = Field(description="Cosine similarity between the query and the memory.")

    @classmethod
    def of_hit(cls, hit: LongTermMatch) -> LongTermHit:
        return cls.of(hit.memory, score=hit.score, similarity=round(hit.similarity, 6))


class RecallSearchResponse(BaseModel):
    memories: list[LongTermHit] = Field(description="Best first.")
    relevance: RelevanceShare
    evidence: EvidenceOfAnswer
    degraded: list[str] = Field(
        description="Components of the search that could not run, as in `/search`; empty if all ran.", examples=[[]]
    )

    @classmethod
    def of(cls, found: LongTermMatches) -> RecallSearchResponse:
        return cls(
            memories=[LongTermHit.of_hit(hit) for hit in found.hits],
            relevance=found.relevance,
            evidence=found.evidence,
            degraded=list(found.degraded),
        )


class PreferencePage(BaseModel):
    preferences: dict[str, str] = Field(
        description="Values by key, ordered by key.", examples=[{"tone": "short answers"}]
    )
    total: int = Field(description="The total number of items on all pages.")
    offset: int
    limit: int


PreferenceKey = Annotated[
    str,
    Path(min_length=1, max_length=MAX_KEY_CHARS, description="The key of the preference.", examples=["tone"]),
    Clean,
]


@routes.post(
    "/remember",
    summary="Remember a value",
    cost=CostClass.WRITE,
    sdk="long_term.remember",
    errors=[409],
)
def remember(
    body: RememberRequest, _: Writer, service: RunningService, request: Request, once: MakeOnce
) -> RememberResponse:
    """Store a value under a key, replacing the key's value in the category."""
    scope = agent_scope(request, body.agent_name)
    memory, created = service.tiers.long_term.remember(scope, body.key, body.value, body.category, once=once)
    return RememberResponse.of(memory, created=created)


@routes.post("/forget", summary="Delete a remembered value", cost=CostClass.WRITE, sdk="long_term.forget", errors=[409])
def forget(body: ForgetRequest, _: Writer, service: RunningService, request: Request) -> ForgetResponse:
    """Delete the value of a key in its category permanently, including its earlier values."""
    scope = agent_scope(request, body.agent_name)
    return ForgetResponse(forgotten=service.tiers.long_term.forget(scope, body.key, body.category))


@routes.post(
    "/recall",
    summary="Recall remembered values",
    cost=CostClass.SEARCH,
    access=SEARCHING,
    sdk="long_term.recall",
    idempotent=True,
)
def recall(body: RecallRequest, _: Reader, service: RunningService, request: Request) -> RecallResponse:
    """Find the remembered values that best match a query, as texts."""
    scope, limit = agent_scope(request, body.agent_name), result_limit(request, body.limit)
    return RecallResponse.of(_found(body, scope, service, limit))


@routes.post(
    "/recall/search",
    summary="Search remembered values",
    cost=CostClass.SEARCH,
    access=SEARCHING,
    sdk="long_term.search",
    idempotent=True,
)
def search_long_term(body: RecallRequest, _: Reader, service: RunningService, request: Request) -> RecallSearchResponse:
    """Search like `/recall`, and return keys, categories and scores."""
    scope, limit = agent_scope(request, body.agent_name), result_limit(request, body.limit)
    return RecallSearchResponse.of(_found(body, scope, service, limit))


def _found(body: RecallRequest, scope: Scope, service: Service, limit: int) -> LongTermMatches:
    return service.tiers.long_term.search(
        scope, body.query, categories=body.categories, limit=limit, min_score=body.min_score
    )


@routes.get(
    "/preferences/{agent_name}",
    summary="List preferences",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="preferences.list",
)
def list_preferences(
    scope: AgentReader,
    service: RunningService,
    offset: Annotated[int, Query(ge=0, le=MAX_ID, description="Number of preferences to skip.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of preferences.")] = 100,
) -> PreferencePage:
    """List the preferences of an agent's user."""
    found, total = service.tiers.long_term.preferences(scope, offset=offset, limit=limit)
    values = {one.key: one.value for one in found if one.key is not None}
    return PreferencePage(preferences=values, total=total, offset=offset, limit=limit)


@routes.get(
    "/preferences/{agent_name}/{key}",
    summary="Get a preference",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="preferences.get",
    errors=[404],
)
def get_preference(key: PreferenceKey, scope: AgentReader, service: RunningService) -> PreferenceRecord:
    """Get a preference by its key."""
    return PreferenceRecord.of(service.tiers.long_term.preference(scope, key))


@routes.put(
    "/preferences/{agent_name}/{key}",
    summary="Set a preference",
    cost=CostClass.WRITE,
    sdk="preferences.set",
    errors=[409],
)
def set_preference(
    key: PreferenceKey, body: SetPreferenceRequest, scope: AgentWriter, service: RunningService
) -> PreferenceRecord:
    """Create or replace the preference with this key."""
    memory, _created = service.tiers.long_term.remember(scope, key, body.value, PREFERENCE)
    return PreferenceRecord.of(memory)


@routes.delete(
    "/preferences/{agent_name}/{key}",
    summary="Delete a preference",
    cost=CostClass.WRITE,
    sdk="preferences.forget",
    errors=[404, 409],
)
def forget_preference(key: PreferenceKey, scope: AgentWriter, service: RunningService) -> ForgetResponse:
    """Delete a preference permanently."""
    service.tiers.long_term.forget_preference(scope, key)
    return ForgetResponse(forgotten=True)
