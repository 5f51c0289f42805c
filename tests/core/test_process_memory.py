"""Memory returned to the operating system, as measured by the kernel."""

from __future__ import annotations

import gc
import platform
import time
import weakref

import pytest

from souvenir.core.process_memory import MemoryTrim, peak_kb, resident_kb, return_memory

TIMEOUT_S = 20
FOREVER_S = 3_600.0

TEXT_BYTES = 10_000
"""More than the gaps that other tests leave: in those the texts would share pages with what stays in use."""
TEXTS = 4_000
KEPT_OF = 20
"""One text of so many is kept, so that pages between those that are free stay in use."""


class Loop:
    """An object that only the cycle collector frees."""

    def __init__(self) -> None:
        self.itself = self


def trimmed(trim: MemoryTrim, times: int) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while trim.done < times:
        assert time.monotonic() < deadline, trim.done


def test_resident_memory_equals_the_kernel_s_value_and_is_below_the_peak():
    # More than malloc ever keeps in its heap, however much the tests before took: it goes back as soon as it is freed.
    held = bytearray(b"x" * 64 * 1024 * 1024)
    before_kb = resident_kb()
    assert before_kb > 64 * 1024
    assert peak_kb() >= before_kb - 1024
    del held
    assert resident_kb() < before_kb - 32 * 1024


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be asked for it")
def test_free_pages_between_used_ones_are_returned():
    texts = [bytes(TEXT_BYTES) for _ in range(TEXTS)]
    texts = texts[::KEPT_OF]
    gc.collect()
    before_kb = resident_kb()
    return_memory()
    assert before_kb - resident_kb() > TEXTS * TEXT_BYTES / 1024 / 2
    assert len(texts) == TEXTS / KEPT_OF


def test_cycles_are_collected():
    gc.disable()
    try:
        seen = weakref.ref(Loop())
        assert seen() is not None
        return_memory()
        assert seen() is None
    finally:
        gc.enable()


def test_requests_within_the_cooldown_are_combined():
    trim = MemoryTrim(cooldown_s=FOREVER_S)
    trim.ask()
    trimmed(trim, 1)
    for _ in range(10):
        trim.ask()
    trim.close()
    assert trim.done == 1


def test_a_request_after_the_cooldown_trims_again():
    trim = MemoryTrim(cooldown_s=0)
    for times in (1, 2, 3):
        trim.ask()
        trimmed(trim, times)
    trim.close()


def test_no_trim_runs_without_a_request_or_if_disabled():
    idle, disabled = MemoryTrim(cooldown_s=0), MemoryTrim(cooldown_s=0, enabled=False)
    disabled.ask()
    for trim in (idle, disabled):
        trim.close()
        assert trim.done == 0


def test_a_closed_trim_ignores_requests():
    trim = MemoryTrim(cooldown_s=0)
    trim.close()
    trim.ask()
    trim.close()
    assert trim.done == 0
