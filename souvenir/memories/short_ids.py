"""Short ids: 8 characters of base64url instead of numbers, for agents that copy an id from an answer into a call.

    short_id(Kind.MEMORY, 42)            # '06y_GaCT'
    id_of(Kind.MEMORY, "06y_GaCT")       # 42

A fixed bijection of 48 bits, so nothing is stored. It is no secret: anyone can compute other ids. Two of the bits
encode
the kind, so that an id of one kind is never accepted for another.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from enum import IntEnum

from souvenir.core.errors import FactNotFound, MemoryNotFound, NotFound


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


def short_id(kind: Kind, number: int) -> str:
    """:param number: An id of the store, below 2^46."""
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
