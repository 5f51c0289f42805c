"""What the routes of sessions and users take and answer."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.agents import AgentName
from souvenir.api.conversation_fields import SessionId, Title, UserName
from souvenir.api.fields import Moment, optional_wire_time, wire_time
from souvenir.api.metadata import PlainMetadata
from souvenir.store.sessions import Session, User

_AT = "2025-04-02T09:30:00.000000+00:00"
SESSION_EXAMPLE: dict[str, Any] = {
    "session_id": "2025-04-02",
    "user": "alice",
    "title": "Colours",
    "metadata": None,
    "implicit": False,
    "started_at": _AT,
    "last_message_at": _AT,
    "ended_at": None,
    "messages": 2,
}
USER_EXAMPLE: dict[str, Any] = {"name": "alice", "created_at": _AT, "messages": 2}


class StartSessionRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"agent_name": "my_agent", "user": "alice", "title": "Colours"}]}
    )

    agent_name: AgentName
    session_id: Annotated[SessionId | None, Field(description="Without it, a new UUID.")] = None
    user: UserName | None = None
    title: Title | None = None
    metadata: PlainMetadata | None = None
    started_at: Annotated[Moment | None, Field(description="Of a new one; without it, now.")] = None


class EndSessionRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"ended_at": _AT}]})

    ended_at: Annotated[Moment | None, Field(description="Without it, now.")] = None


class ChangeSessionRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "Favourite colours"}]})

    title: Title | None = None
    metadata: Annotated[PlainMetadata | None, Field(description="In the place of what it has.")] = None


class SessionRecord(BaseModel):
    """A session."""

    model_config = ConfigDict(json_schema_extra={"examples": [SESSION_EXAMPLE]})

    session_id: str
    user: str | None = Field(description="The first user whom somebody named in it.")
    title: str | None
    metadata: dict[str, Any] | None
    implicit: bool = Field(description="Whether it was made for messages that named no session.")
    started_at: str = Field(description="Or when its first message was said, if that was before.")
    last_message_at: str | None = Field(description="When the latest was said; null while it has none.")
    ended_at: str | None
    messages: int = Field(description="That it has now.")

    @classmethod
    def of(cls, session: Session) -> Self:
        return cls(
            session_id=session.name,
            user=session.user,
            title=session.title,
            metadata=None if session.metadata is None else dict(session.metadata),
            implicit=session.implicit,
            started_at=wire_time(session.started_at),
            last_message_at=optional_wire_time(session.last_message_at),
            ended_at=optional_wire_time(session.ended_at),
            messages=session.messages,
        )


class SessionPage(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"sessions": [SESSION_EXAMPLE], "total": 1, "offset": 0, "limit": 100}]}
    )

    sessions: list[SessionRecord] = Field(description="Newest first.")
    total: int = Field(description="How many there are on all pages.")
    offset: int
    limit: int


class UserRecord(BaseModel):
    """Somebody whom an agent talks with."""

    name: str
    created_at: str = Field(description="When they were first heard of: in a session, or by a message of theirs.")
    messages: int = Field(description="That are of them now.")

    @classmethod
    def of(cls, user: User) -> Self:
        return cls(name=user.name, created_at=wire_time(user.created_at), messages=user.messages)


class UserPage(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"users": [USER_EXAMPLE], "total": 1, "offset": 0, "limit": 100}]}
    )

    users: list[UserRecord] = Field(description="In the order of their names.")
    total: int = Field(description="How many there are on all pages.")
    offset: int
    limit: int
