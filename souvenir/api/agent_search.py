"""Search over an agent's messages and memories in one ranking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.fields import (
    EndMoment,
    EvidenceOfAnswer,
    HitScore,
    MinScore,
    Moment,
    RelevanceShare,
    SessionId,
    Text,
    UserName,
)
from souvenir.api.message_search import FoundMessage, search_limit
from souvenir.api.parameters import AgentReader
from souvenir.api.search import AUTO_INTENT, REFERENCE_DATE, SearchHit
from souvenir.api.verification import (
    AnswerQuote,
    AnswerReason,
    DeadlineMs,
    OptionalAnswered,
    Verify,
    verdict_fields,
)
from souvenir.conversations.agent_search import AgentQuery, AgentSearchResult
from souvenir.conversations.message_search import MessageHit
from souvenir.conversations.verification import Verdict, passages_of
from souvenir.core.concurrency import answer_due
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Hit, MessageRole, RecordKind, Scope, SearchStrategy
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import SEARCHING, RunningService, result_limit
from souvenir.server.routing import Routes
from souvenir.server.service import Service

routes = Routes("agents")


STRATEGY = (
    "`auto`: by meaning, words and the time named in the query; `semantic`: by meaning only; `keyword`: by words "
    "only; `concept`: by the concepts named in the query, most and rarest matches first; `time`: within the time "
    "named in the query, or from `since` to `until`: ranked if the query contains more than a time, else newest "
    "first."
)


class AgentSearchRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "What is my favourite colour?", "exclude_session_id": "2025-04-02"}]}
    )

    query: Annotated[Text, Field(description="The search query.")]
    limit: Annotated[
        int | None,
        Field(
            ge=1,
            description="Maximum number of results: DEFAULT_SEARCH_LIMIT (5) by default, at "
            "most MAX_SEARCH_LIMIT (20).",
        ),
    ] = None
    kinds: Annotated[
        list[RecordKind], Field(min_length=1, max_length=len(RecordKind), description="Kinds to search.")
    ] = list(RecordKind)
    since: Annotated[
        Moment | None,
        Field(description="Earliest `created_at` of messages, `document_at` or `created_at` of memories."),
    ] = None
    until: Annotated[EndMoment | None, Field(description="Latest time; a date alone includes that whole day.")] = None
    session_id: Annotated[SessionId | None, Field(description="Only messages of this session.")] = None
    exclude_session_id: Annotated[
        SessionId | None, Field(description="Exclude messages of this session, such as the active one.")
    ] = None
    user: Annotated[UserName | None, Field(description="Only messages of this user.")] = None
    role: Annotated[MessageRole | None, Field(description="Only messages of this role.")] = None
    strategy: Annotated[SearchStrategy, Field(description=STRATEGY)] = SearchStrategy.AUTO
    auto_intent: bool = Field(default=True, description=AUTO_INTENT)
    reference_date: Annotated[Moment | None, Field(description=REFERENCE_DATE)] = None
    min_score: MinScore = None
    verify: Verify = False
    deadline_ms: DeadlineMs = None

    def query_of(self, limit: int) -> AgentQuery:
        return AgentQuery(
            self.query,
            limit,
            kinds=frozenset(self.kinds),
            since=self.since,
            until=self.until,
            session_id=self.session_id,
            exclude_session_id=self.exclude_session_id,
            user=self.user,
            role=self.role,
            auto_intent=self.auto_intent,
            now=self.reference_date,
            strategy=self.strategy,
            min_score=self.min_score,
        )


class AgentSearchItem(BaseModel):
    """A message or a memory, in the field named by `kind`; the other field is null."""

    rank: int = Field(description="The rank; 1 is the best.")
    kind: RecordKind
    score: Annotated[
        HitScore,
        Field(
            description="The probability that this result answers the query, in [0, 1]. With `concept`, instead the "
            "rarity of the named concepts that it mentions, as a share; with `time` and nothing else to rank by, the "
            "recency, which halves every 30 days. It never exceeds that of the result before it."
        ),
    ]
    concepts: list[str] = Field(
        description="The concepts of the query that it mentions.", examples=[["favourite colour"]]
    )
    message: FoundMessage | None
    memory: SearchHit | None


class AgentSearchResponse(BaseModel):
    query: str
    results: list[AgentSearchItem] = Field(description="Best first.")
    count: int
    strategy: SearchStrategy = Field(description="The requested strategy.")
    searched_by: list[SearchStrategy] = Field(
        description="The strategy in effect, without components that could not run."
    )
    concepts: list[str] = Field(
        description="The concepts of the agent that the query names.", examples=[["favourite colour"]]
    )
    relevance: RelevanceShare
    evidence: EvidenceOfAnswer
    degraded: list[str] = Field(
        description="Components of the search that could not run, or not in time, as in `/search`; empty if all ran.",
        examples=[[]],
    )
    answered: OptionalAnswered = None
    answer_quote: AnswerQuote = None
    answer_reason: AnswerReason = None

    @classmethod
    def of(cls, query: AgentQuery, found: AgentSearchResult, verdict: Verdict | None) -> AgentSearchResponse:
        items = [_item(rank, hit, concepts, found) for rank, (hit, concepts) in enumerate(found.with_concepts, 1)]
        return cls(
            query=query.text,
            results=items,
            count=len(items),
            strategy=query.strategy,
            searched_by=list(found.by),
            concepts=list(found.named),
            relevance=found.relevance,
            evidence=found.evidence,
            degraded=list(found.degraded),
            **(verdict_fields(verdict) if verdict else {}),
        )


@routes.post(
    "/agents/{agent_name}/search",
    summary="Search an agent's messages and memories",
    cost=CostClass.SEARCH,
    access=SEARCHING,
    sdk="agents.search",
    idempotent=True,
    errors=[404],
)
def search_agent(
    body: AgentSearchRequest, scope: AgentReader, service: RunningService, request: Request
) -> AgentSearchResponse:
    """Find the messages and memories of an agent that best match a query, in one ranking."""
    query = body.query_of(result_limit(request, search_limit(service.settings, body.limit)))
    with answer_due(body.deadline_ms):
        found = service.agent_search.search(scope, query)
        return AgentSearchResponse.of(query, found, _verdict(body, scope, service, found) if body.verify else None)


def _verdict(body: AgentSearchRequest, scope: Scope, service: Service, found: AgentSearchResult) -> Verdict:
    return service.verification.read(
        scope,
        body.query,
        passages_of(found.hits),
        degraded=found.degraded,
        asked_at=body.reference_date,
    )


def _item(rank: int, hit: MessageHit | Hit, concepts: Sequence[str], found: AgentSearchResult) -> AgentSearchItem:
    is_message = isinstance(hit, MessageHit)
    return AgentSearchItem(
        rank=rank,
        kind=RecordKind.MESSAGE if is_message else RecordKind.MEMORY,
        score=hit.score,
        concepts=list(concepts),
        message=FoundMessage.of_hit(hit) if isinstance(hit, MessageHit) else None,
        memory=SearchHit.of_hit(hit, utc_now(), embedded=found.embedded) if isinstance(hit, Hit) else None,
    )
