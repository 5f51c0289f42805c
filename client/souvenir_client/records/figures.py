"""What the service answers in its section `figures`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractFigures:
    """Extractions of all namespaces."""

    queue_depth: int
    queue_max: int
    queue_remaining: int
    workers: int
    jobs_tracked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryMetrics:
    current_total: int
    trend: MemoryTrend
    process: ProcessMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTrend:
    window_size: int
    delta: int
    samples: list[TotalSample]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsResponse:
    uptime_sec: float
    requests: RequestMetrics
    routes: Mapping[str, RouteMetrics]
    memory: MemoryMetrics
    extract: ExtractFigures
    embedder_reload: Mapping[str, int]
    promotion: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessMemory:
    rss_kb: int
    max_rss_kb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMetrics:
    total_count: int
    error_count: int
    error_rate_pct: float
    active_http_requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteMetrics:
    count: int
    error_count: int
    error_rate_pct: float
    avg_latency_ms: float
    p95_latency_ms: float
    max_latency_ms: float
    last_status_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsResponse:
    total_memories: int
    dimension: int
    model: str
    created_at: str | None
    last_updated: str | None
    index_size_bytes: int
    backup_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalSample:
    timestamp: str
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageResponse:
    enabled: bool
