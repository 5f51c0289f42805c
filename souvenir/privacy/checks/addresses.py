"""Network addresses: e-mail and IP. Impersonal ones are ignored: loopback, masks, file names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_network

from souvenir.privacy.checks.surroundings import ContextWords, Found, Says, is_part_of_longer, is_word

MAX_EMAIL_CHARS = 254
"""RFC 5321, 4.5.3.1.3."""

MAX_URL_USER_CHARS = 64
_IN_URL = re.compile(r"://[^\s/@]*$")

# `icon@2x.png` is an image file.
_FILE_ENDINGS = frozenset("png jpg jpeg gif svg webp avif css js ts jsx tsx mjs json html htm py txt md pdf".split())

_VERSION_WORDS = ContextWords(
    "address addr host server ip client from to at",
    "version versions v ver release released build firmware update updated upgrade upgraded downgrade driver section "
    "chapter oid ec",
)
_GOES_ON = re.compile(r"[0-9A-Za-z_]|:[0-9A-Za-z_:]")
_MASK = re.compile(r"255\.(?:255|0)\.(?:255|0)\.[0-9]+")
_IPV6_OF_MACHINES = tuple(map(ip_network, ("2000::/3", "fc00::/7", "fe80::/10", "64:ff9b::/96", "::ffff:0:0/96")))


def email(text: str, start: int, end: int) -> Sequence[Found]:
    """Return e-mail addresses; not the user of an SSH remote (``git@host:path``) or of a URL, and no file names."""
    address = text[start:end]
    local, _, domain = address.rpartition("@")
    local = local.lstrip(".-'+%")
    start = end - len(domain) - 1 - len(local)
    if not local or end - start > MAX_EMAIL_CHARS or ".." in address or domain[0] in ".-":
        return ()
    if domain.rpartition(".")[2].lower() in _FILE_ENDINGS or text[start - 1 : start] == "@":
        return ()
    if local == "git" and text[end : end + 1] in (":", "/"):
        return ()
    if _IN_URL.search(text, max(0, start - MAX_URL_USER_CHARS), start):
        return ()
    return [(start, end)]


def ip(text: str, start: int, end: int) -> Sequence[Found]:
    """Return IPv4 and IPv6 addresses of machines in a network; not versions, masks and loopback."""
    try:
        if ":" not in text[start:end]:
            IPv4Address(text[start:end])
            of_a_machine = _is_ipv4_of_a_machine(text, start, end)
        else:
            of_a_machine = _is_ipv6_of_a_machine(text, start, end, IPv6Address(text[start:end]))
    except AddressValueError:
        return ()
    return [(start, end)] if of_a_machine else ()


def _is_ipv4_of_a_machine(text: str, start: int, end: int) -> bool:
    if text.startswith(("127.", "0."), start) or _MASK.fullmatch(text, start, end):
        return False
    if is_part_of_longer(text, start, end, joints=""):
        return False
    # A range may be on either side of a hyphen, but not a name with a version.
    if text[start - 1 : start] == "-" and text[start - 2 : start - 1].isalpha():
        return False
    if text[end : end + 1] in ("-", "+") and text[end + 1 : end + 2].isalpha():
        return False
    return _VERSION_WORDS.before(text, start) is not Says.NO


def _is_ipv6_of_a_machine(text: str, start: int, end: int, address: IPv6Address) -> bool:
    if start and (is_word(text[start - 1]) or text[start - 1] in ":."):
        return False
    if _GOES_ON.match(text, end):
        return False
    return any(address in network for network in _IPV6_OF_MACHINES)
