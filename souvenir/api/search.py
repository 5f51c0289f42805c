"""Search over memories, one query or many, with an explanation for admins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from enum import StrEnum
from functools import partial
from itertools import accumulate, islice
from typing import Annotated, Any, Self

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from souvenir.api.fields import (
    EMPTY_IS_MISSING,
    AsOf,
    Clean,
    EndMoment,
    EvidenceOfAnswer,
    HitScore,
    MinScore,
    Moment,
    OptionalSource,
    RelevanceShare,
    SourcePath,
    TagList,
    TagMatch,
    source_path,
)
from souvenir.api.memories import RECORD_EXAMPLE, MemoryRecord, record_fields, source_filter
from souvenir.api.metadata import MetadataFilter
from souvenir.api.verification import (
    AnswerQuote,
    AnswerReason,
    DeadlineMs,
    OptionalAnswered,
    Verify,
    verdict_fields,
)
from souvenir.conversations.verification import Verdict, passages_of
from souvenir.core.concurrency import answer_due
from souvenir.core.errors import SourceForbidden
from souvenir.core.labels import is_visible
from souvenir.core.timestamps import utc_now
from souvenir.core.types import (
    Filters,
    Hit,
    LinkSupport,
    Scope,
    SearchQuery,
    SearchResult,
    SourceFilter,
    SourceMatch,
    Weights,
)
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import SEARCHING, Reader, RunningService, charged_caller, result_limit
from souvenir.server.routing import Routes
from souvenir.server.service import Service

routes = Routes("search")

REFERENCE_DATE = "The reference time for times in the query, recency and confidence; now by default."

AUTO_INTENT = (
    "Interpret times in the query, such as `in May 2023` or `last week`: results of that time score higher. A "
    "query for when something was said (`what did I tell you yesterday`) sets `since` and `until` if neither is "
    "given; a query for the latest sets `recency_weight` to 0.2 if it is 0."
)

FEEDBACK_WEIGHT = (
    "Weight of feedback: the score of a memory is multiplied by 1 + `feedback_weight` * (useful - not useful) / "
    "(votes + 2), where a caller has one vote on a memory. 0, the default, ignores feedback; some clients of other "
    "services send 0.1. Not applied with `hybrid` false or `as_of`."
)

THRESHOLD = (
    "Minimum cosine similarity of a result that was found by its meaning alone. Results that the words found pass: "
    "those that contain a word of the query other than stop words, or stand next to one that does. With `hybrid` "
    "`false` it bounds every result. `min_score` bounds every result in both modes."
)

Share = Annotated[float, Field(ge=0.0, le=1.0)]

OTHER_NAMES = {"top_k": "k", "topk": "k", "limit": "k", "n_results": "k", "text": "query", "q": "query"}
"""Names that other services give to fields of a search."""

MAX_WARNINGS, MAX_NAME_CHARS = 20, 100

Warnings = Annotated[
    list[str],
    Field(
        description="Fields of the request that are unknown and were ignored; present only if there are any.",
        examples=[["Unknown field `topk` was ignored; did you mean `k`?"]],
    ),
]


class WarningBody(BaseModel):
    """A body whose unknown fields are kept, so that the answer can name them."""

    model_config = ConfigDict(extra="allow")

    def warnings(self) -> list[str]:
        """Return one sentence for each unknown field, for the first `MAX_WARNINGS`."""
        return [self._warning(name) for name in islice(self.model_extra or (), MAX_WARNINGS)]

    def _warning(self, name: str) -> str:
        known = type(self).model_fields
        near = [OTHER_NAMES.get(name.lower(), ""), *get_close_matches(name.lower()[:MAX_NAME_CHARS], known, 1, 0.75)]
        meant = next((one for one in near if one in known), None)
        hint = "GET /openapi.json lists the known ones" if meant is None else f"did you mean `{meant}`?"
        return f"Unknown field `{name[:MAX_NAME_CHARS]}` was ignored; {hint}"


class SearchRequest(WarningBody):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "which database does billing use", "k": 3, "source_prefix": "claude-code/"}]
        }
    )

    query: Annotated[str, StringConstraints(min_length=1, max_length=10_000), Clean] = Field(
        description="The search query, in any words."
    )
    k: int = Field(default=5, ge=1, le=100, description="Maximum number of results.")
    hybrid: bool = Field(default=True, description="Search by words and by meaning; `false`: by meaning only.")
    threshold: Share | None = Field(default=None, description=THRESHOLD)
    min_score: MinScore = None
    vector_weight: Share = Field(
        default=0.7, description="The weight of meaning; the default keeps the calibrated balance."
    )
    recency_weight: Share = Field(
        default=0.0, description="Weight of the recency in the score: 0.5 ** (age / half-life)."
    )
    recency_half_life_days: float = Field(
        default=30.0, gt=0.0, le=365.0, description="The half-life of recency in days."
    )
    confidence_weight: Share = Field(default=0.0, description="Weight of the confidence in the score.")
    feedback_weight: Share = Field(default=0.0, description=FEEDBACK_WEIGHT)
    graph_weight: Share = Field(
        default=0.1,
        description="Share of its score that a result passes to the memories that a user linked with it, in either "
        "direction; docs/retrieval.md has the formula. 0: links are not followed, and the graph's fields left out. Not "
        "applied with `hybrid` false.",
    )
    auto_intent: bool = Field(default=True, description=AUTO_INTENT)
    include_archived: bool = Field(default=False, description="Include archived and superseded memories.")
    source: OptionalSource = Field(default="", description="Accepted and ignored; use `source_prefix` to filter.")
    source_prefix: OptionalSource | None = Field(default=None, description="Only sources that start with this prefix.")
    source_boundary: bool = Field(
        default=False, description="Treat `source_prefix` as a path: match it and everything below it."
    )
    source_prefixes: Annotated[list[SourcePath], Field(min_length=1, max_length=100)] | None = Field(
        default=None,
        description="Source paths; a result lies at or below one of them. Cannot be combined with `source_prefix`.",
    )
    metadata: MetadataFilter | None = Field(default=None, description="Metadata keys and their exact values.")
    tags: TagList = Field(
        default=[],
        description="Tags (case-insensitive); a result has any of them, or all of them with `tag_match` `all`.",
    )
    tag_match: TagMatch = Field(default=TagMatch.ANY, description="`any` or `all` of `tags`.")
    since: Annotated[Moment | None, EMPTY_IS_MISSING] = Field(
        default=None, description="Earliest `document_at`, or `created_at` if there is none."
    )
    until: Annotated[EndMoment | None, EMPTY_IS_MISSING] = Field(
        default=None, description="Latest time; a date alone includes that whole day."
    )
    reference_date: Annotated[Moment | None, EMPTY_IS_MISSING] = Field(default=None, description=REFERENCE_DATE)
    as_of: AsOf | None = Field(
        default=None,
        description="Search the state at this time; ISO-8601, UTC without an offset. It is also the reference time "
        "unless `reference_date` is set.",
    )

    @model_validator(mode="after")
    def _one_kind_of_source_filter(self) -> Self:
        if self.source_prefix and self.source_prefixes:
            raise ValueError("source_prefix and source_prefixes exclude each other")
        if self.source_prefix and self.source_boundary:
            source_path(self.source_prefix)
        return self

    def to_query(self, scope: Scope, *, explain: bool = False) -> SearchQuery:
        """:raises SourceForbidden: If one of `source_prefixes` lies outside of the scope."""
        for path in self.source_prefixes or ():
            if not is_visible(path, scope.sources):
                raise SourceForbidden(path, may_not="read")
        return SearchQuery(
            text=self.query,
            top_k=self.k,
            hybrid=self.hybrid,
            threshold=self.threshold,
            min_score=self.min_score,
            now=self.reference_date,
            weights=self.weights(),
            explain=explain,
            auto_intent=self.auto_intent,
            link_weight=self.graph_weight,
            filters=Filters(
                sources=self._sources(),
                since=self.since,
                until=self.until,
                metadata=self.metadata or {},
                tags=tuple(self.tags),
                all_tags=self.tag_match is TagMatch.ALL,
                include_archived=self.include_archived,
            ),
        )

    def weights(self) -> Weights:
        return Weights(
            vector=self.vector_weight,
            recency=self.recency_weight,
            recency_half_life_days=self.recency_half_life_days,
            confidence=self.confidence_weight,
            feedback=self.feedback_weight,
        )

    def _sources(self) -> tuple[SourceFilter, ...]:
        if self.source_prefixes:
            return tuple(SourceFilter(path, SourceMatch.PATH) for path in self.source_prefixes)
        return (source_filter(self.source_prefix, boundary=self.source_boundary),) if self.source_prefix else ()


class VerifiableSearchRequest(SearchRequest):
    """A search whose results a reader may check."""

    verify: Verify = False
    deadline_ms: DeadlineMs = None


class MatchType(StrEnum):
    """How a result was found: by the query, or by a link that a user made to a memory that was."""

    DIRECT = "direct"
    BOTH = "direct+graph"
    GRAPH = "graph"


class SearchBatchRequest(WarningBody):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"queries": [{"query": "database of billing"}, {"query": "who is on call"}]}]}
    )

    queries: list[SearchRequest] = Field(min_length=1, max_length=200, description="Answered in the same order.")


class SearchHit(MemoryRecord):
    """A memory and its scores: `score` in both modes, `similarity` in vector mode, the others in hybrid mode."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**RECORD_EXAMPLE, "score": 0.62, "similarity": 0.61}]})

    similarity: float | None = Field(
        default=None, description="Cosine similarity between the query and the best passage."
    )
    score: HitScore | None = None
    rrf_score: float | None = Field(
        default=None,
        description="Reciprocal rank fusion of the two arms, k = 60, in [0, 1/60]: the greatest of this result and "
        "those after it, so that it never rises from one result to the next.",
    )
    base_rrf_score: float | None = Field(default=None, description="Equal to `rrf_score`; links add nothing to it.")
    match_type: MatchType | None = Field(
        default=None,
        description="`direct`: found by the query; `direct+graph`: also linked with another result that the query "
        "found; `graph`: returned because of such a link.",
    )
    graph_support: float | None = Field(
        default=None, description="The probability that the links add: `score` is 1 - (1 - p) * (1 - this)."
    )
    graph_via: list[int] | None = Field(
        default=None, description="The ids of the memories found by the query that it is linked with, best first."
    )
    relative_score: float | None = Field(
        default=None,
        description="The score before calibration, or in vector mode the similarity, of this result or a later one, "
        "whichever is greatest, divided by the best one of this response. It never rises.",
    )

    @classmethod
    def of_hit(cls, hit: Hit, now: datetime, *, embedded: bool) -> SearchHit:
        """A hit with its score and cosine similarity.

        :param embedded: True if the query was embedded; else there is no cosine.
        """
        similarity = round(hit.parts.similarity, 6) if embedded else None
        scores = {"score": hit.score, "similarity": similarity}
        return cls.model_validate({**_plain_fields(hit, now), **scores})


