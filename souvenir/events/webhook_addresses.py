"""Addresses that webhooks may be sent to, and one POST to such an address.

A webhook makes the service connect to an address that a caller chose, so only public addresses are allowed, and those
that the operator named in WEBHOOK_ALLOWED_HOSTS. The name is resolved once for each delivery; every address that it has
is checked, and the connection is made to one that was, so that a name which changes between check and connection gains
nothing. The spelling of the host does not matter either, since what is checked is the address it stands for.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from threading import Timer
from urllib.parse import urlsplit

from souvenir.core.errors import AddressNotAllowed

MAX_URL_CHARS = 2_000
MAX_RESPONSE_BYTES = 4 * 1024

Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Sequence[str]]
"""Returns the IP addresses of a host. :raises OSError: If it has none."""

_NAT64 = IPv6Network("64:ff9b::/96")
_NOT_FOR_WEBHOOKS = (
    # Special-purpose blocks (RFC 6890 and its registries) that Python counts as global, all of them or in part
    ip_network("192.0.0.0/24"),  # protocol assignments
    ip_network("192.31.196.0/24"),  # AS112
    ip_network("192.52.193.0/24"),  # automatic multicast tunnelling
    ip_network("192.88.99.0/24"),  # relays of 6to4
    ip_network("192.175.48.0/24"),  # AS112
    ip_network("2001::/23"),  # protocol assignments, with Teredo, which contains an IPv4 address
    ip_network("2620:4f:8000::/48"),  # AS112
    ip_network("3fff::/20"),  # documentation
    ip_network("5f00::/16"),  # segment routing
    ip_network("64:ff9b:1::/48"),  # NAT64 of a site
    ip_network("168.63.129.16/32"),  # the platform of Azure, reachable from each of its machines
)
_BY_SCHEME = {"http": 80, "https": 443}


class DeliveryFailed(Exception):
    """A delivery without a 2xx answer. The message has nothing of the answer's body.

    :param status: The status of the answer, if there was one.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of an address. `path` includes the query."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, url: str) -> Target:
        """:raises AddressNotAllowed: If it is not an HTTP address, or contains a user name or a password."""
        try:
            parts = urlsplit(url)
            port = parts.port
            host = (parts.hostname or "").encode("idna").decode("ascii")
        except ValueError as error:
            raise AddressNotAllowed("it is not a URL such as https://example.com/hook") from error
        if parts.scheme not in _BY_SCHEME or not host or port == 0:
            raise AddressNotAllowed("it is not a URL such as https://example.com/hook")
        if parts.username is not None or parts.password is not None:
            raise AddressNotAllowed("it contains a user name or a password; verify the signature instead")
        if not url.isascii() or not url.isprintable() or " " in url:
            raise AddressNotAllowed("it contains characters that a URL must escape")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return cls(parts.scheme, host, port or _BY_SCHEME[parts.scheme], path)


def resolved(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, as the system resolves them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_public(address: Address) -> bool:
    """Return whether an address is on the public Internet, judged by the IPv4 address that it contains, if any."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address.is_site_local:
            return False
    kept = any(address in network for network in _NOT_FOR_WEBHOOKS if network.version == address.version)
    return address.is_global and not (address.is_multicast or address.is_reserved or kept)


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """:param allowed: Host names, addresses and networks that may be private.

    :param resolve: By default the system's.
    """

    allowed: tuple[str, ...] = ()
    resolve: Resolver = resolved

    def checked(self, url: str) -> tuple[Target, str]:
        """Return the target and the address to connect to.

        :raises AddressNotAllowed: If it is not a web address, or one of its addresses is not allowed.
        :raises OSError: If the host has no address.
        """
        target = Target.of(url)
        addresses = self.resolve(target.host, target.port)
        if not addresses:
            raise OSError(f"{target.host} has no address")
        if target.host.lower() not in {name.lower() for name in self.allowed}:
            for address in addresses:
                if not self._allows(ip_address(address.partition("%")[0])):
                    raise AddressNotAllowed(
                        "its host has an address that is not public; an operator allows it with WEBHOOK_ALLOWED_HOSTS"
                    )
        return target, addresses[0]

    def _allows(self, address: Address) -> bool:
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        return is_public(address) or any((mapped or address) in network for network in _networks(self.allowed))


@cache
def _networks(names: tuple[str, ...]) -> Sequence[frozenset[Address] | IPv6Network]:
    found = []
    for name in names:
        with suppress(ValueError):  # a host name
            found.append(ip_network(name, strict=False))
    return found  # type: ignore[return-value]


class _Connection(http.client.HTTPConnection):
    """A connection to an address that was checked; TLS and `Host` use the name."""

    def __init__(self, target: Target, address: str, timeout_s: float) -> None:
        super().__init__(target.host, target.port, timeout=timeout_s)
        self.default_port = _BY_SCHEME[target.scheme]
        self._address = address
        self._tls = _tls() if target.scheme == "https" else None

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), self.timeout)
        if self._tls is not None:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self.host)

    def cut(self) -> None:
        """Shut down the connection from another thread, which wakes the one that waits for it."""
        with suppress(OSError, AttributeError):
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def post(policy: AddressPolicy, url: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float) -> int:
    """Send a body and return the status of the answer, which is 2xx. Redirects are not followed.

    :param timeout_s: Limit from the connection to the end of the answer.
    :raises DeliveryFailed: Otherwise.
    """
    try:
        target, address = policy.checked(url)
    except AddressNotAllowed as error:
        raise DeliveryFailed(f"the address is not allowed: {error.reason}") from error
    except OSError as error:
        raise DeliveryFailed("the host has no address") from error
    connection = _Connection(target, address, timeout_s)
    timer = Timer(timeout_s, connection.cut)
    timer.daemon = True
    timer.start()
    try:
        connection.request("POST", target.path, body, dict(headers))
        response = connection.getresponse()
        response.read(MAX_RESPONSE_BYTES)
    except TimeoutError as error:
        raise DeliveryFailed(f"no answer within {timeout_s:g} s") from error
    except (OSError, http.client.HTTPException) as error:
        reason = f"no answer within {timeout_s:g} s" if not timer.is_alive() else f"{type(error).__name__}"
        raise DeliveryFailed(f"the connection failed: {reason}") from error
    finally:
        timer.cancel()
        connection.close()
    if 300 <= response.status < 400:
        raise DeliveryFailed("the answer is a redirect, which is not followed; register its target", response.status)
    if not 200 <= response.status < 300:
        raise DeliveryFailed(f"the answer has the status {response.status}", response.status)
    return response.status
