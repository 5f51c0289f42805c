"""Search over messages, and the explanation of a search for admins."""

from __future__ import annotations

from typing import Annotated, Self

from fastapi import Request, Response
from pydantic import BaseModel, ConfigDict, Field, RootModel

from souvenir.api.fields import (
    RELEVANCE_HEADERS,
    AsOf,
    EndMoment,
    EvidenceOfAnswer,
    HitScore,
    MinScore,
    Moment,
    RelevanceShare,
    SessionId,
    Text,
    UnheardShare,
    UserName,
    set_relevance,
)
from souvenir.api.messages import MessageRecord, message_fields
from souvenir.api.parameters import AgentName, described_headers
from souvenir.api.search_explanations import Explanation, TimeReading
from souvenir.api.verification import VERDICT_HEADERS, DeadlineMs, Verify, set_verdict
from souvenir.conversations.message_search import MessageHit, MessageQuery, MessageSearch
from souvenir.conversations.verification import Verdict, passages_of
from souvenir.core.concurrency import answer_due
from souvenir.core.errors import InvalidRequest
from souvenir.core.settings import Settings
from souvenir.core.types import Fusion, MessageRole, Scope
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import SEARCHING, Admin, Reader, RunningService, agent_scope, result_limit
from souvenir.server.routing import Routes
from souvenir.server.service import Service

routes = Routes("messages")


class SearchMessagesRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"agent_name": "my_agent", "query": "What is my favourite colour?"}]}
    )

    agent_name: AgentName
    query: Annotated[Text, Field(description="The search query.")]
    limit: Annotated[
        int | None,
        Field(
            ge=1,
            description="Maximum number of messages: DEFAULT_SEARCH_LIMIT (5) by default, at "
            "most MAX_SEARCH_LIMIT (20).",
        ),
    ] = None
    session_id: Annotated[SessionId | None, Field(description="Only messages of this session.")] = None
    user: Annotated[UserName | None, Field(description="Only those of this user.")] = None
    role: Annotated[MessageRole | None, Field(description="Only messages of this role.")] = None
    since: Annotated[Moment | None, Field(description="Earliest `created_at`.")] = None
    until: Annotated[EndMoment | None, Field(description="Latest time; a date alone includes that whole day.")] = None
    exclude_session_id: Annotated[
        SessionId | None, Field(description="Exclude messages of this session, such as the active one.")
    ] = None
    auto_intent: Annotated[
        bool,
        Field(
            description="Interpret times in the query: results of that time score higher. A query for when "
            "something was said sets `since` and `until` if neither is given; a query for the latest "
            "weighs recency."
        ),
    ] = True
    reference_date: Annotated[
        Moment | None, Field(description="The reference time for times in the query; now by default.")
    ] = None
    as_of: Annotated[
        AsOf | None,
        Field(
            description="Search the messages of this time: ISO-8601, UTC without an offset. It is also the reference "
            "time unless `reference_date` is set."
        ),
    ] = None
    min_score: MinScore = None
    role_weight: Annotated[
        float | None,
        Field(
            ge=-1.0,
            le=1.0,
            description="Added to the score of user messages in a chat with an assistant; negative values prefer "
            "the assistant's messages. Default: 0.4, or 0 if the query asks for the assistant's words "
            "or a summary.",
        ),
    ] = None

    def query_of(self, limit: int, *, explain: bool = False) -> MessageQuery:
        return MessageQuery(
            self.query,
            limit,
            session_id=self.session_id,
            user=self.user,
            role=self.role,
            since=self.since,
            until=self.until,
            exclude_session_id=self.exclude_session_id,
            auto_intent=self.auto_intent,
            now=self.reference_date,
            min_score=self.min_score,
            role_weight=self.role_weight,
            explain=explain,
        )


class VerifiableMessageSearch(SearchMessagesRequest):
    """A search whose messages a reader may check."""

    verify: Verify = False
    deadline_ms: DeadlineMs = None


class FoundMessage(MessageRecord):
    """A message found by a search."""

    score: HitScore

    @classmethod
    def of_hit(cls, hit: MessageHit) -> Self:
        similarity = None if hit.similarity is None else round(hit.similarity, 6)
        found = {**message_fields(hit.message), "similarity": similarity, "score": hit.score}
        return cls.model_validate(found)


class FoundMessages(RootModel[list[FoundMessage]]):
    """A page of a list."""


DEGRADED_HEADER = "X-Search-Degraded"


