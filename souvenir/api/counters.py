"""What is counted of requests, in memory that does not grow with their number. Safe to use from any thread.

Counted once and shown twice: as JSON by `souvenir.api.figures`, for Prometheus by `souvenir.api.exposition`.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from threading import Lock

from souvenir.moments import utc_now

LATENCIES_KEPT = 512
"""Of each route, the newest; the 95th percentile is theirs."""


LATENCY_BUCKETS_MS = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000)
"""Upper bounds of the histogram of latencies; what took longer is in one bucket more."""

SAMPLES_KEPT = 60
"""Of totals, over all namespaces."""


class Outcome(StrEnum):
    """How the call of a tool ended."""

    OK = "ok"
    REFUSED = "refused"  # with a sentence that says what to do
    FAILED = "failed"  # for a fault of ours, or since a part is missing now


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """`tool` is one of those that there are."""

    tool: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Sample:
    """How many memories a namespace held when somebody asked."""

    namespace: str
    at: datetime
    total: int


@dataclass(frozen=True, slots=True)
class RouteName:
    """`template` is the route's path with its parameters unfilled, so there are only so many names."""

    method: str
    template: str

    def __str__(self) -> str:
        return f"{self.method} {self.template}"


@dataclass(frozen=True, slots=True)
class RouteFigures:
    """A request is an error if its status is 400 or above.

    :param by_class: Requests by the class of their status, such as `2xx`.
    :param in_bucket: Requests by their latency's place among `LATENCY_BUCKETS_MS`, one more than there are bounds.
    """

    by_class: Mapping[str, int]
    in_bucket: Sequence[int]
    error_count: int
    total_ms: float
    p95_ms: float
    max_ms: float
    last_status: int

    @property
    def count(self) -> int:
        return sum(self.in_bucket)

    @property
    def mean_ms(self) -> float:
        return self.total_ms / self.count


@dataclass(slots=True)
class _Route:
    by_class: Counter[str] = field(default_factory=Counter)
    in_bucket: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_BUCKETS_MS) + 1))
    error_count: int = 0
    total_ms: float = 0.0
    max_ms: float = 0.0
    last_status: int = 0
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES_KEPT))

    def add(self, status: int, duration_ms: float) -> None:
        self.by_class[f"{status // 100}xx"] += 1
        self.in_bucket[bisect_left(LATENCY_BUCKETS_MS, duration_ms)] += 1
        self.error_count += status >= 400
        self.total_ms += duration_ms
        self.max_ms = max(self.max_ms, duration_ms)
        self.last_status = status
        self.latencies_ms.append(duration_ms)

    def figures(self) -> RouteFigures:
        ordered = sorted(self.latencies_ms)
        return RouteFigures(
            by_class=dict(self.by_class),
            in_bucket=tuple(self.in_bucket),
            error_count=self.error_count,
            total_ms=self.total_ms,
            p95_ms=ordered[math.ceil(0.95 * len(ordered)) - 1],
            max_ms=self.max_ms,
            last_status=self.last_status,
        )


class RequestCounters:
    """Counts requests by route, errors by their code, and calls over MCP by their tool."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._routes: dict[RouteName, _Route] = {}
        self._errors: Counter[str] = Counter()
        self._tool_calls: Counter[ToolCalls] = Counter()
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

    def refuse(self, route: RouteName, status: int, error_code: str) -> None:
        """Count a request that was answered before it began."""
        self.begin()
        self.finish(route, status, 0.0, error_code)

    def finish(self, route: RouteName, status: int, duration_ms: float, error_code: str | None) -> None:
        """:param error_code: Of the answer's error body, if it has one."""
        with self._lock:
            self._active -= 1
            self._routes.setdefault(route, _Route()).add(status, duration_ms)
            if error_code is not None:
                self._errors[error_code] += 1

    def figures(self) -> dict[RouteName, RouteFigures]:
        """By route, in the order of their first request."""
        with self._lock:
            return {name: route.figures() for name, route in self._routes.items()}

    def errors(self) -> dict[str, int]:
        """Requests by the code of the error that they were answered with."""
        with self._lock:
            return dict(self._errors)

    def tool_called(self, tool: str, outcome: Outcome) -> None:
        """:param tool: One of those that there are."""
        with self._lock:
            self._tool_calls[ToolCalls(tool, outcome)] += 1

    def tool_calls(self) -> dict[ToolCalls, int]:
        with self._lock:
            return dict(self._tool_calls)

    def sample(self, namespace: str, total: int) -> list[Sample]:
        """Note how many memories a namespace holds; returns its samples, oldest first, at least this one."""
        with self._lock:
            self._samples.append(Sample(namespace, utc_now(), total))
            return [sample for sample in self._samples if sample.namespace == namespace]
