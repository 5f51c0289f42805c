"""Requests per key in the last minute, counted in memory and lost at a restart."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Collection
from threading import Lock

from souvenir.core.errors import RequestQuotaExceeded

WINDOW_S = 60.0


class RequestRates:
    """Admits up to the limit in any `WINDOW_S`, also of concurrent requests. Thread-safe."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._admitted: dict[str, deque[float]] = {}

    def admit(self, key_id: str, limit: int) -> None:
        """Count a request; a refused one is not counted.

        :raises RequestQuotaExceeded: If the key reached its limit in the last minute.
        """
        with self._lock:
            times = self._recent(key_id)
            if len(times) >= limit:
                oldest = times[-limit] if limit else self._clock()
                raise RequestQuotaExceeded(limit, retry_after_s=max(1, math.ceil(oldest + WINDOW_S - self._clock())))
            times.append(self._clock())

    def count(self, key_id: str) -> int:
        """The number of requests in the last minute, for keys with a limit."""
        with self._lock:
            return len(self._recent(key_id))

    def keep(self, key_ids: Collection[str]) -> None:
        """Forget all other keys."""
        with self._lock:
            self._admitted = {key_id: times for key_id, times in self._admitted.items() if key_id in key_ids}

    def _recent(self, key_id: str) -> deque[float]:
        times = self._admitted.setdefault(key_id, deque())
        since = self._clock() - WINDOW_S
        while times and times[0] <= since:
            times.popleft()
        return times
