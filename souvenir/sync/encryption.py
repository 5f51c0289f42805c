"""Encryption of backups with a passphrase, as a stream of authenticated chunks (STREAM; Hoang et al. 2015).

An encrypted file is a header and chunks of 1 MiB, each with AES-256-GCM. The nonce of a chunk is a random prefix, the
number of the chunk and a mark of the last one, so a chunk that is changed, missing, moved or taken from another file is
detected before its text is returned, and so is an end that is missing. The header and a context that the caller chooses
are authenticated with every chunk.

The keys come from the passphrase with scrypt. Salt and parameters are in the header, with a check value by which a
wrong passphrase is recognised before anything else is read. Memory is that of a few chunks, and 128 MiB for a moment in
scrypt.
"""

from __future__ import annotations

import hmac
import os
import struct
from collections.abc import Iterator
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

MAGIC = b"SOUVENIR-SYNC\x01"
"""The last byte is the version of the format."""

CHUNK_BYTES = 2**20
TAG_BYTES = 16

_HEADER = struct.Struct(f">{len(MAGIC)}s B B B 16s 7s")
"""Magic, log2 of scrypt's n, r, p, salt, prefix of the nonces."""
_CHECK_BYTES = 32
_KEY_BYTES = 32
_NONCE_END = struct.Struct(">I?")

SCRYPT_LOG2_N, SCRYPT_R, SCRYPT_P = 17, 8, 1
"""The parameters that OWASP recommends: 128 MiB and about 0.4 s."""
MAX_LOG2_N, MAX_R, MAX_P = 20, 16, 4
"""Limits of what is read, so that a forged header cannot take all memory."""


class Readable(Protocol):
    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""


class WrongPassphrase(Exception):
    """The passphrase is not the one with which the file was encrypted."""


class NotAuthentic(Exception):
    """The file is not the one that was encrypted: changed, truncated, or in another context."""


def encrypted(plain: Readable, passphrase: str, context: bytes) -> Iterator[bytes]:
    """Yield the encrypted file in parts.

    :param context: Must be the same for `decrypted`, for example the description of the file.
    """
    header = _HEADER.pack(MAGIC, SCRYPT_LOG2_N, SCRYPT_R, SCRYPT_P, os.urandom(16), os.urandom(7))
    cipher, check = _keys(header, passphrase)
    yield header + check
    prefix, bound = header[-7:], header + context
    number, chunk = 0, _read(plain, CHUNK_BYTES)
    while True:
        following = _read(plain, CHUNK_BYTES) if len(chunk) == CHUNK_BYTES else b""
        yield cipher.encrypt(prefix + _NONCE_END.pack(number, not following), chunk, bound)
        if not following:
            return
        number, chunk = number + 1, following


def decrypted(stored: Readable, passphrase: str, context: bytes) -> Iterator[bytes]:
    """Yield the plain file in authenticated parts; it is whole only once the iterator has ended.

    :raises WrongPassphrase: Before the first part. :raises NotAuthentic: As soon as a chunk is not authentic.
    """
    header, check = _read(stored, _HEADER.size), _read(stored, _CHECK_BYTES)
    if len(header) < _HEADER.size or not header.startswith(MAGIC):
        raise NotAuthentic("it does not begin like an encrypted backup of this version")
    cipher, expected = _keys(header, passphrase)
    if not hmac.compare_digest(check, expected):
        raise WrongPassphrase
    prefix, bound = header[-7:], header + context
    number, chunk = 0, _read(stored, CHUNK_BYTES + TAG_BYTES)
    while True:
        full = len(chunk) == CHUNK_BYTES + TAG_BYTES
        following = _read(stored, CHUNK_BYTES + TAG_BYTES) if full else b""
        try:
            yield cipher.decrypt(prefix + _NONCE_END.pack(number, not following), chunk, bound)
        except InvalidTag as error:
            raise NotAuthentic(f"its part {number + 1} was changed, moved or cut off") from error
        if not following:
            return
        number, chunk = number + 1, following


def _keys(header: bytes, passphrase: str) -> tuple[AESGCM, bytes]:
    """Return the cipher of a file and the check value of its header."""
    _, log2_n, r, p, salt, _ = _HEADER.unpack(header)
    if not (1 <= log2_n <= MAX_LOG2_N and 1 <= r <= MAX_R and 1 <= p <= MAX_P):
        raise NotAuthentic("its header has parameters out of range")
    derived = Scrypt(salt=salt, length=2 * _KEY_BYTES, n=2**log2_n, r=r, p=p).derive(passphrase.encode())
    return AESGCM(derived[:_KEY_BYTES]), hmac.digest(derived[_KEY_BYTES:], header, "sha256")


def _read(source: Readable, size: int) -> bytes:
    """Read exactly `size` bytes, or those up to the end."""
    parts: list[bytes] = []
    while size and (part := source.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