SCORE_FIELDS = (SearchHit.model_fields.keys() - MemoryRecord.model_fields.keys()) | {"explanation"}
"""Names that only a search gives; metadata of the same name is kept, and shown by the routes that do not search."""


class SearchResponse(BaseModel):
    query: str
    results: list[SearchHit] = Field(description="Best first.")
    count: int
    relevance: RelevanceShare
    evidence: EvidenceOfAnswer
    degraded: list[str] = Field(
        description="Components that could not run, or not within `deadline_ms`: an arm (`vector`, `lexical`), the "
        "cross-encoder (`rerank`), late interaction (`late`), `links`, or with `as_of` texts that were different at "
        "the time (`past_texts`: more than 200, or they could not be embedded); empty if all ran.",
        examples=[[]],
    )
    warnings: Warnings = []
    answered: OptionalAnswered = None
    answer_quote: AnswerQuote = None
    answer_reason: AnswerReason = None

    @classmethod
    def of(cls, request: SearchRequest, result: SearchResult, verdict: Verdict | None = None) -> SearchResponse:
        hits = hit_fields(request, result)
        return cls.model_validate(
            {
                "query": result.query,
                "results": hits,
                "count": len(hits),
                "relevance": result.relevance,
                "evidence": result.evidence,
                "degraded": list(result.degraded),
                **warning_fields(request),
                **(verdict_fields(verdict) if verdict else {}),
            }
        )


