"""Who asks, and of which namespace: the one dependency that every route declares, unless its path is open."""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import Depends, Header, Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from memory_engine import MemoryEngine
from souvenir.api.service import Service
from souvenir.errors import InvalidRequest, Unauthorized
from souvenir.settings import Settings
from souvenir.types import DEFAULT_NAMESPACE, Role, Scope

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

_key_header = APIKeyHeader(name="X-API-Key", auto_error=False, description="The value of the setting API_KEY.")
_bearer = HTTPBearer(auto_error=False, description="The same key as `Authorization: Bearer KEY`.")

_NamespaceHeader = Annotated[
    str | None,
    Header(
        alias="X-Namespace",
        description="The namespace that the request is about: 1 to 200 printable characters without `/`. "
        f"Without it: `{DEFAULT_NAMESPACE}`.",
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


async def sent_key(request: Request) -> str | None:
    """The key that a request carries, for a route that answers without one too."""
    return _either(await _key_header(request), await _bearer(request))


def _either(api_key: str | None, bearer: HTTPAuthorizationCredentials | None) -> str | None:
    return api_key or (bearer.credentials if bearer else None)


def key_is_right(settings: Settings, sent: str | None) -> bool:
    """Whether a request may pass. With no key configured none may be sent either: its sender would believe in it."""
    key = "" if settings.api_key is None else settings.api_key.get_secret_value()
    # Starlette reads header bytes as Latin-1; a key of other characters arrives as its UTF-8 bytes.
    return hmac.compare_digest((sent or "").encode("latin-1"), key.encode("utf-8"))


def require_key(settings: Settings, sent: str | None) -> None:
    """:raises Unauthorized: If the request may not pass."""
    if not key_is_right(settings, sent):
        raise Unauthorized("Invalid or missing API key")


async def authenticate(
    request: Request,
    api_key: Annotated[str | None, Security(_key_header)],
    bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
    namespace: _NamespaceHeader = None,
) -> Scope:
    """:raises Unauthorized: Without the right key. :raises InvalidRequest: If the namespace cannot be one."""
    sent = _either(api_key, bearer)
    require_key(service_of(request).settings, sent)
    scope = Scope(_namespace_named(namespace), actor="api-key" if sent else "anonymous")
    request.state.namespace = scope.namespace
    request.state.role = Role.ADMIN
    return scope


def _namespace_named(header: str | None) -> str:
    if header is None:
        return DEFAULT_NAMESPACE
    name = header.encode("latin-1").decode("utf-8", errors="replace").strip()
    if not 1 <= len(name) <= MAX_NAMESPACE_CHARS or "/" in name or "\ufffd" in name or not name.isprintable():
        raise InvalidRequest(f"X-Namespace takes 1 to {MAX_NAMESPACE_CHARS} printable characters without /, in UTF-8")
    return name


Reader = Annotated[Scope, Depends(authenticate)]
Writer = Annotated[Scope, Depends(authenticate)]
Admin = Annotated[Scope, Depends(authenticate)]
