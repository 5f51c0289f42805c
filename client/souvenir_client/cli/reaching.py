"""The checks of the way to the service: name, port, TLS, clock. `/health` is asked directly, for what the net says."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from urllib.parse import urlsplit

import httpx

from souvenir_client.calls import trusted
from souvenir_client.cli.findings import Finding, Status

TOLERATED_CLOCK_S = 5.0
"""`Date` counts whole seconds and an answer takes its time; beyond that, times in questions begin to be wrong."""


def reached(url: str, timeout_s: float) -> tuple[Finding, httpx.Response | None]:
    """Whether anything answers, and its answer."""
    try:
        answered = httpx.get(f"{url}/health", timeout=timeout_s, verify=trusted(url))
    except httpx.HTTPError as error:
        return Finding("reachable", Status.FAILED, _why_not_reached(url, error, timeout_s)), None
    elapsed_ms = answered.elapsed.total_seconds() * 1000
    return Finding("reachable", Status.OK, f"{url} answered in {elapsed_ms:.0f} ms."), answered


def secrecy(url: str, *, sends_key: bool) -> Finding:
    """Whether a key travels where others can read it."""
    if is_loopback(url):
        return Finding("transport", Status.OK, "The service is on this machine.")
    if urlsplit(url).scheme == "https":
        return Finding("transport", Status.OK, "Everything travels by TLS.")
    said = "The key and all texts travel" if sends_key else "All texts travel"
    return Finding(
        "transport",
        Status.WARNING,
        f"{said} to another machine without TLS: put a proxy with TLS in front of the service, and use https.",
    )


def clock(answered: httpx.Response, now: datetime) -> Finding:
    """Whether both machines have the same time."""
    try:
        there = parsedate_to_datetime(answered.headers["Date"])
    except (KeyError, ValueError):
        return Finding("clock", Status.WARNING, "The answer has no date, so the clocks could not be compared.")
    # `Date` is cut to seconds: half a second is what it is too early on average.
    ahead_s = (there - now).total_seconds() + 0.5
    if abs(ahead_s) <= TOLERATED_CLOCK_S:
        return Finding("clock", Status.OK, "The clocks agree.")
    way = "ahead of" if ahead_s > 0 else "behind"
    return Finding(
        "clock",
        Status.WARNING,
        f"The service's clock is {abs(ahead_s):.0f} s {way} this machine's: let both follow a time server (NTP).",
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
                return f"The name {parts.hostname} is not known (DNS): check it, or name another address with --server."
            case ConnectionRefusedError():
                return f"Nothing listens at {place}: start the service (souvenir serve), or name another address."
            case ssl.SSLCertVerificationError(verify_message=why):
                return (
                    f"The certificate of {place} is not trusted ({why}): name its authority's file in SSL_CERT_FILE, "
                    "or use the name that it was made for."
                )
            case ConnectionResetError():
                return f"{place} cuts the connection: use https:// if it speaks TLS, or name another port."
            case ssl.SSLError():
                return f"{place} does not speak TLS: use http:// if that is where the service itself listens."
    match error:
        case httpx.TimeoutException():
            return (
                f"{place} gave no answer within {timeout_s:g} s: look whether the service hangs or a firewall drops "
                "packets, or wait longer with --timeout."
            )
        case httpx.RemoteProtocolError():
            return f"{place} does not speak HTTP: use https:// if it speaks TLS, or name another port."
        case _:
            return f"{place} cannot be reached: {error}."


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
