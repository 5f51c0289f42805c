"""What this process takes of the machine's memory, and giving back what it needs no more.

After a large piece of work the freed memory stays with the process: Python waits with cycles, and the C library keeps
pages between those that are still in use. `MemoryTrim` collects the cycles and, where the C library is glibc, hands
such pages back. It works on a thread of its own, one trim at a time and seldom: the caller continues at once.
"""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Event, Lock, Thread

import structlog

CLOSE_TIMEOUT_S = 5.0
"""That closing waits for a trim that is under way."""

_STATM = Path("/proc/self/statm")

log = structlog.get_logger(__name__)


def resident_kb() -> int:
    """Resident memory in KiB, as the kernel says; where there is no /proc, the peak stands for the present."""
    if not _STATM.exists():
        return peak_kb()
    resident_pages = int(_STATM.read_text(encoding="ascii").split()[1])
    return resident_pages * resource.getpagesize() // 1024


def peak_kb() -> int:
    """The most resident memory that there ever was, in KiB."""
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage // 1024 if sys.platform == "darwin" else usage


def give_back() -> None:
    """Collect what nothing refers to, and return free pages to the system. It may take some tenths of a second."""
    gc.collect()
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    """The function of glibc; None with another C library."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return trim


class MemoryTrim:
    """Safe to ask from any thread.

    :param cooldown_s: From one trim to the next, at least; what is asked for meanwhile is done once after it.
    """

    def __init__(self, *, cooldown_s: float, enabled: bool = True) -> None:
        self._cooldown_s = cooldown_s
        self._enabled = enabled
        self._asked = Event()
        self._closing = Event()
        self._starting = Lock()
        self._thread: Thread | None = None
        self.done = 0
        """Trims since the start."""

    def ask(self) -> None:
        """Let memory be given back soon."""
        if not self._enabled:
            return
        with self._starting:
            if self._thread is None and not self._closing.is_set():
                self._thread = Thread(target=self._run, name="souvenir-memory", daemon=True)
                self._thread.start()
        self._asked.set()

    def close(self) -> None:
        """What was asked for and has not begun is not done."""
        with self._starting:
            self._closing.set()
        self._asked.set()
        if self._thread is not None:
            self._thread.join(CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        while True:
            self._asked.wait()
            if self._closing.is_set():
                return
            self._asked.clear()
            before_kb = resident_kb()
            give_back()
            self.done += 1
            log.debug("memory_given_back", before_kb=before_kb, after_kb=resident_kb())
            if self._closing.wait(self._cooldown_s):
                return
