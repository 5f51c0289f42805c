"""Refuses pages of other sites: a browser names the page's origin, and a page may rebind its own name to our address.

Programs send no Origin. A page may call if CORS_ORIGINS names its origin, or if it came from this very service: its
origin is what Host names, and that is a name of ours. Where any name is answered to, only an address counts as one,
since nobody can rebind that.
"""

from __future__ import annotations

from ipaddress import ip_address

from starlette.datastructures import Headers

from souvenir.api.host_check import LOOPBACK_NAMES, allowed_names, without_port
from souvenir.errors import OriginNotAllowed
from souvenir.settings import Settings

ANY = "*"


class OriginCheck:
    def __init__(self, settings: Settings) -> None:
        self._origins = frozenset(origin.lower().rstrip("/") for origin in settings.cors_origins)
        self._names = allowed_names(settings)

    def require_allowed(self, headers: Headers) -> None:
        """:raises OriginNotAllowed: If a page sends this that may not."""
        sent = headers.getlist("origin")
        if sent and not (len(sent) == 1 and self._is_allowed(sent[0].strip().lower(), headers.get("host", ""))):
            raise OriginNotAllowed

    def _is_allowed(self, origin: str, host: str) -> bool:
        if ANY in self._origins or origin in self._origins:
            return True
        host = host.strip().lower()
        return self._is_ours(without_port(host)) and origin in {f"http://{host}", f"https://{host}"}

    def _is_ours(self, name: str) -> bool:
        return name in LOOPBACK_NAMES or (_is_address(name) if self._names is None else name in self._names)


def _is_address(name: str) -> bool:
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
