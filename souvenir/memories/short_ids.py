"""Short texts in the place of ids: 8 characters of base64url, where agents copy an id from an answer into a call.

    short_id(Kind.MEMORY, 42)            # '06y_GaCT'
    id_of(Kind.MEMORY, "06y_GaCT")       # 42

A fixed bijection of 48 bits, so nothing is stored. It hides nothing: whoever reads this can count on. Two of the bits
say what the id is of, so that no id of one kind is ever taken for one of another.
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
"""Odd, so it has an inverse: the golden ratio's bits, which spread numbers that follow each other."""

_INVERSE = pow(_FACTOR, -1, 1 << _BITS)

_SHOWN_CHARS = 32
_SHORT_ID = re.compile(r"[A-Za-z0-9_-]{8}")


def short_id(kind: Kind, number: int) -> str:
    """:param number: An id as the store gives them: below 2^46."""
    mixed = _folded((number << _KIND_BITS | kind) * _FACTOR & _ALL) * _FACTOR & _ALL
    return urlsafe_b64encode(mixed.to_bytes(_BITS // 8)).decode()


def id_of(kind: Kind, text: str) -> int:
    """:raises NotFound: If that is no id of this kind; whether there is such a thing is for the store to say."""
    text = text.strip()
    if _SHORT_ID.fullmatch(text) is None:
        raise _not_found(kind, text)
    mixed = int.from_bytes(urlsafe_b64decode(text))
    number = _folded(mixed * _INVERSE & _ALL) * _INVERSE & _ALL
    if number & _KINDS != kind:
        raise _not_found(kind, text)
    return number >> _KIND_BITS


def _folded(number: int) -> int:
    """The high half written over the low one; done twice, it is as it was."""
    return number ^ number >> _HALF


def _not_found(kind: Kind, text: str) -> NotFound:
    """With as much of a text as an answer can repeat: agents send whole sentences here."""
    text = text[:_SHOWN_CHARS].encode("ascii", "replace").decode()
    return MemoryNotFound(text) if kind is Kind.MEMORY else FactNotFound(text)
