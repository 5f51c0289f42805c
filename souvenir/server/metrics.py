"""Metrics of one service, in one Prometheus registry, as text and as figures for JSON.

docs/operations.md has a table of every series. Labels come from closed sets: method and template of a route, class of a
status, code of an error, name of a stage, arm, queue or tool, so the number of series does not grow with stored data
or requests. Safe to use from any thread.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from souvenir import VERSION
from souvenir.core.timestamps import utc_now
from souvenir.memories.engine import MemoryEngine
from souvenir.server.admission import Admission
from souvenir.server.load_shedding import BodyMemory

# Series with the creation time of each counter would double the number of series.
disable_created_metrics()  # type: ignore[no-untyped-call]

EXPOSITION_TYPES = ("text/plain", "application/openmetrics-text")

LATENCY_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

LATENCIES_KEPT = 512
"""Number of latest latencies kept per route, from which its 95th percentile is computed."""

SAMPLES_KEPT = 60
"""Maximum number of samples of the memory count, over all namespaces."""


class Outcome(StrEnum):
    """The result of a call of an MCP tool."""

    OK = "ok"
    REFUSED = "refused"  # with a sentence that says what to do
    FAILED = "failed"  # an internal error, or a part is temporarily unavailable


@dataclass(frozen=True, slots=True)
class Sample:
    """The number of memories in a namespace at one time."""

    namespace: str
    at: datetime
    total: int


@dataclass(frozen=True, slots=True)
class RouteFigures:
    """Statistics of one route. A request is an error if its status is 400 or above."""

    count: int
    error_count: int
    mean_ms: float
    p95_ms: float
    max_ms: float
    last_status: int


class _Route:
    """The series of one route, and values that Prometheus does not keep: latest and longest latency, last status."""

    __slots__ = ("by_class", "last_status", "latencies", "latency", "max_ms")

    def __init__(self, latency: Histogram) -> None:
        self.latency = latency
        self.by_class: dict[int, Counter] = {}
        self.latencies: deque[float] = deque(maxlen=LATENCIES_KEPT)
        self.max_ms = 0.0
        self.last_status = 0


@dataclass(slots=True)
class _Totals:
    count: int = 0
    errors: int = 0
    seconds: float = 0.0


class Metrics:
    """Requests by route, errors by code, calls of MCP tools, and samples of the memory count."""

    def __init__(self, registry: CollectorRegistry) -> None:
        of_route = ("method", "route")
        self._requests = Counter(
            "souvenir_requests", "Requests that were answered.", (*of_route, "status"), registry=registry
        )
        self._latency = Histogram(
            "souvenir_request_duration_seconds",
            "Time from a request to its answer.",
            of_route,
            buckets=LATENCY_BUCKETS_S,
            registry=registry,
        )
        self._active = Gauge("souvenir_requests_active", "Requests that are being answered.", registry=registry)
        self._active.set_function(lambda: self.active)
        self._errors = Counter("souvenir_errors", "Answers with an error, by its code.", ("code",), registry=registry)
        self._tool_calls = Counter(
            "souvenir_mcp_tool_calls",
            "Calls of tools over MCP, by how they ended.",
            ("tool", "outcome"),
            registry=registry,
        )
        self._lock = Lock()
        self._routes: dict[tuple[str, str], _Route] = {}
        self._samples: deque[Sample] = deque(maxlen=SAMPLES_KEPT)
        self._started = time.monotonic()
        self.active = 0
        """Active requests. The middleware adds them on the event loop; `finish` removes them."""

    @property
    def uptime_s(self) -> float:
        return time.monotonic() - self._started

    def finish(self, method: str, template: str, status: int, duration_s: float, error_code: str | None) -> None:
        """Count an active request as answered.

        :param template: The path of its route with unfilled parameters. :param error_code: From its error body.
        """
        self.active -= 1
        with self._lock:
            route = self._routes.get((method, template))
            if route is None:
                route = self._routes[method, template] = _Route(self._latency.labels(method, template))
            counter = route.by_class.get(status // 100)
            if counter is None:
                counter = route.by_class[status // 100] = self._requests.labels(method, template, f"{status // 100}xx")
            counter.inc()
            route.latency.observe(duration_s)
            duration_ms = 1000 * duration_s
            route.latencies.append(duration_ms)
            route.max_ms = max(route.max_ms, duration_ms)
            route.last_status = status
        if error_code is not None:
            self._errors.labels(error_code).inc()

    def refuse(self, method: str, template: str, status: int, error_code: str) -> None:
        """Count a request that was refused before it started."""
        self.active += 1
        self.finish(method, template, status, 0.0, error_code)

    def tool_called(self, tool: str, outcome: Outcome) -> None:
        self._tool_calls.labels(tool, outcome).inc()

    def figures(self) -> Mapping[str, RouteFigures]:
        """The statistics by method and template, in the order of their first request."""
        with self._lock:
            totals = self._totals()
            return {
                f"{method} {path}": _figures(route, totals[method, path])
                for (method, path), route in self._routes.items()
            }

    def sample(self, namespace: str, total: int) -> list[Sample]:
        """Add a sample and return the samples of its namespace, oldest first, including this one."""
        with self._lock:
            self._samples.append(Sample(namespace, utc_now(), total))
            return [sample for sample in self._samples if sample.namespace == namespace]

    def _totals(self) -> dict[tuple[str, str], _Totals]:
        totals = {key: _Totals() for key in self._routes}
        for sample in (sample for family in self._requests.collect() for sample in family.samples):
            if sample.name.endswith("_total"):
                of = totals[sample.labels["method"], sample.labels["route"]]
                of.count += int(sample.value)
                of.errors += int(sample.value) if sample.labels["status"] >= "4" else 0
        for sample in (sample for family in self._latency.collect() for sample in family.samples):
            if sample.name.endswith("_sum"):
                totals[sample.labels["method"], sample.labels["route"]].seconds = sample.value
        return totals


def _figures(route: _Route, totals: _Totals) -> RouteFigures:
    ordered = sorted(route.latencies)
    return RouteFigures(
        count=totals.count,
        error_count=totals.errors,
        mean_ms=1000 * totals.seconds / totals.count,
        p95_ms=ordered[math.ceil(0.95 * len(ordered)) - 1],
        max_ms=route.max_ms,
        last_status=route.last_status,
    )


class StoreCollector(Collector):
    """The size of the store, read when metrics are collected."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        embedder = self._engine.models.serving.embedder
        vitals = self._engine.vitals()
        yield InfoMetricFamily(
            "souvenir_build",
            "The release, and the model that made the vectors.",
            {"version": VERSION, "model": embedder.model_id},
        )
        yield _gauge("souvenir_ready", "1 when the model is loaded.", int(embedder.ready))
        yield _gauge("souvenir_memories", "Memories stored.", vitals.memories)
        yield _gauge("souvenir_graph_unread", "Messages and memories still to be read for a graph.", vitals.unread)
        yield _gauge("souvenir_namespaces", "Namespaces that were ever written to.", vitals.namespaces)
        yield _gauge("souvenir_indexes_loaded", "Namespaces whose index is in memory.", vitals.loaded_indexes)
        yield _gauge("souvenir_index_rows", "Passages in the loaded indexes.", vitals.index_rows)
        yield _gauge("souvenir_index_bytes", "Memory that the loaded indexes take.", vitals.index_bytes)
        yield _gauge("souvenir_database_bytes", "Size of the database file.", vitals.database_bytes)
        yield _gauge("souvenir_wal_bytes", "Size of the write-ahead log.", vitals.log_bytes)
        yield _gauge("souvenir_backups", "Backups that are kept.", vitals.backups)
        if vitals.newest_backup_at is not None:
            made_at = vitals.newest_backup_at.timestamp()
            yield _gauge("souvenir_newest_backup_timestamp_seconds", "When the newest backup was made.", made_at)
        connections = GaugeMetricFamily(
            "souvenir_database_connections",
            "Connections to PostgreSQL, and requests that wait for one.",
            labels=("state",),
        )
        for state, number in self._engine.connections().items():
            connections.add_metric((state,), number)
        yield connections
        warnings = GaugeMetricFamily(
            "souvenir_warnings", "Conditions that GET /health/ready explains.", labels=("code",)
        )
        for code, _ in self._engine.warnings.current():
            warnings.add_metric((code,), 1)
        yield warnings


