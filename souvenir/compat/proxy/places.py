"""Whose memory a call gets: the agent, the session and the user, from its headers, its model's name or its key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request

from souvenir.api.fields import SessionId, UserName
from souvenir.compat.proxy.wires import Turn
from souvenir.core.errors import InvalidRequest
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Role, Scope
from souvenir.server.request_guards import agent_scope, caller_of, namespace_name

AGENT_HEADER, SESSION_HEADER, USER_HEADER = "X-Souvenir-Agent", "X-Souvenir-Session", "X-Souvenir-User"

_SESSION, _USER = TypeAdapter[str](SessionId), TypeAdapter[str](UserName)
_DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class Place:
    """:param session_id: Of the messages of the call, which its context leaves out."""

    scope: Scope
    session_id: str
    user: str | None

    @property
    def conversation(self) -> tuple[str, str, str, str]:
        """Identifies it among all conversations; those of two keys are two, since one may be shown less."""
        return self.scope.namespace, self.session_id, self.user or "", self.scope.actor


def agent_of(request: Request, scope: Scope, model: str) -> tuple[Scope, str]:
    """Return the scope of the agent and the name of the model without it.

    The header names the agent; else X-Namespace; else the part of the model's name before its first `/`, as far as the
    key is for such an agent; else it is the agent of the key.

    :raises InvalidRequest: If the header names no agent. :raises Forbidden: If the key is not for this agent.
    """
    if (named := _header(request, AGENT_HEADER)) is not None:
        return agent_scope(request, _checked_agent(named, AGENT_HEADER)), model
    agent, slash, rest = model.partition("/")
    may_choose = caller_of(request).role is Role.ADMIN or agent == scope.namespace
    if slash and agent and rest and may_choose and b"x-namespace" not in request.scope["state"]["headers"]:
        return agent_scope(request, _checked_agent(agent, "The model's name before `/`")), rest
    return agent_scope(request, scope.namespace), model


def place_of(request: Request, scope: Scope, turns: Sequence[Turn], conversation: str | None) -> Place:
    """:param conversation: The session of a conversation that the vendor stores.

    :raises InvalidRequest: If a header names no session or user.
    """
    session_id = _checked(_SESSION, request, SESSION_HEADER) or conversation or _session_of(turns)
    return Place(scope, session_id, _checked(_USER, request, USER_HEADER))


def conversation_of(body: Mapping[str, Any]) -> str | None:
    """Return the id of a conversation that the vendor stores, as the Responses API names it; None without one."""
    named = body.get("conversation")
    held = named.get("id") if isinstance(named, Mapping) else named
    try:
        return _SESSION.validate_python(held, strict=True)
    except ValidationError:
        return None


def _session_of(turns: Sequence[Turn]) -> str:
    """Return the session of a conversation that has no name: its day and a digest of its first message.

    Each request brings the whole conversation, so this needs no memory of former requests.
    """
    first = next((turn.content for turn in turns if turn.role == "user"), "")
    digest = blake2b(first.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{utc_now().date().isoformat()}-{digest}"


def _checked_agent(name: str, where: str) -> str:
    try:
        return namespace_name(name)
    except ValueError as error:
        raise InvalidRequest(f"{where} names no agent: {error}") from error


def _checked(kind: TypeAdapter[str], request: Request, header: str) -> str | None:
    if (sent := _header(request, header)) is None:
        return None
    try:
        return kind.validate_python(sent)
    except ValidationError as error:
        raise _unusable(header) from error


def _header(request: Request, name: str) -> str | None:
    sent: bytes | None = request.scope["state"]["headers"].get(name.lower().encode())
    try:
        return None if sent is None else sent.decode()
    except UnicodeDecodeError as error:
        raise _unusable(name) from error


def _unusable(header: str) -> InvalidRequest:
    return InvalidRequest(f"{header} takes 1 to 200 printable characters without /, in UTF-8")
