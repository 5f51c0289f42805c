"""Working memory: append to the active session, read and clear its window, and collect the context of a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.fields import SessionId
from souvenir.api.long_term_memory import QueryText
from souvenir.api.message_search import FoundMessage
from souvenir.api.messages import MessageRecord, NewMessage
from souvenir.api.parameters import AgentReader, AgentWriter
from souvenir.conversations.message_buffer import TOKEN_LIMIT, BufferedMessage
from souvenir.conversations.tiers import TierContext
from souvenir.core.types import MessageRole
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import SAID, MakeOnce, RunningService
from souvenir.server.routing import Routes

routes = Routes("tiers")


class AppendMessageRequest(NewMessage):
    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "user", "content": "Good morning"}]})


class WindowRecord(BaseModel):
    """A message of the window."""

    role: MessageRole
    content: str
    timestamp: float = Field(description="The time of the message in seconds since 1970.")

    @classmethod
    def of(cls, message: BufferedMessage) -> Self:
        return cls.model_validate(message.to_dict())


class WindowResponse(BaseModel):
    messages: list[WindowRecord] = Field(
        description="The messages without gaps, oldest first; empty if the session has ended."
    )

    @classmethod
    def of(cls, messages: Sequence[BufferedMessage]) -> Self:
        return cls(messages=[WindowRecord.of(message) for message in messages])


class ClearedResponse(BaseModel):
    cleared: int = Field(description="The number of messages removed from the window.")


class SessionContextRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "Do I have a dog?"}]})

    query: QueryText


class SessionContextResponse(BaseModel):
    session_messages: list[WindowRecord] = Field(description="The window of the session, oldest first.")
    relevant_history: list[FoundMessage] = Field(description="Relevant messages of other sessions, best first.")
    relevant_memories: list[str] = Field(
        description="Remembered values as `key: value`, best first; without preferences.",
        examples=[["diet: eats no meat"]],
    )
    user_preferences: dict[str, str] = Field(description="All preferences by key.", examples=[{"answers": "short"}])
    degraded: list[str] = Field(
        description="Components of the search that could not run, as in `/search`; empty if all ran.", examples=[[]]
    )

    @classmethod
    def of(cls, found: TierContext) -> Self:
        return cls(
            session_messages=[WindowRecord.of(message) for message in found.session],
            relevant_history=[FoundMessage.of_hit(hit) for hit in found.history.hits],
            relevant_memories=list(found.memories),
            user_preferences=dict(found.preferences),
            degraded=list(found.degraded),
        )


_PATH = "/sessions/{agent_name}/{session_id}"


@routes.post(
    f"{_PATH}/messages",
    summary="Append a message to a session",
    cost=CostClass.LIGHT,
    sdk="sessions.append",
    errors=[404, 409],
)
def append_message(
    session_id: SessionId, body: AppendMessageRequest, scope: AgentWriter, service: RunningService, once: MakeOnce
) -> MessageRecord:
    """Append a message to the active session without embedding it; it becomes searchable when the session ends."""
    return MessageRecord.of(service.tiers.working_memory.append(scope, session_id, body.draft(session_id), once=once))


@routes.get(
    f"{_PATH}/window",
    summary="Get the window of a session",
    cost=CostClass.LIGHT,
    access=SAID,
    sdk="sessions.window",
    errors=[404],
)
def get_window(
    session_id: SessionId,
    scope: AgentReader,
    service: RunningService,
    token_limit: Annotated[
        int, Query(ge=0, le=10_000_000, description="Token budget of the messages, counted as 4 characters per token.")
    ] = TOKEN_LIMIT,
    limit: Annotated[
        int | None, Query(ge=0, le=1000, description="Maximum number of messages; the newest are returned.")
    ] = None,
) -> WindowResponse:
    """Get the newest messages since the window was cleared, at most SESSION_MAX_MESSAGES of them."""
    found = service.tiers.working_memory.fitting(scope, session_id, token_limit)
    return WindowResponse.of(found if limit is None else found[max(len(found) - limit, 0) :])


@routes.delete(
    f"{_PATH}/window",
    summary="Clear the window of a session",
    cost=CostClass.LIGHT,
    sdk="sessions.clear_window",
    errors=[404],
)
def clear_window(session_id: SessionId, scope: AgentWriter, service: RunningService) -> ClearedResponse:
    """Start an empty window; the messages are kept in the session."""
    return ClearedResponse(cleared=service.tiers.working_memory.clear(scope, session_id))


@routes.post(
    f"{_PATH}/context",
    summary="Build the context for a prompt",
    cost=CostClass.SEARCH,
    sdk="sessions.context",
    idempotent=True,
    errors=[404],
)
def session_context(
    session_id: SessionId, body: SessionContextRequest, scope: AgentReader, service: RunningService
) -> SessionContextResponse:
    """Get the window of the session, relevant past messages and memories within the budget, and all preferences."""
    return SessionContextResponse.of(service.tiers.context(scope, body.query, session_id=session_id))
