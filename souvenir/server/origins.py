"""Checks of the Host, Origin and Sec-Fetch-Site headers, which keep web pages in a browser away from the service.

A page can reach a service that needs no key in two ways. It can resolve its own name to the service's address (DNS
rebinding): then Host has the name of the page, and only known names are answered. Or it can send a request across
sites: then Origin and Sec-Fetch-Site name the page, and an unsafe method is answered for allowed origins only.
Programs send neither header. `X-Forwarded-Host` is not read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from ipaddress import IPv6Address
from urllib.parse import urlsplit

from starlette.types import Scope

from souvenir.core.errors import HostNotAllowed, OriginNotAllowed
from souvenir.core.network_settings import is_loopback
from souvenir.core.settings import Settings

ANY_ORIGIN = "*"
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

MAX_SEEN_HOSTS = 64
"""Maximum number of allowed Host headers that are cached."""

_OF_OWN_PAGE = frozenset({b"same-origin", b"none"})
"""Values of Sec-Fetch-Site for pages of the service and for navigation by the user; pages cannot set it."""


class HostCheck:
    """Names that Host may hold, in lower case; the port does not matter.

    Loopback names, those of ALLOWED_HOSTS and that of PUBLIC_URL are always allowed. Any other name is too if HOST is
    a network address, ALLOWED_HOSTS is unset and every request needs a key: a page that rebinds its name has no key.
    """

    def __init__(self, settings: Settings) -> None:
        public = urlsplit(settings.public_url or "").hostname
        known = [*settings.allowed_hosts, *([] if public is None else [public])]
        self._names = LOOPBACK_NAMES | {_as_in_header(name.lower()) for name in known}
        self._always_checked = bool(settings.allowed_hosts) or is_loopback(settings.host)
        self.allowed: set[bytes] = set()
        """Cached Host headers that were found allowed."""

    def require_allowed(self, scope: Scope, headers: Mapping[bytes, bytes], *, needs_key: bool) -> None:
        """:param needs_key: Whether every request needs a key. :raises HostNotAllowed: If the name is unknown."""
        if [name for name, _ in scope["headers"]].count(b"host") > 1:
            raise HostNotAllowed
        host = headers.get(b"host", b"")
        if _without_port(host.decode("latin-1").strip().lower()) in self._names:
            if len(self.allowed) < MAX_SEEN_HOSTS:
                self.allowed.add(host)
        elif self._always_checked or not needs_key:
            raise HostNotAllowed


class OriginCheck:
    """Origins whose pages may send unsafe requests: those of CORS_ORIGINS and the service's own.

    Its own origin is the one that Host names, so the host is checked first.
    """

    def __init__(self, settings: Settings) -> None:
        self._origins = frozenset(allowed_origins(settings))

    def require_allowed(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """:raises OriginNotAllowed: If the request comes from a page of another origin."""
        if scope["method"] in SAFE_METHODS:
            return
        sent = [value for name, value in scope["headers"] if name == b"origin"]
        origin = sent[0].decode("latin-1").strip().lower() if sent else ""
        if len(sent) > 1:
            raise OriginNotAllowed
        if origin and (ANY_ORIGIN in self._origins or origin in self._origins):
            return
        site = headers.get(b"sec-fetch-site")
        host = headers.get(b"host", b"").decode("latin-1").strip().lower()
        is_own = site in _OF_OWN_PAGE if site else not origin or origin in {f"http://{host}", f"https://{host}"}
        if not is_own:
            raise OriginNotAllowed


def allowed_origins(settings: Settings) -> Collection[str]:
    """The origins of CORS_ORIGINS as browsers send them."""
    return [origin.lower().rstrip("/") for origin in settings.cors_origins]


def _as_in_header(name: str) -> str:
    """An IPv6 address of the settings in brackets, and a name without a port."""
    try:
        return f"[{IPv6Address(name)}]"
    except ValueError:
        return _without_port(name)


def _without_port(host: str) -> str:
    """`name:80` and `[::1]:80` without their ports; a bare IPv6 address in brackets keeps its colons."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isascii() and port.isdigit() else host
