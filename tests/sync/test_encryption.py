"""The encryption of backups: what was encrypted comes back whole, and nothing else does."""

from __future__ import annotations

import io

import pytest

from souvenir.sync import encryption
from souvenir.sync.encryption import CHUNK_BYTES, TAG_BYTES, NotAuthentic, WrongPassphrase, decrypted, encrypted

HEADER_BYTES = 72
SHIPPED_LOG2_N = encryption.SCRYPT_LOG2_N
CHUNK = CHUNK_BYTES + TAG_BYTES


def seal(plain: bytes, passphrase: str = "secret", context: bytes = b"a") -> bytes:
    return b"".join(encrypted(io.BytesIO(plain), passphrase, context))


def unseal(stored: bytes, passphrase: str = "secret", context: bytes = b"a") -> bytes:
    return b"".join(decrypted(io.BytesIO(stored), passphrase, context))


@pytest.fixture
def shipped_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encryption, "SCRYPT_LOG2_N", SHIPPED_LOG2_N)


def text_of(size: int) -> bytes:
    return bytes(range(251)) * (size // 251) + bytes(range(size % 251))


@pytest.fixture(scope="module")
def plain() -> bytes:
    return text_of(2 * CHUNK_BYTES + 5)


@pytest.fixture(scope="module")
def stored(plain: bytes) -> bytes:
    return seal(plain)


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES])
def test_a_file_of_any_size_comes_back(size):
    plain = text_of(size)
    stored = seal(plain)
    assert unseal(stored) == plain
    chunks = max(1, -(-size // CHUNK_BYTES))
    assert len(stored) == HEADER_BYTES + size + TAG_BYTES * chunks


@pytest.mark.usefixtures("shipped_parameters")
def test_keys_cost_what_owasp_recommends():
    stored = seal(b"the staging database moved")
    assert tuple(stored[14:17]) == (17, 8, 1)
    assert unseal(stored) == b"the staging database moved"


def test_short_reads_of_the_source_change_nothing(plain, stored):
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 0, 70_000))

    assert b"".join(decrypted(Slow(stored), "secret", b"a")) == plain


def test_equal_files_are_encrypted_differently_and_show_nothing_of_the_text():
    one, other = seal(b"the staging database moved"), seal(b"the staging database moved")
    assert one[HEADER_BYTES:] != other[HEADER_BYTES:]
    assert b"staging" not in one


def test_a_wrong_passphrase_is_recognised_before_the_first_part(stored):
    with pytest.raises(WrongPassphrase):
        next(decrypted(io.BytesIO(stored[:HEADER_BYTES]), "Secret", b"a"))


def test_another_context_is_refused(stored):
    with pytest.raises(NotAuthentic):
        unseal(stored, context=b"b")


@pytest.mark.parametrize("at", [HEADER_BYTES, HEADER_BYTES + CHUNK - 1, HEADER_BYTES + CHUNK + 9, -1])
def test_a_flipped_bit_is_refused(stored, at):
    changed = bytearray(stored)
    changed[at] ^= 1
    with pytest.raises(NotAuthentic):
        unseal(bytes(changed))


@pytest.mark.parametrize("at", [20, 40, 71])
def test_a_changed_header_is_refused(stored, at):
    changed = bytearray(stored)
    changed[at] ^= 1
    with pytest.raises(WrongPassphrase):
        unseal(bytes(changed))


@pytest.mark.parametrize("at", [0, 13])
def test_a_file_of_another_kind_or_version_is_refused(stored, at):
    changed = bytearray(stored)
    changed[at] ^= 1
    with pytest.raises(NotAuthentic, match="does not begin like"):
        unseal(bytes(changed))


@pytest.mark.parametrize("parameter", [14, 15, 16])
def test_parameters_that_would_take_all_memory_are_refused(stored, parameter):
    changed = bytearray(stored)
    changed[parameter] = 0xFF
    with pytest.raises(NotAuthentic, match="out of range"):
        unseal(bytes(changed))


@pytest.mark.parametrize(
    "kept", [HEADER_BYTES, HEADER_BYTES + CHUNK, HEADER_BYTES + 2 * CHUNK, HEADER_BYTES + CHUNK + 100, -1]
)
def test_a_truncated_file_is_refused(stored, kept):
    with pytest.raises(NotAuthentic):
        unseal(stored[:kept])


def test_an_extended_file_is_refused(stored):
    with pytest.raises(NotAuthentic):
        unseal(stored + b"x")


def test_moved_repeated_and_missing_parts_are_refused(stored):
    header, one, two, last = (
        stored[:HEADER_BYTES],
        stored[HEADER_BYTES : HEADER_BYTES + CHUNK],
        stored[HEADER_BYTES + CHUNK : HEADER_BYTES + 2 * CHUNK],
        stored[HEADER_BYTES + 2 * CHUNK :],
    )
    for forged in (header + two + one + last, header + one + one + two + last, header + one + last):
        with pytest.raises(NotAuthentic):
            unseal(forged)


def test_parts_of_another_file_are_refused(plain, stored):
    other = seal(plain)
    with pytest.raises(NotAuthentic):
        unseal(stored[: HEADER_BYTES + CHUNK] + other[HEADER_BYTES + CHUNK :])
