"""The vendors of models: their addresses and keys, and the headers that are passed on to them and back.

The key of this service is never sent to a vendor. A vendor's key is that of the settings, or else the one that the
caller sent; `part_credentials` (souvenir.server.request_guards) tells which header carries which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from souvenir.compat.proxy.answers import ENCODINGS
from souvenir.core.errors import VendorKeyMissing
from souvenir.core.settings import Settings
from souvenir.models.providers.endpoints import ANTHROPIC_URL, OPENAI_URL, checked_key, checked_url

RawHeaders = Iterable[tuple[bytes, bytes]]

CREDENTIALS = frozenset({b"authorization", b"x-api-key"})

_OF_ONE_CONNECTION = frozenset(
    {
        b"connection",
        b"expect",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_NOT_FOR_VENDORS = frozenset(
    {
        b"accept-encoding",
        b"cf-connecting-ip",
        b"content-length",
        b"cookie",
        b"forwarded",
        b"host",
        b"idempotency-key",
        b"origin",
        b"referer",
        b"via",
        b"x-namespace",
        b"x-real-ip",
    }
)
OWN_PREFIX = b"x-souvenir-"
_PREFIXES_NOT_FOR_VENDORS = (OWN_PREFIX, b"x-memories-", b"x-forwarded-", b"sec-fetch-")
_NOT_FOR_CALLERS = frozenset({b"date", b"server", b"set-cookie", b"alt-svc", b"strict-transport-security"})
"""Headers about the vendor's own address, and those that this server sets itself."""


_WITHOUT_BODY = frozenset({204, 304})


PROXIED_HEADER = b"x-souvenir-proxied"
"""Marks what the proxy sends, by which it recognises its own calls."""


class Vendor(StrEnum):
    OPENAI = "OpenAI"
    ANTHROPIC = "Anthropic"


@dataclass(frozen=True, slots=True)
class VendorEndpoint:
    """:param key: That of the settings.

    :param needs_key: True at the vendor's own address; other servers may need none.
    """

    vendor: Vendor
    base_url: str
    key: str | None = field(repr=False)
    needs_key: bool

    @classmethod
    def of(cls, settings: Settings, vendor: Vendor) -> VendorEndpoint:
        """:raises InvalidRequest: If an address or a key is invalid; the message names the setting."""
        if vendor is Vendor.ANTHROPIC:
            url = checked_url(settings.anthropic_base_url, setting="ANTHROPIC_BASE_URL")
            key = checked_key(settings.proxy_anthropic_api_key, setting="PROXY_ANTHROPIC_API_KEY")
            return cls(vendor, f"{url.removesuffix('/v1')}/v1", key, url == ANTHROPIC_URL)
        url = checked_url(settings.openai_base_url, setting="OPENAI_BASE_URL")
        return cls(
            vendor, url, checked_key(settings.proxy_openai_api_key, setting="PROXY_OPENAI_API_KEY"), url == OPENAI_URL
        )

    def headers(self, sent: RawHeaders, *, callers_key: bool) -> list[tuple[bytes, bytes]]:
        """Return the headers for the vendor.

        :param sent: Those of the caller. :param callers_key: Whether their credentials are for the vendor.
        :raises VendorKeyMissing: If the vendor needs a key and there is none.
        """
        sent = list(sent)
        passed = [(name, value) for name, value in _of_all_connections(sent) if _is_for_vendors(name)]
        passed.append((b"accept-encoding", _encodings(sent)))
        credentials = [(name, value) for name, value in sent if name in CREDENTIALS and value] if callers_key else []
        if self.key is not None:
            credentials = [self._credential(self.key)]
        if self.needs_key and not credentials:
            raise VendorKeyMissing(self.vendor)
        return [*passed, *credentials, (PROXIED_HEADER, b"1")]

    def _credential(self, key: str) -> tuple[bytes, bytes]:
        if self.vendor is Vendor.ANTHROPIC:
            return b"x-api-key", key.encode()
        return b"authorization", f"Bearer {key}".encode()


def for_caller(headers: RawHeaders, status: int) -> list[tuple[bytes, bytes]]:
    """Return the headers of a vendor's answer for the caller; a length only where it is that of the body."""
    own = [(name.lower(), value) for name, value in headers]
    dropped = _NOT_FOR_CALLERS
    if status in _WITHOUT_BODY or any(name == b"transfer-encoding" for name, _ in own):
        dropped |= {b"content-length"}
    return [
        (name, value)
        for name, value in _of_all_connections(own)
        if name not in dropped and not name.startswith(OWN_PREFIX)
    ]


def without_keys(sent: RawHeaders, is_key: Callable[[bytes], bool]) -> list[tuple[bytes, bytes]]:
    """Return the headers of a caller without credentials that are keys of this service."""
    return [(name, value) for name, value in sent if name not in CREDENTIALS or not is_key(value.rpartition(b" ")[2])]


def _encodings(sent: RawHeaders) -> bytes:
    """The compressions that both the caller and this service can unpack."""
    asked = b",".join(value for name, value in sent if name == b"accept-encoding").lower()
    named = {part.partition(b";")[0].strip() for part in asked.split(b",")}
    return b", ".join(one.encode() for one in ENCODINGS if one.encode() in named) or b"identity"


def _of_all_connections(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Leave out headers that are about one connection, also those that `Connection` names."""
    headers = list(headers)
    named = {part.strip().lower() for name, value in headers if name == b"connection" for part in value.split(b",")}
    return [(name, value) for name, value in headers if name not in _OF_ONE_CONNECTION | named]


def _is_for_vendors(name: bytes) -> bool:
    return name not in _NOT_FOR_VENDORS | CREDENTIALS and not name.startswith(_PREFIXES_NOT_FOR_VENDORS)


def vendor_of(path: str, headers: Mapping[bytes, bytes]) -> Vendor:
    """The vendor of a request; a list of models is Anthropic's if its header says so."""
    lists = path.startswith("/v1/models") and b"anthropic-version" in headers
    anthropic = path.startswith("/v1/messages") or lists
    return Vendor.ANTHROPIC if anthropic else Vendor.OPENAI
