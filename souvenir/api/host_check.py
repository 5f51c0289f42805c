"""Refuses requests for names that are not ours: a page that rebinds its own name to this address gets no answer.

On a loopback address only loopback names and those of ALLOWED_HOSTS are answered; on another one any name is, unless
ALLOWED_HOSTS is set. The port does not matter.
"""

from __future__ import annotations

from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from souvenir.api.errors import error_response
from souvenir.errors import HostNotAllowed
from souvenir.settings import Settings

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


def allowed_names(settings: Settings) -> frozenset[str] | None:
    """What Host may say, in lower case; None: anything."""
    if settings.allowed_hosts or is_loopback(settings.host):
        return LOOPBACK_NAMES | {name.lower() for name in settings.allowed_hosts}
    return None


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class HostCheck:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._answers(Headers(scope=scope).getlist("host")):
            return await self._app(scope, receive, send)
        error = HostNotAllowed()
        scope["state"]["error_code"] = error.code
        return await error_response(scope["state"], error.status, error.code, error.message)(scope, receive, send)

    def _answers(self, hosts: list[str]) -> bool:
        return len(hosts) == 1 and without_port(hosts[0].strip().lower()) in self._names


def without_port(host: str) -> str:
    """`name:80` and `[::1]:80` without their ports; a bare IPv6 address in brackets keeps its colons."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isascii() and port.isdigit() else host
