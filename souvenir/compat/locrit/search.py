"""Search on the routes of Locrits, which are agents: the search of agents in the format of that API."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Depends, Query, Request
from pydantic import BaseModel, Field

from souvenir.api.agent_search import STRATEGY
from souvenir.api.fields import EndMoment, HitScore, Moment, SessionId, Text, UserName, wire_time
from souvenir.compat.locrit.parameters import LocritReader
from souvenir.conversations.agent_search import AgentQuery, AgentSearchResult, AnyHit
from souvenir.conversations.message_search import MessageHit
from souvenir.core.types import MessageRole, RecordKind, SearchStrategy
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import SEARCHING, RunningService, access_of, result_limit
from souvenir.server.routing import Routes

MAX_RESULTS = 50

routes = Routes("locrits")

Asked = Annotated[Text, Query(description="The search query.", examples=["boat"])]
Limit = Annotated[int, Query(ge=1, le=MAX_RESULTS, description="Maximum number of results; 5 with quick access.")]
Strategy = Annotated[SearchStrategy, Query(description=STRATEGY)]


class LocritFilters:
    """Which messages and memories a search looks at."""

    def __init__(
        self,
        since: Annotated[Moment | None, Query(description="Only messages and memories from this time on.")] = None,
        until: Annotated[
            EndMoment | None,
            Query(description="Only messages and memories until this time; a date alone includes that day."),
        ] = None,
        user: Annotated[UserName | None, Query(description="Only messages of this user; excludes memories.")] = None,
        session: Annotated[
            SessionId | None, Query(description="Only messages of this session; excludes memories.")
        ] = None,
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
    """A message or memory; a memory has no role, session and user."""

    id: str = Field(examples=["0f8f5b0a-64a3-4c88-9d3b-0a6a5a0b8c11"])
    kind: RecordKind
    role: MessageRole | None
    content: str
    timestamp: str = Field(
        description="The time of the message or of the memory's content.", examples=["2025-04-02T09:30:00.000000+00:00"]
    )
    session_id: str | None
    user: str | None
    score: HitScore
    similarity_score: float | None = Field(description="Cosine similarity between query and text, if known.")
    concepts: list[str] = Field(description="The concepts of the query that it mentions.", examples=[["Alice"]])

    @classmethod
    def of(cls, hit: AnyHit, concepts: tuple[str, ...], found: AgentSearchResult) -> LocritResult:
        said = hit.message if isinstance(hit, MessageHit) else None
        return cls(
            id=_id(hit),
            kind=RecordKind.MEMORY if said is None else RecordKind.MESSAGE,
            role=None if said is None else said.role,
            content=_content(hit),
            timestamp=_time(hit),
            session_id=None if said is None else said.session_id,
            user=None if said is None else said.user,
            score=hit.score,
            similarity_score=_similarity(hit, found),
            concepts=list(concepts),
        )


class LocritSearchResponse(BaseModel):
    query: str
    strategy: SearchStrategy = Field(description="The requested strategy.")
    searched_by: list[SearchStrategy] = Field(
        description="The strategy in effect, without components that could not run."
    )
    concepts: list[str] = Field(description="The concepts of the Locrit that the query names.", examples=[["Alice"]])
    results: list[LocritResult] = Field(description="Best first.")
    total: int
    access_level: Literal["full", "quick"]


class LocritAiResult(BaseModel):
    memory_id: str = Field(
        description="The id of the message or memory.", examples=["0f8f5b0a-64a3-4c88-9d3b-0a6a5a0b8c11"]
    )
    content: str
    relevance_score: HitScore
    similarity_score: float | None = Field(description="Cosine similarity between query and text, if known.")
    storage_type: RecordKind
    importance: float | None = Field(description="Set for a memory that has one in its metadata.")
    created_at: str = Field(description="The time of the message or of the memory's content.")
    tags: list[str] = Field(examples=[["sailing"]])
    reasoning: str = Field(
        description="The strategy that found it, and the concepts of the query that it mentions.",
        examples=["Found by semantic and keyword; mentions Alice"],
    )

    @classmethod
    def of(cls, hit: AnyHit, concepts: tuple[str, ...], found: AgentSearchResult) -> LocritAiResult:
        memory = None if isinstance(hit, MessageHit) else hit.memory
        importance = None if memory is None else memory.metadata.get("importance")
        mentions = f"; mentions {', '.join(concepts)}" if concepts else ""
        return cls(
            memory_id=_id(hit),
            content=_content(hit),
            relevance_score=hit.score,
            similarity_score=_similarity(hit, found),
            storage_type=RecordKind.MESSAGE if memory is None else RecordKind.MEMORY,
            importance=importance if isinstance(importance, int | float) else None,
            created_at=_time(hit),
            tags=[] if memory is None else list(memory.tags),
            reasoning=f"Found by {' and '.join(found.by)}{mentions}",
        )


class LocritAiSearchResponse(BaseModel):
    query: str
    strategy: SearchStrategy
    results: list[LocritAiResult] = Field(description="Best first.")
    total: int


@routes.get(
    "/api/locrits/{agent_name}/memory/search",
    summary="Search a Locrit's memory",
    cost=CostClass.SEARCH,
    access=SEARCHING,
    sdk="locrits.search",
    errors=[404],
)
def search_locrit(
    q: Asked,
    chosen: Annotated[LocritFilters, Depends()],
    scope: LocritReader,
    service: RunningService,
    request: Request,
    limit: Limit = 10,
    strategy: Strategy = SearchStrategy.AUTO,
) -> LocritSearchResponse:
    """Find the messages and memories that best match a query, using one of the search strategies."""
    found = service.agent_search.search(scope, chosen.query_of(q, result_limit(request, limit), strategy))
    full = access_of(request).full_memory
    return _response(q, strategy, found, "full" if full else "quick")


@routes.get(
    "/api/v1/locrits/{agent_name}/memory/ai-search",
    summary="Search a Locrit's memory (v1)",
    cost=CostClass.SEARCH,
    access=SEARCHING,
    sdk="locrits.ai_search",
    errors=[404],
)
def ai_search_locrit(
    q: Asked,
    scope: LocritReader,
    service: RunningService,
    request: Request,
    limit: Limit = 10,
    strategy: Strategy = SearchStrategy.AUTO,
) -> LocritAiSearchResponse:
    """Search like the current route, with the response format of version 1."""
    query = AgentQuery(q, result_limit(request, limit), strategy=strategy)
    found = service.agent_search.search(scope, query)
    results = [LocritAiResult.of(hit, concepts, found) for hit, concepts in found.with_concepts]
    return LocritAiSearchResponse(query=q, strategy=strategy, results=results, total=len(results))


def _response(
    query: str, strategy: SearchStrategy, found: AgentSearchResult, access_level: Literal["full", "quick"]
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


def _similarity(hit: AnyHit, found: AgentSearchResult) -> float | None:
    known = hit.similarity if isinstance(hit, MessageHit) else hit.parts.similarity if found.embedded else None
    return None if known is None else round(known, 6)
