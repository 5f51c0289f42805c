"""What a search takes and answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from souvenir.api.fields import (
    AsOf,
    Clean,
    EndMoment,
    Moment,
    OptionalSource,
    SourcePath,
    TagList,
    TagMatch,
    source_path,
    without_trailing_slash,
)
from souvenir.api.metadata import MetadataFilter
from souvenir.api.records import RECORD_EXAMPLE, MemoryRecord, record_fields
from souvenir.api.relevance_fields import EvidenceOfAnswer, RelevanceShare
from souvenir.errors import SourceForbidden
from souvenir.moments import utc_now
from souvenir.sources import is_visible
from souvenir.types import Filters, Hit, Scope, SearchQuery, SearchResult, SourceFilter, SourceMatch, Weights

REFERENCE_DATE = "What counts as now, for times in the query, recency and confidence."

AUTO_INTENT = (
    "Read what the query says of when, such as `in May 2023` or `last week`: what is of that time scores higher. "
    "Asking when something was said (`what did I tell you yesterday`) fills `since` and `until` if neither is given; "
    "asking for the latest sets `recency_weight` to 0.2 if it is 0."
)

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class SearchRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "which database does billing use", "k": 3, "source_prefix": "claude-code/"}]
        }
    )

    query: Annotated[str, StringConstraints(min_length=1, max_length=10_000), Clean] = Field(
        description="What to look for, in any words."
    )
    k: int = Field(default=5, ge=1, le=100, description="Results wanted.")
    hybrid: bool = Field(default=True, description="By words and by meaning; `false`: by meaning alone.")
    threshold: Share | None = Field(default=None, description="Least cosine to the query that a result must have.")
    vector_weight: Share = Field(default=0.7, description="Share of meaning; the default leaves the measured balance.")
    recency_weight: Share = Field(default=0.0, description="Added times 0.5 ** (age / half-life).")
    recency_half_life_days: float = Field(
        default=30.0, gt=0.0, le=365.0, description="Age at which recency counts half."
    )
    confidence_weight: Share = Field(default=0.0, description="Added times the confidence.")
    feedback_weight: Share = Field(default=0.1, description="Kept back in `rrf_score`; no feedback is recorded yet.")
    graph_weight: Share = Field(
        default=0.1,
        description="Above 0 the graph's fields are sent. It changes no score: measured, the graph would find no more.",
    )
    auto_intent: bool = Field(default=True, description=AUTO_INTENT)
    include_archived: bool = Field(default=False, description="Also what was archived or superseded.")
    source: OptionalSource = Field(default="", description="Accepted and not used; `source_prefix` filters.")
    source_prefix: OptionalSource | None = Field(default=None, description="Sources that begin with this.")
    source_boundary: bool = Field(
        default=False, description="Take `source_prefix` as a path: itself and what lies below it."
    )
    source_prefixes: Annotated[list[SourcePath], Field(min_length=1, max_length=100)] | None = Field(
        default=None,
        description="Paths, any of which the source may equal or lie below; not together with `source_prefix`.",
    )
    metadata: MetadataFilter | None = Field(
        default=None, description="Metadata keys and the exact values they must have."
    )
    tags: TagList = Field(
        default=[], description="Tags, in any case; a result has any of them, or with `tag_match` `all` all of them."
    )
    tag_match: TagMatch = Field(default=TagMatch.ANY, description="`any` or `all` of `tags`.")
    since: Moment | None = Field(
        default=None, description="Earliest `document_at`, or `created_at` where there is none."
    )
    until: EndMoment | None = Field(default=None, description="Latest; a date alone includes that whole day.")
    reference_date: Moment | None = Field(default=None, description=REFERENCE_DATE)
    as_of: AsOf | None = Field(
        default=None,
        description="Search what was stored at this moment, as it was; ISO-8601, UTC without an offset. It counts as "
        "now unless `reference_date` says otherwise.",
    )

    @model_validator(mode="after")
    def _one_kind_of_source_filter(self) -> Self:
        if self.source_prefix and self.source_prefixes:
            raise ValueError("source_prefix and source_prefixes exclude each other")
        if self.source_prefix and self.source_boundary:
            source_path(self.source_prefix)
        return self

    def to_query(self, scope: Scope, *, explain: bool = False) -> SearchQuery:
        """:raises SourceForbidden: If one of `source_prefixes` lies outside of what the scope may see."""
        for path in self.source_prefixes or ():
            if not is_visible(path, scope.sources):
                raise SourceForbidden(path, may_not="read")
        return SearchQuery(
            text=self.query,
            top_k=self.k,
            hybrid=self.hybrid,
            threshold=self.threshold,
            now=self.reference_date,
            weights=self.weights(),
            explain=explain,
            auto_intent=self.auto_intent,
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


def source_filter(prefix: str, *, boundary: bool) -> SourceFilter:
    """A plain beginning, or with `boundary` a path."""
    if boundary:
        return SourceFilter(without_trailing_slash(prefix), SourceMatch.PATH)
    return SourceFilter(prefix, SourceMatch.PREFIX)


class SearchBatchRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"queries": [{"query": "database of billing"}, {"query": "who is on call"}]}]}
    )

    queries: list[SearchRequest] = Field(min_length=1, max_length=200, description="Answered in this order.")


class SearchHit(MemoryRecord):
    """A memory and its scores: `similarity` in vector mode, the others in hybrid mode."""

    similarity: float | None = Field(default=None, description="Cosine between the query and the best passage.")
    score: float | None = Field(default=None, description="What hybrid results are ordered by.")
    rrf_score: float | None = Field(default=None, description="Reciprocal rank fusion of the two arms, k = 60.")
    base_rrf_score: float | None = Field(default=None, description="`rrf_score`, of which the graph is no part.")
    match_type: str | None = Field(default=None, description="Always `direct`: found by the query itself.")
    graph_support: float | None = Field(default=None, description="Always 0: the graph does not score.")
    graph_via: list[int] | None = Field(default=None, description="Always empty.")
    relative_score: float | None = Field(default=None, description="The score divided by the best one of this answer.")

    @classmethod
    def of_hit(cls, hit: Hit, now: datetime, *, embedded: bool) -> SearchHit:
        """With its score and its cosine.

        :param embedded: Whether the query was; else there is no cosine.
        """
        similarity = round(hit.parts.similarity, 6) if embedded else None
        scores = {"score": round(hit.score, 6), "similarity": similarity}
        return cls.model_validate({**_plain_fields(hit, now), **scores})


SCORE_FIELDS = (SearchHit.model_fields.keys() - MemoryRecord.model_fields.keys()) | {"explanation"}
"""Names that only a search gives; metadata of the same name is kept, and shown by the routes that do not search."""

HIT_EXAMPLE = {
    **RECORD_EXAMPLE,
    "score": 1.482913,
    "rrf_score": 0.014754,
    "base_rrf_score": 0.014754,
    "match_type": "direct",
    "graph_support": 0.0,
    "graph_via": [],
    "relative_score": 1.0,
}


ANSWER_EXAMPLE: dict[str, Any] = {"relevance": 0.9213, "evidence": "strong", "degraded": []}


class SearchResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "which database does billing use", "results": [HIT_EXAMPLE], "count": 1, **ANSWER_EXAMPLE}
            ]
        }
    )

    query: str
    results: list[SearchHit] = Field(description="Best first.")
    count: int
    relevance: RelevanceShare
    evidence: EvidenceOfAnswer
    degraded: list[str] = Field(
        description="What could not run: an arm (`vector`, `lexical`), the cross-encoder (`rerank`), or with `as_of` "
        "texts that read otherwise then (`past_texts`: there are more than 200, or they could not be embedded); empty "
        "if all did."
    )

    @classmethod
    def of(cls, request: SearchRequest, result: SearchResult) -> SearchResponse:
        hits = [SearchHit.model_validate(fields) for fields in hit_fields(request, result)]
        return cls(
            query=result.query,
            results=hits,
            count=len(hits),
            relevance=result.relevance,
            evidence=result.evidence,
            degraded=list(result.degraded),
        )


class SearchBatchResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "results": [
                        {"query": "database of billing", "results": [HIT_EXAMPLE], "count": 1, **ANSWER_EXAMPLE}
                    ],
                    "count": 1,
                }
            ]
        }
    )

    results: list[SearchResponse] = Field(description="In the order of the queries.")
    count: int


def hit_fields(request: SearchRequest, result: SearchResult) -> list[dict[str, Any]]:
    """The fields of every hit, by mode; `relative_score` is 0 where the best score says nothing."""
    now = request.reference_date or request.as_of or utc_now()
    ordering = [hit.score if request.hybrid else hit.parts.similarity for hit in result.hits]
    best = max(ordering, default=0.0)
    return [
        {
            **_plain_fields(hit, now),
            **_scores(request, hit),
            "relative_score": round(max(0.0, value / best), 4) if best > 0 else 0.0,
        }
        for hit, value in zip(result.hits, ordering, strict=True)
    ]


def _plain_fields(hit: Hit, now: datetime) -> dict[str, Any]:
    """A record without metadata that looks like a score, and with the facts that were found."""
    fields = {name: value for name, value in record_fields(hit.memory, now).items() if name not in SCORE_FIELDS}
    if hit.facts:
        found = [{"id": one.fact.id, "text": one.fact.text, "score": round(one.score, 6)} for one in hit.facts]
        fields["facts"] = found
    return fields


def _scores(request: SearchRequest, hit: Hit) -> dict[str, Any]:
    if not request.hybrid:
        return {"similarity": round(hit.parts.similarity, 6)}
    rrf_score = round(hit.parts.rrf_score, 6)
    scores: dict[str, Any] = {"score": round(hit.score, 6), "rrf_score": rrf_score}
    if request.graph_weight > 0:
        scores |= {"base_rrf_score": rrf_score, "match_type": "direct", "graph_support": 0.0, "graph_via": []}
    return scores
