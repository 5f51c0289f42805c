"""What the route of the context takes and answers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.block_models import BLOCK_EXAMPLE, MemoryBlock
from souvenir.api.conversation_fields import SessionId, UserName
from souvenir.api.fields import Text
from souvenir.api.message_models import FOUND_EXAMPLE, FoundMessage
from souvenir.api.relevance_fields import EvidenceOfAnswer, RelevanceShare
from souvenir.api.search_models import HIT_EXAMPLE, SearchHit
from souvenir.conversation.context import DEFAULT_DEADLINE_S, DEFAULT_MAX_TOKENS, Context, ContextQuery
from souvenir.engine.recall import VECTOR
from souvenir.fence import fenced
from souvenir.moments import utc_now

MIN_MAX_TOKENS, MOST_MAX_TOKENS = 64, 200_000
MOST_DEADLINE_MS = 60_000

_PREFIX_EXAMPLE = fenced("## Memory\n\n### human\nName: Alice\nLocation: Boston\n")
_TAIL_EXAMPLE = "\n" + fenced(
    "## Relevant Past Conversations\n\n### 2025-04-02\n\n**User**: My favourite colour is blue.\n\n"
    "**Assistant**: Noted: blue it is.\n"
)
_EXAMPLE: dict[str, Any] = {
    "memory_blocks": [BLOCK_EXAMPLE],
    "relevant_messages": [FOUND_EXAMPLE],
    "relevant_memories": [{**HIT_EXAMPLE, "similarity": 0.41}],
    "text": _PREFIX_EXAMPLE + _TAIL_EXAMPLE,
    "stable_prefix": _PREFIX_EXAMPLE,
    "stable_etag": "f3b9a2c0d5e84b7f9c1d6a3e2f708b9155c4d0e7a6b8f9123c4d5e6f708192a3",
    "volatile_tail": _TAIL_EXAMPLE,
    "tokens": 73,
    "relevance": 0.9132,
    "evidence": "strong",
    "degraded": [],
    "dropped": {"messages": 0, "memories": 1},
}


class ContextRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "What's my favorite color?"}]})

    query: Annotated[Text, Field(description="What the model is about to be asked.")]
    agent_name: str | None = Field(default=None, description="Accepted and not used; the path names the agent.")
    session_id: Annotated[
        SessionId | None, Field(description="The running session, whose messages are not past; it need not exist.")
    ] = None
    user: Annotated[UserName | None, Field(description="Only what was said with this user.")] = None
    max_tokens: int = Field(
        default=DEFAULT_MAX_TOKENS,
        ge=MIN_MAX_TOKENS,
        le=MOST_MAX_TOKENS,
        description="Of `text`, by the embedding model's tokenizer.",
    )
    deadline_ms: int = Field(
        default=int(DEFAULT_DEADLINE_S * 1000),
        ge=1,
        le=MOST_DEADLINE_MS,
        description="Milliseconds after which the answer comes with what there is.",
    )
    exclude_topics: list[Annotated[str, StringConstraints(min_length=1, max_length=100)]] = Field(
        default=[], max_length=100, description="Sensitive topics that stay out, beside those that the agent hides."
    )

    def to_query(self) -> ContextQuery:
        return ContextQuery(
            self.query,
            session_id=self.session_id,
            user=self.user,
            max_tokens=self.max_tokens,
            deadline_s=self.deadline_ms / 1000,
            exclude_topics=tuple(self.exclude_topics),
        )


class DroppedCounts(BaseModel):
    """How many of those found are not in the text, since the budget has no room for them."""

    messages: int
    memories: int


class ContextResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    memory_blocks: list[MemoryBlock] = Field(description="All of them, in the order in which they were made.")
    relevant_messages: list[FoundMessage] = Field(
        description="What was found, best first; at most MAX_CONTEXT_MESSAGES."
    )
    relevant_memories: list[SearchHit] = Field(description="What was found of the agent's memories, best first.")
    text: str = Field(description="All of it, to be given to a model: `stable_prefix`, then `volatile_tail`.")
    stable_prefix: str = Field(description="The blocks; the same bytes while no block changes.")
    stable_etag: str = Field(description="SHA-256 of `stable_prefix`.")
    volatile_tail: str = Field(description="Memories and excerpts of conversations.")
    tokens: int = Field(description="Of `text`; above `max_tokens` only if the blocks alone are.")
    relevance: RelevanceShare
    evidence: EvidenceOfAnswer
    degraded: list[str] = Field(
        description="What is missing: `vector` or `lexical` (an arm of the search), `rerank` (the cross-encoder's "
        "order), `messages` or `memories` (not searched), with `deadline` if it was not done in time; "
        "`blocks_over_budget` if they left no room. Empty if all is there."
    )
    dropped: DroppedCounts

    @classmethod
    def of(cls, context: Context) -> ContextResponse:
        now, embedded = utc_now(), VECTOR not in context.degraded
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
            dropped=DroppedCounts(messages=context.dropped.messages, memories=context.dropped.memories),
        )