class AdmissionCollector(Collector):
    """Active requests, waiting requests, and refusals, by cost class."""

    def __init__(self, admission: Admission, bodies: BodyMemory) -> None:
        self._admission = admission
        self._bodies = bodies

    def collect(self) -> Iterator[Metric]:
        gauges = {
            name: GaugeMetricFamily(f"souvenir_admission_{name}", meaning, labels=("class",))
            for name, meaning in (
                ("at_work", "Requests of a cost class that are worked on."),
                ("places", "Requests of a cost class that may be worked on at once."),
                ("waiting", "Requests of a cost class that wait for a place."),
                ("waiting_max", "Requests of a cost class that may wait."),
            )
        }
        refused = CounterMetricFamily(
            "souvenir_admission_refused", "Requests of a cost class that were refused.", labels=("class", "reason")
        )
        for cost, figures in self._admission.figures().items():
            for name, gauge in gauges.items():
                gauge.add_metric((cost,), getattr(figures, name))
            for reason, count in figures.refused.items():
                refused.add_metric((cost, reason), count)
        yield from gauges.values()
        yield refused
        yield _gauge("souvenir_body_bytes", "Memory that the bodies of requests take.", self._bodies.held_bytes)


def add_collectors(registry: CollectorRegistry, collectors: Iterable[Collector]) -> None:
    """Register the collectors of the whole service and its process."""
    for collector in collectors:
        registry.register(collector)
    ProcessCollector(registry=registry)


def exposition(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Return all metrics in the format that an Accept header prefers, and its content type."""
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(name, meaning, value=value)
