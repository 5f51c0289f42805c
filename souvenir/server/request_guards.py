"""Authentication: every route declares `Reader`, `Writer` or `Admin`, unless its path is open.

Each of them is a `Scope`, which the engine enforces. The caller is established once a request, before the body is read;
only if keys changed while the request waited for its body or its turn are they looked at again.

An agent's access levels (`souvenir.server.access_policy`) limit every key that is not an admin's. Such a key has one
namespace, so its levels are looked up once a request, where they are needed. A route below `/api/locrits/` names its
agent with `locrit_scope` instead of `agent_scope`: there the levels hold for admins too. `result_limit` says how many
results a search may give; each route declares the levels that it needs.

A route that creates something declares `MakeOnce`: with an Idempotency-Key, a repeated request is done once and gets
the same answer.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import Annotated, Any

from anyio import to_thread
from fastapi import Depends, Header, Request, Response, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param

from souvenir.access.authenticator import ANONYMOUS, Authenticator, Caller
from souvenir.core.errors import Forbidden, InvalidRequest, Unauthorized
from souvenir.core.types import DEFAULT_NAMESPACE, UNLIMITED, AccessLevels, Role, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.server.access_policy import Needs, require_levels
from souvenir.server.service import Service
from souvenir.store.idempotency import Once

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
    name="X-API-Key",
    auto_error=False,
    description="A key created with `POST /api/keys`, or the value of the setting API_KEY.",
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

QUICK_RESULTS = 5
"""Most results of a search with quick access."""


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _engine_of(request: Request) -> MemoryEngine:
    return service_of(request).engine


Engine = Annotated[MemoryEngine, Depends(_engine_of)]


async def _running_service(request: Request) -> Service:
    return service_of(request)


RunningService = Annotated[Service, Depends(_running_service)]


def sent_key(headers: Mapping[bytes, bytes]) -> bytes | None:
    """The key that the headers of a request carry."""
    if key := headers.get(b"x-api-key"):
        return key
    if (authorization := headers.get(b"authorization")) is None:
        return None
    scheme, credentials = get_authorization_scheme_param(authorization.decode("latin-1"))
    return credentials.encode("latin-1") if credentials and scheme.lower() == "bearer" else None


def address_of(request: Request) -> str:
    """Where the request comes from: the peer, or what a trusted proxy says."""
    client = request.scope.get("client")
    return client[0] if client else "unknown"


def admit(request: Request) -> Caller:
    """Establish the caller, counted as a use of their key.

    :raises TooManyAttempts: If the address sent too many wrong keys. :raises Unauthorized: Without the right key.
    :raises RequestQuotaExceeded: If the key sent too many requests in the last minute.
    """
    state = request.scope["state"]
    authenticator = state["service"].authenticator
    state["keys"] = authenticator.keys.generation
    sent = sent_key(state["headers"])
    caller: Caller = authenticator.authenticate(sent, address_of(request) if sent else "")
    state["caller"] = caller
    if caller.key is not None:
        authenticator.keys.admit(caller.key)
    return caller


def admit_again(request: Request) -> Caller:
    """Establish the caller of a request whose key may have changed since it was admitted.

    :raises Unauthorized: If the key was revoked or replaced meanwhile.
    """
    state = request.scope["state"]
    authenticator = state["service"].authenticator
    state["keys"] = authenticator.keys.generation
    caller: Caller = authenticator.reauthenticate(sent_key(state["headers"]))
    state["caller"] = caller
    return caller


def charged_caller(request: Request) -> str:
    """The caller that a request is charged to: its key, or its address if it needs none."""
    caller: Caller | None = request.scope["state"].get("caller")
    return address_of(request) if caller is None or caller.actor == ANONYMOUS else caller.actor


def presumed_caller(authenticator: Authenticator, headers: Mapping[bytes, bytes], address: str) -> str:
    """The caller that a request would be charged to, before it is admitted; with a wrong key, its address."""
    try:
        actor = authenticator.reauthenticate(sent_key(headers)).actor
    except Unauthorized:
        return address
    return address if actor == ANONYMOUS else actor


def caller_of(request: Request) -> Caller:
    """The caller of an admitted request."""
    caller: Caller = request.scope["state"]["caller"]
    return caller


def establish_scope(request: Request, caller: Caller, needed: Role) -> None:
    """:raises InvalidRequest: If X-Namespace cannot be one. :raises Forbidden: If the caller may not do it."""
    state = request.scope["state"]
    header: bytes | None = state["headers"].get(b"x-namespace")
    scope = caller.scope(needed, None if header is None else _namespace_in(header))
    state["scope"], state["namespace"], state["role"] = scope, scope.namespace, caller.role


def _guard() -> Callable[..., Awaitable[Scope]]:
    async def scope(
        request: Request,
        api_key: Annotated[str | None, Security(_key_header)] = None,
        bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)] = None,
        namespace: _NamespaceHeader = None,
    ) -> Scope:
        # The other parameters are for the OpenAPI document: the route authenticates before it reads the body.
        own: Scope = request.scope["state"]["scope"]
        return own

    return scope


DOTS = frozenset({".", ".."})
"""No part of a path can be named so: clients resolve these before they send them."""


def namespace_name(text: str) -> str:
    """:raises ValueError: If no namespace can be called so."""
    name = text.strip()
    if not 1 <= len(name) <= MAX_NAMESPACE_CHARS or "/" in name or "\ufffd" in name or not name.isprintable():
        raise ValueError(f"a namespace takes 1 to {MAX_NAMESPACE_CHARS} printable characters without /")
    if name in DOTS:
        raise ValueError("a namespace cannot be called . or .., which clients take out of paths")
    return name


def _namespace_in(header: bytes) -> str:
    try:
        return namespace_name(header.decode("utf-8", errors="replace"))
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
    """The same for a route below `/api/locrits/`, whose level the agent must give to every caller, admins too.

    As everywhere, a route that stores or forgets (a `Writer`'s) needs no level.

    :raises Forbidden: As `agent_scope` does. :raises AccessLimited: If the agent does not give it.
    """
    scope = agent_scope(request, name)
    if caller_of(request).role is Role.ADMIN:
        request.state.access = service_of(request).agents.access(scope)
        require_access(request, request.scope["route"].access)
    return scope


async def settle_access(request: Request) -> None:
    """Look up what the request's caller may read; an admin may read everything."""
    if caller_of(request).role is Role.ADMIN:
        request.scope["state"]["access"] = UNLIMITED
    else:
        await to_thread.run_sync(access_of, request)


def access_of(request: Request) -> AccessLevels:
    """What may be read with the request; looked up in the store the first time."""
    state = request.scope["state"]
    levels: AccessLevels | None = state.get("access")
    if levels is None:
        caller = caller_of(request)
        admin = caller.role is Role.ADMIN
        levels = UNLIMITED if admin else service_of(request).agents.access(caller.scope(Role.READ_ONLY, None))
        state["access"] = levels
    return levels


def require_access(request: Request, needed: Needs) -> None:
    """:raises AccessLimited: If the request may not read so much."""
    require_levels(access_of(request), needed, request.scope["state"]["namespace"])


def result_limit(request: Request, wanted: int) -> int:
    """How many results a search gives that is asked for so many."""
    return min(wanted, most_found(request) or wanted)


def most_found(request: Request) -> int | None:
    """How many results a search may give; None: as many as are asked for."""
    return None if access_of(request).full_memory else QUICK_RESULTS


_reader, _writer, _admin = (_guard() for _ in Role)
Reader = Annotated[Scope, Depends(_reader)]
Writer = Annotated[Scope, Depends(_writer)]
Admin = Annotated[Scope, Depends(_admin)]

GUARDS: Mapping[object, Role] = MappingProxyType(
    {_reader: Role.READ_ONLY, _writer: Role.READ_WRITE, _admin: Role.ADMIN}
)
"""What a route declares, and the least role that it takes."""

GIVEN: Mapping[object, Callable[[Mapping[str, Any]], Any]] = MappingProxyType(
    {
        **dict.fromkeys(GUARDS, itemgetter("scope")),
        _running_service: itemgetter("service"),
        _engine_of: lambda state: state["service"].engine,
    }
)
"""Dependencies that a route takes from the state of the request, without FastAPI's solving."""


# --- idempotency -----------------------------------------------------------------------------------------------------


IDEMPOTENCY_KEY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
MAX_KEY_CHARS = 255


async def once_of(
    request: Request,
    response: Response,
    key: Annotated[
        str | None,
        Header(
            alias=IDEMPOTENCY_KEY_HEADER,
            min_length=1,
            max_length=MAX_KEY_CHARS,
            description="A unique key for this request, such as a UUID. A repetition within 24 hours creates nothing "
            f"and returns what the first request created, with `{REPLAYED_HEADER}: true`.",
            examples=["7f1f9c1e-3c55-4a1c-9d0e-2b5f0c6f7d11"],
        ),
    ] = None,
) -> Once | None:
    if key is None:
        return None

    def replayed() -> None:
        response.headers[REPLAYED_HEADER] = "true"

    route: str = request.scope["route"].name
    return Once.of(route, key, [request.url.path, await _body(request)], replayed)


async def _body(request: Request) -> Any:
    try:
        return await request.json()
    except json.JSONDecodeError:  # which is refused when the fields are looked at
        return None


MakeOnce = Annotated[Once | None, Depends(once_of)]
"""Declared by a route that creates something, and passed to the function that does; None without the header."""
