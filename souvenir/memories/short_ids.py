"""Short ids: 8 characters of base64url instead of a number, where agents copy an id from an answer into a call.

    short_id(Kind.MEMORY, 42)            # '06y_GaCT'
    id_of(Kind.MEMORY, "06y_GaCT")       # 42

A fixed bijection of 48 bits, so nothing is stored; it is no secret. Two of the bits are the kind, so that an id of one
kind is never taken for one of another. The other 46 hold every id that a sound store counts to; a larger one is an
error, since without its upper bits it would be the id of another memory.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from enum import IntEnum

from souvenir.core.errors import FactNotFound, MemoryNotFound, NotFound, Unavailable


class Kind(IntEnum):
    MEMORY = 0
    FACT = 1


_BITS = 48
_HALF = _BITS // 2
_ALL = (1 << _BITS) - 1
_KIND_BITS = 2
_KINDS = (1 << _KIND_BITS) - 1

_FACTOR = 0x9E3779B97F4B
"""Odd, so it is invertible: the bits of the golden ratio, which spread consecutive numbers."""

_INVERSE = pow(_FACTOR, -1, 1 << _BITS)

_SHOWN_CHARS = 32
_SHORT_ID = re.compile(r"[A-Za-z0-9_-]{8}")


MAX_NUMBER = (1 << _BITS - _KIND_BITS) - 1


def short_id(kind: Kind, number: int) -> str:
    """Return the short id of a number.

    :raises Unavailable: If the number has more than 46 bits.
    """
    if not 0 <= number <= MAX_NUMBER:
        raise Unavailable(
            f"The {kind.name.lower()} id {number} is too large for MCP; an administrator repairs the ids with "
            "`python app.py repair-ids` while the service is stopped"
        )
    mixed = _folded((number << _KIND_BITS | kind) * _FACTOR & _ALL) * _FACTOR & _ALL
    return urlsafe_b64encode(mixed.to_bytes(_BITS // 8)).decode()


def id_of(kind: Kind, text: str) -> int:
    """:raises NotFound: If the text is no id of this kind; the store decides if such a record exists."""
    text = text.strip()
    if _SHORT_ID.fullmatch(text) is None:
        raise _not_found(kind, text)
    mixed = int.from_bytes(urlsafe_b64decode(text))
    number = _folded(mixed * _INVERSE & _ALL) * _INVERSE & _ALL
    if number & _KINDS != kind:
        raise _not_found(kind, text)
    return number >> _KIND_BITS


def _folded(number: int) -> int:
    """XOR the high half into the low one; an involution."""
    return number ^ number >> _HALF


def _not_found(kind: Kind, text: str) -> NotFound:
    """Return the error with a short part of the text: agents send whole sentences here."""
    text = text[:_SHOWN_CHARS].encode("ascii", "replace").decode()
    return MemoryNotFound(text) if kind is Kind.MEMORY else FactNotFound(text)
