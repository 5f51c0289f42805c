"""Tier 1 over HTTP, and all tiers together: the context of a session that runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from souvenir.api.agents import AgentName
from souvenir.api.caller import Reader, RunningService, Writer, agent_scope
from souvenir.api.conversation_fields import SessionId
from souvenir.api.errors import error_responses
from souvenir.api.json_route import router
from souvenir.api.message_models import MessageRecord
from souvenir.api.once import MakeOnce
from souvenir.api.window_models import (
    AppendMessageRequest,
    ClearedResponse,
    SessionContextRequest,
    SessionContextResponse,
    WindowResponse,
)
from souvenir.conversation.window import TOKEN_LIMIT

routes = router("tiers")

_PATH = "/sessions/{agent_name}/{session_id}"


@routes.post(f"{_PATH}/messages", summary="Say something in a running session", responses=error_responses(404, 409))
def append_message(
    agent_name: AgentName,
    session_id: SessionId,
    body: AppendMessageRequest,
    _: Writer,
    service: RunningService,
    request: Request,
    once: MakeOnce,
) -> MessageRecord:
    """Store a message in one commit and without the model; searches find it when the session has ended."""
    scope = agent_scope(request, agent_name)
    return MessageRecord.of(service.tiers.windows.append(scope, session_id, body.draft(session_id), once=once))


@routes.get(f"{_PATH}/window", summary="Get the context of a running session", responses=error_responses(404))
def get_window(
    agent_name: AgentName,
    session_id: SessionId,
    _: Reader,
    service: RunningService,
    request: Request,
    token_limit: Annotated[
        int, Query(ge=0, le=10_000_000, description="Tokens that the messages may take together, of 4 characters each.")
    ] = TOKEN_LIMIT,
    limit: Annotated[int | None, Query(ge=0, le=1000, description="Messages wanted, of the newest.")] = None,
) -> WindowResponse:
    """Get the newest messages since the context began, at most SESSION_MAX_MESSAGES of them."""
    found = service.tiers.windows.fitting(agent_scope(request, agent_name), session_id, token_limit)
    return WindowResponse.of(found if limit is None else found[max(len(found) - limit, 0) :])


@routes.delete(f"{_PATH}/window", summary="Clear the context of a running session", responses=error_responses(404))
def clear_window(
    agent_name: AgentName, session_id: SessionId, _: Writer, service: RunningService, request: Request
) -> ClearedResponse:
    """Let the context begin with the next message; what was said stays in the session."""
    return ClearedResponse(cleared=service.tiers.windows.clear(agent_scope(request, agent_name), session_id))


@routes.post(f"{_PATH}/context", summary="Build the context for a prompt", responses=error_responses(404))
def session_context(
    agent_name: AgentName,
    session_id: SessionId,
    body: SessionContextRequest,
    _: Reader,
    service: RunningService,
    request: Request,
) -> SessionContextResponse:
    """Collect what a prompt takes: the running session, past messages and memories that fit, and all preferences."""
    scope = agent_scope(request, agent_name)
    return SessionContextResponse.of(service.tiers.context(scope, body.query, session_id=session_id))
