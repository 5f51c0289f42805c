"""Sessions: start, list, change, end and delete them, and list their messages."""

from __future__ import annotations

from typing import Annotated, Any, Self

from fastapi import Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.agents import RemovedResponse
from souvenir.api.fields import MessageId, Moment, SessionId, Title, UserName, optional_wire_time, wire_time
from souvenir.api.memories import MemoryPage, MemoryRecord
from souvenir.api.messages import MessageList, MessageRecord, OfMessagesThen
from souvenir.api.metadata import PlainMetadata
from souvenir.api.parameters import (
    COUNT_HEADER,
    AgentName,
    AgentReader,
    AgentWriter,
    Limit,
    Offset,
    described_headers,
    set_total,
)
from souvenir.core.timestamps import utc_now
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import (
    EVERYTHING,
    OF_CONVERSATION,
    SAID,
    MakeOnce,
    RunningService,
    Writer,
    agent_scope,
)
from souvenir.server.routing import Routes
from souvenir.store.messages.sessions import Session, SessionFilter
from souvenir.store.selection import Chooses

routes = Routes("messages")

OFFSET_HEADER = "X-Offset"
_PLACED = described_headers(
    COUNT_HEADER, (OFFSET_HEADER, "How many messages of the session precede this page.", "integer")
)

_AT = "2025-04-02T09:30:00.000000+00:00"


class StartSessionRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"agent_name": "my_agent", "user": "alice", "title": "Colours"}]}
    )

    agent_name: AgentName
    session_id: Annotated[SessionId | None, Field(description="The id of the session; a new UUID by default.")] = None
    user: UserName | None = None
    title: Title | None = None
    metadata: PlainMetadata | None = None
    started_at: Annotated[Moment | None, Field(description="The start of a new session; now by default.")] = None


class EndSessionRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"ended_at": _AT}]})

    ended_at: Annotated[Moment | None, Field(description="Now by default.")] = None


class ChangeSessionRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "Favourite colours"}]})

    title: Title | None = None
    metadata: Annotated[PlainMetadata | None, Field(description="Replaces the present value.")] = None


class SessionRecord(BaseModel):
    """A session."""

    session_id: str
    user: Annotated[str | None, OF_CONVERSATION] = Field(description="The first user named in the session.")
    title: Annotated[str | None, OF_CONVERSATION]
    metadata: Annotated[dict[str, Any] | None, OF_CONVERSATION]
    implicit: bool = Field(description="True if it was created for messages without a session.")
    started_at: str = Field(description="The start, or the time of the first message if that is earlier.")
    last_message_at: str | None = Field(description="The time of the latest message; null without messages.")
    ended_at: str | None
    messages: int = Field(description="The current number of messages.")

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
    sessions: list[SessionRecord] = Field(description="Newest first.")
    total: int = Field(description="The total number of items on all pages.")
    offset: int
    limit: int


@routes.post(
    "/sessions",
    summary="Start a session",
    cost=CostClass.WRITE,
    sdk="sessions.start",
    errors=[404, 409],
)
def start_session(
    body: StartSessionRequest, _: Writer, service: RunningService, request: Request, once: MakeOnce
) -> SessionRecord:
    """Start a session, and create its agent and user if needed; an active session with that id is returned as it is."""
    started = service.sessions.start(
        agent_scope(request, body.agent_name),
        body.session_id,
        user=body.user,
        title=body.title,
        metadata=body.metadata,
        started_at=body.started_at,
        once=once,
    )
    return SessionRecord.of(started)


@routes.get(
    "/sessions/{agent_name}",
    summary="List sessions",
    cost=CostClass.LIGHT,
    access=SAID,
    sdk="sessions.list",
    errors=[404],
)
def list_sessions(
    scope: AgentReader,
    service: RunningService,
    offset: Offset = 0,
    limit: Limit = 100,
    user: Annotated[UserName | None, Query(description="Only those of this user.")] = None,
    open: Annotated[bool | None, Query(description="Only active sessions, or only ended ones.")] = None,
) -> SessionPage:
    """List an agent's sessions, newest first."""
    found, total = service.sessions.page(scope, SessionFilter(user, open), offset=offset, limit=limit)
    return SessionPage(sessions=[SessionRecord.of(one) for one in found], total=total, offset=offset, limit=limit)


