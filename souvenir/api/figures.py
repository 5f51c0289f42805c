"""What is stored and what was asked, in numbers: statistics of a namespace, and metrics of the process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.caller import Admin, Engine, service_of
from souvenir.api.counters import SAMPLES_KEPT, RequestCounters, RouteFigures, Sample
from souvenir.api.errors import error_responses
from souvenir.api.exposition import EXPOSITION_TYPES, exposition
from souvenir.api.extraction_models import ExtractFigures
from souvenir.api.fields import wire_time
from souvenir.api.json_route import router
from souvenir.api.service import Service
from souvenir.process_memory import peak_kb, resident_kb
from souvenir.types import Scope, Stats

routes = router("figures")

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
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "total_memories": 1204,
                    "dimension": 384,
                    "model": "all-MiniLM-L6-v2",
                    "created_at": "2025-04-01T08:00:00.000000+00:00",
                    "last_updated": "2025-04-02T09:30:00.000000+00:00",
                    "index_size_bytes": 2097152,
                    "backup_count": 3,
                }
            ]
        }
    )

    total_memories: int
    dimension: int
    model: str
    created_at: str | None = Field(description="When the namespace was first written to; null if it never was.")
    last_updated: str | None
    index_size_bytes: int = Field(description="Memory that the namespace's index takes; 0 while it is not loaded.")
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
    error_count: int = Field(description="Answers of 400 and above.")
    error_rate_pct: float
    avg_latency_ms: float
    p95_latency_ms: float = Field(description="Of the newest 512.")
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
    timestamp: str
    total: int


class MemoryTrend(BaseModel):
    window_size: int = Field(description="Answers of this route that are compared, at most.")
    delta: int = Field(description="The newest sample less the oldest.")
    samples: list[TotalSample]


class ProcessMemory(BaseModel):
    rss_kb: int = Field(description="Resident memory of the process, in KiB.")
    max_rss_kb: int = Field(description="The most that it ever was.")


class MemoryMetrics(BaseModel):
    current_total: int = Field(description="Memories of the namespace.")
    trend: MemoryTrend
    process: ProcessMemory


class MetricsResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "uptime_sec": 3600.2,
                    "requests": {
                        "total_count": 3,
                        "error_count": 1,
                        "error_rate_pct": 33.33,
                        "active_http_requests": 1,
                    },
                    "routes": {
                        "POST /search": {
                            "count": 3,
                            "error_count": 1,
                            "error_rate_pct": 33.33,
                            "avg_latency_ms": 6.21,
                            "p95_latency_ms": 9.87,
                            "max_latency_ms": 9.87,
                            "last_status_code": 200,
                        }
                    },
                    "memory": {
                        "current_total": 1204,
                        "trend": {
                            "window_size": 60,
                            "delta": 0,
                            "samples": [{"timestamp": "2025-04-02T09:30:00.000000+00:00", "total": 1204}],
                        },
                        "process": {"rss_kb": 214016, "max_rss_kb": 220160},
                    },
                    "extract": {
                        "queue_depth": 0,
                        "queue_max": 32,
                        "queue_remaining": 32,
                        "workers": 2,
                        "jobs_tracked": 12,
                    },
                    **NOT_YET,
                }
            ]
        }
    )

    uptime_sec: float
    requests: RequestMetrics
    routes: dict[str, RouteMetrics] = Field(description="By method and template, such as `GET /memory/{memory_id}`.")
    memory: MemoryMetrics
    extract: ExtractFigures
    embedder_reload: dict[str, int] = Field(description="All 0: the model stays loaded.")
    promotion: dict[str, int] = Field(description="All 0: nothing is promoted yet.")


class UsageResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"enabled": False}]})

    enabled: bool = Field(description="False: what clients do is not tracked; `/metrics` counts requests by route.")


@routes.get("/usage", summary="Ask whether use is tracked", responses=error_responses())
def usage(
    scope: Admin,
    period: Annotated[
        str, Query(pattern="^(today|daily|7d|30d|all)$", description="Read by services that track use.")
    ] = "7d",
    session_id: Annotated[str, Query(max_length=200, description="The same.")] = "",
) -> UsageResponse:
    """Say that what clients do is not tracked."""
    return UsageResponse(enabled=False)


@routes.get("/stats", summary="Get statistics", responses=error_responses())
def stats(scope: Admin, engine: Engine) -> StatsResponse:
    """Get what the namespace holds."""
    return StatsResponse.of(engine.stats(scope))


@routes.get(
    "/metrics",
    summary="Get metrics",
    response_model=MetricsResponse,
    responses={**error_responses(), 200: {"content": dict.fromkeys(EXPOSITION_TYPES, EXPOSITION)}},
)
def metrics(scope: Admin, request: Request) -> MetricsResponse | Response:
    """Get what the process was asked and what it takes, as Prometheus reads it or, if `Accept` names it, as JSON."""
    service, accept = service_of(request), request.headers.get("Accept", "")
    if _asks_for_json(accept):
        return _metrics_of(service, scope)
    text, content_type = exposition(service.instruments, accept)
    return Response(text, media_type=content_type)


def _metrics_of(service: Service, scope: Scope) -> MetricsResponse:
    counters = service.counters
    total = service.engine.count(scope)
    trend = _trend(counters.sample(scope.namespace, total))
    return MetricsResponse(
        uptime_sec=round(counters.uptime_s, 1),
        requests=_request_metrics(counters),
        routes={str(route): RouteMetrics.of(figures) for route, figures in counters.figures().items()},
        memory=MemoryMetrics(
            current_total=total, trend=trend, process=ProcessMemory(rss_kb=resident_kb(), max_rss_kb=peak_kb())
        ),
        extract=ExtractFigures.of(service.extraction.jobs.figures),
        **NOT_YET,
    )


def _asks_for_json(accept: str) -> bool:
    """Whether JSON is named. What takes anything gets the text, as Prometheus and browsers do."""
    return any(part.partition(";")[0].strip().lower() == "application/json" for part in accept.split(","))


def _request_metrics(counters: RequestCounters) -> RequestMetrics:
    figures = counters.figures().values()
    count, errors = sum(route.count for route in figures), sum(route.error_count for route in figures)
    return RequestMetrics(
        total_count=count,
        error_count=errors,
        error_rate_pct=_percent(errors, count),
        active_http_requests=counters.active,
    )


def _trend(taken: Sequence[Sample]) -> MemoryTrend:
    samples = [TotalSample(timestamp=wire_time(sample.at), total=sample.total) for sample in taken]
    return MemoryTrend(window_size=SAMPLES_KEPT, delta=taken[-1].total - taken[0].total, samples=samples)


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0