class SearchBatchResponse(BaseModel):
    results: list[SearchResponse] = Field(description="In the order of the queries.")
    count: int
    warnings: Warnings = []


def warning_fields(body: WarningBody) -> dict[str, Any]:
    """Return the field `warnings` of an answer, if there are any."""
    found = body.warnings()
    return {"warnings": found} if found else {}


def hit_fields(request: SearchRequest, result: SearchResult) -> list[dict[str, Any]]:
    """The fields of every hit, by mode; `relative_score` is 0 where the best score says nothing."""
    now = request.reference_date or request.as_of or utc_now()
    ordering = _never_rising([hit.parts.raw_score if request.hybrid else hit.parts.similarity for hit in result.hits])
    fusion = _never_rising([hit.parts.rrf_score for hit in result.hits])
    best = max(ordering, default=0.0)
    return [
        {
            **_plain_fields(hit, now),
            **_scores(request, hit, rrf_score),
            "relative_score": round(max(0.0, value / best), 4) if best > 0 else 0.0,
        }
        for hit, value, rrf_score in zip(result.hits, ordering, fusion, strict=True)
    ]


def _never_rising(scores: Sequence[float]) -> list[float]:
    """Return for each score the greatest of it and those after it: clients sort by these fields."""
    return list(accumulate(reversed(scores), max))[::-1]


