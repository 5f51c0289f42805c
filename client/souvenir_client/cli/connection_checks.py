"""The findings of `souvenir doctor`, and its checks of the connection: DNS, port, TLS, clock."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import urlsplit

import httpx

from souvenir_client.calls import trusted


class Status(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence, with the remedy unless the status is ok."""

    check: str
    status: Status
    message: str


TOLERATED_CLOCK_S = 5.0
"""`Date` has a resolution of seconds and an answer takes time; beyond that, relative times in queries become wrong."""


def reached(url: str, timeout_s: float) -> tuple[Finding, httpx.Response | None]:
    """Check that the address answers; returns the response too."""
    try:
        answered = httpx.get(f"{url}/health", timeout=timeout_s, verify=trusted(url))
    except httpx.HTTPError as error:
        return Finding("reachable", Status.FAILED, _why_not_reached(url, error, timeout_s)), None
    elapsed_ms = answered.elapsed.total_seconds() * 1000
    return Finding("reachable", Status.OK, f"{url} answered in {elapsed_ms:.0f} ms."), answered


def secrecy(url: str, *, sends_key: bool) -> Finding:
    """Check that the key is sent over an encrypted connection."""
    if is_loopback(url):
        return Finding("transport", Status.OK, "The service runs on this machine.")
    if urlsplit(url).scheme == "https":
        return Finding("transport", Status.OK, "The connection uses TLS.")
    said = "The key and all texts are sent" if sends_key else "All texts are sent"
    return Finding(
        "transport",
        Status.WARNING,
        f"{said} to another machine without TLS: put a TLS proxy in front of the service, and use https.",
    )


def clock(answered: httpx.Response, now: datetime) -> Finding:
    """Check that the clocks of both machines agree."""
    try:
        there = parsedate_to_datetime(answered.headers["Date"])
    except (KeyError, ValueError):
        return Finding("clock", Status.WARNING, "The answer has no date: the clocks cannot be compared.")
    # `Date` is truncated to seconds, half a second too early on average.
    ahead_s = (there - now).total_seconds() + 0.5
    if abs(ahead_s) <= TOLERATED_CLOCK_S:
        return Finding("clock", Status.OK, "The clocks agree.")
    way = "ahead of" if ahead_s > 0 else "behind"
    return Finding(
        "clock",
        Status.WARNING,
        f"The service's clock is {abs(ahead_s):.0f} s {way} this machine's: synchronise both with NTP.",
    )


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def utc_now() -> datetime:
    return datetime.now(UTC)


def _why_not_reached(url: str, error: httpx.HTTPError, timeout_s: float) -> str:
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    for cause in _causes(error):
        match cause:
            case socket.gaierror():
                return (
                    f"The host name {parts.hostname} is unknown (DNS): check it, or set another address with --server."
                )
            case ConnectionRefusedError():
                return f"Nothing listens at {place}: start the service (souvenir serve), or set another address."
            case ssl.SSLCertVerificationError(verify_message=why):
                return (
                    f"The certificate of {place} is not trusted ({why}): set SSL_CERT_FILE to the file of its "
                    "authority, or use the host name of the certificate."
                )
            case ConnectionResetError():
                return f"{place} closes the connection: use https:// if it expects TLS, or another port."
            case ssl.SSLError():
                return f"{place} does not use TLS: use http:// if the service itself listens there."
    match error:
        case httpx.TimeoutException():
            return (
                f"{place} did not answer within {timeout_s:g} s: check the service and the firewall, or raise "
                "--timeout."
            )
        case httpx.RemoteProtocolError():
            return f"{place} does not use HTTP: use https:// if it expects TLS, or another port."
        case _:
            return f"{place} cannot be reached: {error}."


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