_SEARCHED = described_headers(
    (
        DEGRADED_HEADER,
        "Components of the search that could not run, or not within `deadline_ms`, separated by commas: an arm "
        "(`vector`, `lexical`), late interaction (`late`), the cross-encoder (`rerank`), or with `as_of` some of the "
        "texts that were different then (`past_texts`); absent if all ran.",
        "string",
    ),
    *RELEVANCE_HEADERS,
    *VERDICT_HEADERS,
)


@routes.post(
    "/messages/search",
    summary="Search messages",
    cost=CostClass.SEARCH,
    access=SEARCHING,
    sdk="messages.search",
    idempotent=True,
    errors=[404],
    responses=_SEARCHED,
)
def search_messages(
    body: VerifiableMessageSearch, _: Reader, service: RunningService, request: Request, response: Response
) -> FoundMessages:
    """Find the messages of an agent that best match a query, by meaning and by words."""
    query = body.query_of(result_limit(request, search_limit(service.settings, body.limit)))
    scope = agent_scope(request, body.agent_name)
    with answer_due(body.deadline_ms):
        found = service.conversations.search(scope, query, body.as_of)
        if body.verify:
            set_verdict(response, _verdict(body, scope, service, found))
    set_relevance(response, found.relevance, found.evidence)
    if found.degraded:
        response.headers[DEGRADED_HEADER] = ",".join(found.degraded)
    return FoundMessages([FoundMessage.of_hit(hit) for hit in found.hits])


def _verdict(body: VerifiableMessageSearch, scope: Scope, service: Service, found: MessageSearch) -> Verdict:
    return service.verification.read(
        scope,
        body.query,
        passages_of(found.hits),
        degraded=found.degraded,
        asked_at=body.reference_date or body.as_of,
    )


def search_limit(settings: Settings, asked: int | None) -> int:
    """Return the number of hits of a search.

    :raises InvalidRequest: If the limit exceeds the maximum.
    """
    if asked is None:
        return min(settings.default_search_limit, settings.max_search_limit)
    if asked > settings.max_search_limit:
        raise InvalidRequest(f"limit is at most {settings.max_search_limit} (MAX_SEARCH_LIMIT); ask for fewer")
    return asked


class ExplainedMessage(FoundMessage):
    explanation: Explanation

    @classmethod
    def of_hit(cls, hit: MessageHit) -> Self:
        fields = FoundMessage.of_hit(hit).model_dump()
        return cls.model_validate({**fields, "explanation": Explanation.of(hit.parts)})


class ExplainMessagesResponse(BaseModel):
    query: str
    results: list[ExplainedMessage] = Field(description="Best first.")
    count: int
    relevance: RelevanceShare
    evidence: EvidenceOfAnswer
    degraded: list[str] = Field(
        description="Components of the search that could not run, as in `/search`; empty if all ran.", examples=[[]]
    )
    fusion: str = Field(description="`sum` or `rrf`, from the setting SEARCH_FUSION.", examples=["sum"])
    candidates_considered: int
    relevance_signals: dict[str, float] = Field(
        description="The features of `relevance`; docs/retrieval.md describes each of them.",
        examples=[{"cosine": 0.71, "unheard": 0.0, "covered": 0.382}],
    )
    repairs: dict[str, str] = Field(
        description="Words of the query that occur in no text, and their corrections.",
        examples=[{"favuorite": "favourit"}],
    )
    unheard: UnheardShare
    time: TimeReading | None = Field(description="Null if the query names no time, or `auto_intent` is off.")

    @classmethod
    def of(cls, query: str, found: MessageSearch, fusion: Fusion) -> Self:
        hits = [ExplainedMessage.of_hit(hit) for hit in found.hits]
        return cls(
            query=query,
            results=hits,
            count=len(hits),
            relevance=found.relevance,
            evidence=found.evidence,
            degraded=list(found.degraded),
            fusion=fusion.value,
            candidates_considered=found.candidates_considered,
            relevance_signals={name: round(value, 6) for name, value in found.signals.items()},
            repairs=dict(found.repairs),
            unheard=found.unheard,
            time=None if found.time is None else TimeReading.of(found.time),
        )


@routes.post(
    "/messages/search/explain",
    summary="Explain a search of messages",
    cost=CostClass.SEARCH,
    sdk="messages.explain",
    idempotent=True,
    errors=[404],
)
def explain_messages(
    body: SearchMessagesRequest, _: Admin, service: RunningService, request: Request
) -> ExplainMessagesResponse:
    """Search like `/messages/search`, and show the parts of each score."""
    query = body.query_of(search_limit(service.settings, body.limit), explain=True)
    found = service.conversations.search(agent_scope(request, body.agent_name), query, body.as_of)
    return ExplainMessagesResponse.of(body.query, found, service.settings.search_fusion)