def _plain_fields(hit: Hit, now: datetime) -> dict[str, Any]:
    """A record without metadata that looks like a score, and with the facts that were found."""
    fields = record_fields(hit.memory, now)
    for name in SCORE_FIELDS & hit.memory.metadata.keys():
        del fields[name]
    if hit.facts:
        found = [{"id": one.fact.id, "text": one.fact.text, "score": one.score} for one in hit.facts]
        fields["facts"] = found
    return fields


def _scores(request: SearchRequest, hit: Hit, rrf_score: float) -> dict[str, Any]:
    if not request.hybrid:
        return {"score": hit.score, "similarity": round(hit.parts.similarity, 6)}
    rrf_score = round(rrf_score, 6)
    scores: dict[str, Any] = {"score": hit.score, "rrf_score": rrf_score}
    if request.graph_weight > 0:
        scores |= {"base_rrf_score": rrf_score, **_link_fields(hit.support)}
    return scores


def _link_fields(support: LinkSupport | None) -> dict[str, Any]:
    if support is None:
        return {"match_type": MatchType.DIRECT, "graph_support": 0.0, "graph_via": []}
    match_type = MatchType.BOTH if support.direct else MatchType.GRAPH
    return {"match_type": match_type, "graph_support": support.share, "graph_via": list(support.via)}


@routes.post(
    "/search",
    summary="Search memories",
    cost=CostClass.SEARCH,
    access=SEARCHING,
    sdk="memories.search",
    idempotent=True,
)
def search(body: VerifiableSearchRequest, scope: Reader, service: RunningService, request: Request) -> SearchResponse:
    """Find the memories that best match a query, by meaning and by words; filters apply before ranking."""
    query = _query(body, scope, request)
    with answer_due(body.deadline_ms):
        result = service.engine.search(scope, query, body.as_of)
        service.searches.note(scope, query, result)
        return SearchResponse.of(body, result, _verdict(body, scope, service, result) if body.verify else None)


@routes.post(
    "/search/batch",
    summary="Run a batch of searches",
    cost=CostClass.LONG,
    access=SEARCHING,
    sdk="memories.search_batch",
    idempotent=True,
)
async def search_batch(
    body: SearchBatchRequest, scope: Reader, service: RunningService, request: Request
) -> SearchBatchResponse:
    """Run up to 200 searches in one request; each waits for its turn as a search of its own does."""
    places, caller = service.admission.places[CostClass.SEARCH], charged_caller(request)
    results = [
        await places.run_part(caller, partial(service.threads.run, _part, query, scope, service, request))
        for query in body.queries
    ]
    return SearchBatchResponse(results=results, count=len(results), **warning_fields(body))


def _part(body: SearchRequest, scope: Scope, service: Service, request: Request) -> SearchResponse:
    query = _query(body, scope, request)
    result = service.engine.search(scope, query, body.as_of)
    service.searches.note(scope, query, result)
    return SearchResponse.of(body, result)


def _verdict(body: VerifiableSearchRequest, scope: Scope, service: Service, result: SearchResult) -> Verdict:
    return service.verification.read(
        scope,
        body.query,
        passages_of(result.hits),
        degraded=result.degraded,
        asked_at=body.reference_date or body.as_of,
    )


def _query(body: SearchRequest, scope: Scope, request: Request) -> SearchQuery:
    query = body.to_query(scope)
    return replace(query, top_k=result_limit(request, query.top_k))
