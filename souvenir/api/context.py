"""The context for a query: memory blocks and the relevant messages and memories within a token budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from time import monotonic
from typing import Annotated, Any

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.blocks import MemoryBlock
from souvenir.api.fields import AsOf, EvidenceOfAnswer, MinScore, RelevanceShare, SessionId, Text, UserName
from souvenir.api.message_search import FoundMessage
from souvenir.api.parameters import AgentReader
from souvenir.api.search import SearchHit
from souvenir.api.verification import (
    MOST_DEADLINE_MS,
    AnswerQuote,
    AnswerReason,
    OptionalAnswered,
    Verify,
    verdict_fields,
)
from souvenir.conversations.context import DEFAULT_DEADLINE_S, DEFAULT_MAX_TOKENS, Context, ContextQuery
from souvenir.conversations.context_budget import MAX_LISTED, Dropped, DroppedHit, DropReason
from souvenir.conversations.context_shape import ContextShape, CourseIntent
from souvenir.conversations.context_text import ResultLines, shortened
from souvenir.conversations.message_search import MessageHit
from souvenir.conversations.verification import Verdict
from souvenir.core.text import recalled
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Memory, RecordKind
from souvenir.retrieval.recall import VECTOR
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import SEARCHING, RunningService, most_found
from souvenir.server.routing import Routes
from souvenir.store.messages.messages import Message

routes = Routes("context")

MIN_MAX_TOKENS, MOST_MAX_TOKENS = 64, 200_000
_TOKEN_EXAMPLE = "9f2c41d07be8a365"

DROPPED_CHARS = 200
"""Length of the texts of dropped results: enough to see what they are about."""


class ContextRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "What's my favorite color?"}]})

    query: Annotated[Text, Field(description="The question that the model will be asked.")]
    agent_name: str | None = Field(default=None, description="Accepted and ignored; the path names the agent.")
    session_id: Annotated[
        SessionId | None, Field(description="The active session, whose messages are excluded; it need not exist.")
    ] = None
    user: Annotated[UserName | None, Field(description="Only messages exchanged with this user.")] = None
    max_tokens: int = Field(
        default=DEFAULT_MAX_TOKENS,
        ge=MIN_MAX_TOKENS,
        le=MOST_MAX_TOKENS,
        description="Token budget of `text`, counted with the tokenizer of the embedding model.",
    )
    deadline_ms: int = Field(
        default=int(DEFAULT_DEADLINE_S * 1000),
        ge=1,
        le=MOST_DEADLINE_MS,
        description="Milliseconds after which the response is sent with the results found so far; with `verify` the "
        "reader has what the search leaves of them.",
    )
    exclude_topics: list[Annotated[str, StringConstraints(min_length=1, max_length=100)]] = Field(
        default=[],
        max_length=100,
        description="Sensitive topics to exclude, in addition to those that the agent hides.",
    )
    shape: ContextShape = Field(
        default=ContextShape.AUTO,
        description="`outline`: more messages with one short line each; `excerpts`: fewer with longer texts. `auto`: "
        "an outline if the query asks for an order, a timeline or a summary.",
    )
    min_score: MinScore = None
    explain: bool = Field(
        default=False,
        description="Also return `explain.lines`, where `text` shows each result, and `dropped.results`, what was "
        "found and left out.",
    )
    verify: Verify = False
    as_of: AsOf | None = Field(
        default=None,
        description="Build the context of this time: ISO-8601, UTC without an offset; a future time means now. "
        "Texts deleted since then are not included.",
    )

    def to_query(self) -> ContextQuery:
        return ContextQuery(
            self.query,
            session_id=self.session_id,
            user=self.user,
            max_tokens=self.max_tokens,
            deadline_s=self.deadline_ms / 1000,
            exclude_topics=tuple(self.exclude_topics),
            shape=self.shape,
            min_score=self.min_score,
            explain=self.explain,
            as_of=self.as_of,
        )


_MessageOf = Annotated[
    str | None,
    Field(description="The id of the message; null for a memory.", examples=["0f8f5b0a-64a3-4c88-9d3b-0a6a5a0b8c11"]),
]
_SessionOf = Annotated[
    str | None, Field(description="The session of the message; null for a memory.", examples=["2025-04-02"])
]
_MemoryOf = Annotated[int | None, Field(description="The id of the memory; null for a message.", examples=[None])]


def _named(record: Memory | Message) -> dict[str, Any]:
    """The fields that name a result."""
    if isinstance(record, Memory):
        return {"kind": RecordKind.MEMORY, "message_id": None, "session_id": None, "memory_id": record.id}
    named = {"message_id": record.uid, "session_id": record.session_id}
    return {"kind": RecordKind.MESSAGE, **named, "memory_id": None}


class DroppedResult(BaseModel):
    """A message or memory that was found and is not in the text."""

    kind: RecordKind
    message_id: _MessageOf
    session_id: _SessionOf
    memory_id: _MemoryOf
    text: str = Field(description=f"Its beginning, at most {DROPPED_CHARS} characters.", examples=["I like blue."])
    score: float = Field(description="The probability that it answers the query.")
    reason: DropReason = Field(
        description="`budget`: it does not fit `max_tokens`; `relevance`: it hardly matches the query."
    )

    @classmethod
    def of(cls, dropped: DroppedHit) -> DroppedResult:
        hit = dropped.hit
        record, text = (
            (hit.message, hit.message.content) if isinstance(hit, MessageHit) else (hit.memory, hit.memory.text)
        )
        shown = shortened(text, DROPPED_CHARS)
        return cls(**_named(record), text=shown, score=hit.score, reason=dropped.reason)


class DroppedCounts(BaseModel):
    """The number of results that are not in the text because they do not fit the budget."""

    messages: int
    memories: int
    results: list[DroppedResult] = Field(
        default=[],
        description=f"With `explain`: these and then those that hardly match the query, each best first and at most "
        f"{MAX_LISTED} together. Results with hidden topics are not listed.",
    )

    @classmethod
    def of(cls, dropped: Dropped) -> DroppedCounts:
        counts: dict[str, Any] = {"messages": dropped.messages, "memories": dropped.memories}
        if dropped.listed is None:
            return cls(**counts)
        return cls(**counts, results=[DroppedResult.of(one) for one in dropped.listed])


class ContextLines(BaseModel):
    """The lines of `text` that show a message or memory."""

    first_line: int = Field(description="Counted from 1.", examples=[6])
    last_line: int = Field(examples=[6])
    kind: RecordKind
    message_id: _MessageOf
    session_id: _SessionOf
    memory_id: _MemoryOf
    score: float | None = Field(
        description="The probability that it answers the query; null for the question before an answer."
    )

    @classmethod
    def of(cls, lines: ResultLines, scores: Mapping[int | str, float]) -> ContextLines:
        named = _named(lines.record)
        score = scores.get(named["message_id"] or named["memory_id"])
        return cls(first_line=lines.first, last_line=lines.last, **named, score=score)


class ContextExplanation(BaseModel):
    """How the query was understood."""

    intent: CourseIntent | None = Field(
        description="`order` or `summary` if the query asks for one of conversations; null if it does not.",
        examples=[None],
    )
    shape: ContextShape = Field(
        description="The shape of the text: `excerpts` or `outline`.", examples=[ContextShape.EXCERPTS]
    )
    only_users: bool = Field(description="True if only messages of users were searched.", examples=[False])
    lines: list[ContextLines] = Field(
        default=[], description="With `explain`: where `text` shows each message and memory, in order."
    )

    @classmethod
    def of(cls, context: Context) -> ContextExplanation:
        form = context.form
        fields: dict[str, Any] = {"intent": form.intent, "shape": form.shape, "only_users": form.of_users}
        if context.lines is None:
            return cls(**fields)
        scores: dict[int | str, float] = {hit.message.uid: hit.score for hit in context.messages}
        scores |= {hit.memory.id: hit.score for hit in context.memories}
        return cls(**fields, lines=[ContextLines.of(one, scores) for one in context.lines])


class ContextResponse(BaseModel):
    memory_blocks: list[MemoryBlock] = Field(description="All blocks, in order of creation.")
    relevant_messages: list[FoundMessage] = Field(description="The messages found that are in the text, best first.")
    relevant_memories: list[SearchHit] = Field(description="The memories found that are in the text, best first.")
    text: str = Field(description="The text for the prompt: `stable_prefix` followed by `volatile_tail`.")
    stable_prefix: str = Field(
        description="The blocks; byte-identical as long as no block changes.",
        examples=[recalled("## Memory\n\n### human\nName: Alice\nLocation: Boston\n", _TOKEN_EXAMPLE)],
    )
    stable_etag: str = Field(
        description="SHA-256 of `stable_prefix`.",
        examples=["f3b9a2c0d5e84b7f9c1d6a3e2f708b9155c4d0e7a6b8f9123c4d5e6f708192a3"],
    )
    volatile_tail: str = Field(
        description="Memories and excerpts of conversations.",
        examples=["\n" + recalled("## Relevant Past Conversations\n\n**User**: I like blue.\n", _TOKEN_EXAMPLE)],
    )
    tokens: int = Field(description="The number of tokens of `text`; exceeds `max_tokens` only if the blocks alone do.")
    relevance: RelevanceShare
    evidence: EvidenceOfAnswer
    degraded: list[str] = Field(
        description="Missing components: `vector` or `lexical` (an arm of the search), `rerank` (the order of the "
        "cross-encoder), `messages` or `memories` (not searched), with `deadline` if the time ran out; "
        "`blocks_over_budget` if the blocks use the whole budget. Empty if nothing is missing.",
        examples=[[]],
    )
    dropped: DroppedCounts
    explain: ContextExplanation
    answered: OptionalAnswered = None
    answer_quote: AnswerQuote = None
    answer_reason: AnswerReason = None

    @classmethod
    def of(cls, context: Context, verdict: Verdict | None, *, now: datetime) -> ContextResponse:
        embedded = VECTOR not in context.degraded
        return cls(
            memory_blocks=[MemoryBlock.of(block) for block in context.blocks],
            relevant_messages=[FoundMessage.of_hit(hit) for hit in context.messages],
            relevant_memories=[SearchHit.of_hit(hit, now, embedded=embedded) for hit in context.memories],
            text=context.text,
            stable_prefix=context.stable_prefix,
            stable_etag=context.stable_etag,
            volatile_tail=context.volatile_tail,
            tokens=context.tokens,
            relevance=context.relevance,
            evidence=context.evidence,
            degraded=list(context.degraded),
            dropped=DroppedCounts.of(context.dropped),
            explain=ContextExplanation.of(context),
            **(verdict_fields(verdict) if verdict else {}),
        )


@routes.post(
    "/context/{agent_name}",
    summary="Build the context for a query",
    cost=CostClass.SEARCH,
    access=SEARCHING,
    sdk="context.build",
    idempotent=True,
    errors=[404],
)
def build_context(
    body: ContextRequest, scope: AgentReader, service: RunningService, request: Request
) -> ContextResponse:
    """Get an agent's blocks and the messages and memories relevant to a query, as records and as text for a prompt."""
    began, query = monotonic(), replace(body.to_query(), max_results=most_found(request))
    context = service.contexts.build(scope, query)
    verdict = service.verification.of_context(scope, query, context, began=began) if body.verify else None
    return ContextResponse.of(context, verdict, now=query.as_of or utc_now())