@routes.get(
    "/sessions/{agent_name}/{session_id}",
    summary="Get a session",
    cost=CostClass.LIGHT,
    access=SAID,
    sdk="sessions.get",
    errors=[404],
)
def get_session(session_id: SessionId, scope: AgentReader, service: RunningService) -> SessionRecord:
    """Get a session by its id."""
    return SessionRecord.of(service.sessions.get(scope, session_id))


@routes.get(
    "/sessions/{agent_name}/{session_id}/messages",
    summary="List the messages of a session",
    cost=CostClass.LIGHT,
    access=SAID,
    sdk="sessions.messages",
    errors=[404],
    responses=_PLACED,
)
def list_session_messages(
    session_id: SessionId,
    scope: AgentReader,
    service: RunningService,
    response: Response,
    offset: Offset = 0,
    limit: Limit = 100,
    around: Annotated[
        MessageId | None,
        Query(description="Instead of `offset`: the page that has this message in its middle."),
    ] = None,
    as_of: OfMessagesThen = None,
) -> MessageList:
    """List a session's messages in chronological order, as they are now or as they were at a point in time."""
    if around is not None:
        offset = service.conversations.offset_around(scope, session_id, around, as_of, limit=limit)
    found, total = service.conversations.of_session(scope, session_id, as_of, offset=offset, limit=limit)
    set_total(response, total)
    response.headers[OFFSET_HEADER] = str(offset)
    return MessageList([MessageRecord.of(one) for one in found])


@routes.get(
    "/sessions/{agent_name}/{session_id}/memories",
    summary="List the memories learned from a session",
    cost=CostClass.LIGHT,
    access=EVERYTHING,
    sdk="sessions.memories",
    errors=[404],
)
def list_session_memories(
    session_id: SessionId, scope: AgentReader, service: RunningService, offset: Offset = 0, limit: Limit = 100
) -> MemoryPage:
    """List the memories that were extracted from a session, including archived ones."""
    found, total = service.sessions.learned(scope, session_id, offset=offset, limit=limit)
    now = utc_now()
    return MemoryPage(memories=[MemoryRecord.of(one, now) for one in found], total=total, offset=offset, limit=limit)


@routes.patch(
    "/sessions/{agent_name}/{session_id}",
    summary="Update a session",
    cost=CostClass.LIGHT,
    sdk="sessions.update",
    errors=[400, 404],
)
def change_session(
    session_id: SessionId, body: ChangeSessionRequest, scope: AgentWriter, service: RunningService
) -> SessionRecord:
    """Replace the title or the metadata of a session."""
    return SessionRecord.of(service.sessions.change(scope, session_id, title=body.title, metadata=body.metadata))


@routes.post(
    "/sessions/{agent_name}/{session_id}/end",
    summary="End a session",
    cost=CostClass.WRITE,
    sdk="sessions.end",
    errors=[404],
)
def end_session(
    session_id: SessionId, scope: AgentWriter, service: RunningService, body: EndSessionRequest | None = None
) -> SessionRecord:
    """End a session, which then accepts no more messages (idempotent)."""
    ended_at = body.ended_at if body else None
    return SessionRecord.of(service.sessions.end(scope, session_id, ended_at=ended_at))


@routes.delete(
    "/sessions/{agent_name}/{session_id}",
    summary="Delete a session",
    cost=CostClass.LONG,
    sdk="sessions.delete",
    tag="agents",
    errors=[404],
)
def delete_session(session_id: SessionId, scope: AgentWriter, service: RunningService) -> RemovedResponse:
    """Delete a session with its messages and the memories learned from it."""
    return RemovedResponse.of(service.removals.remove(scope, Chooses.SESSION, session_id))
