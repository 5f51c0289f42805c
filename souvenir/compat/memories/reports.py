"""Reports on the quality of searches and extractions, from feedback, retrievals, usage and the extraction ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from fastapi import Query
from pydantic import BaseModel, Field

from souvenir.api.fields import MAX_SOURCE_CHARS, wire_time
from souvenir.api.memories import source_filter
from souvenir.api.usage import DAYS_OF
from souvenir.core.ledger import FactStage, Verdict
from souvenir.core.timestamps import EPOCH, utc_now
from souvenir.core.types import EvidenceLevel, Scope, SourceFilter
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import NOTHING, OF_MEMORY, Admin, Reader, RunningService
from souvenir.server.routing import Routes
from souvenir.server.search_statistics import EVIDENCE, LINKED, NONE, RETURNED, SEARCH, SOME, TIMED
from souvenir.server.service import Service
from souvenir.store.admin.jobs import JobStatus
from souvenir.store.admin.usage import UsageRow
from souvenir.store.memories import quality
from souvenir.store.memories.quality import (
    ExtractionCounts,
    Failure,
    FeedbackCounts,
    MemoryCounts,
    ProblemQuery,
    StaleMemory,
)

routes = Routes("figures")

PERIOD = "^(today|daily|7d|30d|all)$"
NO_FEEDBACK, NO_MEMORIES = FeedbackCounts(0, 0, 0, 0), MemoryCounts(0, 0, 0, 0)

Period = Annotated[
    str,
    Query(pattern=PERIOD, description="`today` (or `daily`), `7d`, `30d` or `all`: whole days in UTC, today included."),
]
ReportLimit = Annotated[int, Query(ge=1, le=100, description="Maximum number of items.")]
Share = Annotated[float | None, Field(ge=0.0, le=1.0, description="Null without any.", examples=[0.75])]


class FeedbackFigures(BaseModel):
    useful: int = Field(description="Judgements, of which a caller may make several on a memory.")
    not_useful: int
    useful_share: Share
    memories: int = Field(description="Memories that were judged.")
    missed: int = Field(description="Reports of `POST /memory/missed`.")

    @classmethod
    def of(cls, counts: FeedbackCounts) -> FeedbackFigures:
        return cls(
            useful=counts.useful,
            not_useful=counts.not_useful,
            useful_share=_share(counts.useful, counts.useful + counts.not_useful),
            memories=counts.memories,
            missed=counts.missed,
        )


class SearchFigures(BaseModel):
    """Searches by `/search`, `/search/batch`, `/search/evidence` and the tools of MCP."""

    total: int
    without_results: int
    mean_results: float | None = Field(description="Results of a search on average; null without searches.")
    evidence: dict[EvidenceLevel, int] = Field(
        description="Searches by `evidence`.", examples=[{"strong": 7, "weak": 2, "none": 1}]
    )
    with_time: int = Field(description="Searches that had a time filter, or whose query names a time.")
    with_linked_results: int = Field(description="Searches with a result that only a link with another one brought.")

    @classmethod
    def of(cls, rows: Iterable[UsageRow]) -> SearchFigures:
        calls = Counter[tuple[str, str]]()
        for row in rows:
            calls[row.dimension, row.name] += row.calls
        evidence = {level: calls[EVIDENCE, level.value] for level in EvidenceLevel}
        total = sum(evidence.values())
        return cls(
            total=total,
            without_results=calls[RETURNED, NONE],
            mean_results=round(calls[RETURNED, SOME] / total, 2) if total else None,
            evidence=evidence,
            with_time=calls[TIMED, SOME],
            with_linked_results=calls[LINKED, SOME],
        )


class DayFigures(SearchFigures):
    date: str = Field(examples=["2025-04-02"])


class ExtractionFigures(BaseModel):
    """Counts of the jobs that were submitted in the period and are still stored."""

    jobs: dict[JobStatus, int] = Field(description="Jobs by status.", examples=[{"completed": 12, "failed": 1}])
    success_share: Share
    facts: dict[FactStage, int] = Field(
        description="Proposed facts by stage.", examples=[{"applied": 40, "skipped": 11}]
    )
    verdicts: dict[Verdict, int] = Field(description="Facts by decision.", examples=[{"ADD": 38, "NOOP": 11}])

    @classmethod
    def of(cls, counts: ExtractionCounts) -> ExtractionFigures:
        completed = counts.jobs.get(JobStatus.COMPLETED, 0)
        return cls(
            jobs={one: counts.jobs.get(one, 0) for one in JobStatus},
            success_share=_share(completed, completed + counts.jobs.get(JobStatus.FAILED, 0)),
            facts={one: counts.facts.get(one, 0) for one in FactStage},
            verdicts={one: counts.verdicts.get(one, 0) for one in Verdict},
        )


class MemoryFigures(BaseModel):
    active: int
    archived: int
    retrieved: int = Field(description="Active memories that a search returned at least once.")
    never_retrieved: int = Field(description="The other active memories.")
    dated: int = Field(description="Active memories with a `document_at`.")

    @classmethod
    def of(cls, counts: MemoryCounts) -> MemoryFigures:
        return cls(
            active=counts.active,
            archived=counts.archived,
            retrieved=counts.retrieved,
            never_retrieved=counts.active - counts.retrieved,
            dated=counts.dated,
        )


class _PeriodReport(BaseModel):
    period: str = Field(examples=["7d"])
    since: str = Field(description="The begin of the period.", examples=["2025-03-27T00:00:00.000000+00:00"])


class SearchQualityResponse(_PeriodReport):
    source_prefix: str | None = Field(examples=["claude-code/"])
    feedback: FeedbackFigures
    searches: SearchFigures | None = Field(
        description="Null with a `source_prefix`, for a key of some sources, and if USAGE_TRACKING is off: searches "
        "are counted for the whole namespace."
    )
    by_day: list[DayFigures] | None = Field(description="The same by day, oldest first, without days of no search.")


class ExtractionQualityResponse(_PeriodReport, ExtractionFigures):
    pass


class QualitySummaryResponse(_PeriodReport):
    feedback: FeedbackFigures
    searches: SearchFigures | None = Field(description="Null if USAGE_TRACKING is off.")
    extraction: ExtractionFigures
    memories: MemoryFigures


class FailureRecord(BaseModel):
    kind: str = Field(
        description="`not_useful`: a judgement; `missed`: a report; `extraction`: a failed job.", examples=["missed"]
    )
    at: str = Field(examples=["2025-04-02T09:30:00.000000+00:00"])
    source: str = Field(description="The source of the memory or of the transcript.", examples=["claude-code/billing"])
    memory_id: int | None
    job_id: str | None = Field(examples=["6f1c7c1e2f0b4c579d6a0a4bb6f6a1d2"])
    text: Annotated[str | None, OF_MEMORY] = Field(
        default=None, description="The judged query, or the context of the report."
    )
    error: str | None = Field(description="The error of the job.", examples=["The model could not be reached"])

    @classmethod
    def of(cls, failure: Failure) -> FailureRecord:
        return cls(
            kind=failure.kind,
            at=wire_time(failure.at),
            source=failure.source,
            memory_id=failure.memory_id,
            job_id=failure.job_id,
            text=failure.text,
            error=failure.error,
        )


class FailuresResponse(BaseModel):
    type: str = Field(examples=["retrieval"])
    failures: list[FailureRecord] = Field(description="Newest first.")
    count: int


class ProblemQueryRecord(BaseModel):
    query: Annotated[str, OF_MEMORY]
    votes: int = Field(description="Latest judgements, one for each caller and memory.")
    not_useful: int
    not_useful_share: float
    memories: int = Field(description="Memories that were judged for this query.")
    last_at: str = Field(description="The time of the last vote.", examples=["2025-04-02T09:30:00.000000+00:00"])

    @classmethod
    def of(cls, found: ProblemQuery) -> ProblemQueryRecord:
        return cls(
            query=found.query,
            votes=found.votes,
            not_useful=found.not_useful,
            not_useful_share=round(found.not_useful / found.votes, 4),
            memories=found.memories,
            last_at=wire_time(found.last_at),
        )


class ProblemQueriesResponse(BaseModel):
    queries: list[ProblemQueryRecord] = Field(description="Queries with results that were not useful, worst first.")
    count: int


class StaleMemoryRecord(BaseModel):
    id: int
    text: Annotated[str, OF_MEMORY]
    source: str = Field(examples=["claude-code/billing"])
    updated_at: str = Field(examples=["2025-04-02T09:30:00.000000+00:00"])
    retrievals: int = Field(description="Searches that returned it.")
    last_retrieved_at: str = Field(examples=["2025-04-02T09:30:00.000000+00:00"])
    not_useful: int = Field(description="Callers whose latest judgement is that it was not useful.")

    @classmethod
    def of(cls, found: StaleMemory) -> StaleMemoryRecord:
        return cls(
            id=found.id,
            text=found.text,
            source=found.source,
            updated_at=wire_time(found.updated_at),
            retrievals=found.retrievals,
            last_retrieved_at=wire_time(found.last_retrieved_at),
            not_useful=found.not_useful,
        )


class StaleMemoriesResponse(BaseModel):
    memories: list[StaleMemoryRecord] = Field(
        description="Active memories that searches return and nobody found useful: first by votes against them, then "
        "by retrievals."
    )
    count: int


class GraphSearchResponse(_PeriodReport):
    user_links: int = Field(description="Links between memories, of the types that callers can make.")
    searches: int | None = Field(description="All searches of the period. Null if USAGE_TRACKING is off.")
    with_linked_results: int | None = Field(
        description="Searches with a result that only a link with another one brought."
    )
    with_linked_results_share: Share


class TemporalSearchResponse(_PeriodReport):
    searches: int | None = Field(description="Null if USAGE_TRACKING is off.")
    with_time: int | None = Field(description="Searches that had a time filter, or whose query names a time.")
    with_time_share: Share
    memories: int = Field(description="Active memories.")
    dated_memories: int = Field(description="Those of them with a `document_at`.")


@routes.get(
    "/metrics/search-quality",
    summary="Report search quality",
    cost=CostClass.LIGHT,
    access=NOTHING,
    sdk="figures.search_quality",
)
def search_quality(
    scope: Reader,
    service: RunningService,
    period: Period = "7d",
    source_prefix: Annotated[
        str | None, Query(max_length=MAX_SOURCE_CHARS, description="Only memories whose source begins so.")
    ] = None,
) -> SearchQualityResponse:
    """Count judgements, missed memories and searches of a period, as far as the key may see them."""
    is_whole = scope.sources is None and not source_prefix
    days = _searches(service, scope, period) if is_whole else None
    source = source_filter(source_prefix, boundary=False) if source_prefix else None
    return SearchQualityResponse(
        **_of_period(period),
        source_prefix=source_prefix,
        feedback=_feedback(service, scope, period, source),
        searches=_total(days),
        by_day=None
        if days is None
        else [DayFigures(date=date, **dict(SearchFigures.of(rows))) for date, rows in days.items()],
    )


@routes.get(
    "/metrics/extraction-quality",
    summary="Report extraction quality",
    cost=CostClass.LIGHT,
    sdk="figures.extraction_quality",
)
def extraction_quality(scope: Admin, service: RunningService, period: Period = "7d") -> ExtractionQualityResponse:
    """Count extraction jobs of a period, their facts and the decisions about them."""
    figures = _extraction(service, scope, period)
    return ExtractionQualityResponse.model_validate({**_of_period(period), **dict(figures)})


@routes.get(
    "/metrics/quality-summary", summary="Summarise quality", cost=CostClass.LIGHT, sdk="figures.quality_summary"
)
def quality_summary(scope: Admin, service: RunningService, period: Period = "7d") -> QualitySummaryResponse:
    """Count judgements, searches, extractions and retrieved memories of the namespace."""
    return QualitySummaryResponse(
        **_of_period(period),
        feedback=_feedback(service, scope, period, None),
        searches=_total(_searches(service, scope, period)),
        extraction=_extraction(service, scope, period),
        memories=MemoryFigures.of(_memories(service, scope)),
    )


@routes.get("/metrics/failures", summary="List failures", cost=CostClass.LIGHT, sdk="figures.failures")
def failures(
    scope: Admin,
    service: RunningService,
    type: Annotated[
        Literal["retrieval", "extraction"],
        Query(
            description="`retrieval`: judgements that a memory was not useful, and missed memories; "
            "`extraction`: failed jobs."
        ),
    ] = "retrieval",
    limit: ReportLimit = 10,
) -> FailuresResponse:
    """List the newest failures of searches, as callers reported them, or of extractions."""
    with service.engine.namespace(scope) as (connection, namespace):
        if type == "extraction":
            found = quality.extraction_failures(connection, scope.namespace, limit=limit)
        else:
            found = [] if namespace is None else quality.retrieval_failures(connection, namespace, limit=limit)
    return FailuresResponse(type=type, failures=[FailureRecord.of(one) for one in found], count=len(found))


@routes.get(
    "/metrics/problem-queries", summary="List problem queries", cost=CostClass.LIGHT, sdk="figures.problem_queries"
)
def problem_queries(
    scope: Admin,
    service: RunningService,
    min_feedback: Annotated[int, Query(ge=1, le=2**31, description="Minimum number of votes on a query.")] = 2,
    limit: ReportLimit = 20,
) -> ProblemQueriesResponse:
    """List queries whose results were judged not useful, the worst first."""
    with service.engine.namespace(scope) as (connection, namespace):
        found = (
            []
            if namespace is None
            else quality.problem_queries(connection, namespace, min_votes=min_feedback, limit=limit)
        )
    return ProblemQueriesResponse(queries=[ProblemQueryRecord.of(one) for one in found], count=len(found))


@routes.get(
    "/metrics/stale-memories", summary="List stale memories", cost=CostClass.LIGHT, sdk="figures.stale_memories"
)
def stale_memories(
    scope: Admin,
    service: RunningService,
    min_retrievals: Annotated[
        int, Query(ge=1, le=2**31, description="Minimum number of searches that returned a memory.")
    ] = 3,
    limit: ReportLimit = 20,
) -> StaleMemoriesResponse:
    """List memories that searches return and nobody found useful."""
    service.searches.flush()
    with service.engine.namespace(scope) as (connection, namespace):
        found = (
            []
            if namespace is None
            else quality.stale_memories(connection, namespace, min_retrievals=min_retrievals, limit=limit)
        )
    return StaleMemoriesResponse(memories=[StaleMemoryRecord.of(one) for one in found], count=len(found))


@routes.get(
    "/metrics/graph-search", summary="Report searches by links", cost=CostClass.LIGHT, sdk="figures.graph_search"
)
def graph_search(scope: Admin, service: RunningService, period: Period = "7d") -> GraphSearchResponse:
    """Count the links between memories, and the searches of a period that found something by them."""
    searches = _total(_searches(service, scope, period))
    with service.engine.namespace(scope) as (connection, namespace):
        links = 0 if namespace is None else quality.count_user_links(connection, namespace)
    return GraphSearchResponse(
        **_of_period(period),
        user_links=links,
        searches=None if searches is None else searches.total,
        with_linked_results=None if searches is None else searches.with_linked_results,
        with_linked_results_share=None if searches is None else _share(searches.with_linked_results, searches.total),
    )


@routes.get(
    "/metrics/temporal-search", summary="Report searches by time", cost=CostClass.LIGHT, sdk="figures.temporal_search"
)
def temporal_search(scope: Admin, service: RunningService, period: Period = "7d") -> TemporalSearchResponse:
    """Count searches of a period that had a time, and memories that have one."""
    searches, memories = _total(_searches(service, scope, period)), _memories(service, scope)
    return TemporalSearchResponse(
        **_of_period(period),
        searches=None if searches is None else searches.total,
        with_time=None if searches is None else searches.with_time,
        with_time_share=None if searches is None else _share(searches.with_time, searches.total),
        memories=memories.active,
        dated_memories=memories.dated,
    )


def _since(period: str) -> datetime:
    today = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
    return EPOCH if period == "all" else today - timedelta(days=DAYS_OF[period] - 1)


def _of_period(period: str) -> dict[str, str]:
    return {"period": period, "since": wire_time(_since(period))}


def _feedback(service: Service, scope: Scope, period: str, source: SourceFilter | None) -> FeedbackFigures:
    with service.engine.namespace(scope) as (connection, namespace):
        counts = NO_FEEDBACK
        if namespace is not None:
            counts = quality.feedback_counts(connection, namespace, _since(period), source)
    return FeedbackFigures.of(counts)


def _extraction(service: Service, scope: Scope, period: str) -> ExtractionFigures:
    with service.engine.namespace(scope) as (connection, _):
        return ExtractionFigures.of(quality.extraction_counts(connection, scope.namespace, _since(period)))


def _memories(service: Service, scope: Scope) -> MemoryCounts:
    service.searches.flush()
    with service.engine.namespace(scope) as (connection, namespace):
        return NO_MEMORIES if namespace is None else quality.memory_counts(connection, namespace)


def _searches(service: Service, scope: Scope, period: str) -> Mapping[str, list[UsageRow]] | None:
    """Return the facts about searches by date, oldest first; None if they are not counted."""
    if not service.usage.enabled:
        return None
    service.searches.flush()
    days: dict[str, list[UsageRow]] = {}
    rows = service.usage.since((_since(period) - EPOCH).days, scope.namespace)
    for row in sorted(rows, key=lambda one: one.day):
        if row.operation == SEARCH and row.dimension in (EVIDENCE, RETURNED, TIMED, LINKED):
            date = datetime.fromtimestamp(row.day * 86_400, UTC).date().isoformat()
            days.setdefault(date, []).append(row)
    return days


def _total(days: Mapping[str, list[UsageRow]] | None) -> SearchFigures | None:
    return None if days is None else SearchFigures.of(row for rows in days.values() for row in rows)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
