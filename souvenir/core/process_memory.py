"""The memory of this process, and the return of unused memory to the operating system.

After a large piece of work the freed memory stays with the process: Python delays the collection of cycles, and the C
library keeps free pages between used ones. `MemoryTrim` collects the cycles and, with glibc, returns such pages. It
runs on a thread of its own, one trim at a time and rarely; the caller continues at once.
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
"""Maximum time that closing waits for a running trim."""

_STATM = Path("/proc/self/statm")

log = structlog.get_logger(__name__)


def resident_kb() -> int:
    """Return the resident memory in KiB, as the kernel reports it; without /proc, the peak."""
    if not _STATM.exists():
        return peak_kb()
    resident_pages = int(_STATM.read_text(encoding="ascii").split()[1])
    return resident_pages * resource.getpagesize() // 1024


def peak_kb() -> int:
    """Return the peak resident memory in KiB."""
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage // 1024 if sys.platform == "darwin" else usage


def return_memory() -> None:
    """Collect garbage and return free pages to the operating system. This may take some tenths of a second."""
    gc.collect()
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    """Return the function of glibc; None with another C library."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return trim


class MemoryTrim:
    """Thread-safe.

    :param cooldown_s: Minimum time between two trims; requests in the meantime are combined into one after it.
    """

    def __init__(self, *, cooldown_s: float, enabled: bool = True) -> None:
        self._cooldown_s = cooldown_s
        self._enabled = enabled
        self._asked = Event()
        self._closing = Event()
        self._starting = Lock()
        self._thread: Thread | None = None
        self.done = 0
        """Number of trims since the start."""

    def ask(self) -> None:
        """Request a trim soon."""
        if not self._enabled:
            return
        with self._starting:
            if self._thread is None and not self._closing.is_set():
                self._thread = Thread(target=self._run, name="souvenir-memory", daemon=True)
                self._thread.start()
        self._asked.set()

    def close(self) -> None:
        """Stop; requested trims that have not begun are dropped."""
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
            return_memory()
            self.done += 1
            log.debug("memory_given_back", before_kb=before_kb, after_kb=resident_kb())
            if self._closing.wait(self._cooldown_s):
                return
