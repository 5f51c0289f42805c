"""The received bytes of an answer as text, within limits."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

MAX_TEXT_BYTES = 32 * 2**20
"""Limit of an unpacked answer; the rest is not read."""

ENCODINGS = ("gzip", "deflate")
"""The compressions that answers are asked for in, as far as the caller takes them."""

_GZIP_OR_ZLIB, _RAW = zlib.MAX_WBITS | 32, -zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class HeardAnswer:
    """:param content_encoding: How the bytes are compressed. :param content_type: Tells streams from objects."""

    chunks: Sequence[bytes]
    content_encoding: str
    content_type: str

    def text(self) -> str:
        """Return the text as far as it was received; "" in an unknown compression."""
        return self._unpacked().decode("utf-8", errors="replace")

    def _unpacked(self) -> bytes:
        packed, encoding = b"".join(self.chunks), self.content_encoding.strip().lower()
        if encoding in ("", "identity"):
            return packed
        if encoding not in ("gzip", "x-gzip", "deflate"):
            return b""
        try:
            return zlib.decompressobj(_GZIP_OR_ZLIB).decompress(packed, MAX_TEXT_BYTES)
        except zlib.error:
            return _raw(packed) if encoding == "deflate" else b""


def _raw(packed: bytes) -> bytes:
    try:
        return zlib.decompressobj(_RAW).decompress(packed, MAX_TEXT_BYTES)
    except zlib.error:
        return b""
