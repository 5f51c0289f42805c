"""How many wrong keys came from an address of late, so that nobody can try them all."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from souvenir.errors import TooManyAttempts

WINDOW_S = 60.0
"""From an address's first wrong key on; after that its count begins anew."""

ADDRESSES_KEPT = 10_000
"""The latest that sent a wrong key; about 2 MB."""


class FailedAttempts:
    """Counts by address. Safe to use from any thread."""

    def __init__(self, *, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._lock = Lock()
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()  # address -> (its begin, wrong keys in it)

    def __len__(self) -> int:
        """Addresses that are remembered."""
        return len(self._windows)

    def require_few(self, address: str) -> None:
        """:raises TooManyAttempts: If no key of this address may be looked at now, the right one neither."""
        with self._lock:
            begin, count = self._window(address)
        if count >= self._limit:
            raise TooManyAttempts(retry_after_s=max(1, math.ceil(begin + WINDOW_S - self._clock())))

    def count(self, address: str) -> None:
        """Note a wrong key."""
        with self._lock:
            begin, count = self._window(address)
            self._windows[address] = begin, count + 1
            self._windows.move_to_end(address)
            if len(self._windows) > ADDRESSES_KEPT:
                self._windows.popitem(last=False)

    def _window(self, address: str) -> tuple[float, int]:
        now = self._clock()
        begin, count = self._windows.get(address, (now, 0))
        return (begin, count) if now - begin < WINDOW_S else (now, 0)
