"""What is counted of requests, in memory that does not grow with their number. Safe to use from any thread."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock

from souvenir.moments import utc_now

LATENCIES_KEPT = 512
"""Of each route, the newest; the 95th percentile is theirs."""


SAMPLES_KEPT = 60
"""Of totals, over all namespaces."""


@dataclass(frozen=True, slots=True)
class Sample:
    """How many memories a namespace held when somebody asked."""

    namespace: str
    at: datetime
    total: int


@dataclass(frozen=True, slots=True)
class RouteFigures:
    """A request is an error if its status is 400 or above."""

    count: int
    error_count: int
    mean_ms: float
    p95_ms: float
    max_ms: float
    last_status: int


@dataclass(slots=True)
class _Route:
    count: int = 0
    error_count: int = 0
    total_ms: float = 0.0
    max_ms: float = 0.0
    last_status: int = 0
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES_KEPT))

    def figures(self) -> RouteFigures:
        ordered = sorted(self.latencies_ms)
        p95_ms = ordered[math.ceil(0.95 * len(ordered)) - 1]
        return RouteFigures(
            self.count, self.error_count, self.total_ms / self.count, p95_ms, self.max_ms, self.last_status
        )


class RequestCounters:
    """Counts requests by route; a route is named by its method and template, so there are only so many."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._routes: dict[str, _Route] = {}
        self._samples: deque[Sample] = deque(maxlen=SAMPLES_KEPT)
        self._active = 0
        self._started = time.monotonic()

    @property
    def uptime_s(self) -> float:
        return time.monotonic() - self._started

    @property
    def active(self) -> int:
        """Requests that are being answered."""
        return self._active

    def begin(self) -> None:
        with self._lock:
            self._active += 1

    def finish(self, route: str, status: int, duration_ms: float) -> None:
        with self._lock:
            self._active -= 1
            counted = self._routes.setdefault(route, _Route())
            counted.count += 1
            counted.error_count += status >= 400
            counted.total_ms += duration_ms
            counted.max_ms = max(counted.max_ms, duration_ms)
            counted.last_status = status
            counted.latencies_ms.append(duration_ms)

    def figures(self) -> dict[str, RouteFigures]:
        """By route, in the order of their first request."""
        with self._lock:
            return {name: route.figures() for name, route in self._routes.items()}

    def sample(self, namespace: str, total: int) -> list[Sample]:
        """Note how many memories a namespace holds; returns its samples, oldest first, at least this one."""
        with self._lock:
            self._samples.append(Sample(namespace, utc_now(), total))
            return [sample for sample in self._samples if sample.namespace == namespace]
