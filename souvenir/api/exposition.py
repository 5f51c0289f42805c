"""The figures in the text format of Prometheus. docs/operations.md has a table of every series that comes from here.

Labels are method and template of a route, class of a status, code of an error, name of a stage, arm, queue or tool:
closed sets, so that the number of series does not grow with what is stored or asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from memory_engine import MemoryEngine
from souvenir.api import VERSION
from souvenir.api.admission import Admission
from souvenir.api.bodies import BodyMemory
from souvenir.api.counters import LATENCY_BUCKETS_MS, RequestCounters
from souvenir.observation.instruments import Instruments

EXPOSITION_TYPES = ("text/plain", "application/openmetrics-text")


class RequestCollector(Collector):
    """What `RequestCounters` counted."""

    def __init__(self, counters: RequestCounters) -> None:
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "souvenir_requests", "Requests that were answered.", labels=("method", "route", "status")
        )
        durations = HistogramMetricFamily(
            "souvenir_request_duration_seconds", "Time from a request to its answer.", labels=("method", "route")
        )
        for route, figures in self._counters.figures().items():
            labels = (route.method, route.template)
            for status, count in figures.by_class.items():
                requests.add_metric((*labels, status), count)
            durations.add_metric(labels, _cumulative(figures.in_bucket), figures.total_ms / 1000)
        yield requests
        yield durations
        yield _gauge("souvenir_requests_active", "Requests that are being answered.", self._counters.active)
        errors = CounterMetricFamily("souvenir_errors", "Answers with an error, by its code.", labels=("code",))
        for code, count in self._counters.errors().items():
            errors.add_metric((code,), count)
        yield errors
        calls = CounterMetricFamily(
            "souvenir_mcp_tool_calls", "Calls of tools over MCP, by how they ended.", labels=("tool", "outcome")
        )
        for called, count in self._counters.tool_calls().items():
            calls.add_metric((called.tool, called.outcome), count)
        yield calls


class StoreCollector(Collector):
    """What the store takes and holds when the figures are read."""

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


class AdmissionCollector(Collector):
    """What is at work, what waits for that, and what was refused."""

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


def add_collectors(instruments: Instruments, collectors: Iterable[Collector]) -> None:
    """Let the registry show the whole service."""
    for collector in collectors:
        instruments.registry.register(collector)
    ProcessCollector(registry=instruments.registry)


def exposition(instruments: Instruments, accept: str) -> tuple[bytes, str]:
    """Everything in the format that an Accept header prefers, and its content type."""
    encode, content_type = choose_encoder(accept)
    return encode(instruments.registry), content_type


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(name, meaning, value=value)


def _cumulative(in_bucket: Sequence[int]) -> list[tuple[str, float]]:
    bounds = [str(bound_ms / 1000) for bound_ms in LATENCY_BUCKETS_MS] + ["+Inf"]
    total = 0
    buckets = []
    for bound, count in zip(bounds, in_bucket, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return buckets
