"""What the routes of running sessions take and answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.message_models import FOUND_EXAMPLE, FoundMessage, NewMessage
from souvenir.api.tier_models import Query
from souvenir.conversation.tiers import TierContext
from souvenir.conversation.window import WindowMessage
from souvenir.types import MessageRole

WINDOW_EXAMPLE: dict[str, Any] = {"role": "user", "content": "Good morning", "timestamp": 1743586200.25}


class AppendMessageRequest(NewMessage):
    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "user", "content": "Good morning"}]})


class WindowRecord(BaseModel):
    """A message of the context."""

    role: MessageRole
    content: str
    timestamp: float = Field(description="When it was said, in seconds since 1970.")

    @classmethod
    def of(cls, message: WindowMessage) -> Self:
        return cls.model_validate(message.to_dict())


class WindowResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"messages": [WINDOW_EXAMPLE]}]})

    messages: list[WindowRecord] = Field(
        description="Whole and without a gap, oldest first; none of a session that has ended."
    )

    @classmethod
    def of(cls, messages: Sequence[WindowMessage]) -> Self:
        return cls(messages=[WindowRecord.of(message) for message in messages])


class ClearedResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"cleared": 2}]})

    cleared: int = Field(description="Messages that left the context.")


class SessionContextRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "Do I have a dog?"}]})

    query: Query


class SessionContextResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "session_messages": [WINDOW_EXAMPLE],
                    "relevant_history": [FOUND_EXAMPLE],
                    "relevant_memories": ["diet: eats no meat"],
                    "user_preferences": {"answers": "short"},
                    "degraded": [],
                }
            ]
        }
    )

    session_messages: list[WindowRecord] = Field(description="The context of the session, oldest first.")
    relevant_history: list[FoundMessage] = Field(description="Messages of other sessions, best first.")
    relevant_memories: list[str] = Field(
        description="What is remembered, each as `key: value`, best first; without preferences."
    )
    user_preferences: dict[str, str] = Field(description="All of them, by key.")
    degraded: list[str] = Field(description="What of the searches could not run, as in `/search`; empty if all did.")

    @classmethod
    def of(cls, found: TierContext) -> Self:
        return cls(
            session_messages=[WindowRecord.of(message) for message in found.session],
            relevant_history=[FoundMessage.of_hit(hit) for hit in found.history.hits],
            relevant_memories=list(found.memories),
            user_preferences=dict(found.preferences),
            degraded=list(found.degraded),
        )
