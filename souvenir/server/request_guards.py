"""Authentication: every route declares `Reader`, `Writer` or `Admin`, unless its path is open.

Each of them is a `Scope`, which the engine enforces. The caller is established once per request, before the body is
read, and checked again only if keys changed while the request waited for its body or its turn.

An agent's access levels limit what every key reads that is not an admin's. Such a key has one namespace, so its levels
are looked up once a request, where they are needed. Each route declares the levels that it needs; those that store or
delete need none, since an agent may store what it is given. A field of an answer that holds stored content is annotated
with the levels that it needs, and is empty or left out without them:

    content: Annotated[str, OF_CONVERSATION]

A search needs less than what it shows, since single texts are found with quick access: fields are not filtered where a
route or a tool declares `SEARCHING`, and `result_limit` says how many results there may be. A route below
`/api/locrits/` names its agent with `locrit_scope` instead of `agent_scope`: there the levels hold for admins too.

A route that creates something declares `MakeOnce`: with an Idempotency-Key, a repeated request is done once and gets
the same answer.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from types import MappingProxyType, NoneType
from typing import Annotated, Any, get_args, get_origin

from anyio import to_thread
from fastapi import Depends, Header, Request, Response, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from souvenir.access.authenticator import ANONYMOUS, Authenticator, Caller
from souvenir.core.errors import AccessLimited, Forbidden, InvalidRequest, Unauthorized
from souvenir.core.labels import client_named
from souvenir.core.types import DEFAULT_NAMESPACE, UNLIMITED, AccessLevel, AccessLevels, Role, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.server.service import Service
from souvenir.store.idempotency import Once

OPEN_PATHS = frozenset(
    {
        "/health",
        "/health/ready",
        "/openapi.json",
        "/",
        "/ui",
        "/ui/assets/{version}/{name:path}",
        "/docs",
        "/docs/swagger-ui-bundle.js",
        "/docs/swagger-ui.css",
        "/docs/favicon.png",
    }
)
"""Paths answered without a key; they return no stored data."""

MAX_NAMESPACE_CHARS = 200

CLIENT_HEADER = b"x-memories-client"
"""Names the program that sends a request; it is noted as `origin_client` with the memories that the request writes."""

OWN_KEY_HEADER = b"x-souvenir-key"
"""Carries the key of this service where Authorization and X-API-Key carry those of a vendor."""

_key_header = APIKeyHeader(
    name="X-API-Key",
    auto_error=False,
    description="A key created with `POST /api/keys`, or the value of the setting API_KEY.",
)
_bearer = HTTPBearer(
    auto_error=False, description="The same key as `Authorization: Bearer KEY` or `Authorization: Token KEY`."
)
_SCHEMES = frozenset({"bearer", "token"})

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
"""Maximum number of search results with quick access."""


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
    return credentials.encode("latin-1") if credentials and scheme.lower() in _SCHEMES else None


def part_credentials(request: Request) -> None:
    """Take the credentials of a vendor out of the headers that `sent_key` reads.

    They are a vendor's if `OWN_KEY_HEADER` carries the key of this service, or if the service needs none.
    """
    state = request.scope["state"]
    headers, own = state["headers"], state["headers"].pop(OWN_KEY_HEADER, None)
    state["vendor_credentials"] = own is not None or state["service"].authenticator.is_open
    if state["vendor_credentials"]:
        headers.pop(b"authorization", None)
        headers.pop(b"x-api-key", None)
    if own:
        headers[b"x-api-key"] = own


def address_of(request: Request) -> str:
    """The address of the client: the peer, or the one reported by a trusted proxy."""
    client = request.scope.get("client")
    return client[0] if client else "unknown"


def admit(request: Request) -> Caller:
    """Establish the caller, counted as a use of their key.

    :raises TooManyAttempts: If the address sent too many wrong keys. :raises Unauthorized: Without a valid key.
    :raises RequestQuotaExceeded: If the key sent too many requests in the last minute.
    """
    state = request.scope["state"]
    authenticator = state["service"].authenticator
    state["keys"] = authenticator.keys.generation
    sent = sent_key(state["headers"])
    caller: Caller = authenticator.authenticate(sent, address_of(request) if sent else "")
    if CLIENT_HEADER in state["headers"]:
        caller = _with_client(caller, state["headers"])
    state["caller"] = caller
    if caller.key is not None:
        authenticator.keys.admit(caller.key)
    return caller


def admit_as(request: Request, caller: Caller, generation: int) -> Caller:
    """Note the caller of a request, which was established otherwise than by `admit`.

    :param generation: That of the keys, from before the caller was established.
    """
    state = request.scope["state"]
    state["keys"] = generation
    if CLIENT_HEADER in state["headers"]:
        caller = _with_client(caller, state["headers"])
    state["caller"] = caller
    return caller


def admit_again(request: Request) -> Caller:
    """Establish the caller of a request whose key may have changed since it was admitted.

    :raises Unauthorized: If the key was revoked or replaced in the meantime.
    """
    state = request.scope["state"]
    authenticator = state["service"].authenticator
    generation = authenticator.keys.generation
    return admit_as(request, authenticator.reauthenticate(sent_key(state["headers"])), generation)


def _with_client(caller: Caller, headers: Mapping[bytes, bytes]) -> Caller:
    """Return the caller with the kind of program that a header names."""
    name = headers[CLIENT_HEADER].decode("latin-1").strip()
    return replace(caller, client=client_named(name)) if name else caller


def charged_caller(request: Request) -> str:
    """The caller to which a request is charged: its key, or its address if it needs none."""
    caller: Caller | None = request.scope["state"].get("caller")
    return address_of(request) if caller is None or caller.actor == ANONYMOUS else caller.actor


def presumed_caller(authenticator: Authenticator, headers: Mapping[bytes, bytes], address: str) -> str:
    """The caller to which a request would be charged, before authentication; with a wrong key, its address."""
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
    """:raises InvalidRequest: If X-Namespace is invalid. :raises Forbidden: If the caller lacks permission."""
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
"""Path segments that cannot be names: clients resolve them before sending."""


def namespace_name(text: str) -> str:
    """:raises ValueError: If it is not a valid namespace."""
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
    """Return the scope of the agent that a request names in its path or body; its caller was already authenticated.

    :raises Forbidden: If their key is for another namespace, or for some of its sources only.
    """
    scope = caller_of(request).scope(Role.READ_ONLY, agent_name)
    if scope.sources is not None:
        raise Forbidden("Conversations need a key of the agent's whole namespace, and yours is for some sources only")
    request.state.namespace = scope.namespace
    return scope


def locrit_scope(request: Request, name: str) -> Scope:
    """The same for a route below `/api/locrits/`, where the access levels also apply to admins.

    As on other routes, storing and deleting (a `Writer`'s) needs no level.

    :raises Forbidden: As `agent_scope` does. :raises AccessLimited: If the agent does not grant it.
    """
    scope = agent_scope(request, name)
    if caller_of(request).role is Role.ADMIN:
        request.state.access = service_of(request).agents.access(scope)
        require_access(request, request.scope["route"].access)
    return scope


async def settle_access(request: Request) -> None:
    """Look up the access levels of the request's caller; an admin may read everything."""
    if caller_of(request).role is Role.ADMIN:
        request.scope["state"]["access"] = UNLIMITED
    else:
        await to_thread.run_sync(access_of, request)


def access_of(request: Request) -> AccessLevels:
    """Return the access levels of the request; they are read from the store the first time."""
    state = request.scope["state"]
    levels: AccessLevels | None = state.get("access")
    if levels is None:
        caller = caller_of(request)
        admin = caller.role is Role.ADMIN
        levels = UNLIMITED if admin else service_of(request).agents.access(caller.scope(Role.READ_ONLY, None))
        state["access"] = levels
    return levels


def require_access(request: Request, needed: Needs) -> None:
    """:raises AccessLimited: If the request lacks a needed level."""
    require_levels(access_of(request), needed, request.scope["state"]["namespace"])


def result_limit(request: Request, wanted: int) -> int:
    """Return the number of results of a search with this limit."""
    return min(wanted, most_found(request) or wanted)


def most_found(request: Request) -> int | None:
    """Maximum number of search results; None for no limit."""
    return None if access_of(request).full_memory else QUICK_RESULTS


_reader, _writer, _admin = (_guard() for _ in Role)
Reader = Annotated[Scope, Depends(_reader)]
Writer = Annotated[Scope, Depends(_writer)]
Admin = Annotated[Scope, Depends(_admin)]

GUARDS: Mapping[object, Role] = MappingProxyType(
    {_reader: Role.READ_ONLY, _writer: Role.READ_WRITE, _admin: Role.ADMIN}
)
"""Dependency types that a route declares, with the minimum role of each."""

GIVEN: Mapping[object, Callable[[Mapping[str, Any]], Any]] = MappingProxyType(
    {
        **dict.fromkeys(GUARDS, itemgetter("scope")),
        _running_service: itemgetter("service"),
        _engine_of: lambda state: state["service"].engine,
    }
)
"""Dependencies taken from the state of the request, without FastAPI's solver."""


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
    except json.JSONDecodeError:  # which is refused when the fields are validated
        return None


MakeOnce = Annotated[Once | None, Depends(once_of)]
"""Declared by a route that creates something, and passed to the function that does; None without the header."""


Needs = frozenset[AccessLevel]

NOTHING: Needs = frozenset()
SEARCHING: Needs = frozenset({AccessLevel.QUICK})
REMEMBERED: Needs = frozenset({AccessLevel.FULL})
SAID: Needs = frozenset({AccessLevel.LOGS})
EVERYTHING: Needs = REMEMBERED | SAID


@dataclass(frozen=True, slots=True)
class StoredContent:
    """An annotation of a field of an answer: the levels without which it is not shown."""

    needs: Needs


OF_MEMORY = StoredContent(REMEMBERED)
OF_CONVERSATION = StoredContent(SAID)
OF_BOTH = StoredContent(EVERYTHING)

_EMPTY: Mapping[Any, Any] = MappingProxyType({NoneType: None, str: "", list: [], dict: {}})
"""Values of required fields that are not shown."""


def require_levels(given: AccessLevels, needed: Needs, agent: str) -> None:
    """:raises AccessLimited: If a needed level is not given."""
    missing = given.missing(needed)
    if missing:
        raise AccessLimited(agent, missing)


def shows_stored_content(answer: Any) -> bool:
    """Return True if a type of answers has fields that are not shown without a level.

    :raises TypeError: If such a field is required and has no empty value.
    """
    models = _models_in(answer, set())
    fields = [field for model in models for field in model.model_fields.values() if _needs_of(field)]
    for field in fields:
        if field.is_required() and _type_of(field) not in _EMPTY:
            raise TypeError(f"{field} holds stored content, so it must be optional, a text, a list or an object")
    return bool(fields)


def shown(answer: Any, given: AccessLevels) -> Any:
    """The answer without the fields that need a level that is not given; required ones are empty."""
    if given == UNLIMITED:
        return answer
    if isinstance(answer, list):
        return [shown(one, given) for one in answer]
    if isinstance(answer, dict):
        return {name: shown(one, given) for name, one in answer.items()}
    if not isinstance(answer, BaseModel):
        return answer
    changed, hidden = {}, set()
    for name, field in type(answer).model_fields.items():
        if name not in answer.model_fields_set:
            continue
        if not given.missing(_needs_of(field)):
            changed[name] = shown(getattr(answer, name), given)
        elif field.is_required():
            changed[name] = _EMPTY[_type_of(field)]
        else:
            hidden.add(name)
    left = answer.model_copy(update={**changed, **dict.fromkeys(hidden)})
    left.model_fields_set.difference_update(hidden)
    return left


def _needs_of(field: FieldInfo) -> Needs:
    return frozenset(level for one in field.metadata if isinstance(one, StoredContent) for level in one.needs)


def _type_of(field: FieldInfo) -> Any:
    """The type of a field without its parameters; NoneType if it may be null."""
    annotation = field.annotation
    return NoneType if NoneType in get_args(annotation) else get_origin(annotation) or annotation


def _models_in(annotation: Any, seen: set[Any]) -> Iterator[type[BaseModel]]:
    """The models that a type of answers is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation not in seen:
            seen.add(annotation)
            yield annotation
            for field in annotation.model_fields.values():
                yield from _models_in(field.annotation, seen)
    else:
        for part in get_args(annotation):
            yield from _models_in(part, seen)
