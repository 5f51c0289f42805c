"""Digests of the paths that a source is in, by which a key that is limited to sources sees that a memory left them.

The source itself must not be kept: it may name a person, and must not outlive the memory. Triggers of the schema call
the function.
"""

from __future__ import annotations

from hashlib import blake2b
from itertools import accumulate
from typing import Any

import apsw

from souvenir.core.labels import PARENT, SEPARATOR

FUNCTION = "place_digests"
DIGEST_BYTES = 8


def register(connection: apsw.Connection) -> None:
    """Define the function that the triggers call; every connection that writes needs it."""
    digests: Any = _digests
    connection.create_scalar_function(FUNCTION, digests, 1, deterministic=True, flags=apsw.SQLITE_INNOCUOUS)


def digest(path: str) -> bytes:
    return _digest(path.encode())


def split(digests: bytes) -> set[bytes]:
    return {digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES)}


def _digests(source: bytes) -> bytes:
    """Return the digests of all paths that a source is in; none for one with a `..` segment, as in `is_visible`."""
    separator = SEPARATOR.encode()
    segments = source.split(separator)
    if PARENT.encode() in segments:
        return b""
    return b"".join(map(_digest, accumulate(segments, lambda path, segment: path + separator + segment)))


def _digest(path: bytes) -> bytes:
    return blake2b(path, digest_size=DIGEST_BYTES).digest()
