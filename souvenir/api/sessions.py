"""Sessions: started, listed, looked at, named, ended."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from souvenir.api.agents import AgentName
from souvenir.api.caller import Reader, RunningService, Writer, agent_scope
from souvenir.api.conversation_fields import SessionId, UserName
from souvenir.api.errors import error_responses
from souvenir.api.json_route import router
from souvenir.api.message_models import MessageList, MessageRecord
from souvenir.api.once import MakeOnce
from souvenir.api.pages import COUNTED, Limit, Offset, set_total
from souvenir.api.session_models import (
    ChangeSessionRequest,
    EndSessionRequest,
    SessionPage,
    SessionRecord,
    StartSessionRequest,
)
from souvenir.store.sessions import SessionFilter

routes = router("messages")


@routes.post("/sessions", summary="Start a session", responses=error_responses(404, 409))
def start_session(
    body: StartSessionRequest, _: Writer, service: RunningService, request: Request, once: MakeOnce
) -> SessionRecord:
    """Start a session, and make its agent and user if they are new; a running one of that id is answered as it is."""
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


@routes.get("/sessions/{agent_name}", summary="List sessions", responses=error_responses(404))
def list_sessions(
    agent_name: AgentName,
    _: Reader,
    service: RunningService,
    request: Request,
    offset: Offset = 0,
    limit: Limit = 100,
    user: Annotated[UserName | None, Query(description="Of this user only.")] = None,
    open: Annotated[bool | None, Query(description="Only those that run, or only those that have ended.")] = None,
) -> SessionPage:
    """List an agent's sessions, newest first."""
    scope = agent_scope(request, agent_name)
    found, total = service.sessions.page(scope, SessionFilter(user, open), offset=offset, limit=limit)
    return SessionPage(sessions=[SessionRecord.of(one) for one in found], total=total, offset=offset, limit=limit)


@routes.get("/sessions/{agent_name}/{session_id}", summary="Get a session", responses=error_responses(404))
def get_session(
    agent_name: AgentName, session_id: SessionId, _: Reader, service: RunningService, request: Request
) -> SessionRecord:
    """Get a session by its id."""
    return SessionRecord.of(service.sessions.get(agent_scope(request, agent_name), session_id))


@routes.get(
    "/sessions/{agent_name}/{session_id}/messages",
    summary="List the messages of a session",
    responses=COUNTED | error_responses(404),
)
def list_session_messages(
    agent_name: AgentName,
    session_id: SessionId,
    _: Reader,
    service: RunningService,
    request: Request,
    response: Response,
    offset: Offset = 0,
    limit: Limit = 100,
) -> MessageList:
    """List a session's messages in the order in which they came, oldest first."""
    scope = agent_scope(request, agent_name)
    found, total = service.conversations.of_session(scope, session_id, offset=offset, limit=limit)
    set_total(response, total)
    return MessageList([MessageRecord.of(one) for one in found])


@routes.patch("/sessions/{agent_name}/{session_id}", summary="Change a session", responses=error_responses(400, 404))
def change_session(
    agent_name: AgentName,
    session_id: SessionId,
    body: ChangeSessionRequest,
    _: Writer,
    service: RunningService,
    request: Request,
) -> SessionRecord:
    """Replace a session's title, its metadata or both."""
    scope = agent_scope(request, agent_name)
    return SessionRecord.of(service.sessions.change(scope, session_id, title=body.title, metadata=body.metadata))


@routes.post("/sessions/{agent_name}/{session_id}/end", summary="End a session", responses=error_responses(404))
def end_session(
    agent_name: AgentName,
    session_id: SessionId,
    _: Writer,
    service: RunningService,
    request: Request,
    body: EndSessionRequest | None = None,
) -> SessionRecord:
    """End a session, which takes no more messages then; one that has ended stays so."""
    ended_at = body.ended_at if body else None
    return SessionRecord.of(service.sessions.end(agent_scope(request, agent_name), session_id, ended_at=ended_at))
