"""Searching on the routes of Locrits, each of which is an agent: the search of agents in the words of that wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.agent_search import STRATEGY
from souvenir.api.agents import AgentName
from souvenir.api.caller import Reader, RunningService, access_of, locrit_scope, result_limit
from souvenir.api.conversation_fields import SessionId, UserName
from souvenir.api.errors import error_responses
from souvenir.api.fields import EndMoment, Moment, Text, wire_time
from souvenir.api.json_route import router
from souvenir.conversation.agent_search import AgentFinds, AgentQuery, AnyHit
from souvenir.conversation.messages import MessageHit
from souvenir.types import MessageRole, RecordKind, SearchStrategy

MAX_RESULTS = 50

routes = router("locrits")

Asked = Annotated[Text, Query(description="What is looked for.")]
Limit = Annotated[int, Query(ge=1, le=MAX_RESULTS, description="Results wanted; 5 at most with quick access.")]
Strategy = Annotated[SearchStrategy, Query(description=STRATEGY)]

_AT = "2025-04-02T09:30:00.000000+00:00"
_UID = "0f8f5b0a-64a3-4c88-9d3b-0a6a5a0b8c11"
_RESULT: dict[str, Any] = {
    "id": _UID,
    "kind": "message",
    "role": "user",
    "content": "My name is Alice.",
    "timestamp": _AT,
    "session_id": "web_alice_pixie",
    "user": "alice",
    "score": 1.64,
    "similarity_score": 0.71,
    "concepts": ["Alice"],
}
_EXAMPLE: dict[str, Any] = {
    "query": "Who is Alice?",
    "strategy": "auto",
    "searched_by": ["semantic", "keyword"],
    "concepts": ["Alice"],
    "results": [_RESULT],
    "total": 1,
    "access_level": "full",
}
_AI_EXAMPLE: dict[str, Any] = {
    "query": "Who is Alice?",
    "strategy": "auto",
    "results": [
        {
            "memory_id": _UID,
            "content": "My name is Alice.",
            "relevance_score": 1.64,
            "similarity_score": 0.71,
            "storage_type": "message",
            "importance": None,
            "created_at": _AT,
            "tags": [],
            "reasoning": "Found by semantic and keyword; mentions Alice",
        }
    ],
    "total": 1,
}


class LocritFilters:
    """Which messages and memories a search looks at."""

    def __init__(
        self,
        since: Annotated[Moment | None, Query(description="Said or occurred then or later.")] = None,
        until: Annotated[EndMoment | None, Query(description="Or earlier; a date alone includes that day.")] = None,
        user: Annotated[UserName | None, Query(description="Messages of this user; no memories.")] = None,
        session: Annotated[SessionId | None, Query(description="Messages of this session; no memories.")] = None,
    ) -> None:
        self.since, self.until, self.user, self.session = since, until, user, session

    def query_of(self, text: str, limit: int, strategy: SearchStrategy) -> AgentQuery:
        said_only = self.user is not None or self.session is not None
        return AgentQuery(
            text,
            limit,
            kinds=frozenset({RecordKind.MESSAGE}) if said_only else frozenset(RecordKind),
            since=self.since,
            until=self.until,
            session_id=self.session,
            user=self.user,
            strategy=strategy,
        )


class LocritResult(BaseModel):
    """A message or a memory that was found; a memory has no role, session and user."""

    id: str
    kind: RecordKind
    role: MessageRole | None
    content: str
    timestamp: str = Field(description="When it was said, or occurred.")
    session_id: str | None
    user: str | None
    score: float = Field(description="What ranks it; comparable within a kind.")
    similarity_score: float | None = Field(description="The cosine between query and text, where it is known.")
    concepts: list[str] = Field(description="Those of the query's concepts that it mentions.")

    @classmethod
    def of(cls, hit: AnyHit, concepts: tuple[str, ...], found: AgentFinds) -> LocritResult:
        said = hit.message if isinstance(hit, MessageHit) else None
        return cls(
            id=_id(hit),
            kind=RecordKind.MEMORY if said is None else RecordKind.MESSAGE,
            role=None if said is None else said.role,
            content=_content(hit),
            timestamp=_time(hit),
            session_id=None if said is None else said.session_id,
            user=None if said is None else said.user,
            score=round(hit.score, 6),
            similarity_score=_similarity(hit, found),
            concepts=list(concepts),
        )


class LocritSearchResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    query: str
    strategy: SearchStrategy = Field(description="That was asked for.")
    searched_by: list[SearchStrategy] = Field(description="What it came to, without what could not run.")
    concepts: list[str] = Field(description="Those of the Locrit's concepts that the query names.")
    results: list[LocritResult] = Field(description="Best first.")
    total: int
    access_level: Literal["full", "quick"]


class LocritAiResult(BaseModel):
    memory_id: str = Field(description="Of a message or a memory.")
    content: str
    relevance_score: float = Field(description="What ranks it; comparable within a kind.")
    similarity_score: float | None = Field(description="The cosine between query and text, where it is known.")
    storage_type: RecordKind
    importance: float | None = Field(description="Of a memory that has one in its metadata.")
    created_at: str = Field(description="When it was said, or occurred.")
    tags: list[str]
    reasoning: str = Field(description="What it was found by, and which concepts of the query it mentions.")

    @classmethod
    def of(cls, hit: AnyHit, concepts: tuple[str, ...], found: AgentFinds) -> LocritAiResult:
        memory = None if isinstance(hit, MessageHit) else hit.memory
        importance = None if memory is None else memory.metadata.get("importance")
        mentions = f"; mentions {', '.join(concepts)}" if concepts else ""
        return cls(
            memory_id=_id(hit),
            content=_content(hit),
            relevance_score=round(hit.score, 6),
            similarity_score=_similarity(hit, found),
            storage_type=RecordKind.MESSAGE if memory is None else RecordKind.MEMORY,
            importance=importance if isinstance(importance, int | float) else None,
            created_at=_time(hit),
            tags=[] if memory is None else list(memory.tags),
            reasoning=f"Found by {' and '.join(found.by)}{mentions}",
        )


class LocritAiSearchResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_AI_EXAMPLE]})

    query: str
    strategy: SearchStrategy
    results: list[LocritAiResult] = Field(description="Best first.")
    total: int


@routes.get(
    "/api/locrits/{agent_name}/memory/search", summary="Search a Locrit's memory", responses=error_responses(404)
)
def search_locrit(
    agent_name: AgentName,
    q: Asked,
    chosen: Annotated[LocritFilters, Depends()],
    _: Reader,
    service: RunningService,
    request: Request,
    limit: Limit = 10,
    strategy: Strategy = SearchStrategy.AUTO,
) -> LocritSearchResponse:
    """Find what answers a query best in what was said and what is remembered, by one of the strategies."""
    scope = locrit_scope(request, agent_name)
    found = service.agent_search.search(scope, chosen.query_of(q, result_limit(request, limit), strategy))
    full = access_of(request).full_memory
    return _response(q, strategy, found, "full" if full else "quick")


@routes.get(
    "/api/v1/locrits/{agent_name}/memory/ai-search",
    summary="Search a Locrit's memory (v1)",
    responses=error_responses(404),
)
def ai_search_locrit(
    agent_name: AgentName,
    q: Asked,
    _: Reader,
    service: RunningService,
    request: Request,
    limit: Limit = 10,
    strategy: Strategy = SearchStrategy.AUTO,
) -> LocritAiSearchResponse:
    """Find the same, in the words of the first version of that wire."""
    scope = locrit_scope(request, agent_name)
    query = AgentQuery(q, result_limit(request, limit), strategy=strategy)
    found = service.agent_search.search(scope, query)
    results = [LocritAiResult.of(hit, concepts, found) for hit, concepts in found.with_concepts]
    return LocritAiSearchResponse(query=q, strategy=strategy, results=results, total=len(results))


def _response(
    query: str, strategy: SearchStrategy, found: AgentFinds, access_level: Literal["full", "quick"]
) -> LocritSearchResponse:
    results = [LocritResult.of(hit, concepts, found) for hit, concepts in found.with_concepts]
    return LocritSearchResponse(
        query=query,
        strategy=strategy,
        searched_by=list(found.by),
        concepts=list(found.named),
        results=results,
        total=len(results),
        access_level=access_level,
    )


def _id(hit: AnyHit) -> str:
    return hit.message.uid if isinstance(hit, MessageHit) else str(hit.memory.id)


def _content(hit: AnyHit) -> str:
    return hit.message.content if isinstance(hit, MessageHit) else hit.memory.text


def _time(hit: AnyHit) -> str:
    return wire_time(hit.message.created_at if isinstance(hit, MessageHit) else hit.memory.occurred_at)


def _similarity(hit: AnyHit, found: AgentFinds) -> float | None:
    known = hit.similarity if isinstance(hit, MessageHit) else hit.parts.similarity if found.embedded else None
    return None if known is None else round(known, 6)
