"""Addresses and keys of other servers, as the settings give them. No error repeats one."""

from __future__ import annotations

from urllib.parse import urlsplit

from souvenir.errors import InvalidRequest

OPENAI_URL = "https://api.openai.com/v1"

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def checked_url(url: str, *, setting: str) -> str:
    """The address without a slash at its end.

    :param setting: The name to correct, if it is none.
    :raises InvalidRequest: If nobody can be reached there.
    """
    stripped = url.strip().rstrip("/")
    if not _is_web_address(stripped):
        raise InvalidRequest(f"{setting} is no address such as http://gpu:8000/v1; correct it")
    return stripped


def checked_key(key: str | None, *, setting: str) -> str | None:
    """The key as it can stand in a header.

    :raises InvalidRequest: If it cannot.
    """
    if key is None:
        return None
    stripped = key.strip()
    if not (stripped.isascii() and stripped.isprintable()):
        raise InvalidRequest(f"{setting} holds signs that no key has; copy it anew")
    return stripped


def is_loopback(url: str) -> bool:
    """Whether the address is of this machine, which no proxy leads to."""
    return urlsplit(url).hostname in _LOOPBACK


def _is_web_address(url: str) -> bool:
    from httpx2 import URL, InvalidURL

    try:
        parts = urlsplit(url)
        # What later would not be an error of ours: a host without a name in DNS, a port that is none.
        (parts.hostname or "").encode("idna")
        URL(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except (ValueError, InvalidURL):
        return False
