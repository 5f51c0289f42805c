"""Statistics of a namespace, and metrics of the process."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from fastapi import Request, Response
from pydantic import BaseModel, Field

from souvenir.api.extraction_jobs import ExtractFigures
from souvenir.api.fields import wire_time
from souvenir.core.process_memory import peak_kb, resident_kb
from souvenir.core.types import Scope, Stats
from souvenir.server.load_shedding import CostClass
from souvenir.server.metrics import EXPOSITION_TYPES, SAMPLES_KEPT, RouteFigures, Sample, exposition
from souvenir.server.request_guards import Admin, Engine, service_of
from souvenir.server.routing import Routes
from souvenir.server.service import Service

routes = Routes("figures")

NOT_YET: dict[str, Any] = {
    "embedder_reload": {"reload_count": 0, "failure_count": 0},
    "promotion": {"promoted_count": 0},
}
"""Parts of the metrics that clients read and that nothing here does yet."""

EXPOSITION: dict[str, Any] = {
    "schema": {"type": "string"},
    "example": "# HELP souvenir_memories Memories stored.\n# TYPE souvenir_memories gauge\nsouvenir_memories 1204\n",
}


class StatsResponse(BaseModel):
    total_memories: int
    dimension: int
    model: str
    created_at: str | None = Field(description="The time of the first write to the namespace; null without writes.")
    last_updated: str | None = Field(examples=["2025-04-02T09:30:00.000000+00:00"])
    index_size_bytes: int = Field(description="Bytes of RAM used by the namespace's index; 0 while it is not loaded.")
    backup_count: int

    @classmethod
    def of(cls, stats: Stats) -> StatsResponse:
        return cls(
            total_memories=stats.memories,
            dimension=stats.dim,
            model=stats.model_id,
            created_at=None if stats.created_at is None else wire_time(stats.created_at),
            last_updated=None if stats.changed_at is None else wire_time(stats.changed_at),
            index_size_bytes=stats.index_bytes,
            backup_count=stats.backups,
        )


class RouteMetrics(BaseModel):
    count: int
    error_count: int = Field(description="The number of responses with status 400 or above.")
    error_rate_pct: float
    avg_latency_ms: float
    p95_latency_ms: float = Field(description="The 95th percentile of the newest 512 requests.")
    max_latency_ms: float
    last_status_code: int

    @classmethod
    def of(cls, figures: RouteFigures) -> RouteMetrics:
        return cls(
            count=figures.count,
            error_count=figures.error_count,
            error_rate_pct=_percent(figures.error_count, figures.count),
            avg_latency_ms=round(figures.mean_ms, 2),
            p95_latency_ms=round(figures.p95_ms, 2),
            max_latency_ms=round(figures.max_ms, 2),
            last_status_code=figures.last_status,
        )


class RequestMetrics(BaseModel):
    total_count: int
    error_count: int
    error_rate_pct: float
    active_http_requests: int


class TotalSample(BaseModel):
    timestamp: str = Field(examples=["2025-04-02T09:30:00.000000+00:00"])
    total: int


class MemoryTrend(BaseModel):
    window_size: int = Field(description="Maximum number of samples in the window.")
    delta: int = Field(description="The newest sample minus the oldest.")
    samples: list[TotalSample]


class ProcessMemory(BaseModel):
    rss_kb: int = Field(description="Resident memory of the process in KiB.")
    max_rss_kb: int = Field(description="The peak resident memory in KiB.")


class MemoryMetrics(BaseModel):
    current_total: int = Field(description="The number of memories in the namespace.")
    trend: MemoryTrend
    process: ProcessMemory


class DiskMetrics(BaseModel):
    database_bytes: int = Field(description="The size of the database file.")
    log_bytes: int = Field(description="The size of the write-ahead log.")


class MetricsResponse(BaseModel):
    uptime_sec: float
    requests: RequestMetrics
    routes: dict[str, RouteMetrics] = Field(
        description="By method and path template, such as `GET /memory/{memory_id}`.",
        examples=[
            {
                "POST /search": {
                    "count": 3,
                    "error_count": 1,
                    "error_rate_pct": 33.33,
                    "avg_latency_ms": 6.21,
                    "p95_latency_ms": 9.87,
                    "max_latency_ms": 9.87,
                    "last_status_code": 200,
                }
            }
        ],
    )
    memory: MemoryMetrics
    disk: DiskMetrics
    extract: ExtractFigures
    embedder_reload: dict[str, int] = Field(
        description="Always 0: the model stays loaded.", examples=[{"reload_count": 0, "failure_count": 0}]
    )
    promotion: dict[str, int] = Field(
        description="Always 0: promotion does not exist.", examples=[{"promoted_count": 0}]
    )


@routes.get(
    "/stats",
    summary="Get statistics",
    cost=CostClass.LIGHT,
    sdk="figures.stats",
)
def stats(scope: Admin, engine: Engine) -> StatsResponse:
    """Get counts and settings of the namespace."""
    return StatsResponse.of(engine.stats(scope))


@routes.get(
    "/metrics",
    summary="Get metrics",
    cost=CostClass.HEALTH,
    sdk="figures.metrics",
    response_model=MetricsResponse,
    responses={200: {"content": dict.fromkeys(EXPOSITION_TYPES, EXPOSITION)}},
)
def metrics(scope: Admin, request: Request) -> MetricsResponse | Response:
    """Get request counts and resource usage as JSON, or for Prometheus if `Accept` names text or OpenMetrics."""
    service, accept = service_of(request), request.headers.get("Accept", "")
    if not _names_exposition(accept):
        return _metrics_of(service, scope)
    text, content_type = exposition(service.instruments.registry, accept)
    return Response(text, media_type=content_type)


def _metrics_of(service: Service, scope: Scope) -> MetricsResponse:
    counted, total = service.metrics, service.engine.count(scope)
    figures, trend = counted.figures(), _trend(counted.sample(scope.namespace, total))
    database_bytes, log_bytes = service.engine.bytes_on_disk
    return MetricsResponse(
        uptime_sec=round(counted.uptime_s, 1),
        requests=_request_metrics(figures.values(), counted.active),
        routes={route: RouteMetrics.of(of_route) for route, of_route in figures.items()},
        memory=MemoryMetrics(
            current_total=total, trend=trend, process=ProcessMemory(rss_kb=resident_kb(), max_rss_kb=peak_kb())
        ),
        disk=DiskMetrics(database_bytes=database_bytes, log_bytes=log_bytes),
        extract=ExtractFigures.of(service.extraction.jobs.figures),
        **NOT_YET,
    )


def _names_exposition(accept: str) -> bool:
    """True if the Accept header names a format of Prometheus; clients that accept anything get JSON."""
    return any(part.partition(";")[0].strip().lower() in EXPOSITION_TYPES for part in accept.split(","))


def _request_metrics(figures: Collection[RouteFigures], active: int) -> RequestMetrics:
    count, errors = sum(route.count for route in figures), sum(route.error_count for route in figures)
    return RequestMetrics(
        total_count=count,
        error_count=errors,
        error_rate_pct=_percent(errors, count),
        active_http_requests=active,
    )


def _trend(taken: Sequence[Sample]) -> MemoryTrend:
    samples = [TotalSample(timestamp=wire_time(sample.at), total=sample.total) for sample in taken]
    return MemoryTrend(window_size=SAMPLES_KEPT, delta=taken[-1].total - taken[0].total, samples=samples)


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0
