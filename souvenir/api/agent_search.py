"""One search of all that an agent has: its messages and its memories in one ranking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.agents import AgentName
from souvenir.api.caller import Reader, RunningService, agent_scope, result_limit
from souvenir.api.conversation_fields import SessionId, UserName
from souvenir.api.errors import error_responses
from souvenir.api.fields import EndMoment, Moment, Text
from souvenir.api.json_route import router
from souvenir.api.message_models import FOUND_EXAMPLE, FoundMessage
from souvenir.api.messages import search_limit
from souvenir.api.relevance_fields import EvidenceOfAnswer, RelevanceShare
from souvenir.api.search_models import ANSWER_EXAMPLE, AUTO_INTENT, HIT_EXAMPLE, REFERENCE_DATE, SearchHit
from souvenir.conversation.agent_search import AgentFinds, AgentQuery
from souvenir.conversation.messages import MessageHit
from souvenir.moments import utc_now
from souvenir.types import Hit, MessageRole, RecordKind, SearchStrategy

routes = router("agents")

_EXAMPLE: dict[str, Any] = {
    "query": "What is my favourite colour?",
    "results": [
        {"rank": 1, "kind": "message", "score": 1.64, "concepts": [], "message": FOUND_EXAMPLE, "memory": None},
        {
            "rank": 2,
            "kind": "memory",
            "score": 1.31,
            "concepts": ["favourite colour"],
            "message": None,
            "memory": {**HIT_EXAMPLE, "similarity": 0.41},
        },
    ],
    "count": 2,
    "strategy": "auto",
    "searched_by": ["semantic", "keyword"],
    "concepts": ["favourite colour"],
    **ANSWER_EXAMPLE,
}


STRATEGY = (
    "`auto`: by meaning and words, and by the time that the query names; `semantic`: by meaning alone; `keyword`: by "
    "words alone; `concept`: what mentions the concepts that the query names, the most and the rarest first; `time`: "
    "what is of the time that the query names, or of `since` to `until`: ranked if the query says more than a time, "
    "else the latest first."
)


class AgentSearchRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "What is my favourite colour?", "exclude_session_id": "2025-04-02"}]}
    )

    query: Annotated[Text, Field(description="What is looked for.")]
    limit: Annotated[
        int | None, Field(ge=1, description="Results wanted: DEFAULT_SEARCH_LIMIT (5), at most MAX_SEARCH_LIMIT (20).")
    ] = None
    kinds: Annotated[
        list[RecordKind], Field(min_length=1, max_length=len(RecordKind), description="Kinds to search.")
    ] = list(RecordKind)
    since: Annotated[
        Moment | None,
        Field(description="Earliest `created_at` of messages, `document_at` or `created_at` of memories."),
    ] = None
    until: Annotated[EndMoment | None, Field(description="Latest; a date alone includes that whole day.")] = None
    session_id: Annotated[SessionId | None, Field(description="Messages of this session only.")] = None
    exclude_session_id: Annotated[
        SessionId | None, Field(description="No messages of this session, such as the running one.")
    ] = None
    user: Annotated[UserName | None, Field(description="Messages of this user only.")] = None
    role: Annotated[MessageRole | None, Field(description="Messages said by these only.")] = None
    strategy: Annotated[SearchStrategy, Field(description=STRATEGY)] = SearchStrategy.AUTO
    auto_intent: bool = Field(default=True, description=AUTO_INTENT)
    reference_date: Annotated[Moment | None, Field(description=REFERENCE_DATE)] = None

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
        )


class AgentSearchItem(BaseModel):
    """A message or a memory: the field that its kind names holds it, and the other one is null."""

    rank: int = Field(description="1 is the best.")
    kind: RecordKind
    score: float = Field(
        description="Comparable within a kind; between kinds, `rank` says more. By `concept` how rare the mentioned "
        "concepts are, 1 at most each; of what is listed by `time` half as much every 30 days."
    )
    concepts: list[str] = Field(description="Those of the query's concepts that it mentions.")
    message: FoundMessage | None
    memory: SearchHit | None


class AgentSearchResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    query: str
    results: list[AgentSearchItem] = Field(description="Best first.")
    count: int
    strategy: SearchStrategy = Field(description="That was asked for.")
    searched_by: list[SearchStrategy] = Field(description="What it came to, without what could not run.")
    concepts: list[str] = Field(description="Those of the agent's concepts that the query names.")
    relevance: RelevanceShare
    evidence: EvidenceOfAnswer
    degraded: list[str] = Field(description="What of the searches could not run, as in `/search`; empty if all did.")

    @classmethod
    def of(cls, query: AgentQuery, found: AgentFinds) -> AgentSearchResponse:
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
        )


@routes.post("/agents/{agent_name}/search", summary="Search all that an agent has", responses=error_responses(404))
def search_agent(
    agent_name: AgentName, body: AgentSearchRequest, _: Reader, service: RunningService, request: Request
) -> AgentSearchResponse:
    """Find what answers a query best among an agent's messages and memories, in one ranking."""
    query = body.query_of(result_limit(request, search_limit(service.settings, body.limit)))
    return AgentSearchResponse.of(query, service.agent_search.search(agent_scope(request, agent_name), query))


def _item(rank: int, hit: MessageHit | Hit, concepts: Sequence[str], found: AgentFinds) -> AgentSearchItem:
    is_message = isinstance(hit, MessageHit)
    return AgentSearchItem(
        rank=rank,
        kind=RecordKind.MESSAGE if is_message else RecordKind.MEMORY,
        score=round(hit.score, 6),
        concepts=list(concepts),
        message=FoundMessage.of_hit(hit) if isinstance(hit, MessageHit) else None,
        memory=SearchHit.of_hit(hit, utc_now(), embedded=found.embedded) if isinstance(hit, Hit) else None,
    )
