"""Who asks, and of which namespace: every route declares `Reader`, `Writer` or `Admin`, unless its path is open.

Each of them is a `Scope`, which the engine enforces. Whoever is refused is refused before the body is read.

What an agent's access levels (`souvenir.api.levels`) take away, they take from every key that is no admin's, in
whichever way it asks: such a key has one namespace, so its levels are settled once a request, when it is its turn. A
route below `/api/locrits/` names its agent with `locrit_scope` in the place of `agent_scope`: there the levels hold for
everybody. How many results a search may give says `result_limit`; what each route needs is entered in `LEVELS`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Annotated

from anyio import to_thread
from fastapi import Depends, Header, Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from memory_engine import MemoryEngine
from souvenir.access.door import Caller
from souvenir.api.levels import Needs, most_results, require_levels
from souvenir.api.service import Service
from souvenir.errors import Forbidden, InvalidRequest
from souvenir.types import DEFAULT_NAMESPACE, UNLIMITED, AccessLevels, Role, Scope

OPEN_PATHS = frozenset(
    {
        "/health",
        "/health/ready",
        "/openapi.json",
        "/docs",
        "/docs/swagger-ui-bundle.js",
        "/docs/swagger-ui.css",
        "/docs/favicon.png",
    }
)
"""Answered without a key; they hold nothing that was stored."""

MAX_NAMESPACE_CHARS = 200

_key_header = APIKeyHeader(
    name="X-API-Key", auto_error=False, description="A key made by POST /api/keys, or the value of the setting API_KEY."
)
_bearer = HTTPBearer(auto_error=False, description="The same key as `Authorization: Bearer KEY`.")

_NamespaceHeader = Annotated[
    str | None,
    Header(
        alias="X-Namespace",
        description="The namespace that the request is about: 1 to 200 printable characters without `/`. "
        f"Without it: that of the key, else `{DEFAULT_NAMESPACE}`.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_NAMESPACE_CHARS, "pattern": "^[^/]+$"},
        examples=["team-a"],
    ),
]


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _engine_of(request: Request) -> MemoryEngine:
    return service_of(request).engine


Engine = Annotated[MemoryEngine, Depends(_engine_of)]


async def _running_service(request: Request) -> Service:
    return service_of(request)


RunningService = Annotated[Service, Depends(_running_service)]


async def sent_key(request: Request) -> bytes | None:
    """The key that a request carries."""
    return _either(await _key_header(request), await _bearer(request))


def _either(api_key: str | None, bearer: HTTPAuthorizationCredentials | None) -> bytes | None:
    sent = api_key or (bearer.credentials if bearer else None)
    # Starlette reads header bytes as Latin-1; a key of other characters arrives as its UTF-8 bytes.
    return sent.encode("latin-1") if sent else None


def address_of(request: Request) -> str:
    """Where the request comes from: the peer, or what a trusted proxy says."""
    return request.client.host if request.client else "unknown"


def admit(request: Request, sent: bytes | None) -> Caller:
    """Who asks; kept with the request, so that it is asked and counted once.

    :raises TooManyAttempts: If the address sent too many wrong keys. :raises Unauthorized: Without the right key.
    """
    if not hasattr(request.state, "caller"):
        request.state.caller = service_of(request).door.admit(sent, address_of(request))
    return caller_of(request)


async def look_again(request: Request) -> Caller:
    """Who asks now, after a request waited for its body or its turn.

    :raises Unauthorized: If its key was revoked or replaced meanwhile.
    """
    caller = request.state.caller = service_of(request).door.look_again(await sent_key(request))
    return caller


def caller_of(request: Request) -> Caller:
    """Who asks, once they were admitted."""
    caller: Caller = request.state.caller
    return caller


def scope_of(request: Request, caller: Caller, needed: Role, namespace: str | None) -> Scope:
    """:raises InvalidRequest: If the namespace cannot be one. :raises Forbidden: If the caller may not do it."""
    scope = caller.scope(needed, None if namespace is None else _namespace_in(namespace))
    request.state.namespace = scope.namespace
    request.state.role = caller.role
    return scope


def _require(needed: Role) -> Callable[..., Awaitable[Scope]]:
    async def scope(
        request: Request,
        api_key: Annotated[str | None, Security(_key_header)],
        bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
        namespace: _NamespaceHeader = None,
    ) -> Scope:
        return scope_of(request, admit(request, _either(api_key, bearer)), needed, namespace)

    return scope


DOTS = frozenset({".", ".."})
"""No name of anything that stands in a path: clients resolve these before they send them."""


def namespace_name(text: str) -> str:
    """:raises ValueError: If no namespace can be called so."""
    name = text.strip()
    if not 1 <= len(name) <= MAX_NAMESPACE_CHARS or "/" in name or "\ufffd" in name or not name.isprintable():
        raise ValueError(f"a namespace takes 1 to {MAX_NAMESPACE_CHARS} printable characters without /")
    if name in DOTS:
        raise ValueError("a namespace cannot be called . or .., which clients take out of paths")
    return name


def _namespace_in(header: str) -> str:
    try:
        return namespace_name(header.encode("latin-1").decode("utf-8", errors="replace"))
    except ValueError as error:
        message = f"X-Namespace takes 1 to {MAX_NAMESPACE_CHARS} printable characters without /, in UTF-8"
        raise InvalidRequest(message) from error


def agent_scope(request: Request, agent_name: str) -> Scope:
    """The whole namespace of the agent that a request names in its path or body; its caller was admitted before.

    :raises Forbidden: If their key is for another namespace, or for some of its sources only.
    """
    scope = caller_of(request).scope(Role.READ_ONLY, agent_name)
    if scope.sources is not None:
        raise Forbidden("Conversations need a key of the agent's whole namespace, and yours is for some sources only")
    request.state.namespace = scope.namespace
    return scope


def locrit_scope(request: Request, name: str) -> Scope:
    """The same of a route below `/api/locrits/`, whose level the agent must give to whoever asks, admins too.

    Like everywhere, what stores or forgets (a `Writer`'s route) needs no level.

    :raises Forbidden: As `agent_scope` does. :raises AccessLimited: If the agent does not give it.
    """
    scope = agent_scope(request, name)
    if caller_of(request).role is Role.ADMIN:
        request.state.access = service_of(request).agents.access(scope)
        require_access(request, request.state.needed_access)
    return scope


async def settle_access(request: Request) -> None:
    """Look up what the request's caller may read; an admin may read everything."""
    caller, levels = caller_of(request), UNLIMITED
    if caller.role is not Role.ADMIN:
        own = caller.scope(Role.READ_ONLY, None)
        levels = await to_thread.run_sync(service_of(request).agents.access, own)
    request.state.access = levels


def access_of(request: Request) -> AccessLevels:
    """What may be read with the request, once that was settled."""
    levels: AccessLevels = request.state.access
    return levels


def require_access(request: Request, needed: Needs) -> None:
    """Note what the request's route needs.

    :raises AccessLimited: If it may not read so much.
    """
    request.state.needed_access = needed
    require_levels(access_of(request), needed, request.state.namespace)


def result_limit(request: Request, wanted: int) -> int:
    """How many results a search gives that is asked for so many."""
    return min(wanted, most_found(request) or wanted)


def most_found(request: Request) -> int | None:
    """How many results a search may give; None: as many as are asked for."""
    return most_results(access_of(request))


_reader, _writer, _admin = (_require(role) for role in Role)
Reader = Annotated[Scope, Depends(_reader)]
Writer = Annotated[Scope, Depends(_writer)]
Admin = Annotated[Scope, Depends(_admin)]

GUARDS: Mapping[object, Role] = MappingProxyType(
    {_reader: Role.READ_ONLY, _writer: Role.READ_WRITE, _admin: Role.ADMIN}
)
"""What a route declares, and the least role that it takes."""
